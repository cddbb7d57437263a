"""What a requester's webhooks are signed with: made at first need, stored encrypted."""

import base64
import secrets

from django.db import transaction

from encryption import decrypt, encrypt, reencrypt
from marketplace.models import Requester

PREFIX = "whsec_"
SECRET_BYTES = 32


def webhook_secret(requester: Requester, *, renew: bool = False) -> str:
    """The requester's secret; with `renew` a new one, and the former signs nothing more."""
    if requester.encrypted_webhook_secret and not renew:
        return decrypt(requester.encrypted_webhook_secret)
    return _make(requester, renew=renew)


@transaction.atomic
def _make(requester: Requester, *, renew: bool) -> str:
    row = Requester.objects.select_for_update(no_key=True).get(pk=requester.pk)
    if row.encrypted_webhook_secret and not renew:
        return decrypt(row.encrypted_webhook_secret)
    secret = PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    row.encrypted_webhook_secret = encrypt(secret)
    row.save(update_fields=["encrypted_webhook_secret"])
    return secret


@transaction.atomic
def reencrypt_webhook_secrets() -> int:
    """Encrypt all of them under the first of ENCRYPTION_KEYS; return how many changed."""
    n_changed = 0
    rows = Requester.objects.exclude(encrypted_webhook_secret="")
    for row in rows.select_for_update(no_key=True).order_by("pk"):
        stored = reencrypt(row.encrypted_webhook_secret)
        if stored != row.encrypted_webhook_secret:
            row.encrypted_webhook_secret = stored
            row.save(update_fields=["encrypted_webhook_secret"])
            n_changed += 1
    return n_changed

import base64
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from encryption import decrypt, encrypt, reencrypt_column
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import AccessKeyDoesNotExist, TooManyKeys
from marketplace.models import AccessKey, AuditEntry, Requester
from marketplace.users import User

# Secret access keys.
#
# SigV4 needs the secret itself to check a signature, so a hash of it won't do: it is random, and
# encrypted under ENCRYPTION_KEYS beside its access key. Whoever copies the database, or learns
# SECRET_KEY, learns no secret. A single key is ended by setting `AccessKey.revoked_at`.

KEY_BYTES = 30  # 40 characters, as Amazon's have
NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class IssuedKey:
    requester: Requester
    access_key_id: str
    secret_access_key: str


def create_key(*, requester: Requester, label: str = "", at: datetime) -> IssuedKey:
    secret = secrets.token_urlsafe(KEY_BYTES)
    key = AccessKey.objects.create(
        requester=requester, label=label, created_at=at, encrypted_secret=encrypt(secret)
    )
    return IssuedKey(requester, key.access_key_id, secret)


def find_active_key(access_key_id: str) -> AccessKey | None:
    """The active key with its requester, or None."""
    if "\x00" in access_key_id:  # which no database text has
        return None
    keys = AccessKey.objects.select_related("requester")
    return keys.filter(access_key_id=access_key_id, revoked_at=None).first()


def secret_of(key: AccessKey) -> str:
    return decrypt(key.encrypted_secret)


@transaction.atomic
def reencrypt_secrets() -> int:
    return reencrypt_column(AccessKey.objects.all(), "encrypted_secret")


def note_use(key: AccessKey, *, now: datetime) -> None:
    """Record the last use, to the minute."""
    if key.last_used_at is None or key.last_used_at < now - NOTED_EVERY:
        AccessKey.objects.filter(pk=key.pk).update(last_used_at=now)


MOST_KEYS = 20


@transaction.atomic
def issue_key(*, requester: Requester, label: str, user: User | None) -> IssuedKey:
    Requester.objects.select_for_update(no_key=True).get(pk=requester.pk)
    if AccessKey.objects.filter(requester=requester, revoked_at=None).count() >= MOST_KEYS:
        raise TooManyKeys(f"A requester has at most {MOST_KEYS} keys: revoke one first.")
    key = create_key(requester=requester, label=label, at=clock.now())
    detail = {"is_of_a_user": user is not None}  # which stays known when the user is deleted
    note("key.issue", subject=key.access_key_id, user=user, requester=requester, detail=detail)
    return key


@transaction.atomic
def revoke_key(*, requester: Requester, access_key_id: str, user: User | None) -> None:
    """Revoke a key; repeating it changes nothing."""
    mine = AccessKey.objects.filter(requester=requester, access_key_id=access_key_id)
    if not mine.exists():
        raise AccessKeyDoesNotExist(access_key_id)
    if mine.filter(revoked_at=None).update(revoked_at=clock.now()):
        note("key.revoke", subject=access_key_id, user=user, requester=requester)


def is_owners(key: AccessKey) -> bool:
    """Whether the key may read who participants are: an owner issued it, or the operator or an
    enrolling site did."""
    issue = AuditEntry.objects.filter(action="key.issue", subject=key.access_key_id).first()
    if issue is None:  # of before keys were written down
        return True
    if issue.user_id is None:
        # Of before it was written down: people name their keys, operators' programs do not.
        return not issue.detail.get("is_of_a_user", bool(key.label))
    return key.requester.owners.filter(pk=issue.user_id).exists()


# What a requester's webhooks are signed with: made at first need, stored encrypted.

PREFIX = "whsec_"
SECRET_BYTES = 32


def webhook_secret(requester: Requester, *, renew: bool = False) -> str:
    """The requester's secret; `renew` replaces it."""
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
    rows = Requester.objects.exclude(encrypted_webhook_secret="")
    return reencrypt_column(rows, "encrypted_webhook_secret")

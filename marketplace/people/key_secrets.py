"""Secret access keys.

SigV4 needs the secret itself to check a signature, so a hash of it won't do: it is random, and
encrypted under ENCRYPTION_KEYS beside its access key. Whoever copies the database, or learns
SECRET_KEY, learns no secret. A single key is ended by setting `AccessKey.revoked_at`.

Keys issued before secrets were stored have none: theirs was the HMAC-SHA256 of the access key id
under SECRET_KEY. They go on working, and the secret is stored at their first use
(`adopt_secret`) or by `manage.py reencrypt_secrets`.
"""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils.crypto import salted_hmac

from encryption import decrypt, encrypt, reencrypt
from marketplace.models import AccessKey, Requester

FORMER_SALT = "marketplace.secret_access_key"
SECRET_BYTES = 30  # 40 characters, as Amazon's have
NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class IssuedKey:
    """A new key with its secret, to be shown once."""

    requester: Requester
    access_key_id: str
    secret_access_key: str


def create_key(*, requester: Requester, label: str = "", at: datetime) -> IssuedKey:
    """A key with a random secret, stored encrypted."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    key = AccessKey.objects.create(
        requester=requester, label=label, created_at=at, encrypted_secret=encrypt(secret)
    )
    return IssuedKey(requester, key.access_key_id, secret)


def find_active_key(access_key_id: str) -> AccessKey | None:
    """The active key with this id, its requester loaded; None where there is none."""
    if "\x00" in access_key_id:  # which no database text has
        return None
    keys = AccessKey.objects.select_related("requester")
    return keys.filter(access_key_id=access_key_id, revoked_at=None).first()


def secrets_of(key: AccessKey) -> Sequence[str]:
    """The key's secret; of a key that has none stored, what it may be: SECRET_KEY may have been
    changed since the key was issued."""
    if key.encrypted_secret:
        return [decrypt(key.encrypted_secret)]
    former = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [_derived_secret(key.access_key_id, secret_key) for secret_key in former]


def adopt_secret(key: AccessKey, secret: str) -> None:
    """Store the secret that a request was signed with, where none is stored yet."""
    if not key.encrypted_secret:
        without = AccessKey.objects.filter(pk=key.pk, encrypted_secret="")
        without.update(encrypted_secret=encrypt(secret))


@transaction.atomic
def reencrypt_secrets() -> tuple[int, int]:
    """Encrypt all secrets under the first of ENCRYPTION_KEYS, and store those that were derived.
    Return how many changed, and how many must wait for their first use because SECRET_KEY was
    changed and several secrets are possible."""
    n_changed = n_waiting = 0
    for key in AccessKey.objects.select_for_update(no_key=True).order_by("pk"):
        possible = [] if key.encrypted_secret else secrets_of(key)
        if len(possible) > 1:
            n_waiting += 1
            continue
        stored = encrypt(possible[0]) if possible else reencrypt(key.encrypted_secret)
        if stored != key.encrypted_secret:
            key.encrypted_secret = stored
            key.save(update_fields=["encrypted_secret"])
            n_changed += 1
    return n_changed, n_waiting


def note_use(key: AccessKey, *, now: datetime) -> None:
    """Write down when a key was last used, to the minute."""
    if key.last_used_at is None or key.last_used_at < now - NOTED_EVERY:
        AccessKey.objects.filter(pk=key.pk).update(last_used_at=now)


def _derived_secret(access_key_id: str, secret_key: str) -> str:
    digest = salted_hmac(FORMER_SALT, access_key_id, secret=secret_key, algorithm="sha256").digest()
    return base64.b64encode(digest).decode("ascii")

"""Secrets at rest, and seals. What must be read back, and so cannot be hashed, is encrypted
under the keys of the setting ENCRYPTION_KEYS: the first encrypts, each of them decrypts.

To change keys, put a new one before the old, restart, let the owners of stored secrets encrypt
and seal them again (`manage.py reencrypt_secrets`, `reencrypt_second_factors`,
`reseal_audit_log`), then take the old one away. A seal shows later that a text is one which was
sealed here, for a purpose: it is made under a key of that purpose, derived from the first, and
holds under each of them. The package is no app and imports none, so that any may use it.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class UndecryptableSecret(ValueError):
    """A stored secret that none of the keys opens."""

    def __init__(self) -> None:
        super().__init__(
            "A stored secret was encrypted under none of the ENCRYPTION_KEYS. Add the key that "
            "was in use when it was stored after the present one, and restart."
        )


def encrypt(text: str) -> str:
    return _keys().encrypt(text.encode()).decode("ascii")


def decrypt(token: str) -> str:
    try:
        return _keys().decrypt(token).decode()
    except InvalidToken as error:
        raise UndecryptableSecret from error


def reencrypt(token: str) -> str:
    """The same text under the first key; the token itself where that is the key already."""
    if _is_current(token):
        return token
    try:
        return _keys().rotate(token).decode("ascii")
    except InvalidToken as error:
        raise UndecryptableSecret from error


def reencrypt_column(
    rows: Any, column: str, seal_again: Callable[[Any], list[str]] = lambda row: []
) -> int:
    """Encrypt a column of a QuerySet's rows under the first key; return how many changed.

    `seal_again` is given each changed row before it is stored, and returns the columns that it
    changes too.
    """
    n_changed = 0
    for row in rows.select_for_update(no_key=True).order_by("pk"):
        stored = reencrypt(getattr(row, column))
        if stored != getattr(row, column):
            setattr(row, column, stored)
            row.save(update_fields=[column, *seal_again(row)])
            n_changed += 1
    return n_changed


def seal(text: str, *, purpose: str) -> str:
    """An HMAC-SHA256 of the text under the first key, in hexadecimal."""
    return _seal(text, _sealing_key(settings.ENCRYPTION_KEYS[0], purpose))


def seals(text: str, *, purpose: str) -> list[str]:
    """The text's seal under each of the keys, the present one first: what is looked up by its
    seal may have been sealed under an earlier key."""
    return [_seal(text, _sealing_key(key, purpose)) for key in settings.ENCRYPTION_KEYS]


def is_sealed(text: str, token: str, *, purpose: str) -> bool:
    """Whether the text was sealed so, for this purpose, under any of the keys."""
    keys = (_sealing_key(key, purpose) for key in settings.ENCRYPTION_KEYS)
    return any(hmac.compare_digest(_seal(text, key), token) for key in keys)


def _seal(text: str, key: bytes) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


@lru_cache(maxsize=64)
def _sealing_key(encryption_key: str, purpose: str) -> bytes:
    """Other than the key that encrypts, from which nothing of it can be learned (RFC 5869)."""
    derivation = HKDF(SHA256(), length=32, salt=None, info=f"assay seal: {purpose}".encode())
    return derivation.derive(base64.urlsafe_b64decode(encryption_key))


def _is_current(token: str) -> bool:
    try:
        Fernet(settings.ENCRYPTION_KEYS[0]).decrypt(token)
    except InvalidToken:
        return False
    return True


def _keys() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])

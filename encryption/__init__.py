"""Secrets at rest. What must be read back, and so cannot be hashed, is encrypted under the keys
of the setting ENCRYPTION_KEYS: the first encrypts, each of them decrypts.

To change keys, put a new one before the old, restart, let the owners of stored secrets
encrypt them again (`manage.py reencrypt_secrets`), then take the old one away. The package is
no app and imports none, so that any of them may use it.
"""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class UndecryptableSecret(ValueError):
    """A stored secret that none of the keys opens."""

    def __init__(self) -> None:
        super().__init__(
            "A stored secret was encrypted under none of the ENCRYPTION_KEYS. Add the key that "
            "was in use when it was stored after the present one, and restart."
        )


def encrypt(text: str) -> str:
    """The text encrypted under the first key, in printable characters."""
    return _keys().encrypt(text.encode()).decode("ascii")


def decrypt(token: str) -> str:
    """The text that was encrypted."""
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


def _is_current(token: str) -> bool:
    try:
        Fernet(settings.ENCRYPTION_KEYS[0]).decrypt(token)
    except InvalidToken:
        return False
    return True


def _keys() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])

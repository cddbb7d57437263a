"""The keys a site signs and encrypts with, checked before anything starts.

Keys that stand in this repository are for a machine of one's own: with DEBUG, or where neither
SITE_URL nor ALLOWED_HOSTS names anything but loopback.
"""

import base64
import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

# The prefix lets Django's own `check --deploy` recognise it too (security.W009).
DEVELOPMENT_KEY = "django-insecure-development-only-key-never-use-it-where-others-can-reach-it"
FORMER_DEVELOPMENT_KEY = "development-only-key-never-use-it-where-others-can-reach-the-site"
DEVELOPMENT_ENCRYPTION_KEY = base64.urlsafe_b64encode(b"development-only-encryption-key!").decode()
PUBLISHED_KEYS = (DEVELOPMENT_KEY, FORMER_DEVELOPMENT_KEY, DEVELOPMENT_ENCRYPTION_KEY)
INSECURE_PREFIX = "django-insecure-"
# Anyone with a signed cookie can try out shorter keys.
LEAST_CHARACTERS = 32

MAKE_KEY = "python -c 'import secrets; print(secrets.token_urlsafe(50))'"
MAKE_ENCRYPTION_KEY = (
    "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
)


def is_own_machine(*, debug: bool, site_url: str, allowed_hosts: Sequence[str]) -> bool:
    """Whether this site is for whoever sits at its machine, and for nobody else."""
    hosts = [urlsplit(site_url).hostname or "", *allowed_hosts]
    return debug or all(map(_is_loopback, hosts))


def signing_keys(key: str, former_keys: str, *, own_machine: bool) -> tuple[str, list[str]]:
    """SECRET_KEY and SECRET_KEY_FALLBACKS, from what the environment says."""
    key, fallbacks = key.strip(), _listed(former_keys)
    if own_machine:
        return key or DEVELOPMENT_KEY, fallbacks or ([] if key else [FORMER_DEVELOPMENT_KEY])
    if not key:
        raise _refusal("SECRET_KEY is not set", MAKE_KEY)
    if any(map(is_published, (key, *fallbacks))):
        raise _refusal(
            "SECRET_KEY or one of SECRET_KEY_FALLBACKS is a published key, which anybody can read",
            MAKE_KEY,
        )
    if len(key) < LEAST_CHARACTERS:
        raise _refusal(
            f"SECRET_KEY has fewer than {LEAST_CHARACTERS} characters and can be guessed", MAKE_KEY
        )
    return key, fallbacks


def encryption_keys(keys: str, *, own_machine: bool) -> list[str]:
    """ENCRYPTION_KEYS; the first encrypts."""
    listed = _listed(keys)
    for key in listed:
        if not _is_encryption_key(key):
            raise _refusal(
                "ENCRYPTION_KEYS holds something else than 32 bytes in URL-safe base64",
                MAKE_ENCRYPTION_KEY,
            )
    if own_machine:
        # What was stored before `make run` wrote a key of its own can still be read.
        return [*listed, DEVELOPMENT_ENCRYPTION_KEY]
    if not listed:
        raise _refusal("ENCRYPTION_KEYS is not set", MAKE_ENCRYPTION_KEY)
    if any(map(is_published, listed)):
        raise _refusal(
            "One of ENCRYPTION_KEYS is a published key, which anybody can read",
            MAKE_ENCRYPTION_KEY,
        )
    return listed


def _listed(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_published(key: str) -> bool:
    """Whether anybody can read the key in this repository, or it says of itself that it is weak."""
    # The last letter of an encryption key has bits that say nothing: it has several spellings.
    spelt = DEVELOPMENT_ENCRYPTION_KEY[:-2]
    is_encryption_key = key.startswith(spelt) and len(key) == len(DEVELOPMENT_ENCRYPTION_KEY)
    return key in PUBLISHED_KEYS or key.startswith(INSECURE_PREFIX) or is_encryption_key


def _is_encryption_key(key: str) -> bool:
    try:
        return key.isascii() and len(base64.b64decode(key, altchars=b"-_", validate=True)) == 32
    except ValueError:
        return False


def _refusal(problem: str, command: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"{problem}, and others can reach this site (SITE_URL or ALLOWED_HOSTS is not this "
        f"machine). Make a key with {command} and put it into the environment or .env."
    )

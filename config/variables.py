"""Environment variables read one by one, and databases, buckets and keys by them."""

import base64
import ipaddress
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from error_codes import require

YES, NO = ("true", "1", "yes", "y", "on", "ok"), ("false", "0", "no", "n", "off", "")
HEADER = re.compile(r"[A-Za-z0-9-]+")
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def require_address(name: str, url: str, example: str) -> None:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    require(
        is_address,
        ImproperlyConfigured(f"{name} is '{url}'; it must be an address such as {example}."),
    )


def require_choice(name: str, value: str, choices: Iterable[str]) -> None:
    require(
        value in choices,
        ImproperlyConfigured(f"{name} is '{value}'; it must be {' or '.join(choices)}."),
    )


def number(name: str, default: float, *, least: float = 0) -> float:
    text = os.environ.get(name, "").strip()
    try:
        value = float(text) if text else float(default)
    except ValueError:
        value = math.nan
    require(
        least <= value < math.inf,
        ImproperlyConfigured(f"{name} is '{text}'; it must be a number from {least:g} up."),
    )
    return value


def natural_number(name: str, default: int) -> int:
    value = number(name, default)
    if value != int(value):
        raise ImproperlyConfigured(f"{name} is '{os.environ[name]}'; it must be a whole number.")
    return int(value)


def boolean(name: str, *, default: bool) -> bool:
    """True or false. What is neither is refused: taken for false it would turn protection off."""
    if name not in os.environ:
        return default
    text = os.environ[name].strip().lower()
    if text not in YES + NO:
        raise ImproperlyConfigured(f"{name} is '{os.environ[name]}'; it must be true or false.")
    return text in YES


def header(name: str) -> str | None:
    text = os.environ.get(name, "").strip()
    require(
        not text or HEADER.fullmatch(text),
        ImproperlyConfigured(
            f"{name} is '{text}'; it must be the name of a header, such as X-Real-IP."
        ),
    )
    return text or None


def host_names(name: str) -> list[str]:
    names = [each.strip().lower() for each in os.environ.get(name, "").split(",") if each.strip()]
    for each in names:
        require(
            HOST_NAME.fullmatch(each),
            ImproperlyConfigured(
                f"{name} has '{each}'; it must be names of hosts, without ports, such as "
                "mturk.assay.example.org."
            ),
        )
    return names


def details_by_name(text: str) -> dict[str, str]:
    """Names with what is said of each behind a colon, and semicolons between."""
    pairs = (each.partition(":") for each in text.split(";") if each.strip())
    return {name.strip(): details.strip() for name, _, details in pairs}


def url_settings(name: str, what: str, example: str, read: Callable[[], Any]) -> dict[str, Any]:
    """What `read` makes of a variable's URL, with a default of its own.

    An error is without the value, which may hold a password.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which print the value
            return dict(read())
    except (ValueError, ImproperlyConfigured):
        raise ImproperlyConfigured(
            f"{name} is not the address of {what}, such as {example}."
        ) from None


POOL_WAIT_SECONDS = 10
# Of a statement's time: one that only waited for others is told from one that is too slow.
LOCK_SHARE = 0.8
# A background worker has one for its job, and one for the heartbeat beside it.
SMALLEST_POOL = 2


def sqlite_settings() -> dict[str, Any]:
    return {
        # Readers never wait for the writer, and a writer waits its turn instead of failing.
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 60,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        "CONN_MAX_AGE": 60,
    }


def postgres_settings(
    *, is_pooled: bool, statement_seconds: float, pool_size: int = 0
) -> dict[str, Any]:
    """What Django's settings of the database have beside its address.

    A pooler gives each transaction another connection, so that no cursor may outlive one, and it
    takes no options of a session. A pool of this process's own has so many connections for all
    of its threads; each has one for the time of a request.
    """
    require(
        not pool_size or not is_pooled,
        ImproperlyConfigured(
            "DATABASE_POOL_SIZE is a pool in each process, and DATABASE_POOLER one outside of all; "
            "set one of them."
        ),
    )
    if 0 < pool_size < SMALLEST_POOL:
        raise ImproperlyConfigured(
            f"DATABASE_POOL_SIZE is {pool_size}; it must be {SMALLEST_POOL} or more, or 0 for none."
        )
    require(
        not is_pooled or not statement_seconds,
        ImproperlyConfigured(
            "DATABASE_STATEMENT_SECONDS cannot be set by way of a pooler (DATABASE_POOLER); set it "
            "in the database: ALTER ROLE assay SET statement_timeout = '30s'."
        ),
    )
    options: dict[str, Any] = {}
    if statement_seconds:
        milliseconds = round(1000 * statement_seconds)
        lock_milliseconds = round(LOCK_SHARE * milliseconds)
        limits = {"statement_timeout": milliseconds, "lock_timeout": lock_milliseconds}
        options["options"] = " ".join(f"-c {name}={limit}" for name, limit in limits.items())
    if pool_size:
        options["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": POOL_WAIT_SECONDS}
    return {
        "CONN_HEALTH_CHECKS": True,
        # The pool keeps connections; this side gives each back after its request.
        "CONN_MAX_AGE": 0 if is_pooled or pool_size else 60,
        "DISABLE_SERVER_SIDE_CURSORS": is_pooled,
        "OPTIONS": options,
    }


EXAMPLES = "s3://BUCKET/FOLDER or file:///FOLDER"
# What people sent is for the site's own user to read.
OF_ITS_USER = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}


def object_storage(url: str, endpoint_url: str, folder: Path) -> dict[str, Any]:
    parts = urlsplit(url)
    if not url or (parts.scheme == "file" and parts.path and not parts.netloc):
        return {
            "BACKEND": "work.contents.SyncedFolder",
            "OPTIONS": {"location": str(Path(parts.path) if url else folder), **OF_ITS_USER},
        }
    if parts.scheme != "s3" or not parts.netloc or parts.query or "@" in parts.netloc:
        # Without the value, which may hold a password.
        raise ImproperlyConfigured(
            f"OBJECTS_URL is not the address of a storage, such as {EXAMPLES}."
        )
    options: dict[str, Any] = {
        "bucket_name": parts.netloc,
        "location": parts.path.strip("/"),
        # Nothing there is for the web: whoever may read it reads it by way of the site.
        "default_acl": None,
        "querystring_auth": True,
        "file_overwrite": True,
    }
    if endpoint_url:
        options["endpoint_url"] = endpoint_url
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}


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
    return debug or all(map(_is_loopback, [urlsplit(site_url).hostname or "", *allowed_hosts]))


def signing_keys(key: str, former_keys: str, *, own_machine: bool) -> tuple[str, list[str]]:
    key, fallbacks = key.strip(), _listed(former_keys)
    if own_machine:
        return key or DEVELOPMENT_KEY, fallbacks or ([] if key else [FORMER_DEVELOPMENT_KEY])
    require(key, _refusal("SECRET_KEY is not set", MAKE_KEY))
    require(
        not any(map(is_published, (key, *fallbacks))),
        _refusal(
            "SECRET_KEY or one of SECRET_KEY_FALLBACKS is a published key, which anybody can read",
            MAKE_KEY,
        ),
    )
    require(
        len(key) >= LEAST_CHARACTERS,
        _refusal(
            f"SECRET_KEY has fewer than {LEAST_CHARACTERS} characters and can be guessed", MAKE_KEY
        ),
    )
    return key, fallbacks


def encryption_keys(keys: str, *, own_machine: bool) -> list[str]:
    listed = _listed(keys)
    for key in listed:
        require(
            _is_encryption_key(key),
            _refusal(
                "ENCRYPTION_KEYS holds something else than 32 bytes in URL-safe base64",
                MAKE_ENCRYPTION_KEY,
            ),
        )
    if own_machine:
        # What was stored before `make run` wrote a key of its own can still be read.
        return [*listed, DEVELOPMENT_ENCRYPTION_KEY]
    require(listed, _refusal("ENCRYPTION_KEYS is not set", MAKE_ENCRYPTION_KEY))
    require(
        not any(map(is_published, listed)),
        _refusal(
            "One of ENCRYPTION_KEYS is a published key, which anybody can read",
            MAKE_ENCRYPTION_KEY,
        ),
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

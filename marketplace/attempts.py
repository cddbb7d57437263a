"""No guessing of passwords: after so many failures a name must wait, from one address.

The count is kept in the cache. Without CACHE_URL that is each process's own memory, which
multiplies the limit by the number of processes; a shared cache makes it exact.
"""

import hashlib

from django.core.cache import cache
from django.http import HttpRequest

ALLOWED_FAILURES = 10
WAIT_SECONDS = 15 * 60


def is_blocked(request: HttpRequest | None, username: str) -> bool:
    """Whether this name must wait before it can be tried again from here."""
    return int(cache.get(_key(request, username)) or 0) >= ALLOWED_FAILURES


def count_failure(request: HttpRequest | None, username: str) -> None:
    """Note that a password was wrong."""
    key = _key(request, username)
    if not cache.add(key, 1, WAIT_SECONDS):
        try:
            cache.incr(key)
        except ValueError:  # it ran out between the two calls
            cache.set(key, 1, WAIT_SECONDS)


def forget(request: HttpRequest | None, username: str) -> None:
    """Begin anew, after a success."""
    cache.delete(_key(request, username))


def _key(request: HttpRequest | None, username: str) -> str:
    address = request.META.get("REMOTE_ADDR", "") if request else ""
    who = f"{username.casefold()}\0{address}"
    return f"marketplace.sign-in.{hashlib.sha256(who.encode()).hexdigest()}"

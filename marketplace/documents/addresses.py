"""Web addresses that strangers wrote."""

from collections.abc import Container
from urllib.parse import urlsplit


def is_web_address(text: str, *, schemes: Container[str] = ("https", "http")) -> bool:
    """Whether this is a full address of one of these schemes."""
    try:
        parts = urlsplit(text)
        return parts.scheme in schemes and bool(parts.hostname)
    except ValueError:
        return False

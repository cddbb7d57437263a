"""Environment variables read one by one; an error names the variable and says what it must be."""

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

YES, NO = ("true", "1", "yes", "y", "on", "ok"), ("false", "0", "no", "n", "off", "")
HEADER = re.compile(r"[A-Za-z0-9-]+")
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def is_address(url: str) -> bool:
    """Whether it is an address of the web."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def require_address(name: str, url: str, example: str) -> None:
    """Refuse what is no address of the web."""
    if not is_address(url):
        raise ImproperlyConfigured(f"{name} is '{url}'; it must be an address such as {example}.")


def require_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        raise ImproperlyConfigured(f"{name} is '{value}'; it must be {' or '.join(choices)}.")


def number(name: str, default: float, *, least: float = 0) -> float:
    """A number that is not below the least."""
    text = os.environ.get(name, "").strip()
    try:
        value = float(text) if text else float(default)
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        raise ImproperlyConfigured(f"{name} is '{text}'; it must be a number from {least:g} up.")
    return value


def natural_number(name: str, default: int) -> int:
    """A whole number from 0 up."""
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
    """The name of an HTTP header; None where none is set."""
    text = os.environ.get(name, "").strip()
    if text and not HEADER.fullmatch(text):
        raise ImproperlyConfigured(
            f"{name} is '{text}'; it must be the name of a header, such as X-Real-IP."
        )
    return text or None


def host_names(name: str) -> list[str]:
    """Host names with commas between, in lower case; none where none is set."""
    names = [each.strip().lower() for each in os.environ.get(name, "").split(",") if each.strip()]
    for each in names:
        if not HOST_NAME.fullmatch(each):
            raise ImproperlyConfigured(
                f"{name} has '{each}'; it must be names of hosts, without ports, such as "
                "mturk.assay.example.org."
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
        message = f"{name} is not the address of {what}, such as {example}."
        raise ImproperlyConfigured(message) from None

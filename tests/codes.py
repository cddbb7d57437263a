"""Codes of errors, messages and forms, which tests look at instead of texts."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from error_codes import CodedError


def refused(error: type[CodedError], code: str = "") -> Any:
    """A block that must raise the error, with this code if one is given."""
    return pytest.raises(error, check=lambda raised: not code or raised.code == code)


def message_codes(answer: Any) -> list[str]:
    """The codes of the messages that a page shows after an action."""
    return [message.extra_tags for message in answer.context["messages"]]


def field_codes(form: Any) -> dict[str, list[str]]:
    """The codes of a form's errors by field; "__all__" are those of the whole form."""
    return {name: [e.code for e in errors] for name, errors in form.errors.as_data().items()}


def codes_on(page: str) -> list[str]:
    """The values of `data-code` in a page's order: its notices, findings and warnings."""
    return re.findall(r'data-code="([^"]*)"', page)


def codes_of(texts: Iterable[Any]) -> list[str]:
    """The codes of notes, findings or warnings."""
    return [text.code for text in texts]

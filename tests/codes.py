import re
from collections.abc import Iterable
from typing import Any

import pytest


def refused(
    error: type[Exception], code: str = "", *, naming: Iterable[object] = (), **data: Any
) -> Any:
    """A block that must raise the error, with this code and these attributes if they are given.

    Its text has all of `naming`, such as options, columns, files or values.
    """
    expected = {"code": code, **data} if code else data
    names = list(map(str, naming))

    def is_expected(raised: Exception) -> bool:
        has_data = all(getattr(raised, name) == value for name, value in expected.items())
        return has_data and all(name in str(raised) for name in names)

    return pytest.raises(error, check=is_expected)


def refused_naming(error: type[Exception], *names: object) -> Any:
    """A block that must raise an error that names these options, columns, files or values."""
    return refused(error, naming=names)


def refused_with_faults(error: type[Exception], *codes: str) -> Any:
    """A block that must raise an error that has faults with these codes."""
    return pytest.raises(error, check=lambda raised: codes_of(raised.faults) == list(codes))


def message_codes(answer: Any) -> list[str]:
    return [message.extra_tags for message in answer.context["messages"]]


def field_codes(form: Any) -> dict[str, list[str]]:
    """The codes of a form's errors by field; "__all__" are those of the whole form."""
    return {name: [e.code for e in errors] for name, errors in form.errors.as_data().items()}


def codes_on(page: str) -> list[str]:
    return re.findall(r'data-code="([^"]*)"', page)


def codes_of(texts: Iterable[Any]) -> list[str]:
    return [text.code for text in texts]

"""Stable codes of errors and texts: programs and tests use the code, people read the text."""

import re
from collections.abc import Container
from typing import Any, ClassVar, Self


class CodedError(Exception):
    """Base of errors with a stable code.

    `kind` is the name of the class in snake case, such as "batch_unfit". `code` tells the cases
    of a class apart, such as "nothing_left"; it is the kind unless the error was raised with one.
    """

    kind: ClassVar[str] = "error"
    code: str = "error"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        if "code" not in cls.__dict__:
            cls.code = cls.kind

    def __init__(self, *args: object, code: str = "") -> None:
        super().__init__(*args)
        if code:
            self.code = code

    def text_for(self, permissions: Container[str]) -> str:
        """The text for somebody who has these permissions."""
        return str(self)


class CorrectableError(CodedError):
    """Base of errors that the person who asked can correct; the text says what and how."""


class InvalidValue(CodedError, ValueError):
    """An argument of a function cannot be used; the code says why."""


class CodedText(str):
    """A text for people, such as a note or a finding, with its stable code."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, text: str, code: str) -> Self:
        coded = super().__new__(cls, text)
        coded.code = code
        return coded

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """What copies and pickles are made of."""
        return str(self), self.code


def note_if(condition: object, text: str, code: str) -> tuple[CodedText, ...]:
    """The note as a tuple, which is empty unless the condition holds."""
    return (CodedText(text, code),) if condition else ()


def require(condition: object, error: Exception) -> None:
    """Raise the error unless the condition holds."""
    if not condition:
        raise error

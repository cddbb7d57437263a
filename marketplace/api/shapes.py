"""The kinds of value a request can hold, and what is checked of each.

A value of the wrong type is a SerializationException; values of the right type
that break a constraint are gathered into one ValidationException. Both read as
AWS's own do.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from marketplace.exceptions import ProtocolError

Path = str
LONGEST_ECHO = 256


class Kind(Protocol):
    """A kind of value: how to read it from JSON, and what constrains it."""

    def read(self, value: Any) -> Any:
        """The value as Python holds it; raises where the type is wrong."""

    def broken(self, value: Any) -> Iterator[str]:
        """The constraints that a value read breaks, in AWS's words."""


@dataclass(frozen=True)
class Text:
    min_length: int = 0
    max_length: int | None = None
    pattern: str | None = None
    options: tuple[str, ...] = ()

    def read(self, value: Any) -> str:
        """The string itself, if it can be stored."""
        if not isinstance(value, str):
            raise _mistyped(value, "String")
        if not _can_be_stored(value):
            raise _unreadable("A string holds a character that is not text.")
        return value

    def broken(self, value: str) -> Iterator[str]:
        """Too short, too long, not of the pattern, not one of the options."""
        if len(value) < self.min_length:
            yield f"Member must have length greater than or equal to {self.min_length}"
        if self.max_length is not None and len(value) > self.max_length:
            yield f"Member must have length less than or equal to {self.max_length}"
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            yield f"Member must satisfy regular expression pattern: ^{self.pattern}$"
        if self.options and value not in self.options:
            yield f"Member must satisfy enum value set: [{', '.join(self.options)}]"


@dataclass(frozen=True)
class Integer:
    minimum: int
    maximum: int

    def read(self, value: Any) -> int:
        """The integer itself."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise _mistyped(value, "Integer")
        return value

    def broken(self, value: int) -> Iterator[str]:
        """Too small, too large."""
        if value < self.minimum:
            yield f"Member must have value greater than or equal to {self.minimum}"
        if value > self.maximum:
            yield f"Member must have value less than or equal to {self.maximum}"


@dataclass(frozen=True)
class Boolean:
    def read(self, value: Any) -> bool:
        """The boolean itself."""
        if not isinstance(value, bool):
            raise _mistyped(value, "Boolean")
        return value

    def broken(self, value: bool) -> Iterator[str]:
        """Nothing constrains it."""
        return iter(())


@dataclass(frozen=True)
class Timestamp:
    def read(self, value: Any) -> datetime:
        """A time from epoch seconds."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _mistyped(value, "Timestamp")
        try:
            return datetime.fromtimestamp(value, tz=UTC)
        except (OverflowError, ValueError, OSError) as error:
            raise _unreadable(f"{value} is not a time in epoch seconds.") from error

    def broken(self, value: datetime) -> Iterator[str]:
        """Nothing constrains it."""
        return iter(())


@dataclass(frozen=True)
class ListOf:
    member: Kind
    max_length: int | None = None
    min_length: int = 0

    def read(self, value: Any) -> list[Any]:
        """The list of what its members read as."""
        if not isinstance(value, list):
            raise _mistyped(value, "List")
        return [self.member.read(member) for member in value]

    def broken(self, value: list[Any]) -> Iterator[str]:
        """Too short, too long, or a member that breaks its constraints."""
        if len(value) < self.min_length:
            yield f"Member must have length greater than or equal to {self.min_length}"
        if self.max_length is not None and len(value) > self.max_length:
            yield f"Member must have length less than or equal to {self.max_length}"
        inner = sorted({reason for member in value for reason in self.member.broken(member)})
        if inner:
            yield f"Member must satisfy constraint: [{', '.join(inner)}]"


@dataclass(frozen=True)
class Member:
    """A member of a request: its kind, and what stands in where it is absent."""

    kind: Kind
    is_required: bool = False
    default: Any = None


@dataclass(frozen=True)
class Structure:
    """Members by name, as a request itself has them."""

    members: Mapping[str, Member]

    def read(self, value: Any) -> dict[str, Any]:
        """What each member reads as, its default where it is absent."""
        if not isinstance(value, dict):
            raise _mistyped(value, "Structure")
        members = ((name, member, value.get(name)) for name, member in self.members.items())
        return {
            name: member.default if inner is None else member.kind.read(inner)
            for name, member, inner in members
        }

    def broken(self, value: dict[str, Any]) -> Iterator[str]:
        """Nothing constrains it as a whole; its members are looked at one by one."""
        return iter(())


def read_request(members: Mapping[str, Member], payload: Mapping[str, Any]) -> dict[str, Any]:
    """Every member by name, read, checked and with its default. Members the
    table doesn't know are ignored, as AWS does; null is absent."""
    request = Structure(members)
    values = request.read(payload)
    problems = list(_problems_within(request, values, payload, ""))
    if problems:
        noun = "error" if len(problems) == 1 else "errors"
        text = f"{len(problems)} validation {noun} detected: {'; '.join(problems)}"
        raise ProtocolError("ValidationException", text)
    return values


def _problems_within(
    structure: Structure, values: Mapping[str, Any], payload: Mapping[str, Any], path: Path
) -> Iterator[str]:
    for name, member in structure.members.items():
        inner = f"{path}.{_lower(name)}" if path else _lower(name)
        if payload.get(name) is not None:
            yield from _problems(member.kind, values[name], payload[name], inner)
        elif member.is_required:
            yield _problem("null", inner, "Member must not be null")


def _problems(kind: Kind, value: Any, payload: Any, path: Path) -> Iterator[str]:
    for reason in kind.broken(value):
        yield _problem(f"'{_echo(payload)}'", path, reason)
    if isinstance(kind, Structure):
        yield from _problems_within(kind, value, payload, path)
    if isinstance(kind, ListOf) and isinstance(kind.member, Structure):
        for number, (member, raw) in enumerate(zip(value, payload, strict=True), 1):
            yield from _problems_within(kind.member, member, raw, f"{path}.{number}.member")


def _problem(echo: str, path: Path, reason: str) -> str:
    return f"Value {echo} at '{path}' failed to satisfy constraint: {reason}"


def _can_be_stored(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return "\0" not in text


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _echo(value: Any) -> str:
    text = f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
    return text if len(text) <= LONGEST_ECHO else f"{text[:LONGEST_ECHO]}..."


def _mistyped(value: Any, expected: str) -> ProtocolError:
    names = {bool: "BOOLEAN_VALUE", str: "STRING_VALUE", int: "NUMBER_VALUE", float: "NUMBER_VALUE"}
    received = names.get(
        type(value), "LIST_VALUE" if isinstance(value, list) else "STRUCTURE_VALUE"
    )
    return _unreadable(f"{received} can not be converted to {expected}")


def _unreadable(message: str) -> ProtocolError:
    return ProtocolError("SerializationException", message)

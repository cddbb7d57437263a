"""What is wrong with a protocol: where, and what to do, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Path = tuple[str | int, ...]
ENDS = {"low_label": "least", "high_label": "greatest"}
CODES = {
    "countries": "a code of two capitals, such as US",
    "languages": "a code of a language, such as en",
    "language": "a code of a language, such as en or pt-BR",
}
TYPES = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a block of settings",
}


@dataclass(frozen=True)
class Fault:
    """`line` is that of the file, where there is one."""

    path: Path
    message: str
    line: int | None = None

    @property
    def place(self) -> str:
        """Such as questions[1].wording, counted from 1 as people count."""
        parts = [f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in self.path]
        return "".join(parts).removeprefix(".") or "the protocol"

    def __str__(self) -> str:
        where = f"Line {self.line}, {self.place}" if self.line else self.place
        return f"{where}: {self.message}"

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {"line": self.line, "path": self.place, "message": self.message}


def faults_of(error: ValidationError) -> list[Fault]:
    """What an error of the schema means; several where it is about several names."""
    path: Path = tuple(error.absolute_path)
    wanted: Any = error.validator_value
    given: Any = error.instance
    schema: Any = error.schema
    if error.validator == "required":
        missing = [name for name in wanted if name not in given and f"'{name}'" in error.message]
        return [Fault((*path, name), _missing(name, given)) for name in missing]
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        unknown = [name for name in given if name not in known]
        return [Fault((*path, name), _unknown(str(name), known)) for name in unknown]
    if "propertyNames" in error.absolute_schema_path:
        return _option_faults(error, path)
    if error.validator == "pattern" and not error.instance:
        return []  # which its least length says
    return [Fault(path, _message(error))]


def _missing(name: str, instance: Mapping[str, Any]) -> str:
    if name in ENDS:
        return f"Say what the {ENDS[name]} value means: a line needs a label at each end."
    if name == "assay_protocol":
        return "is missing. Write 'assay_protocol: 1', the version of the format."
    kind = f" of the kind {instance['kind']}" if "kind" in instance and name != "name" else ""
    return f"is missing. Every {'question' if kind else 'one'}{kind} needs it."


def _unknown(name: str, known: list[str]) -> str:
    if name == "system":
        return "cannot be set: annotators never learn which system a candidate comes from."
    if name == "practice_items":
        return (
            "is not known: practice is one of the 'tests', with right values, explanations and "
            "'retry_after_seconds: 0'."
        )
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"Known here: {', '.join(known)}."
    return f"is not known. {hint}"


def _option_faults(error: ValidationError, path: Path) -> list[Fault]:
    """`propertyNames` reports the name as the instance, and its object as the path."""
    return [Fault((*path, str(error.instance)), "is not an option of this kind of question.")]


def _message(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    given: Any = error.instance
    messages: dict[str, Callable[[], str]] = {
        "type": lambda: f"must be {TYPES[wanted]}, not {_described(given)}.",
        "enum": lambda: _not_among(given, wanted),
        "const": lambda: f"must be {wanted}, not {_described(given)}.",
        "minLength": lambda: "is empty. Write something, or leave it out.",
        "maxLength": lambda: f"has {len(given):,} characters; {wanted:,} fit.",
        "minimum": lambda: f"is {given}; the least is {wanted}.",
        "maximum": lambda: f"is {given}; the most is {wanted}.",
        "minItems": lambda: f"has {len(given)}; at least {wanted} are needed.",
        "maxItems": lambda: f"has {len(given)}; at most {wanted} fit.",
        "uniqueItems": lambda: f"says {_repeated(given)} twice.",
        "pattern": lambda: _misformed(error),
    }
    described = messages.get(str(error.validator))
    return described() if described else f"{error.message}."


def _described(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a block of settings" if isinstance(value, dict) else "a list"
    return "nothing" if value is None else repr(value)[:60]


def _not_among(given: Any, wanted: list[Any]) -> str:
    named = [str(each) for each in wanted if each != ""]
    near = get_close_matches(str(given), named, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"is {_described(given)}; it can be {', '.join(named)}.{hint}"


def _repeated(given: list[Any]) -> str:
    return repr(next(each for n, each in enumerate(given) if each in given[:n]))[:60]


def _misformed(error: ValidationError) -> str:
    example = next((CODES[part] for part in error.absolute_path if part in CODES), None)
    if example:
        return f"is {_described(error.instance)}, not {example}."
    return "is blank, or begins or ends with a space."

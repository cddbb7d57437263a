from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _, gettext_lazy
from django_stubs_ext import StrPromise

from annotation.protocols.fields import KINDS, fields_of_kind
from error_codes import CodedText

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

FaultPath = tuple[str | int, ...]
ENDS = {
    "low_label": gettext_lazy("Say what the least value means: a line needs a label at each end."),
    "high_label": gettext_lazy(
        "Say what the greatest value means: a line needs a label at each end."
    ),
}
CODES = {
    "countries": gettext_lazy("a code of two capitals, such as US"),
    "languages": gettext_lazy("a code of a language, such as en"),
    "language": gettext_lazy("a code of a language, such as en or pt-BR"),
}
# Lists of the answers that can be chosen, and what else people call them.
ANSWERS = ("points", "categories")
SYNONYMS = ("options", "choices", "answers", "labels", "values", "levels", "classes")
TYPES: dict[str, StrPromise] = {
    "string": gettext_lazy("text"),
    "boolean": gettext_lazy("true or false"),
    "integer": gettext_lazy("a whole number"),
    "number": gettext_lazy("a number"),
    "array": gettext_lazy("a list"),
    "object": gettext_lazy("a block of settings"),
}
# The codes of what a rule of the schema finds.
VALIDATOR_CODES = {
    "type": "wrong_type",
    "enum": "unknown_choice",
    "const": "wrong_value",
    "minLength": "empty",
    "maxLength": "too_long",
    "minimum": "too_low",
    "maximum": "too_high",
    "minItems": "too_few",
    "maxItems": "too_many",
    "uniqueItems": "repeated",
    "pattern": "malformed",
}
RIGHT_VALUE = gettext_lazy("a number, or the label of an answer")


@dataclass(frozen=True)
class Fault:
    """One fault of a protocol. `line` is its line in the file, if there is a file; a message that
    is a `CodedText` brings its code."""

    path: FaultPath
    message: str
    line: int | None = None
    code: str = ""

    def __post_init__(self) -> None:
        if not self.code:
            code = self.message.code if isinstance(self.message, CodedText) else "invalid"
            object.__setattr__(self, "code", code)

    @property
    def place(self) -> str:
        parts = [f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in self.path]
        return "".join(parts).removeprefix(".") or _("the protocol")

    def __str__(self) -> str:
        where = self.place
        if self.line:
            where = _("Line %(n)d, %(place)s") % {"n": self.line, "place": self.place}
        return f"{where}: {self.message}"

    def record(self) -> dict[str, Any]:
        return {
            "line": self.line,
            "path": self.place,
            "message": self.message,
            "code": self.code,
        }


def broken_rules(path: FaultPath, *rules: tuple[object, str | int, str, str]) -> Iterator[Fault]:
    """A fault for each rule that is broken: whether it is, the field, the message and the code."""
    for is_broken, name, message, code in rules:
        if is_broken:
            yield Fault(path if name == "" else (*path, name), message, code=code)


def faults_of(error: ValidationError) -> list[Fault]:
    path: FaultPath = tuple(error.absolute_path)
    expected: Any = error.validator_value
    instance: Any = error.instance
    schema: Any = error.schema
    if error.validator == "required":
        missing = [
            name for name in expected if name not in instance and f"'{name}'" in error.message
        ]
        return [Fault((*path, name), _missing(name, instance), code="missing") for name in missing]
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        unknown = [name for name in instance if name not in known]
        known = _fields_of_kind(path, instance) or known
        return [
            Fault((*path, name), _unknown(str(name), known), code="unknown_name")
            for name in unknown
        ]
    if "propertyNames" in error.absolute_schema_path:
        return _option_faults(error, path)
    if error.validator == "pattern" and not error.instance:
        return []  # which its least length says
    if error.validator == "uniqueItems" and not _repeated(instance):
        return []  # of empty texts, which their least length says
    return [Fault(path, _message(error), code=VALIDATOR_CODES.get(str(error.validator), "invalid"))]


def _missing(name: str, instance: Mapping[str, Any]) -> str:
    if name in ENDS:
        return str(ENDS[name])
    if name == "assay_protocol":
        return _("is missing. Write 'assay_protocol: 1', the version of the format.")
    if "kind" in instance and name != "name":
        return _("is missing. Every question of the kind %(kind)s needs it.") % {
            "kind": instance["kind"]
        }
    return _("is missing. Every one needs it.")


def _unknown(name: str, known: list[str]) -> str:
    if name == "system":
        return _("cannot be set: annotators never learn which system a candidate comes from.")
    if name == "practice_items":
        return _(
            "is not known: practice on the study's own page is 'practice' with its 'items'; on a "
            "form it is one of the 'tests', with 'retry_after_seconds: 0'."
        )
    if near := _answers_of_kind(name, known) or get_close_matches(name, known, n=1):
        return _("is not known. Did you mean '%(near)s'?") % {"near": near[0]}
    return _("is not known. Known here: %(names)s.") % {"names": ", ".join(known)}


def _option_faults(error: ValidationError, path: FaultPath) -> list[Fault]:
    """`propertyNames` reports the name as the instance, and its object as the path."""
    allowed: Any = error.validator_value
    name = str(error.instance)
    if not any(name in fields_of_kind(each) for each in KINDS):
        return []  # which is no question's, as is said of it already
    message = _("is not an option of this kind of question.")
    if near := _answers_of_kind(name, allowed):
        message += " " + _("Did you mean '%(near)s'?") % {"near": near[0]}
    return [Fault((*path, name), message, code="other_kinds_option")]


def _fields_of_kind(path: FaultPath, instance: Any) -> list[str]:
    is_question = path[:1] == ("questions",) and len(path) == 2
    kind = instance.get("kind") if is_question else None
    return fields_of_kind(kind) if isinstance(kind, str) and kind in KINDS else []


def _answers_of_kind(name: str, known: list[str]) -> list[str]:
    return [each for each in ANSWERS if each in known] if name in (*ANSWERS, *SYNONYMS) else []


def _message(error: ValidationError) -> str:
    expected: Any = error.validator_value
    instance: Any = error.instance
    messages: dict[str, Callable[[], str]] = {
        "type": lambda: _wrong_type(expected, instance),
        "enum": lambda: _not_among(instance, expected),
        "const": lambda: _must_be(expected, instance),
        "minLength": lambda: _empty(error),
        "maxLength": lambda: (
            _("has %(n)s characters; %(most)s fit.")
            % {"n": f"{len(instance):,}", "most": f"{expected:,}"}
        ),
        "minimum": lambda: (
            _("is %(value)s; the least is %(least)s.") % {"value": instance, "least": expected}
        ),
        "maximum": lambda: (
            _("is %(value)s; the most is %(most)s.") % {"value": instance, "most": expected}
        ),
        "minItems": lambda: (
            _("has %(n)s; at least %(least)s are needed.") % {"n": len(instance), "least": expected}
        ),
        "maxItems": lambda: (
            _("has %(n)s; at most %(most)s fit.") % {"n": len(instance), "most": expected}
        ),
        "uniqueItems": lambda: _("says %(value)s twice.") % {"value": _repeated(instance)},
        "pattern": lambda: _misformed(error),
    }
    described = messages.get(str(error.validator))
    return described() if described else f"{error.message}."


def _wrong_type(expected: object, instance: Any) -> str:
    message = _must_be(TYPES[expected] if isinstance(expected, str) else RIGHT_VALUE, instance)
    advice = _("Put it in quotes.")
    return f"{message} {advice}" if expected == "string" else message


def _must_be(expected: object, instance: Any) -> str:
    return _("must be %(wanted)s, not %(given)s.") % {
        "wanted": expected,
        "given": _described(instance),
    }


def _described(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return str(TYPES["object" if isinstance(value, dict) else "array"])
    return _("nothing") if value is None else repr(value)[:60]


def _not_among(instance: Any, expected: list[Any]) -> str:
    named = [str(each) for each in expected if each != ""]
    near = get_close_matches(str(instance), named, n=1)
    names = {"value": _described(instance), "names": ", ".join(named)}
    if near:
        return _("is %(value)s; it can be %(names)s. Did you mean '%(near)s'?") % (
            names | {"near": near[0]}
        )
    return _("is %(value)s; it can be %(names)s.") % names


def _empty(error: ValidationError) -> str:
    *_parents, name, index = (None, *error.absolute_path)
    if name == "categories":
        return _("category %(n)s is empty. Write its label, or remove the line.") % {
            "n": int(str(index)) + 1
        }
    return _("is empty. Write something, or leave it out.")


def _repeated(instance: list[Any]) -> str:
    values = [each for n, each in enumerate(instance) if each in instance[:n] and each != ""]
    return repr(values[0])[:60] if values else ""


def _misformed(error: ValidationError) -> str:
    example = next((CODES[part] for part in error.absolute_path if part in CODES), None)
    if example:
        return _("is %(value)s, not %(example)s.") % {
            "value": _described(error.instance),
            "example": example,
        }
    return _("is blank, or begins or ends with a space.")

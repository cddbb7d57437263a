from dataclasses import MISSING, Field, dataclass, field
from types import MappingProxyType
from typing import Any

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrPromise

SCHEMA = "schema"
# A number, or the label of an answer.
RIGHT_VALUE: dict[str, Any] = {"type": ["number", "string"], "maxLength": 200}


def _field(schema: dict[str, Any], *, default: Any = MISSING, about: str = "") -> Any:
    described = schema | ({"description": about} if about else {})
    if default is MISSING:
        return field(metadata={SCHEMA: described})
    return field(default=default, metadata={SCHEMA: described})


def text(about: str, *, most: int, least: int = 0, default: Any = "", **schema: Any) -> Any:
    limits: dict[str, Any] = {"type": "string", "maxLength": most}
    # One space is no wording.
    limits |= {"minLength": least, "pattern": r"\S"} if least else {}
    return _field(limits | schema, default=default, about=about)


def required_text(about: str, *, most: int, **schema: Any) -> Any:
    return text(about, most=most, least=1, default=MISSING, **schema)


def choice(about: str, *values: str, default: Any = MISSING) -> Any:
    """One of a few words, the first of which is the default unless another is named."""
    default = values[0] if default is MISSING else default
    return _field({"enum": list(values)}, default=default, about=about)


def required_choice(about: str, *values: str) -> Any:
    return _field({"enum": list(values)}, about=about)


def boolean(about: str, *, default: bool = False) -> Any:
    return _field({"type": "boolean"}, default=default, about=about)


def integer(about: str, *, least: int, most: int, default: Any = None) -> Any:
    return _field(
        {"type": "integer", "minimum": least, "maximum": most}, default=default, about=about
    )


def number(about: str, *, least: float, most: float, default: Any = None) -> Any:
    return _field(
        {"type": "number", "minimum": least, "maximum": most}, default=default, about=about
    )


def required_number(about: str, *, least: float, most: float) -> Any:
    return number(about, least=least, most=most, default=MISSING)


def right_value(about: str, *, least: float, most: float) -> Any:
    return _field({**RIGHT_VALUE, "minimum": least, "maximum": most}, default=None, about=about)


def texts(about: str, *, most: int, length: int, least: int = 0, **items: Any) -> Any:
    schema: dict[str, Any] = {
        "type": "array",
        "minItems": least,
        "maxItems": most,
        "uniqueItems": True,
        "items": {"type": "string", "minLength": 1, "maxLength": length, **items},
    }
    return _field(schema, default=(), about=about)


def labels(about: str, *, most: int, length: int, least: int) -> Any:
    """Texts of which some may be empty; `validation.py` says which need one."""
    schema: dict[str, Any] = {"type": "array", "minItems": least, "maxItems": most}
    schema["items"] = {"type": "string", "maxLength": length}
    return _field(schema, default=(), about=about)


def records(name: str, about: str, *, most: int, least: int = 0) -> Any:
    schema: dict[str, Any] = {"type": "array", "minItems": least, "maxItems": most}
    schema["items"] = {"$ref": f"#/$defs/{name}"}
    return _field(schema, default=(), about=about)


def record(name: str, about: str, *, factory: Any = None) -> Any:
    """A record, described under `$defs`; None where it is left out, unless a factory is given."""
    schema = {"$ref": f"#/$defs/{name}", "description": about}
    if factory is None:
        return field(default=None, metadata={SCHEMA: schema})
    return field(default_factory=factory, metadata={SCHEMA: schema})


def mapping(about: str) -> Any:
    schema = {"type": "object", "additionalProperties": RIGHT_VALUE, "description": about}
    return field(default_factory=dict, metadata={SCHEMA: schema})


def text_mapping(about: str, *, most: int) -> Any:
    schema: dict[str, Any] = {"type": "object", "description": about}
    schema["additionalProperties"] = {"type": "string", "maxLength": most}
    return field(default_factory=dict, metadata={SCHEMA: schema})


def is_required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def default_of(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


CANDIDATE, ITEM = "candidate", "item"


@dataclass(frozen=True)
class Kind:
    """`required` and `optional` are the options that only some kinds have.

    A comparison is of all candidates of an item at once, and gives each of them a value.
    """

    title: StrPromise
    level: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    is_comparison: bool = False
    is_text: bool = False


KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {
        "line": Kind(
            _("Line between two ends"),
            "interval",
            required=("low_label", "high_label"),
            optional=("middle_label", "minimum", "maximum", "show_number", "level"),
        ),
        "likert": Kind(
            _("Labelled points (Likert)"),
            "ordinal",
            required=("points",),
            optional=("first", "cannot_tell"),
        ),
        "category": Kind(
            _("One of several categories"),
            "nominal",
            required=("categories",),
            optional=("level",),
        ),
        "categories": Kind(
            _("Any of several categories"),
            "nominal",
            required=("categories",),
            optional=("least", "most"),
        ),
        "yes_no": Kind(_("Yes or no"), "nominal", optional=("yes_label", "no_label")),
        "number": Kind(
            _("Number"),
            "ratio",
            required=("minimum", "maximum"),
            optional=("whole", "unit", "level"),
        ),
        "short_text": Kind(
            _("Short text"), "", optional=("least_length", "most_length"), is_text=True
        ),
        "long_text": Kind(
            _("Long text"), "", optional=("least_length", "most_length"), is_text=True
        ),
        "selection": Kind(
            _("Ticks, with an explicit none"),
            "nominal",
            optional=("none_label",),
            is_comparison=True,
        ),
        "preference": Kind(
            _("Which one is best"), "ordinal", optional=("ties", "tie_label"), is_comparison=True
        ),
        "best_worst": Kind(_("Which is best, which is worst"), "ordinal", is_comparison=True),
        "ranking": Kind(
            _("Order from best to worst"), "ordinal", optional=("ties",), is_comparison=True
        ),
    }
)
# Kinds that can be an attention check: a value says which answer is the right one.
CHECK_QUESTION_KINDS = ("line", "likert", "category", "yes_no", "number")
# What any question may say.
COMMON = ("name", "kind", "wording", "title", "required", "when")


def fields_of_kind(name: str) -> list[str]:
    kind = KINDS[name]
    about = [] if kind.is_comparison else ["about"]
    check = ["check"] if name in CHECK_QUESTION_KINDS else []
    return [*COMMON, *kind.required, *kind.optional, *about, *check]

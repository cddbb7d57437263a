"""The kinds of questions: what each may say, and what its answers become in the long frame."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrPromise

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
            _("Labelled points (Likert)"), "ordinal", required=("points",), optional=("first",)
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
# What any question may say.
COMMON = ("name", "kind", "wording", "title", "required", "when")


def fields_of_kind(name: str) -> list[str]:
    kind = KINDS[name]
    about = [] if kind.is_comparison else ["about"]
    return [*COMMON, *kind.required, *kind.optional, *about]

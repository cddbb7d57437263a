"""What a question's answers are in the long frame: a row of `Question`, or several."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from annotation.protocols.records import ProtocolQuestion
from error_codes import CodedText

LINE = (0.0, 100.0)
# A candidate's value in a comparison: the share of the others it was placed above, ties as half.
COMPARED = (0.0, 1.0)


@dataclass(frozen=True)
class Scale:
    name: str
    level: str
    scale_min: float
    scale_max: float
    low_label: str = ""
    high_label: str = ""
    categories: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """What may not change once there are judgments: wording and labels of ends may."""
        if self.categories:
            return self.level, self.categories
        return self.level, self.scale_min, self.scale_max


def scales_of(question: ProtocolQuestion) -> tuple[Scale, ...]:
    """None for a text; of any of several categories one each, since each is said or not."""
    if question.options.is_text:
        return ()
    if question.kind == "categories":
        return tuple(
            Scale(part_name(question, label), "nominal", 0, 1, categories=("no", "yes"))
            for label in question.categories
        )
    return (_scale(question),)


def part_name(question: ProtocolQuestion, category: str) -> str:
    return f"{question.name}:{category}"


def range_of(question: ProtocolQuestion) -> tuple[float, float]:
    if question.kind == "likert":
        first = 1 if question.first is None else question.first
        return first, first + max(len(question.points) - 1, 1)
    if question.kind == "category":
        return 0, max(len(question.categories) - 1, 1)
    if question.kind in ("line", "number"):
        low, high = question.minimum, question.maximum
        return (LINE[0] if low is None else low), (LINE[1] if high is None else high)
    return COMPARED


def scale_problem(question: ProtocolQuestion, value: float) -> CodedText | None:
    low, high = range_of(question)
    if low <= value <= high:
        return None
    text = _("is %(value)g, outside the scale %(low)g to %(high)g.")
    return CodedText(text % {"value": value, "low": low, "high": high}, "off_scale")


def _scale(question: ProtocolQuestion) -> Scale:
    low, high = range_of(question)
    low_label, high_label = question.low_label, question.high_label
    if question.kind == "likert" and question.points:
        low_label, high_label = question.points[0], question.points[-1]
    categories = {
        "category": question.categories,
        "yes_no": ("no", "yes"),
        "selection": ("no", "yes"),
    }
    return Scale(
        name=question.name,
        level=question.level or question.options.level,
        scale_min=low,
        scale_max=high,
        low_label=low_label,
        high_label=high_label,
        categories=categories.get(question.kind, ()),
    )

"""What a question's answers are in the long frame: a row of `Question`, or several."""

from __future__ import annotations

from dataclasses import dataclass

from annotation.protocols.records import AskedQuestion

LINE = (0.0, 100.0)
# A candidate's value in a comparison: the share of the others it was placed above, ties as half.
COMPARED = (0.0, 1.0)


@dataclass(frozen=True)
class Scale:
    """One column of values: what `Question` keeps of it."""

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


def scales_of(asked: AskedQuestion) -> tuple[Scale, ...]:
    """None for a text; of any of several categories one each, since each is said or not."""
    if asked.options.is_text:
        return ()
    if asked.kind == "categories":
        return tuple(
            Scale(part_name(asked, label), "nominal", 0, 1, categories=("no", "yes"))
            for label in asked.categories
        )
    return (_scale(asked),)


def part_name(asked: AskedQuestion, category: str) -> str:
    return f"{asked.name}:{category}"


def range_of(asked: AskedQuestion) -> tuple[float, float]:
    """The least and the greatest value of a question that has one value."""
    if asked.kind == "likert":
        first = 1 if asked.first is None else asked.first
        return first, first + max(len(asked.points) - 1, 1)
    if asked.kind == "category":
        return 0, max(len(asked.categories) - 1, 1)
    if asked.kind in ("line", "number"):
        low, high = asked.minimum, asked.maximum
        return (LINE[0] if low is None else low), (LINE[1] if high is None else high)
    return COMPARED


def _scale(asked: AskedQuestion) -> Scale:
    low, high = range_of(asked)
    low_label, high_label = asked.low_label, asked.high_label
    if asked.kind == "likert" and asked.points:
        low_label, high_label = asked.points[0], asked.points[-1]
    categories = {
        "category": asked.categories,
        "yes_no": ("no", "yes"),
        "selection": ("no", "yes"),
    }
    return Scale(
        name=asked.name,
        level=asked.level or asked.options.level,
        scale_min=low,
        scale_max=high,
        low_label=low_label,
        high_label=high_label,
        categories=categories.get(asked.kind, ()),
    )

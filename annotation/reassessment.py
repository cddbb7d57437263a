"""One round of a study against another: the second assessment of what was judged before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from annotation.agreement import rounds_of
from annotation.frames import judgment_frame
from annotation.models import Question, Study
from annotation.units import Level, categories_of
from error_codes import CodedText
from presentation.records import plain_values
from stats.agreement import Agreement, coefficients_at_level
from stats.label_sampling import compare_labeled, label_columns

if TYPE_CHECKING:
    import pandas as pd


By = Literal["same annotator", "another annotator"]


@dataclass(frozen=True)
class RoundAgreement:
    """A question's values in two rounds: each pair of judgments of one candidate, across them."""

    question: str
    level: str
    earlier: int
    later: int
    by: By
    n_pairs: int
    coefficients: tuple[Agreement, ...]

    def coefficient_records(self) -> list[dict[str, Any]]:
        named = {
            "question": self.question,
            "level": self.level,
            "earlier": self.earlier,
            "later": self.later,
            "by": self.by,
            "n_pairs": self.n_pairs,
        }
        return [named | plain_values(asdict(coefficient)) for coefficient in self.coefficients]


def round_agreement(study: Study, *, frame: pd.DataFrame | None = None) -> list[RoundAgreement]:
    """Every two rounds of a study set against each other, where they judged the same.

    A candidate that the same annotator judged again is distinguished from one that another did.
    """
    rounds = list(combinations(rounds_of(study), 2))
    if not rounds:
        return []
    frame = judgment_frame(study) if frame is None else frame
    return [
        row
        for question in study.questions.all()
        for earlier, later in rounds
        for row in _across(question, frame[frame["question"] == question.name], earlier, later)
    ]


def _across(
    question: Question, judgments: pd.DataFrame, earlier: int, later: int
) -> Iterator[RoundAgreement]:
    pairs = _crossed(judgments, earlier, later)
    warnings = _sampling_warnings(question, judgments, earlier, later)
    same = pairs["annotator_earlier"] == pairs["annotator_later"]
    parts: list[tuple[By, pd.DataFrame]] = [
        ("same annotator", pairs[same]),
        ("another annotator", pairs[~same]),
    ]
    for by, part in parts:
        if len(part):
            coefficients = tuple(
                replace(one, warnings=one.warnings + warnings) if one.is_defined else one
                for one in _coefficients(question, part)
            )
            yield RoundAgreement(
                question.name, question.level, earlier, later, by, len(part), coefficients
            )


def _sampling_warnings(
    question: Question, judgments: pd.DataFrame, earlier: int, later: int
) -> tuple[CodedText, ...]:
    """A warning if what was judged again had other values in the earlier round than the rest."""
    import pandas as pd

    first, second = (judgments[judgments["round"] == round] for round in (earlier, later))
    units, again = (
        pd.MultiIndex.from_frame(part[["item", "candidate"]].astype(str))
        for part in (first, second)
    )
    is_again = units.isin(again)
    if is_again.all():
        return ()
    codes, values = pd.factorize(first["value"], sort=True)
    columns = label_columns(codes, list(values), has_order=question.level != "nominal")
    sampling = compare_labeled(is_again, columns, cluster=pd.factorize(first["item"])[0])
    if sampling.is_random:
        return ()
    text = (
        f"what round {later} judged again differs from the rest of round {earlier} in "
        f"{sampling.column} ({sampling.p_text}), unlike a random sample: agreement may be "
        "different on the rest"
    )
    return (CodedText(text, code="overlap_not_random"),)


def _crossed(judgments: pd.DataFrame, earlier: int, later: int) -> pd.DataFrame:
    """Each judgment of the earlier round beside each of the same candidate in the later one."""
    columns = ["item", "candidate", "annotator", "value"]
    texts = dict.fromkeys(columns[:3], str)
    first, second = (
        judgments.loc[judgments["round"] == round, columns].astype(texts)
        for round in (earlier, later)
    )
    return first.merge(second, on=["item", "candidate"], suffixes=("_earlier", "_later"))


def _coefficients(question: Question, pairs: pd.DataFrame) -> tuple[Agreement, ...]:
    """The two rounds as two annotators; each pair of judgments is a unit, an item a cluster."""
    import pandas as pd

    values = pd.concat([pairs["value_earlier"], pairs["value_later"]], ignore_index=True)
    units = list(range(len(pairs)))
    level: Level = question.level  # type: ignore[assignment]
    return coefficients_at_level(
        units * 2,
        ["earlier"] * len(pairs) + ["later"] * len(pairs),
        values,
        level=level,
        clusters=list(pairs["item"]) * 2,
        categories=categories_of(question, values),
    )

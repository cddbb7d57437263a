"""Comparisons of candidates, as wins of one system over another, and the strengths they give."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from annotation.exceptions import StudyUnfit
from annotation.frames import judgment_frame
from annotation.models import Question, Study
from stats.aggregation.bradley_terry import bradley_terry
from stats.aggregation.result import Aggregation

if TYPE_CHECKING:
    import pandas as pd


COMPARED = ("preference", "best_worst", "ranking")
# What two equal values of a kind say: that neither is better, or nothing about the two.
TIED_AT = {"preference": (0.5,), "best_worst": ()}

Win = tuple[str, str, float]
"""Winner, loser, and how much it counts."""
COLUMNS = ["winner", "loser", "weight", "judgment", "item", "annotator"]


def wins(question: Question, frame: pd.DataFrame) -> pd.DataFrame:
    """A row a win: `winner`, `loser`, `weight`, the `judgment` that it comes from, and of what and
    by whom that is; a tie is half a win each way."""
    import pandas as pd

    rows = frame[frame["question"] == question.name]
    by_judgment = rows.groupby(["round", "item", "annotator"], observed=True, sort=False)
    records = [
        (*win, number, item, annotator)
        for number, ((_round, item, annotator), judged) in enumerate(by_judgment)
        for win in _wins_in(question.kind, judged)
    ]
    return pd.DataFrame(records, columns=COLUMNS)


def _wins_in(kind: str, judged: pd.DataFrame) -> Iterator[Win]:
    systems, keys = judged["system"].astype(str), judged["candidate"].astype(str)
    names = systems.where(systems != "", keys)
    for (a, x), (b, y) in combinations(zip(names, judged["value"], strict=True), 2):
        if a == b:
            continue
        if x != y:
            yield (a, b, 1.0) if x > y else (b, a, 1.0)
        elif kind not in TIED_AT or x in TIED_AT[kind]:
            yield a, b, 0.5
            yield b, a, 0.5


def system_strengths(
    study: Study, *, question: Question, round: int = 1, smoothing: float = 0.0
) -> Aggregation:
    if question.kind not in COMPARED:
        raise StudyUnfit(
            f"Question '{question.name}' of study '{study.slug}' compares nothing. Strengths are "
            "of preferences, best-worst choices and rankings.",
            code="no_comparison",
        )
    frame = judgment_frame(study, question=question)
    table = wins(question, frame[frame["round"] == round])
    return bradley_terry(
        table["winner"],
        table["loser"],
        weights=table["weight"],
        judgments=table["judgment"],
        items=table["item"],
        annotators=table["annotator"],
        smoothing=smoothing,
    )

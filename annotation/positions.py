"""Whether answers depend on the position at which a candidate was shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from annotation.models import Protocol, Question, Study, Submission
from annotation.protocols.documents import read_document
from stats.inference.crossed_means import mean_over_items_and_annotators

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PositionRecord:
    """What being shown first adds to an answer under one question, compared with being shown last.

    `annotator` is empty for all of them together; `first` and `last` are means over pages.
    """

    annotator: str
    n_pages: int
    n_annotators: int
    first: float
    last: float
    value: float
    ci_low: float
    ci_high: float


def random_positions(study: Study, frame: pd.DataFrame) -> pd.Series[float]:
    """The frame's positions, NaN for submissions whose protocol does not draw the order of the
    candidates at random: there a position cannot be separated from what is shown in it."""
    import pandas as pd

    drawn = [
        protocol.pk
        for protocol in Protocol.objects.of(study)
        if read_document(protocol.document).order.policy != "fixed"
    ]
    rows = Submission.objects.of(study).filter(protocol__in=drawn).order_by()
    keys = pd.MultiIndex.from_tuples(
        rows.values_list("annotator__pseudonym", "item__key", "round"),
        names=["annotator", "item", "round"],
    )
    own = pd.MultiIndex.from_arrays(
        [frame["annotator"].astype(object), frame["item"].astype(object), frame["round"]]
    )
    return frame["position"].where(own.isin(keys))


def position_effects(question: Question, rows: pd.DataFrame) -> Iterator[PositionRecord]:
    """The effect over all annotators of a question's judgments in one round, and of each; nothing
    if no page has two candidates in a random order, or if the answers have no order."""
    if question.level == Question.Level.NOMINAL and len(question.categories) > 2:
        return
    placed = rows[rows["position"].notna()].sort_values("position", kind="stable")
    pages = placed.groupby(["annotator", "item"], observed=True, sort=True)["value"]
    table = pages.agg(["first", "last", "size"]).reset_index()
    table = table[table["size"] > 1]
    if table.empty:
        return
    yield _record("", table)
    for annotator, own in table.groupby("annotator", observed=True):
        yield _record(str(annotator), own)


def _record(annotator: str, pages: pd.DataFrame) -> PositionRecord:
    apart = pages["first"] - pages["last"]
    mean = mean_over_items_and_annotators(pages["item"], pages["annotator"], apart)
    is_known = mean.se > 0
    return PositionRecord(
        annotator=annotator,
        n_pages=len(pages),
        n_annotators=int(pages["annotator"].nunique()),
        first=float(pages["first"].mean()),
        last=float(pages["last"].mean()),
        value=mean.value,
        ci_low=mean.ci_low if is_known else np.nan,
        ci_high=mean.ci_high if is_known else np.nan,
    )

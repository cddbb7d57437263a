"""How well each two annotators of a question agree, among those who judged most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from annotation.models import Question
from annotation.units import JudgedUnits, judged_units
from presentation.records import plain_records

# More would be cells too small to tell apart, on a page as in a paper.
MOST_ANNOTATORS = 40
LEAST_SHARED = 3
STATISTICS = {"nominal": "Cohen's kappa", "ordinal": "Cohen's kappa, linear weights"}
CORRELATION = "Pearson's r"


@dataclass(frozen=True)
class PairMatrix:
    """The pairs of the annotators shown, out of how many, and what their value is."""

    statistic: str
    n_annotators: int
    n_shown: int
    pairs: pd.DataFrame

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        numbers = {"n_annotators": self.n_annotators, "n_shown": self.n_shown}
        return {"statistic": self.statistic, **numbers, "pairs": plain_records(self.pairs)}


def pair_matrix(question: Question, frame: pd.DataFrame) -> PairMatrix:
    """The pairs among the annotators of a judgment frame who judged most."""
    asked = frame[frame["question"] == question.name]
    names = asked["annotator"].astype(str)
    counts = names.value_counts()
    most = counts.index[:MOST_ANNOTATORS]
    judged = judged_units(question, asked[names.isin(most)])
    pairs = _kappas(judged) if question.level in STATISTICS else _correlations(judged)
    statistic = STATISTICS.get(question.level, CORRELATION)
    return PairMatrix(statistic, len(counts), len(most), pairs)


def _kappas(judged: JudgedUnits) -> pd.DataFrame:
    table = judged.pairs().rename(columns={"kappa": "value", "n_overlap": "n_shared"})
    return table[["annotator_a", "annotator_b", "n_shared", "value", "reason"]]


def _correlations(judged: JudgedUnits) -> pd.DataFrame:
    """Pearson's r of every two annotators over the candidates both rated."""
    wide = pd.DataFrame(
        {"unit": judged.units, "annotator": judged.annotators, "value": judged.values}
    ).pivot(index="unit", columns="annotator", values="value")
    found, rated = wide.corr(min_periods=LEAST_SHARED), wide.notna().astype(int)
    shared = rated.T @ rated
    first, second = np.triu_indices(len(wide.columns), k=1)
    names = wide.columns.to_numpy()
    table = pd.DataFrame(
        {
            "annotator_a": names[first],
            "annotator_b": names[second],
            "n_shared": shared.to_numpy()[first, second],
            "value": found.to_numpy()[first, second],
        }
    )
    table = table[table["n_shared"] > 0]
    few, constant = table["n_shared"] < LEAST_SHARED, table["value"].isna()
    reasons = np.select([few, constant], ["too_few", "constant"], default="")
    return table.assign(reason=pd.Series(reasons, index=table.index).replace("", None))

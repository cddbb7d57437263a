"""How well each two annotators of a question agree: kappas, or correlations of those who
judged most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from annotation.models import Question
from annotation.units import KAPPA_WEIGHTS, judged_units

if TYPE_CHECKING:
    import pandas as pd


# More would be cells too small to distinguish, on a page as in a paper.
MOST_ANNOTATORS = 40
LEAST_SHARED = 3
STATISTICS = {"nominal": "Cohen's kappa", "ordinal": "Cohen's kappa, linear weights"}
CORRELATION = "Pearson's r"
COLUMNS = (
    *("annotator_a", "annotator_b", "n_shared", "observed", "expected", "value"),
    *("se", "ci_low", "ci_high", "reason", "in_matrix"),
)


@dataclass(frozen=True)
class PairTable:
    """A row a pair of annotators, with COLUMNS; the pairs of those who judged most are marked."""

    statistic: str
    is_kappa: bool
    n_annotators: int
    n_in_matrix: int
    rows: pd.DataFrame


def pair_table(question: Question, frame: pd.DataFrame, kappas: pd.DataFrame) -> PairTable:
    """The pairs of the annotators of a judgment frame.

    `kappas` is the table of `AgreementReport.pairs`, of which the question's rows are taken.
    """
    import pandas as pd

    judgments = frame[frame["question"] == question.name]
    if judgments.empty:
        return PairTable("", False, 0, 0, pd.DataFrame(columns=COLUMNS))
    counts = judgments["annotator"].astype(str).value_counts()
    most = set(counts.index[:MOST_ANNOTATORS])
    is_kappa = question.level in KAPPA_WEIGHTS
    rows = _kappas(question, kappas) if is_kappa else _correlations(question, judgments, most)
    in_matrix = rows["annotator_a"].isin(most) & rows["annotator_b"].isin(most)
    statistic = STATISTICS.get(question.level, CORRELATION)
    rows = rows.assign(in_matrix=in_matrix).reindex(columns=COLUMNS)
    return PairTable(statistic, is_kappa, len(counts), len(most), rows)


def _kappas(question: Question, kappas: pd.DataFrame) -> pd.DataFrame:
    rows = kappas[kappas["question"] == question.name]
    return rows.rename(columns={"kappa": "value", "n_overlap": "n_shared"})


def _correlations(question: Question, judgments: pd.DataFrame, most: set[str]) -> pd.DataFrame:
    """Pearson's r of every two annotators over the candidates both rated."""
    import pandas as pd

    judged = judged_units(question, judgments[judgments["annotator"].astype(str).isin(most)])
    wide = pd.DataFrame(
        {"unit": judged.units, "annotator": judged.annotators, "value": judged.values}
    ).pivot(index="unit", columns="annotator", values="value")
    correlations, rated = wide.corr(min_periods=LEAST_SHARED), wide.notna().astype(int)
    shared = rated.T @ rated
    first, second = np.triu_indices(len(wide.columns), k=1)
    names = wide.columns.to_numpy()
    table = pd.DataFrame(
        {
            "annotator_a": names[first],
            "annotator_b": names[second],
            "n_shared": shared.to_numpy()[first, second],
            "value": correlations.to_numpy()[first, second],
        }
    )
    table = table[table["n_shared"] > 0]
    few, constant = table["n_shared"] < LEAST_SHARED, table["value"].isna()
    reasons = np.select([few, constant], ["too_few", "constant"], default="")
    return table.assign(reason=pd.Series(reasons, index=table.index).replace("", None))

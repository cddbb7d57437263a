"""What a picture shows, in words: for those who do not see it, and for a caption."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

MOST_LISTED = 6


def forest_in_words(rows: pd.DataFrame) -> str:
    """Each coefficient with its interval, or the range of them where they are many."""
    defined = rows[rows["value"].notna()]
    if defined.empty:
        return "No coefficient is defined."
    if len(defined) > MOST_LISTED:
        return f"{len(defined)} coefficients, {_range(defined, 'value', 'label')}."
    told = "; ".join(_with_interval(row) for row in defined.to_dict(orient="records"))
    return f"Alpha with its interval: {told}."


def matrix_in_words(pairs: pd.DataFrame, statistic: str) -> str:
    """How many pairs there are, and the range of their agreement."""
    defined = pairs[pairs["value"].notna()]
    if defined.empty:
        return "No two annotators share enough candidates."
    named = defined.assign(pair=defined["annotator_a"] + " and " + defined["annotator_b"])
    middle = f"median {defined['value'].median():.2f}"
    return f"{statistic} of {len(defined)} pairs, {_range(named, 'value', 'pair')}, {middle}."


def scatter_in_words(annotators: pd.DataFrame, against: str, statistic: str) -> str:
    """The range of agreement, and whether it goes along with volume or speed."""
    shown = annotators[annotators["agreement"].notna() & annotators[against].gt(0)]
    if annotators["agreement"].isna().all():
        return "No annotator shares candidates with others."
    if shown.empty:
        return "Nobody knows how long a judgment took: the answers hold no times."
    told = f"{statistic} of {len(shown)} annotators, {_range(shown, 'agreement', 'annotator')}"
    if len(shown) > 2 and shown[against].nunique() > 1 and shown["agreement"].nunique() > 1:
        along = shown["agreement"].rank().corr(shown[against].rank())
        what = {"n_judgments": "how much", "seconds": "how slowly"}[against]
        told += f"; its rank correlation with {what} they worked is {along:.2f}"
    return f"{told}."


def _with_interval(row: Mapping[Any, Any]) -> str:
    limits = "" if pd.isna(row["ci_low"]) else f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    return f"{row['label']} ({row['part']}) {row['value']:.2f}{limits}"


def _range(rows: pd.DataFrame, value: str, name: str) -> str:
    low, high = rows.iloc[rows[value].argmin()], rows.iloc[rows[value].argmax()]
    return f"from {low[value]:.2f} ({low[name]}) to {high[value]:.2f} ({high[name]})"

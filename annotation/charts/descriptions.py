"""Descriptions of charts in words: their text alternatives and captions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

if TYPE_CHECKING:
    import pandas as pd


MOST_LISTED = 6
RANK_CORRELATIONS = {
    "n_judgments": gettext_lazy("its rank correlation with how much they worked is %(value)s"),
    "seconds": gettext_lazy("its rank correlation with how slowly they worked is %(value)s"),
}


def forest_in_words(rows: pd.DataFrame) -> str:
    """Each coefficient with its interval, or the range of them where they are many."""
    defined = rows[rows["value"].notna()]
    if defined.empty:
        return _("No coefficient is defined.")
    if len(defined) > MOST_LISTED:
        n = len(defined)
        text = ngettext("%(n)d coefficient, %(range)s.", "%(n)d coefficients, %(range)s.", n)
        return text % {"n": n, "range": _range(defined, "value", "label")}
    values = "; ".join(_with_interval(row) for row in defined.to_dict(orient="records"))
    return _("Alpha with its interval: %(values)s.") % {"values": values}


def matrix_in_words(pairs: pd.DataFrame, statistic: str) -> str:
    """How many pairs there are, and the range of their agreement."""
    defined = pairs[pairs["value"].notna()]
    if defined.empty:
        return _("No two annotators share enough candidates.")
    pair = _("%(first)s and %(second)s")
    names = [
        pair % {"first": row["annotator_a"], "second": row["annotator_b"]}
        for row in defined.to_dict(orient="records")
    ]
    text = ngettext(
        "%(statistic)s of %(n)d pair, %(range)s, median %(median)s.",
        "%(statistic)s of %(n)d pairs, %(range)s, median %(median)s.",
        len(defined),
    )
    return text % {
        "statistic": statistic,
        "n": len(defined),
        "range": _range(defined.assign(pair=names), "value", "pair"),
        "median": f"{defined['value'].median():.2f}",
    }


def scatter_in_words(annotators: pd.DataFrame, against: str, statistic: str) -> str:
    """The range of agreement, and whether it goes along with volume or speed."""
    compared = annotators[annotators["agreement"].notna() & annotators[against].gt(0)]
    if annotators["agreement"].isna().all():
        return _("No annotator shares candidates with others.")
    if compared.empty:
        return _("The times of judgments are unknown: the answers hold none.")
    text = ngettext(
        "%(statistic)s of %(n)d annotator, %(range)s",
        "%(statistic)s of %(n)d annotators, %(range)s",
        len(compared),
    )
    values = {"statistic": statistic, "n": len(compared)}
    sentence = text % (values | {"range": _range(compared, "agreement", "annotator")})
    if (
        len(compared) > 2
        and compared[against].nunique() > 1
        and compared["agreement"].nunique() > 1
    ):
        along = compared["agreement"].rank().corr(compared[against].rank())
        sentence += "; " + RANK_CORRELATIONS[against] % {"value": f"{along:.2f}"}
    return f"{sentence}."


def _with_interval(row: Mapping[Any, Any]) -> str:
    import pandas as pd

    limits = "" if pd.isna(row["ci_low"]) else f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    return f"{row['label']} ({row['part']}) {row['value']:.2f}{limits}"


def _range(rows: pd.DataFrame, value: str, name: str) -> str:
    low, high = rows.iloc[rows[value].argmin()], rows.iloc[rows[value].argmax()]
    return _("from %(low)s (%(lowest)s) to %(high)s (%(highest)s)") % {
        "low": f"{low[value]:.2f}",
        "lowest": low[name],
        "high": f"{high[value]:.2f}",
        "highest": high[name],
    }

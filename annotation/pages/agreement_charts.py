"""The charts of the agreement page: what each draws, from what, and what it says in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.charts.agreement import (
    agreement_forest,
    annotator_scatter,
    pairwise_matrix,
)
from annotation.charts.descriptions import forest_in_words, matrix_in_words, scatter_in_words
from annotation.pages.agreement_view import AgreementView
from presentation.theme import Picture

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Chart:
    name: str
    title: str | Promise
    rows: Callable[[AgreementView], pd.DataFrame]
    draw: Callable[[AgreementView], Picture]
    words: Callable[[AgreementView], str]


def _forest(view: AgreementView) -> Picture:
    return agreement_forest(view.forest)


def _matrix(view: AgreementView) -> Picture:
    return pairwise_matrix(view.pairs, statistic=view.displayed.pair_statistic)


def _volume(view: AgreementView) -> Picture:
    statistic = view.displayed.annotator_statistic
    return annotator_scatter(view.annotators, against="n_judgments", statistic=statistic)


def _times(view: AgreementView) -> Picture:
    statistic = view.displayed.annotator_statistic
    return annotator_scatter(view.annotators, against="seconds", statistic=statistic)


CHARTS = {
    chart.name: chart
    for chart in [
        Chart(
            "forest",
            _("Agreement by question"),
            lambda view: view.forest,
            _forest,
            lambda view: forest_in_words(view.forest),
        ),
        Chart(
            "matrix",
            _("Every two annotators"),
            lambda view: view.pairs,
            _matrix,
            lambda view: matrix_in_words(view.pairs, view.displayed.pair_statistic),
        ),
        Chart(
            "volume",
            _("Agreement and volume"),
            lambda view: view.annotators,
            _volume,
            lambda view: scatter_in_words(
                view.annotators, "n_judgments", view.displayed.annotator_statistic
            ),
        ),
        Chart(
            "speed",
            _("Agreement and speed"),
            lambda view: view.annotators,
            _times,
            lambda view: scatter_in_words(
                view.annotators, "seconds", view.displayed.annotator_statistic
            ),
        ),
    ]
}

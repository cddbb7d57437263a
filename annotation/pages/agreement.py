from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts.roles import Permission
from annotation.access import record_in
from annotation.assignment_facts import DeskWork, annotator_work
from annotation.charts import (
    agreement_forest,
    annotator_scatter,
    forest_in_words,
    matrix_in_words,
    pairwise_matrix,
    scatter_in_words,
)
from annotation.models.agreement import UnitAgreementQuerySet
from annotation.pages.downloads import job_of
from annotation.pages.question_agreement import AgreementView
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.result_kinds.agreement import current_agreement
from annotation.study_facts import AGREEMENT
from console.access import (
    may,
    page_permissions,
    person,
)
from console.pages.pictures import FORMS, of_version, picture_in
from console.tables import page_of, search_words, sort_key
from presentation.spreadsheets import frame_csv
from presentation.theme import Picture
from stats.libraries import pd

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy

# Labels from elsewhere may have no times to draw it of.
SPEED = "speed"
ANNOTATOR_COLUMNS = ["annotator", "agreement", "n_judgments", "seconds", "alpha_change"]


@require_safe
def agreement(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug)
    context: dict[str, Any] = {}
    if study.n_judgments:
        context["job"] = job_of(request, study, AGREEMENT)
        if context["job"] is None and (view := _view(study, request)):
            context |= {
                "view": view,
                "charts": [
                    (chart, chart.words(view))
                    for name, chart in CHARTS.items()
                    if name != SPEED or view.has_times
                ],
            }
    return study_page(request, study, "annotation/agreement", context)


@require_safe
def annotators(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; the way to an annotator's work is for those who may
    review, and whose it is for those who may view workers."""
    study, view = _study_and_view(request, slug)
    key = sort_key(request, ANNOTATOR_COLUMNS, "-alpha_change")
    page = page_of(request, view.annotator_rows(key))
    work: dict[str, Sequence[DeskWork]] = {}
    if may(request, Permission.REVIEW):
        work = annotator_work(study, [row["annotator"] for row in page])
        if work and may(request, Permission.VIEW_WORKERS):
            record_in(
                study,
                actor=person(request),
                action="worker.view",
                details={"page": "annotators", "n_workers": len(work)},
            )
    context = {
        "view": view,
        "page": page,
        "rows": [
            (row, work.get(row["annotator"], ()), view.annotator_positions.get(row["annotator"]))
            for row in page
        ],
        "has_work": bool(work),
        "sort": key,
        "section": AGREEMENT,
    }
    return study_page(request, study, "annotation/annotators", context)


@require_safe
def disagreement(request: HttpRequest, slug: str) -> HttpResponse:
    study, view = _study_and_view(request, slug)
    words = search_words(request)
    key = sort_key(request, [*UNIT_COLUMNS], "agreement")
    permissions = page_permissions(request)
    page = page_of(
        request,
        units_of(view, words, permissions=permissions).order_by(*order_of(key, permissions)),
    )
    context = {"view": view, "page": page, "sort": key, "words": words, "section": AGREEMENT}
    return study_page(request, study, "annotation/disagreement", context)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: whoever has a role in the study. A chart as specification, data or file."""
    study, view = _study_and_view(request, slug)
    if chart not in CHARTS or form not in FORMS:
        raise Http404(f"There is no chart {chart}.{form}.")
    draw = partial(
        picture_in,
        form,
        request,
        name=f"{study.slug}-{slugify(view.question)}-{chart}",
        draw=lambda: CHARTS[chart].draw(view),
        data=lambda: frame_csv(CHARTS[chart].rows(view)),
    )
    return of_version(request, view.version, f"{chart}.{form}", draw)


def _study_and_view(request: HttpRequest, slug: str) -> tuple[CountedStudy, AgreementView]:
    study = study_for(request, slug)
    if (view := _view(study, request)) is None:
        raise Http404("Agreement is not computed yet; its page does that.")
    return study, view


def _view(study: CountedStudy, request: HttpRequest) -> AgreementView | None:
    version = current_agreement(study)
    if version is None or not version.record["questions"]:
        return None
    try:
        return AgreementView.from_query(study, version, request.GET)
    except KeyError as missing:
        raise Http404(f"There is no round or question {missing}.") from missing


# What a column of the page is sorted by.
UNIT_COLUMNS = {
    "agreement": "agreement",
    "item": "candidate__item__key",
    "candidate": "candidate__key",
    "condition": "candidate__item__condition",
    "n_judgments": "n_judgments",
    "mean": "mean",
}


def units_of(
    view: AgreementView, words: str = "", *, permissions: Container[str]
) -> UnitAgreementQuerySet:
    """The candidates of the view's question and round whose item's key has every word; or whose own
    key, which often is the system's name, for users who may view systems."""
    rows = view.version.units.judged(view.study_question, view.round)
    for word in words.split():
        matches = Q(candidate__item__key__icontains=word)
        if Permission.VIEW_SYSTEMS in permissions:
            matches |= Q(candidate__key__icontains=word)
        rows = rows.filter(matches)
    # Fetched for the rows of one page, and not joined to all that stand before them.
    return rows.prefetch_related("candidate__item")


def order_of(key: str, permissions: Container[str]) -> tuple[str, str]:
    """The order that a column's key names, made total. Candidates are in the order of their blind
    keys for users who may not view systems."""
    minus = "-" if key.startswith("-") else ""
    column = UNIT_COLUMNS[key.removeprefix("-")]
    if column == "candidate__key" and Permission.VIEW_SYSTEMS not in permissions:
        column = "candidate__blind_key"
    return minus + column, minus + "pk"


@dataclass(frozen=True)
class Chart:
    name: str
    title: str | Promise
    rows: Callable[[AgreementView], pd.DataFrame]
    draw: Callable[[AgreementView], Picture]
    words: Callable[[AgreementView], str]


def _scatter(name: str, title: Promise | str, against: Literal["n_judgments", "seconds"]) -> Chart:
    return Chart(
        name,
        title,
        lambda view: view.annotators,
        lambda view: annotator_scatter(
            view.annotators, against=against, statistic=view.displayed.annotator_statistic
        ),
        lambda view: scatter_in_words(view.annotators, against, view.displayed.annotator_statistic),
    )


CHARTS = {
    chart.name: chart
    for chart in [
        Chart(
            "forest",
            _("Agreement by question"),
            lambda view: view.forest,
            lambda view: agreement_forest(view.forest),
            lambda view: forest_in_words(view.forest),
        ),
        Chart(
            "matrix",
            _("Every two annotators"),
            lambda view: view.pairs,
            lambda view: pairwise_matrix(view.pairs, statistic=view.displayed.pair_statistic),
            lambda view: matrix_in_words(view.pairs, view.displayed.pair_statistic),
        ),
        _scatter("volume", _("Agreement and volume"), "n_judgments"),
        _scatter(SPEED, _("Agreement and speed"), "seconds"),
    ]
}

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import Promise
from django.utils.text import slugify
from django.utils.translation import gettext_lazy, gettext_lazy as _
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
from annotation.disagreement import STATISTICS
from annotation.models import Question, Study
from annotation.models.agreement import UnitAgreementQuerySet
from annotation.pages.downloads import job_of
from annotation.pages.stages import study_for, study_page
from annotation.result_kinds.agreement import (
    STATISTICS as ANNOTATOR_STATISTICS,
    AgreementKind,
    JudgedQuestion,
    ProtocolCoefficient,
    QuestionCoefficient,
    RoundCoefficient,
    current_agreement,
    list_alphas,
    read_part,
)
from annotation.study_facts import AGREEMENT
from console.access import may, page_permissions, person
from console.glossary import COEFFICIENTS, Term, title_of
from console.pages.pictures import FORMS, of_version, picture_in
from console.tables import page_of, search_words, sort_key
from error_codes import require
from presentation.row_files import frame_csv
from presentation.theme import Picture
from results.models import Result
from stats.libraries import pd

WITH = gettext_lazy("all submissions that are not rejected")
WITHOUT = gettext_lazy("without flagged ones")
# More rows would make the forest longer than a screen; then conditions are left to the table.
MOST_IN_FOREST = 24


@dataclass(frozen=True)
class CoefficientRow:
    term: Term | None
    title: str
    all: QuestionCoefficient
    unflagged: QuestionCoefficient | None

    @property
    def is_defined(self) -> bool:
        return self.all.value is not None or bool(
            self.unflagged and self.unflagged.value is not None
        )


@dataclass(frozen=True)
class AgreementView:
    version: Result
    judged: Sequence[JudgedQuestion]
    displayed: JudgedQuestion
    study_question: Question
    condition: str

    @classmethod
    def from_query(cls, study: Study, version: Result, query: Mapping[str, str]) -> AgreementView:
        """The view an address asks for; KeyError names what of it is not there."""
        judged = [JudgedQuestion(**row) for row in version.record["questions"]]
        round = query.get("round") or str(version.facts["first_round"])
        of_round = {row.question: row for row in judged if str(row.round) == round}
        require(of_round, KeyError(round))
        name = query.get("question") or next(iter(of_round))
        view = cls(
            version, judged, of_round[name], study.question(name), query.get("condition", "")
        )
        require(not view.condition or view.condition in view.conditions, KeyError(view.condition))
        return view

    @property
    def query(self) -> str:
        return urlencode({"round": self.round, "question": self.question})

    @property
    def round(self) -> int:
        return self.displayed.round

    @property
    def rounds(self) -> list[int]:
        return list(dict.fromkeys(row.round for row in self.judged))

    @property
    def question(self) -> str:
        return self.displayed.question

    @property
    def questions(self) -> list[str]:
        return [row.question for row in self.judged if row.round == self.round]

    @property
    def has_kappas(self) -> bool:
        return self.study_question.level in STATISTICS

    @property
    def is_compared(self) -> bool:
        return any(row.n_items for row in self._of_question)

    @property
    def is_any_compared(self) -> bool:
        return self.is_compared or bool((self.forest["n_items"] > 0).any())

    @cached_property
    def conditions(self) -> list[str]:
        return [name for name in dict.fromkeys(row.by for row in self._of_question) if name]

    @cached_property
    def coefficients(self) -> list[CoefficientRow]:
        rows = [row for row in self._of_question if row.by == self.condition]
        unflagged = {row.name: row for row in rows if not row.with_flagged}
        of_all = [
            CoefficientRow(
                COEFFICIENTS.get(row.name), title_of(row.name), row, unflagged.get(row.name)
            )
            for row in rows
            if row.with_flagged
        ]
        # Alpha before the others: it is what every level and design has.
        return sorted(of_all, key=lambda row: not row.all.name.startswith("krippendorff"))

    @cached_property
    def _of_question(self) -> list[QuestionCoefficient]:
        return [QuestionCoefficient(**row) for row in self._rows("coefficients", round=self.round)]

    def _rows(self, table: str, **values: Any) -> list[dict[str, Any]]:
        values["question"] = self.question
        rows = self.version.record[table]
        return [row for row in rows if all(row[name] == one for name, one in values.items())]

    @cached_property
    def between_rounds(self) -> list[tuple[str, RoundCoefficient]]:
        rows = [RoundCoefficient(**row) for row in self._rows("between_rounds")]
        return [(title_of(row.name), row) for row in rows if row.value is not None]

    @cached_property
    def by_protocol(self) -> list[tuple[str, ProtocolCoefficient]]:
        stored = self._rows("by_protocol", round=self.round)
        rows = [ProtocolCoefficient(**row) for row in stored if row["value"] is not None]
        order = {name: n for n, name in enumerate(dict.fromkeys(row.name for row in rows))}
        # The versions of one coefficient stand together, alpha's first.
        return [
            (title_of(row.name), row)
            for row in sorted(
                rows,
                key=lambda row: (
                    not row.name.startswith("krippendorff"),
                    order[row.name],
                    row.protocol,
                ),
            )
        ]

    @cached_property
    def _part(self) -> dict[str, list[dict[str, Any]]]:
        return read_part(self.version, self.displayed.part)

    @cached_property
    def position_effect(self) -> dict[str, Any] | None:
        return self.annotator_positions.get("")

    @cached_property
    def annotator_positions(self) -> dict[str, dict[str, Any]]:
        return {row["annotator"]: row for row in self._part["positions"]}

    @cached_property
    def forest(self) -> pd.DataFrame:
        alphas = [row for row in list_alphas(self.version) if row.round == self.round]
        if len({(row.question, row.by) for row in alphas}) > MOST_IN_FOREST:
            alphas = [row for row in alphas if not row.by]
        rows = [
            {
                "label": f"{row.question}, {row.by}" if row.by else row.question,
                "part": str(WITH if row.with_flagged else WITHOUT),
                **{name: getattr(row, name) for name in ("value", "ci_low", "ci_high", "n_items")},
            }
            for row in alphas
        ]
        return _numeric(pd.DataFrame(rows), ["value", "ci_low", "ci_high"])

    @cached_property
    def pairs(self) -> pd.DataFrame:
        columns = ["annotator_a", "annotator_b", "n_shared", "value", "reason"]
        return _numeric(pd.DataFrame(self._part["pairs"], columns=columns), ["value"])

    @cached_property
    def annotators(self) -> pd.DataFrame:
        columns = ["annotator", "agreement", "n_judgments", "seconds", "n_flagged", "alpha_change"]
        # As the page lists them: those who pull agreement down first.
        return _numeric(
            pd.DataFrame(self.annotator_rows("-alpha_change"), columns=columns),
            ["agreement", "seconds", "alpha_change"],
        )

    @property
    def has_times(self) -> bool:
        return bool(self.annotators["seconds"].notna().any())

    @property
    def is_correlation(self) -> bool:
        return self.displayed.annotator_statistic == ANNOTATOR_STATISTICS["loo_correlation"]

    def annotator_rows(self, key: str) -> list[dict[str, Any]]:
        name = key.removeprefix("-")
        rows = self._part["annotators"]
        defined = [row for row in rows if row[name] is not None]
        in_order = sorted(defined, key=lambda row: row[name], reverse=key.startswith("-"))
        return in_order + [row for row in rows if row[name] is None]


def _numeric(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return table.astype(dict.fromkeys(columns, "float64"))


def newest_alphas(study: Study, round: int) -> list[QuestionCoefficient]:
    newest = AgreementKind().list_results(study).defer(None).first()
    return [row for row in list_alphas(newest) if row.round == round and not row.by]


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
    study = study_for(request, slug)
    if (view := _view(study, request)) is None:
        # The page computes agreement, or explains why there is none.
        return redirect("console:agreement", slug)
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
    study = study_for(request, slug)
    if (view := _view(study, request)) is None:
        return redirect("console:agreement", slug)
    words = search_words(request)
    key = sort_key(request, [*UNIT_COLUMNS], "agreement")
    permissions = page_permissions(request)
    page = page_of(
        request,
        units_of(view, words, permissions=permissions).order_by(*order_of(key, permissions)),
    )
    return study_page(
        request,
        study,
        "annotation/disagreement",
        {"view": view, "page": page, "sort": key, "words": words, "section": AGREEMENT},
    )


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: whoever has a role in the study. A chart as specification, data or file."""
    study = study_for(request, slug)
    if (view := _view(study, request)) is None:
        raise Http404("Agreement is not computed yet; its page does that.")
    require(chart in CHARTS and form in FORMS, Http404(f"There is no chart {chart}.{form}."))
    draw = partial(
        picture_in,
        form,
        request,
        name=f"{study.slug}-{slugify(view.question)}-{chart}",
        draw=lambda: CHARTS[chart].draw(view),
        data=lambda: frame_csv(CHARTS[chart].rows(view)),
    )
    return of_version(request, view.version, f"{chart}.{form}", draw)


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

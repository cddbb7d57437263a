"""The stages of a study that compare systems and metrics with people, and their panels of its
Overview: the ranking of the systems, their ratings, and the metrics that agree with people best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from django.utils.translation import gettext as _, gettext_lazy

from accounts.roles import Permission
from annotation.models import Study
from annotation.pages.stages import (
    ANSWER,
    Facts,
    Figure,
    Lead,
    Panel,
    State,
    StudyStage,
    register_counts,
    register_figures,
    register_leads,
    register_panel,
    register_stage,
    result_state,
    stage_facts,
)
from annotation.result_kinds.base import newest_results, since_result
from annotation.study_facts import RESULTS, VALIDATION, raters_of
from console.chart_values import LEAST_ITEMS, N_SERIES, Axis, IntervalChart, interval_row
from console.registrations import ACTIVE, LATER
from console.templatetags.numbers import coefficient, interval
from results.models import Result
from validation.analysis.human_results import ALL, MEAN, PREFERRED, SHARE, Bin, QuestionRecord
from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    RatedPairRecord,
    RatedSystemRecord,
)
from validation.analysis.settings import Settings
from validation.documents.metrics_answers import measure_name, metrics_answers
from validation.pages.human_results import distributions_of
from validation.pages.metric_agreement import BestMetrics
from validation.pages.result_sentences import Scale, Standing
from validation.result_kinds.validation import (
    HumanResultsKind,
    StoredHumanResults,
    ValidationKind,
)
from validation.versions import StoredResults, find_last

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


MOST_QUESTIONS, MOST_DISTRIBUTIONS = 4, 6


def _human_results(study: CountedStudy) -> StoredHumanResults | None:
    version = newest_results(study).get(HumanResultsKind.name)
    return None if version is None else StoredHumanResults(study, version)


def _standings(results: StoredHumanResults) -> Iterator[tuple[QuestionRecord, Standing]]:
    """Of the first questions under which systems have an order."""
    raters = raters_of(results.study)
    for one in results.questions[:MOST_QUESTIONS]:
        part = (one.question, ALL, "")
        labels = [row["label"] for row in results.record["bins"] if row["question"] == one.question]
        scale = Scale(one.measure, one.scale_low, one.scale_high, labels[-1] if labels else "")
        systems, pairs = results.systems.get(part, []), results.pairs.get(part, [])
        if systems and systems[0].mean is not None:
            yield one, Standing(scale, systems, pairs, raters)


def leader_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    results = _human_results(study)
    for one, standing in islice(_standings(results) if results else (), 1):
        if len(standing.systems) > 1 and one.n_items >= LEAST_ITEMS:
            label = _("Leading, %(question)s") % {"question": one.question}
            first, second = standing.systems[:2]
            rests_on = _("difference to %(second)s undetermined") % {"second": second.system}
            if size := standing.lead_size:
                rests_on = _("%(size)s ahead of the second") % {"size": size}
            yield Figure(label, first.system, rests_on, "results")


def find_leads(studies: Iterable[int]) -> dict[int, Lead]:
    stored = Result.objects.filter(
        subject_type=ContentType.objects.get_for_model(Study),
        subject_id__in=studies,
        kind=HumanResultsKind.name,
    )
    newest = dict(stored.order_by("number").values_list("subject_id", "facts"))
    return {key: _lead(**facts["lead"]) for key, facts in newest.items() if facts.get("lead")}


def _lead(
    question: Mapping[str, Any],
    systems: Sequence[Mapping[str, Any]],
    pairs: Sequence[Mapping[str, Any]],
) -> Lead:
    one = QuestionRecord(**question)
    standing = Standing(
        Scale(one.measure, one.scale_low, one.scale_high),
        [RatedSystemRecord(**row) for row in systems],
        [RatedPairRecord(**row) for row in pairs],
    )
    axis, span = Axis(-1.0, 1.0), None
    for pair in standing.pairs:
        if pair.delta is not None:
            sign = 1.0 if pair.a == standing.systems[0].system else -1.0
            limits = [pair.delta if end is None else end for end in (pair.ci_low, pair.ci_high)]
            # Zero is in the middle, whatever the scale of the study.
            most = max(map(abs, (pair.delta, *limits))) or 1.0
            low, high = sorted(sign * end / most for end in limits)
            span = axis.span(sign * pair.delta / most, low, high)
    return Lead(str(standing.lead(one.question)), axis, span)


def _ranking_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any]:
    if (results := _human_results(study)) is None or not (parts := list(_standings(results))):
        return {}
    known = sorted({row.system for _one, standing in parts for row in standing.systems})
    series = {name: 1 + at % N_SERIES for at, name in enumerate(known)}
    charts = []
    for one, standing in parts:
        scale = standing.scale
        axis = Axis(*scale.ends, is_share=scale.is_share)
        rows = [
            interval_row(
                axis,
                row.system or _("all candidates"),
                (row.mean, row.ci_low, row.ci_high),
                (scale.value(row.mean), scale.interval(row)),
                n_items=row.n_items,
                series=series[row.system],
            )
            for row in standing.systems
        ]
        charts.append(IntervalChart(f"{one.question}, {UNITS[one.measure]}", axis, rows))
    return {
        "charts": charts,
        "sentences": [standing.lead(one.question) for one, standing in parts],
        "n_rated": max(one.n_items for one, _standing in parts),
        "state": charts[0].state,
    } | since_result(study, HumanResultsKind(), results.version)


def _ratings_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any]:
    if (results := _human_results(study)) is None or not results.questions:
        return {}
    first = results.questions[0]
    bins = [Bin(**row) for row in results.record["bins"] if row["question"] == first.question]
    systems = [row.system for row in results.systems.get((first.question, ALL, ""), ())]
    return {
        "question": first,
        "distributions": distributions_of(bins, systems)[:MOST_DISTRIBUTIONS],
    } | since_result(study, HumanResultsKind(), results.version)


def _metrics_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any]:
    version = find_last(study, Settings()) if stage_facts(study)[VALIDATION] else None
    if version is None:
        return {}
    results = StoredResults(version)
    results.load(CorrelationRecord, ComparisonRecord, CeilingRecord)
    question, answer = next(metrics_answers(results), ("", None))
    if answer is None or not answer.defined:
        return {}
    best = BestMetrics(results, answer.records, answer.comparisons, answer.ceiling)
    rows = [
        interval_row(
            best.axis,
            one.label,
            (one.record.value, one.record.ci_low, one.record.ci_high),
            (coefficient(one.record.value), interval(one.record)),
            n_items=one.record.n_used,
        )
        for one in (*best.top, *best.behind)
        if one.span is not None
    ]
    chart = IntervalChart(question, best.axis, rows, best.ceiling_span)
    return {
        "chart": chart,
        "state": chart.state,
        "measure": measure_name(answer.defined[0]),
        "answer": best.answer,
        "ceiling": best.ceiling if best.ceiling_span else None,
        "notes": best.ceiling_sentences,
    } | since_result(study, ValidationKind(), version)


# What is on the axes of the ranking.
UNITS = {
    MEAN: gettext_lazy("mean rating"),
    SHARE: gettext_lazy("share of candidates"),
    PREFERRED: gettext_lazy("share of comparisons"),
}


def _result_counts() -> dict[str, Any]:
    of_study = {
        "subject_type": ContentType.objects.get_for_model(Study),
        "subject_id": OuterRef("pk"),
    }
    return {
        RESULTS: Exists(Result.objects.filter(**of_study, kind=HumanResultsKind.name)),
        VALIDATION: Exists(Result.objects.filter(**of_study, kind=VALIDATION)),
    }


def _results(study: CountedStudy, facts: Facts) -> State:
    return result_state(is_possible=bool(study.n_judgments), is_computed=facts[RESULTS])


def _validation(study: CountedStudy, facts: Facts) -> State:
    is_possible = bool(study.n_judgments) and facts["has_scores"]
    return result_state(is_possible=is_possible, is_computed=facts[VALIDATION])


def _paper(study: CountedStudy, facts: Facts) -> State:
    return (ACTIVE, "") if facts[RESULTS] else (LATER, "")


register_figures(30, leader_figures)
register_leads(find_leads)
for panel in (
    Panel(
        name="ranking",
        title=gettext_lazy("Ranking of systems"),
        page="results",
        place=0,
        template="validation/_ranking_panel.html",
        describe=_ranking_panel,
        promise=gettext_lazy(
            "Which system is best, and by how much. Appears when annotators have answered 5 items; "
            "each system gets a mean and an interval."
        ),
        is_result=True,
    ),
    Panel(
        name="metrics",
        title=gettext_lazy("Metrics and human ratings"),
        page="validation",
        place=40,
        template="validation/_metrics_panel.html",
        describe=_metrics_panel,
        promise=gettext_lazy(
            "Which metric follows human ratings. Needs answers and the scores of a metric, which "
            "can be computed before answers arrive."
        ),
        is_result=True,
    ),
    Panel(
        name="ratings",
        title=gettext_lazy("Ratings"),
        page="results",
        place=50,
        template="validation/_ratings_panel.html",
        describe=_ratings_panel,
        promise=gettext_lazy(
            "How ratings are spread over the scale, per system. Starts with the first answer."
        ),
        outline="bars",
    ),
):
    register_panel(panel)
register_counts(_result_counts)
for stage in (
    StudyStage("results", gettext_lazy("Results"), ANSWER, 60, _results, Permission.VIEW_SYSTEMS),
    StudyStage(
        "validation", gettext_lazy("Metrics"), ANSWER, 100, _validation, Permission.VIEW_SYSTEMS
    ),
    StudyStage("paper", gettext_lazy("Paper"), ANSWER, 105, _paper, Permission.VIEW_SYSTEMS),
):
    register_stage(stage)

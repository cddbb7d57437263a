"""The stages of a study that compare systems and metrics with people, and the figures of its first
page: which system comes first on each question, and which metrics agree with people best."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.roles import Permission
from annotation.models import Study
from annotation.pages.study import (
    ANSWER,
    Facts,
    Figure,
    State,
    StudyStage,
    register_counts,
    register_figures,
    register_stage,
    result_state,
)
from annotation.study_facts import RESULTS, VALIDATION
from console.registrations import ACTIVE, LATER
from console.templatetags.numbers import coefficient, interval
from results.models import Result
from stats.correlation.result import LEAST_ITEMS
from validation.analysis.human_results import ALL
from validation.analysis.records import CorrelationRecord
from validation.analysis.settings import Settings
from validation.documents.metrics_answers import measure_name, metrics_answers, names_of, size_text
from validation.documents.terms import RESAMPLES, TESTS
from validation.pages.result_sentences import (
    Scale,
    Standing,
)
from validation.result_kinds.validation import (
    HumanResultsKind,
    StoredHumanResults,
    current_human_results,
    current_version,
)
from validation.versions import StoredResults

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


MOST_QUESTIONS = 4


def leader_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    version = current_human_results(study)
    if version is None:
        return
    results = StoredHumanResults(study, version)
    for one in results.questions[:MOST_QUESTIONS]:
        part = (one.question, ALL, "")
        scale = Scale(one.measure, one.scale_low, one.scale_high)
        systems, pairs = results.systems.get(part, []), results.pairs.get(part, [])
        if len(systems) > 1 and (first := systems[0]).mean is not None:
            label = _("First, %(question)s") % {"question": one.question}
            value = f"{scale.value(first.mean)} {scale.interval(first)}".strip()
            rests_on = f"{value}; {Standing(scale, systems, pairs).sureness}"
            yield Figure(label, first.system, rests_on, "results")


def top_group_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    version = current_version(study)
    if version is None:
        return
    results = StoredResults(version)
    for question, answer in islice(metrics_answers(results, has_ceilings=False), MOST_QUESTIONS):
        group = answer.best_records
        if not group:
            continue
        first = group[0]
        which = (
            _("Agrees best") if len(group) == 1 else _("No significant difference among the best")
        )
        pairs = sum(row.p is not None for row in answer.comparisons)
        basis = [measure_name(first), interval(first), size_text(first)]
        yield Figure(
            f"{which}, {question}: {names_of(results, group)}",
            coefficient(first.value),
            f"{', '.join(filter(None, basis))}{describe_tests(results.settings, pairs)}"
            f"{_few_items(first)}",
            "validation",
        )


def _test_name(settings: Settings) -> str:
    if settings.test in ("auto", "paired_bootstrap"):
        drawn = RESAMPLES.get(settings.resample, settings.resample)
        return _("a paired bootstrap of %(drawn)s") % {"drawn": drawn}
    return TESTS.get(settings.test, settings.test)


def _few_items(first: CorrelationRecord) -> str:
    n_items = min(first.n_used, first.n_units or first.n_used)
    if first.level != "item" or n_items >= LEAST_ITEMS:
        return ""
    text = ngettext(
        "with %(n)d item only this is a rough guide; rate %(least)d or more",
        "with %(n)d items only this is a rough guide; rate %(least)d or more",
        n_items,
    )
    return f"; {text % {'n': n_items, 'least': LEAST_ITEMS}}"


def describe_tests(settings: Settings, pairs: int) -> str:
    if not pairs:
        return ""
    text = ngettext(
        "by %(test)s, Holm's p over %(n)d pair", "by %(test)s, Holm's p over %(n)d pairs", pairs
    )
    return f"; {text % {'test': _test_name(settings), 'n': pairs}}"


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


register_figures(40, leader_figures)
register_figures(60, top_group_figures)
register_counts(_result_counts)
for stage in (
    StudyStage("results", gettext_lazy("Results"), ANSWER, 60, _results, Permission.VIEW_SYSTEMS),
    StudyStage(
        "validation", gettext_lazy("Metrics"), ANSWER, 100, _validation, Permission.VIEW_SYSTEMS
    ),
    StudyStage("paper", gettext_lazy("Paper"), ANSWER, 105, _paper, Permission.VIEW_SYSTEMS),
):
    register_stage(stage)

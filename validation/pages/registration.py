"""The stages of a study that compare systems and metrics with people, and the figures of its first
page: which system comes first on each question, and which metrics agree with people best."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

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
from console.templatetags.numbers import coefficient, interval
from results.models import Result
from stats.correlation.result import LEAST_ITEMS
from validation.analysis.human_results import ALL
from validation.analysis.records import CorrelationRecord
from validation.analysis.settings import Settings
from validation.documents.metrics_answers import measure_name, metrics_answers, names_of, size_text
from validation.documents.terms import RESAMPLES, TESTS
from validation.human_results import HUMAN_RESULTS, StoredHumanResults, current_human_results
from validation.models import ValidationOutcome
from validation.pages.result_sentences import (
    Scale,
    Standing,
)
from validation.study_results import current_version
from validation.versions import StoredResults

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


MOST_QUESTIONS = 4


def leader_figures(study: Study) -> Iterator[tuple[str, str, str]]:
    """A label, the system, and its value with how sure that is; nothing is computed here."""
    for question, standing in _standings(study):
        if len(standing.systems) > 1 and (first := standing.systems[0]).mean is not None:
            label = _("First, %(question)s") % {"question": question}
            limits = standing.scale.interval(first)
            value = f"{standing.scale.value(first.mean)} {limits}".strip()
            yield label, first.system, f"{value}; {standing.sureness}"


def _standings(study: Study) -> Iterator[tuple[str, Standing]]:
    """Of all judgments together, question by question, as of the study's current results."""
    version = current_human_results(study)
    if version is None:
        return
    results = StoredHumanResults(study, version)
    for one in results.questions[:MOST_QUESTIONS]:
        scale = Scale(one.measure, one.scale_low, one.scale_high)
        part = (one.question, ALL, "")
        systems, pairs = results.systems.get(part, []), results.pairs.get(part, [])
        yield one.question, Standing(scale, systems, pairs)


def top_group_figures(results: StoredResults) -> Iterator[tuple[str, str, str]]:
    """By question, the metrics that no test tells from the greatest, by the measure that the
    Metrics page begins with: label, value, and test."""
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
        yield (
            f"{which}, {question}: {names_of(results, group)}",
            coefficient(first.value),
            f"{', '.join(filter(None, basis))}{describe_tests(results.settings, pairs)}"
            f"{_few_items(first)}",
        )


def _test_name(settings: Settings) -> str:
    """The test behind p, with what it drew, as the methods paragraph describes it."""
    if settings.test in ("auto", "paired_bootstrap"):
        drawn = RESAMPLES.get(settings.resample, settings.resample)
        return _("a paired bootstrap of %(drawn)s") % {"drawn": drawn}
    return TESTS.get(settings.test, settings.test)


def _few_items(first: CorrelationRecord) -> str:
    """The caveat of a figure by item that rests on few of them."""
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
    """The test, and how many pairs of metrics it compared; empty if none."""
    if not pairs:
        return ""
    text = ngettext(
        "by %(test)s, Holm's p over %(n)d pair", "by %(test)s, Holm's p over %(n)d pairs", pairs
    )
    return f"; {text % {'test': _test_name(settings), 'n': pairs}}"


def _result_counts() -> dict[str, Any]:
    outcomes = ValidationOutcome.objects.filter(study=OuterRef("pk"), name=VALIDATION)
    of_study = {
        "subject_type": ContentType.objects.get_for_model(Study),
        "subject_id": OuterRef("pk"),
    }
    return {
        RESULTS: Exists(Result.objects.filter(**of_study, kind=HUMAN_RESULTS)),
        VALIDATION: Exists(outcomes),
    }


def _results(study: CountedStudy, facts: Facts) -> State:
    return result_state(is_possible=bool(study.n_judgments), is_computed=facts[RESULTS])


def _validation(study: CountedStudy, facts: Facts) -> State:
    is_possible = bool(study.n_judgments) and facts["has_scores"]
    return result_state(is_possible=is_possible, is_computed=facts[VALIDATION])


def _leader_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    for label, value, rests_on in leader_figures(study):
        yield Figure(label, value, rests_on, "results")


def _metric_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    if (version := current_version(study)) is not None:
        for label, value, rests_on in top_group_figures(StoredResults(version)):
            yield Figure(label, value, rests_on, "validation")


register_figures(40, _leader_figures)
register_figures(60, _metric_figures)
register_counts(_result_counts)
for stage in (
    StudyStage("results", gettext_lazy("Results"), ANSWER, 60, _results, Permission.VIEW_SYSTEMS),
    StudyStage(
        "validation", gettext_lazy("Metrics"), ANSWER, 100, _validation, Permission.VIEW_SYSTEMS
    ),
):
    register_stage(stage)

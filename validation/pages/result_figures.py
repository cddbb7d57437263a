"""Which system comes first on each question, and which metrics agree with people best, for a
study's first page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Study
from console.templatetags.numbers import coefficient, interval
from stats.correlation.result import LEAST_ITEMS
from validation.analysis.human_results import ALL
from validation.analysis.records import CorrelationRecord
from validation.analysis.settings import Settings
from validation.documents.metrics_answers import measure_name, metrics_answers, size_text
from validation.documents.terms import RESAMPLES, TESTS
from validation.documents.top_groups import names_of
from validation.human_results import StoredHumanResults, current_human_results
from validation.pages.result_sentences import (
    Scale,
    Standing,
)
from validation.versions import StoredResults

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

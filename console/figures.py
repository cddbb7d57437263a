"""The few numbers a study's first page shows, each with its interval or denominator."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import F
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.agreement_versions import agreement_fingerprint
from annotation.models import AgreementCoefficient, Study
from annotation.pages.stages import stage_permission
from console.result_figures import MOST_QUESTIONS, leader_figures, top_group_figures
from console.study_results import current_version
from console.templatetags.numbers import coefficient, interval, words
from hits.progress import StudyProgress
from validation.rows import StoredResults

if TYPE_CHECKING:
    from annotation.study_sizes import CountedStudy


@dataclass(frozen=True)
class Figure:
    """A label, a value, what it rests on, and the page it is made of."""

    label: str
    value: str
    rests_on: str
    url: str


def figures_of(
    study: CountedStudy, progress: StudyProgress, kind: str, permissions: Container[str]
) -> list[Figure]:
    """Sizes, progress, and the results that are stored and that somebody with these permissions may
    see; nothing is computed here."""
    return [
        Figure(label, value, rests_on, reverse(f"console:{page}", args=[study.slug]))
        for label, value, rests_on, page in (*_sizes(study, progress, kind), *_results(study))
        if stage_permission(page) in permissions
    ]


def _sizes(
    study: CountedStudy, progress: StudyProgress, kind: str
) -> Iterator[tuple[str, str, str, str]]:
    yield _("Items"), f"{study.n_items:,}", kind, "items"
    if progress.n_hits:
        basis = _("of %(total)s") % {"total": f"{progress.n_hits:,}"}
        yield _("HITs published"), f"{progress.n_published:,}", basis, "launch"
        basis = _("of %(total)s on offer") % {"total": f"{progress.n_offered:,}"}
        yield _("Assignments collected"), f"{progress.n_collected:,}", basis, "answers"
    n = study.n_submissions
    basis = ngettext("in %(shown)s submission", "in %(shown)s submissions", n) % {"shown": f"{n:,}"}
    yield _("Judgments"), f"{study.n_judgments:,}", basis, "items"


def _results(study: Study) -> Iterator[tuple[str, str, str, str]]:
    for label, value, rests_on in leader_figures(study):
        yield label, value, rests_on, "results"
    for row in _alphas(study):
        label = _("Alpha, %(question)s") % {"question": row.question.name}
        yield label, *_figure_text(row), "agreement"
    version = current_version(study)
    if version is not None:
        for label, value, rests_on in top_group_figures(StoredResults(version)):
            yield label, value, rests_on, "validation"


def _alphas(study: Study) -> list[AgreementCoefficient]:
    """Alpha of the first questions, in every condition."""
    rows = AgreementCoefficient.objects.filter(
        version__study=study, version__fingerprint=agreement_fingerprint(study)
    )
    alphas = rows.alphas(F("version__first_round")).filter(by="", with_flagged=True)
    newest_first = list(alphas.order_by("-version", "pk")[:MOST_QUESTIONS])
    # The same judgments may have been computed before.
    return [row for row in newest_first if row.version_id == newest_first[0].version_id]


def _figure_text(row: AgreementCoefficient) -> tuple[str, str]:
    size = row.n_items
    n = ngettext("n = %(n)s candidate", "n = %(n)s candidates", size) % {"n": f"{size:,}"}
    if row.value is None:
        reason = _("undefined: %(reason)s") % {"reason": words(row.reason)}
        return "–", f"{reason}; {n}"
    return coefficient(row.value), f"{interval(row)}, {n}"

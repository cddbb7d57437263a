"""The stages a study goes through, and how it stands with each, for the navigation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Exists, IntegerField, Subquery
from django.db.models.functions import Cast
from django.urls import reverse

from annotation.models import Adjudication, LabelSet, Study
from console.agreement_parts import AGREEMENT, DISPUTES
from console.models import StoredResult
from console.results import VALIDATION
from hits.progress import StudyProgress, row_count, study_progress
from metrics.models import ScoringRun

if TYPE_CHECKING:
    from console.sizes import CountedStudy

DONE, ACTIVE, NEEDS_YOU, LATER = "done", "active", "needs-you", "later"
# The words beside the signs, for those who do not see them.
WORDS = {DONE: "done", ACTIVE: "under way", NEEDS_YOU: "needs you", LATER: "not yet"}
SIGNS = {DONE: "✓", ACTIVE: "◐", NEEDS_YOU: "!", LATER: "○"}


@dataclass(frozen=True)
class Stage:
    """A stage: its page, how it stands, and a few words about it."""

    name: str
    title: str
    url: str
    state: str
    told: str

    @property
    def words(self) -> str:
        return WORDS[self.state]

    @property
    def sign(self) -> str:
        return SIGNS[self.state]


def stages_of(study: CountedStudy) -> list[Stage]:
    """All stages of a study, which must come from `counted()`, in their order."""
    progress = study_progress(study)
    facts = _facts(study)
    has_both = bool(study.n_judgments) and facts.has_scores
    found = [
        ("items", "Items", *_items(study)),
        ("publish", "Publish", *_publish(study, progress)),
        ("answers", "Collect", *_answers(study, progress)),
        ("agreement", "Agreement", *_result(bool(study.n_judgments), facts.has_agreement)),
        ("adjudication", "Adjudication", *_adjudication(facts)),
        ("labels", "Labels", *_labels(facts)),
        ("validation", "Metrics", *_result(has_both, facts.has_validation)),
        ("downloads", "Downloads", DONE if study.n_judgments else LATER, ""),
    ]
    return [
        Stage(name, title, reverse(f"console:{name}", args=[study.slug]), state, told)
        for name, title, state, told in found
    ]


def _items(study: CountedStudy) -> tuple[str, str]:
    return (DONE, f"{study.n_items:,}") if study.n_items else (NEEDS_YOU, "none yet")


def _publish(study: CountedStudy, progress: StudyProgress) -> tuple[str, str]:
    told = f"{progress.n_published:,} of {progress.n_hits:,} HITs"
    if progress.n_hits == 0:
        # Judgments made elsewhere and imported need no HITs.
        return (LATER, "") if study.n_judgments or not study.n_items else (NEEDS_YOU, "no HITs yet")
    return (DONE if progress.n_published == progress.n_hits else ACTIVE), told


def _answers(study: CountedStudy, progress: StudyProgress) -> tuple[str, str]:
    if progress.n_unreadable:
        return NEEDS_YOU, f"{progress.n_unreadable:,} unreadable"
    if progress.n_wanted:
        told = f"{progress.n_collected:,} of {progress.n_wanted:,}"
        return (DONE if progress.n_collected >= progress.n_wanted else ACTIVE), told
    return (DONE, f"{study.n_judgments:,} judgments") if study.n_judgments else (LATER, "")


def _result(is_possible: bool, is_computed: bool) -> tuple[str, str]:
    if not is_possible:
        return LATER, ""
    return (DONE, "computed") if is_computed else (ACTIVE, "to be computed")


def _adjudication(facts: _Facts) -> tuple[str, str]:
    """How many of the disputes known when agreement was last computed are decided."""
    if facts.n_disputed is None:
        return LATER, ""
    if not facts.n_decided:
        return LATER, f"{facts.n_disputed:,} disputed"
    return ACTIVE, f"{facts.n_decided:,} of {facts.n_disputed:,} decided"


def _labels(facts: _Facts) -> tuple[str, str]:
    n_sets = facts.n_label_sets
    return (DONE, f"{n_sets} set{'' if n_sets == 1 else 's'}") if n_sets else (LATER, "")


class _Facts(NamedTuple):
    """What else the stages tell of."""

    has_agreement: bool
    has_validation: bool
    has_scores: bool
    n_disputed: int | None
    n_decided: int
    n_label_sets: int


def _facts(study: Study) -> _Facts:
    """All of them by one query, since every page of a study asks it."""
    results = StoredResult.objects.filter(study=study)
    disputes = results.filter(name=DISPUTES).values_list(
        Cast("content__n_disputed", IntegerField())
    )
    rows = Study.objects.filter(pk=study.pk).values_list(
        Exists(results.filter(name=AGREEMENT)),
        Exists(results.filter(name=VALIDATION)),
        Exists(ScoringRun.objects.of(study)),
        Subquery(disputes[:1], output_field=IntegerField()),
        row_count(Adjudication.objects.of(study).standing().order_by()),
        row_count(LabelSet.objects.of(study).order_by()),
    )
    return _Facts(*rows[0])

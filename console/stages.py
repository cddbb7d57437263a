"""The stages a study goes through, and how it stands with each, for the navigation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, Value
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.models import Adjudication, AgreementVersion, LabelSet, Study
from console.models import ValidationOutcome
from console.results import AGREEMENT, VALIDATION
from hits.progress import StudyProgress
from metrics.models import ScoringRun

if TYPE_CHECKING:
    from console.sizes import CountedStudy

DONE, ACTIVE, NEEDS_YOU, LATER = "done", "active", "needs-you", "later"
# The words beside the signs, for those who do not see them.
WORDS = {
    DONE: gettext_lazy("done"),
    ACTIVE: gettext_lazy("under way"),
    NEEDS_YOU: gettext_lazy("needs you"),
    LATER: gettext_lazy("not yet"),
}
SIGNS = {DONE: "✓", ACTIVE: "◐", NEEDS_YOU: "!", LATER: "○"}


@dataclass(frozen=True)
class Stage:
    """A stage: its page, how it stands, and a few words about it."""

    name: str
    title: str
    url: str
    state: str
    told: str
    group: str

    @property
    def words(self) -> str:
        return str(WORDS[self.state])

    @property
    def sign(self) -> str:
        return SIGNS[self.state]


def stages_of(study: CountedStudy, progress: StudyProgress) -> list[Stage]:
    """All stages of a study, which must come from `counted()`, in their order."""
    standing = _standing(study)
    has_both = bool(study.n_judgments) and standing["has_scores"]
    found = [
        ("items", _("Items"), *_items(study)),
        ("launch", _("Launch"), *_publish(study, progress)),
        ("answers", _("Collect"), *_answers(study, progress)),
        ("review", _("Review"), *_review(progress)),
        ("agreement", _("Agreement"), *_result(bool(study.n_judgments), standing[AGREEMENT])),
        ("adjudication", _("Adjudication"), *_adjudication(standing)),
        ("labels", _("Labels"), *_labels(standing)),
        ("validation", _("Metrics"), *_result(has_both, standing[VALIDATION])),
        ("downloads", _("Downloads"), DONE if study.n_judgments else LATER, ""),
    ]
    return [
        Stage(name, title, reverse(f"console:{name}", args=[study.slug]), state, told, _group(name))
        for name, title, state, told in found
    ]


def _group(name: str) -> str:
    """The part of a study's life that a stage belongs to."""
    if name in ("items", "launch"):
        return _("Prepare")
    return _("Collect") if name in ("answers", "review") else _("Answer")


def _items(study: CountedStudy) -> tuple[str, str]:
    return (DONE, f"{study.n_items:,}") if study.n_items else (NEEDS_YOU, _("none yet"))


def _publish(study: CountedStudy, progress: StudyProgress) -> tuple[str, str]:
    counts = {"n": f"{progress.n_published:,}", "total": f"{progress.n_hits:,}"}
    told = ngettext("%(n)s of %(total)s HIT", "%(n)s of %(total)s HITs", progress.n_hits) % counts
    if progress.n_hits == 0:
        # Judgments made elsewhere and imported need no HITs.
        return (
            (LATER, "") if study.n_judgments or not study.n_items else (NEEDS_YOU, _("no HITs yet"))
        )
    if progress.n_items_without_hit:
        without = _("%(n)s without") % {"n": f"{progress.n_items_without_hit:,}"}
        return ACTIVE, f"{told}; {without}"
    return (DONE if progress.n_published == progress.n_hits else ACTIVE), told


def _answers(study: CountedStudy, progress: StudyProgress) -> tuple[str, str]:
    if progress.n_unreadable:
        return NEEDS_YOU, _("%(n)s unreadable") % {"n": f"{progress.n_unreadable:,}"}
    if progress.n_wanted:
        told = _of(progress.n_collected, progress.n_wanted)
        return (DONE if progress.n_collected >= progress.n_wanted else ACTIVE), told
    if not study.n_judgments:
        return LATER, ""
    told = ngettext("%(n)s judgment", "%(n)s judgments", study.n_judgments)
    return DONE, told % {"n": f"{study.n_judgments:,}"}


def _of(n: int, total: int) -> str:
    return _("%(n)s of %(total)s") % {"n": f"{n:,}", "total": f"{total:,}"}


def _review(progress: StudyProgress) -> tuple[str, str]:
    """What waits for a decision is paid by itself if nobody decides."""
    if n := progress.n_undecided:
        return NEEDS_YOU, ngettext("%(n)s waiting", "%(n)s waiting", n) % {"n": f"{n:,}"}
    return (DONE if progress.n_collected else LATER), ""


def _result(is_possible: bool, is_computed: bool) -> tuple[str, str]:
    if not is_possible:
        return LATER, ""
    return (DONE, _("computed")) if is_computed else (ACTIVE, _("to be computed"))


def _standing(study: Study) -> dict[str, Any]:
    """What the stages after collecting have come to, in one statement."""
    outcomes = ValidationOutcome.objects.filter(study=OuterRef("pk"))
    newest = AgreementVersion.objects.filter(study=OuterRef("pk")).order_by("-version")
    decisions = Adjudication.objects.standing().filter(question__study=OuterRef("pk"))
    rows = Study.objects.filter(pk=study.pk).values(
        agreement=Exists(newest),
        validation=Exists(outcomes.filter(name=VALIDATION)),
        has_scores=Exists(ScoringRun.objects.filter(study=OuterRef("pk"))),
        n_disputed=Subquery(newest.values("n_disputed")[:1]),
        n_decided=Subquery(_number(decisions)),
        n_label_sets=Subquery(_number(LabelSet.objects.filter(study=OuterRef("pk")))),
    )
    return dict(rows.get())


def _number(rows: QuerySet[Any]) -> QuerySet[Any]:
    """How many rows there are, for a subquery."""
    of_all = rows.order_by().annotate(all=Value(1)).values("all")
    counts: QuerySet[Any] = of_all.annotate(n=Count("pk")).values("n")
    return counts


def _adjudication(standing: dict[str, Any]) -> tuple[str, str]:
    """How many of the disputes known when agreement was last computed are decided."""
    if (n_disputed := standing["n_disputed"]) is None:
        return LATER, ""
    if not standing["n_decided"]:
        return LATER, _("%(n)s disputed") % {"n": f"{n_disputed:,}"}
    counts = {"n": f"{standing['n_decided']:,}", "total": f"{n_disputed:,}"}
    return ACTIVE, _("%(n)s of %(total)s decided") % counts


def _labels(standing: dict[str, Any]) -> tuple[str, str]:
    n_sets = standing["n_label_sets"]
    if not n_sets:
        return LATER, ""
    return DONE, ngettext("%(n)d set", "%(n)d sets", n_sets) % {"n": n_sets}

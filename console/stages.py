"""The stages a study goes through, and how it stands with each, for the navigation."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, Value
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.roles import Permission
from annotation.models import Adjudication, AgreementVersion, LabelSet, Protocol, Study
from console.models import ValidationOutcome
from console.results import AGREEMENT, RESULTS, VALIDATION
from hits.progress import StudyProgress, progress_counts
from metrics.models import ScoringRun
from simulation.models import DialogueReport, DialogueStudy
from validation.models import HumanResults

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
    detail: str
    group: str

    @property
    def words(self) -> str:
        return str(WORDS[self.state])

    @property
    def sign(self) -> str:
        return SIGNS[self.state]


@dataclass(frozen=True)
class StageFacts:
    """What the stages say of a study: its progress, and what came of its answers."""

    progress: StudyProgress
    standing: dict[str, Any]
    also: dict[str, Any]


def stage_facts(study: Study, **also: Any) -> StageFacts:
    """Both, in one statement; asked once of a study that a page has loaded.

    `also` names what else the page asks of the study, in the same statement.
    """
    facts: StageFacts | None = getattr(study, "_stage_facts", None)
    if facts is None or not also.keys() <= facts.also.keys():
        counts = progress_counts()
        rows = Study.objects.filter(pk=study.pk).values(**counts, **_standing_counts(), **also)
        row: dict[str, Any] = dict(rows.get())
        numbers = {name: row.pop(name) for name in counts}
        question = {name: row.pop(name) for name in also}
        facts = StageFacts(StudyProgress(**numbers), row, question)
        study._stage_facts = facts  # type: ignore[attr-defined]
    return facts


# What somebody must be allowed to whom a stage leads, where not all who see the study may.
NEEDED = {
    "review": Permission.REVIEW,
    "results": Permission.VIEW_SYSTEMS,
    "validation": Permission.VIEW_SYSTEMS,
    "dialogues": Permission.VIEW_SYSTEMS,
    "downloads": Permission.EXPORT,
}


def stages_of(study: CountedStudy, permissions: Container[str]) -> list[Stage]:
    """The stages of a study, which must come from `counted()`, in their order, for somebody who has
    these permissions."""
    facts = stage_facts(study)
    progress, standing = facts.progress, facts.standing
    has_both = bool(study.n_judgments) and standing["has_scores"]
    rows = [
        ("items", _("Items"), *_items(study)),
        ("protocol", _("Protocol"), *_protocol(study, standing)),
        ("launch", _("Launch"), *_publish(study, progress)),
        ("answers", _("Collect"), *_answers(study, progress)),
        ("review", _("Review"), *_review(progress)),
        ("results", _("Results"), *_result(bool(study.n_judgments), standing[RESULTS])),
        ("agreement", _("Agreement"), *_result(bool(study.n_judgments), standing[AGREEMENT])),
        ("adjudication", _("Adjudication"), *_adjudication(standing)),
        ("labels", _("Labels"), *_labels(standing)),
        ("validation", _("Metrics"), *_result(has_both, standing[VALIDATION])),
        *_dialogues(study, standing),
        ("downloads", _("Downloads"), DONE if study.n_judgments else LATER, ""),
    ]
    return [
        Stage(
            name, title, reverse(f"console:{name}", args=[study.slug]), state, detail, _group(name)
        )
        for name, title, state, detail in rows
        if name not in NEEDED or NEEDED[name] in permissions
    ]


def _group(name: str) -> str:
    """The part of a study's life that a stage belongs to."""
    if name in ("items", "protocol", "launch"):
        return _("Prepare")
    return _("Collect") if name in ("answers", "review") else _("Answer")


def _items(study: CountedStudy) -> tuple[str, str]:
    return (DONE, f"{study.n_items:,}") if study.n_items else (NEEDS_YOU, _("none yet"))


def _protocol(study: CountedStudy, standing: dict[str, Any]) -> tuple[str, str]:
    """Judgments made elsewhere and imported need no protocol."""
    number = standing["protocol"]
    if number is None:
        return (DONE if study.n_judgments else LATER), ""
    is_frozen = standing["protocol_frozen_at"] is not None
    return (DONE if is_frozen else ACTIVE), _("version %(n)d") % {"n": number}


def _publish(study: CountedStudy, progress: StudyProgress) -> tuple[str, str]:
    counts = {"n": f"{progress.n_published:,}", "total": f"{progress.n_hits:,}"}
    detail = ngettext("%(n)s of %(total)s HIT", "%(n)s of %(total)s HITs", progress.n_hits) % counts
    if progress.n_hits == 0:
        # Judgments made elsewhere and imported need no HITs.
        return (
            (LATER, "")
            if study.n_judgments or not study.n_items
            else (NEEDS_YOU, _("not launched"))
        )
    if progress.n_items_without_hit:
        without = _("%(n)s to launch") % {"n": f"{progress.n_items_without_hit:,}"}
        return ACTIVE, f"{detail}; {without}"
    return (DONE if progress.n_published == progress.n_hits else ACTIVE), detail


def _answers(study: CountedStudy, progress: StudyProgress) -> tuple[str, str]:
    if progress.n_unreadable:
        return NEEDS_YOU, _("%(n)s unreadable") % {"n": f"{progress.n_unreadable:,}"}
    if progress.n_offered:
        detail = _of(progress.n_collected, progress.n_offered)
        return (DONE if progress.n_collected >= progress.n_offered else ACTIVE), detail
    if not study.n_judgments:
        return LATER, ""
    detail = ngettext("%(n)s judgment", "%(n)s judgments", study.n_judgments)
    return DONE, detail % {"n": f"{study.n_judgments:,}"}


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


def _standing_counts() -> dict[str, Any]:
    """What the stages after collecting have come to, for a statement that reads a study."""
    outcomes = ValidationOutcome.objects.filter(study=OuterRef("pk"))
    newest = AgreementVersion.objects.filter(study=OuterRef("pk")).order_by("-version")
    protocols = Protocol.objects.filter(study=OuterRef("pk")).order_by("-number")
    decisions = Adjudication.objects.standing().filter(question__study=OuterRef("pk"))
    return {
        "protocol": Subquery(protocols.values("number")[:1]),
        "protocol_frozen_at": Subquery(protocols.values("frozen_at")[:1]),
        AGREEMENT: Exists(newest),
        RESULTS: Exists(HumanResults.objects.filter(study=OuterRef("pk"))),
        VALIDATION: Exists(outcomes.filter(name=VALIDATION)),
        "has_scores": Exists(ScoringRun.objects.filter(study=OuterRef("pk"))),
        "kind_of_dialogues": Subquery(
            DialogueStudy.objects.filter(study=OuterRef("pk")).values("kind")[:1]
        ),
        "has_dialogue_report": Exists(
            DialogueReport.objects.filter(dialogues__study=OuterRef("pk"))
        ),
        "n_disputed": Subquery(newest.values("n_disputed")[:1]),
        "n_decided": Subquery(_number(decisions)),
        "n_label_sets": Subquery(_number(LabelSet.objects.filter(study=OuterRef("pk")))),
    }


def _dialogues(study: CountedStudy, standing: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Of a study of recorded dialogues alone."""
    if standing["kind_of_dialogues"] is None:
        return []
    is_computed = standing["has_dialogue_report"]
    return [("dialogues", _("Simulated users"), *_result(bool(study.n_judgments), is_computed))]


def _number(rows: QuerySet[Any]) -> QuerySet[Any]:
    """How many rows there are, for a subquery."""
    of_all = rows.order_by().annotate(all=Value(1)).values("all")
    counts: QuerySet[Any] = of_all.annotate(n=Count("*")).values("n")
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

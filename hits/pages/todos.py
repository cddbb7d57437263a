"""What of a study waits for its researcher, most urgent first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Max
from django.urls import reverse
from django.utils.translation import gettext as _, ngettext

from accounts.roles import Permission
from annotation.models import Study
from annotation.models.studies import counted
from annotation.pages.study import stage_facts
from annotation.study_facts import AGREEMENT, VALIDATION
from annotation.study_jobs import COLLECT, LABEL, PUBLISH, RESULT, REVIEW, SCORE, jobs_of
from error_codes import CodedText
from hits.changes import missing_after_rejections
from hits.models import Appeal, Assignment, Batch, Recruitment
from hits.participant_status import participants_to_look_after
from hits.progress import StudyProgress, first_auto_approval
from hits.recruited_batches import batches_without_study
from work.models import Job
from work.registry import job_kind

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


@dataclass(frozen=True)
class RecruitingMatter:
    """Of a batch: what it is, why it matters, and what to press. `tone` is `error` where somebody
    may lose by waiting, else `warning`."""

    batch: Batch
    tone: str
    message: str
    note: str
    action: str
    anchor: str = "participants"

    @property
    def url(self) -> str:
        address = reverse("console:batch", args=[self.batch.study.slug, self.batch.pk])
        return f"{address}#{self.anchor}"


def calls_to_look_after(study_ids: Iterable[int]) -> Iterator[RecruitingMatter]:
    """Calls of recruiters that nobody answered, and submissions that wait to be paid unseen."""
    for batch, n, n_paid_by_time in participants_to_look_after(study_ids):
        message = ngettext(
            "%(n)s participant of batch %(pk)s must be looked after at the recruiter.",
            "%(n)s participants of batch %(pk)s must be looked after at the recruiter.",
            n,
        )
        yield RecruitingMatter(
            batch,
            "error",
            CodedText(message % {"n": f"{n:,}", "pk": batch.pk}, "participants_to_look_after"),
            CodedText(_("What nobody decides on, the recruiter may pay by time."), "paid_by_time")
            if n_paid_by_time
            else CodedText(
                _("A bonus or a message was refused, or nobody knows whether it arrived."),
                "bonus_or_message",
            ),
            _("Look at it"),
            "looked-after",
        )


def places_in_vain(study_ids: Iterable[int]) -> Iterator[RecruitingMatter]:
    """Open studies at recruiters of which nobody hears, or that send people who find no work."""
    rows = Recruitment.objects.live().filter(batch__study__in=list(study_ids))
    for one in rows.select_related("recruiter", "batch__study").order_by("batch"):
        if not one.recruiter.is_connected:
            yield RecruitingMatter(
                one.batch,
                "error",
                CodedText(
                    _("%(name)s is disconnected, and a study of batch %(pk)s is open there.")
                    % {"name": one.recruiter.name, "pk": one.batch_id},
                    "recruiter_disconnected",
                ),
                _("Newcomers are turned away, and no decision is sent."),
                _("Look at it"),
            )
        elif n := one.n_for_nobody:
            yield RecruitingMatter(
                one.batch,
                "warning",
                CodedText(
                    ngettext(
                        "%(n)s free place of batch %(pk)s has no work.",
                        "%(n)s free places of batch %(pk)s have no work.",
                        n,
                    )
                    % {"n": f"{n:,}", "pk": one.batch_id},
                    "places_without_work",
                ),
                _("Who comes is sent back unpaid."),
                _("Pause or add work"),
            )


def undrafted_batches(batches: Iterable[Batch]) -> Iterator[RecruitingMatter]:
    """Batches kept for participants whom nobody has asked for."""
    for batch in batches_without_study(batches):
        yield RecruitingMatter(
            batch,
            "warning",
            CodedText(
                _("Nobody comes to batch %(pk)s: no study of it is open at a recruiter.")
                % {"pk": batch.pk},
                "batch_without_study",
            ),
            _("Its HITs are kept for participants."),
            _("Recruit participants"),
        )


@dataclass(frozen=True)
class Decision:
    """One thing to decide or do, and where."""

    tone: str
    message: str
    action: str
    url: str


# Who may do nothing about it on its page is not asked to.
NEEDED = {
    "items": Permission.EDIT,
    "launch": Permission.SPEND,
    "review": Permission.REVIEW,
    "validation": Permission.ANALYSE,
}


def waiting_counts() -> dict[str, Any]:
    """What `decisions_of` reads of a study beside its stages, for the statement that reads them."""
    rejected = Assignment.objects.filter(status=Assignment.Status.REJECTED)
    return {
        "n_appeals": counted(Appeal.objects.unanswered(), "assignment__hit__batch__study"),
        "n_rejected": counted(rejected, "hit__batch__study"),
    }


def decisions_of(
    study: CountedStudy,
    progress: StudyProgress,
    jobs: Sequence[Job],
    permissions: Collection[Permission],
) -> list[Decision]:
    """Everything that waits for somebody with these permissions in a study from `counted()`, whose
    facts were read with `waiting_counts()`."""
    rows = [
        Decision(tone, message, action, reverse(f"console:{page}", args=[study.slug]))
        for tone, message, action, page in (
            *_failures(study, jobs),
            *_collection(study, progress),
            *_publication(study, progress),
            *_scores(study),
        )
        if NEEDED.get(page, Permission.VIEW) in permissions
    ]
    if Permission.REVIEW in permissions:
        rows = [*_appeals(study), *rows]
    if Permission.SPEND in permissions:
        rows += _rejections(study)
    if Permission.ADJUDICATE in permissions:
        rows += _disputes(study)
    if not progress.n_recruited or Permission.SPEND not in permissions:
        return rows
    matters = list(_of_participants(study, is_awaited=bool(progress.n_awaited)))
    pressing = [one for one in matters if one.tone == "error"]
    return [*pressing, *rows, *(one for one in matters if one.tone != "error")]


def _appeals(study: Study) -> Iterator[Decision]:
    """What workers say to rejections, and nobody has answered."""
    if n := stage_facts(study)["n_appeals"]:
        message = ngettext(
            "A worker asks you to look again at a rejection.",
            "%(n)s workers ask you to look again at a rejection.",
            n,
        )
        action = ngettext("Read the appeal", "Read %(n)s appeals", n)
        url = reverse("console:review", args=[study.slug], query={"show": "rejected"})
        yield Decision("error", message % {"n": f"{n:,}"}, action % {"n": f"{n:,}"}, url)


def _rejections(study: Study) -> Iterator[Decision]:
    """Judgments that items lack because submissions were rejected, until they are offered again."""
    n_rejected = stage_facts(study)["n_rejected"]
    for batch, n in missing_after_rejections(study) if n_rejected else ():
        message = ngettext(
            "%(n)s judgment of batch %(pk)s is missing: its submission was rejected, and nobody is "
            "asked for another.",
            "%(n)s judgments of batch %(pk)s are missing: their submissions were rejected, and "
            "nobody is asked for others.",
            n,
        )
        url = reverse("console:batch-change", args=[study.slug, batch.pk, "repost"])
        values = {"n": f"{n:,}", "pk": batch.pk}
        yield Decision("warning", message % values, _("Offer again"), url)


def _disputes(study: Study) -> Iterator[Decision]:
    """Candidates on which annotators disagree widely, until labels are made or all is decided."""
    standing = stage_facts(study)
    n = (standing["n_disputed"] or 0) - (standing["n_decided"] or 0)
    if n > 0 and not standing["n_label_sets"]:
        message = ngettext(
            "%(n)s candidate on which annotators disagree widely.",
            "%(n)s candidates on which annotators disagree widely.",
            n,
        )
        action = _("Decide %(n)s") % {"n": f"{n:,}"}
        url = reverse("console:adjudication", args=[study.slug])
        yield Decision("info", message % {"n": f"{n:,}"}, action, url)


def _of_participants(study: Study, *, is_awaited: bool) -> Iterator[Decision]:
    """What about participants waits, most pressing first."""
    recruited = Batch.objects.of(study).filter(is_recruited=True).select_related("study")
    matters = [*calls_to_look_after([study.pk]), *places_in_vain([study.pk])]
    for one in [*matters, *(undrafted_batches(recruited) if is_awaited else ())]:
        yield Decision(one.tone, one.message, one.action, one.url)


def _collection(study: Study, progress: StudyProgress) -> Iterator[tuple[str, str, str, str]]:
    if n := progress.n_unreadable:
        message = ngettext(
            "%(n)s assignment is kept but could not be read.",
            "%(n)s assignments are kept but could not be read.",
            n,
        )
        yield "warning", message % {"n": f"{n:,}"}, _("See why"), "answers"
    if n := progress.n_undecided:
        message = _undecided_message(n)
        if due := first_auto_approval(study):
            message += f" {_automatic(n, due)}"
        yield "warning", message, _("Review them"), "review"


def _undecided_message(n: int) -> str:
    message = ngettext(
        "%(n)s submission waits for approval.", "%(n)s submissions wait for approval.", n
    )
    return message % {"n": f"{n:,}"}


def _automatic(n: int, due: datetime) -> str:
    return ngettext(
        "It is approved automatically on %(day)s at %(time)s UTC.",
        "The first is approved automatically on %(day)s at %(time)s UTC.",
        n,
    ) % {"day": f"{due:%Y-%m-%d}", "time": f"{due:%H:%M}"}


def _publication(
    study: CountedStudy, progress: StudyProgress
) -> Iterator[tuple[str, str, str, str]]:
    n_unpublished = progress.n_hits - progress.n_published
    if not study.n_items:
        yield "info", _("The study has no items yet."), _("Import some"), "items"
    elif not progress.n_hits:
        if not study.n_judgments:
            yield "info", _without_hits(study.n_items), _("Launch them"), "launch"
    else:
        if n_unpublished:
            yield (
                "info",
                ngettext(
                    "%(n)s HIT is not published yet.",
                    "%(n)s HITs are not published yet.",
                    n_unpublished,
                )
                % {"n": f"{n_unpublished:,}"},
                _("Launch them"),
                "launch",
            )
        if n := progress.n_items_without_hit:
            yield "info", _without_hits(n), _("Launch them"), "launch"


def _without_hits(n_items: int) -> str:
    message = ngettext(
        "%(n)s item is not launched yet.", "%(n)s items are not launched yet.", n_items
    )
    return message % {"n": f"{n_items:,}"}


def _scores(study: CountedStudy) -> Iterator[tuple[str, str, str, str]]:
    is_rated = study.kind == Study.Kind.RATING and study.n_judgments
    if is_rated and not stage_facts(study)["has_scores"]:
        yield (
            "info",
            _("There are judgments, and no metric's scores to set beside them."),
            _("Score the candidates"),
            "validation",
        )


def _failures(study: Study, jobs: Sequence[Job]) -> Iterator[tuple[str, str, str, str]]:
    pages = {COLLECT: "answers", SCORE: "validation", LABEL: "labels", PUBLISH: "launch"} | {
        REVIEW: "review"
    }
    for job in jobs:
        if job.kind in pages and job.state == Job.State.FAILED:
            message = _failure_message(str(job_kind(job.kind).label), job)
            yield "error", message, _("Look at it"), pages[job.kind]
    # The newest of each result in one statement, whatever language it was requested in.
    results = jobs_of(study).of_kind(RESULT)
    newest = results.order_by().values("dedupe_key").annotate(last=Max("pk")).values("last")
    for job in results.filter(pk__in=newest):
        [name] = job.arguments["names"]
        if name in (AGREEMENT, VALIDATION) and job.state == Job.State.FAILED:
            yield "error", _failure_message(job.title, job), _("Look at it"), name


def _failure_message(title: str, job: Job) -> str:
    return _("%(job)s failed: %(message)s") % {"job": title, "message": job.message}

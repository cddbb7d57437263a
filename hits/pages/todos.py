from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, OuterRef, Subquery
from django.urls import reverse
from django.utils.translation import gettext as _, ngettext

from accounts.roles import Permission
from annotation.models import CountedStudy, Study, counted
from annotation.pages.stages import stage_facts
from annotation.study_facts import (
    COLLECT,
    LABEL,
    PUBLISH,
    RESULT,
    REVIEW,
    SCORE,
    jobs_of,
)
from error_codes import CodedText
from hits.changes import missing_after_rejections
from hits.models import Appeal, Assignment, Batch, Budget, Inquiry, Recruitment
from hits.pages.overview import collected_work
from hits.participants import participants_to_look_after
from hits.progress import StudyProgress
from hits.recruited_batches import batches_without_study
from work.models import Job
from work.registry import job_kind

# By urgency; what is open ("info") waits on nobody's work and money, and no time decides it.
TONES = ("error", "warning", "info")


@dataclass(frozen=True)
class Decision:
    """One thing to decide or do, and where. `tone` is `error` if somebody may lose by waiting,
    else `warning` or `info`. What follows `url` is for the list of all studies."""

    tone: str
    message: str
    action: str
    url: str
    note: str = ""
    code: str = ""
    about: str = ""
    about_url: str = ""
    # When time decides it, if time does; `since` orders what no time decides.
    due: datetime | None = None
    since: datetime | None = None


def recruiting_decisions(
    study_ids: Collection[int], batches: Iterable[Batch]
) -> Iterator[tuple[Batch, Decision]]:
    yield from _calls_to_look_after(study_ids)
    yield from _places_in_vain(study_ids)
    for batch in batches_without_study(batches):
        message = _("Nobody comes to batch %(pk)s: no study of it is open at a recruiter.")
        action = _("Recruit participants")
        if batch.is_invited:
            message = _("Nobody can work on batch %(pk)s: it has no open invitation link.")
            action = _("Invite people")
        yield _recruiting_decision(
            batch,
            "warning",
            CodedText(message % {"pk": batch.pk}, "batch_without_study"),
            _("Its HITs are kept for participants."),
            action,
        )


def _recruiting_decision(
    batch: Batch,
    tone: str,
    message: CodedText,
    note: str,
    action: str,
    anchor: str = "participants",
) -> tuple[Batch, Decision]:
    address = reverse("console:batch", args=[batch.study.slug, batch.pk])
    return batch, Decision(tone, message, action, f"{address}#{anchor}", note)


def _calls_to_look_after(study_ids: Iterable[int]) -> Iterator[tuple[Batch, Decision]]:
    for batch, n, n_paid_by_time in participants_to_look_after(study_ids):
        yield _recruiting_decision(
            batch,
            "error",
            CodedText(
                ngettext(
                    "%(n)s participant of batch %(pk)s must be looked after at the recruiter.",
                    "%(n)s participants of batch %(pk)s must be looked after at the recruiter.",
                    n,
                )
                % {"n": f"{n:,}", "pk": batch.pk},
                "participants_to_look_after",
            ),
            CodedText(_("What nobody decides on, the recruiter may pay by time."), "paid_by_time")
            if n_paid_by_time
            else CodedText(
                _("A bonus or a message was refused, or nobody knows whether it arrived."),
                "bonus_or_message",
            ),
            _("Look at it"),
            "looked-after",
        )


def _places_in_vain(study_ids: Iterable[int]) -> Iterator[tuple[Batch, Decision]]:
    rows = Recruitment.objects.live().filter(batch__study__in=list(study_ids))
    for one in rows.select_related("recruiter", "batch__study").order_by("batch"):
        if not one.recruiter.is_connected:
            message = _("%(name)s is disconnected, and a study of batch %(pk)s is open there.")
            facts = {"name": one.recruiter.name, "pk": one.batch_id}
            yield _recruiting_decision(
                one.batch,
                "error",
                CodedText(message % facts, "recruiter_disconnected"),
                _("Newcomers are turned away, and no decision is sent."),
                _("Look at it"),
            )
        elif n := one.n_for_nobody:
            message = ngettext(
                "%(n)s free place of batch %(pk)s has no work.",
                "%(n)s free places of batch %(pk)s have no work.",
                n,
            )
            yield _recruiting_decision(
                one.batch,
                "warning",
                CodedText(message % {"n": f"{n:,}", "pk": one.batch_id}, "places_without_work"),
                _("Who comes is sent back unpaid."),
                _("Pause or add work"),
            )


def appeal_decision(study: Study, n: int, **details: Any) -> Decision:
    return Decision(
        "error",
        ngettext(
            "An annotator asks you to look again at a rejection.",
            "%(n)s annotators ask you to look again at a rejection.",
            n,
        )
        % {"n": f"{n:,}"},
        ngettext("Read the appeal", "Read %(n)s appeals", n) % {"n": f"{n:,}"},
        reverse("console:review", args=[study.slug], query={"show": "rejected"}),
        **details,
    )


def inquiry_decision(study: Study, n: int, **details: Any) -> Decision:
    message = ngettext("An annotator asks you something.", "Annotators sent you %(n)s messages.", n)
    return Decision(
        "warning",
        message % {"n": f"{n:,}"},
        _("Answer"),
        reverse("console:review-messages", args=[study.slug]),
        **details,
    )


def dispute_decision(study: Study, n: int, **details: Any) -> Decision:
    return Decision(
        "info",
        ngettext(
            "%(n)s wide disagreement between annotators.",
            "%(n)s wide disagreements between annotators.",
            n,
        )
        % {"n": f"{n:,}"},
        _("Decide %(n)s") % {"n": f"{n:,}"},
        reverse("console:adjudication", args=[study.slug]),
        **details,
    )


# What each page's to-do needs: people are not asked to do what their role does not allow.
NEEDED = {
    "agreement": Permission.ANALYSE,
    "answers": Permission.EDIT,
    "items": Permission.EDIT,
    "labels": Permission.ANALYSE,
    "launch": Permission.SPEND,
    "review": Permission.REVIEW,
    "validation": Permission.ANALYSE,
}


def waiting_counts() -> dict[str, Any]:
    return {
        "n_appeals": counted(Appeal.objects.unanswered(), "assignment__hit__batch__study"),
        "n_inquiries": counted(Inquiry.objects.unanswered(), "batch__study"),
        "n_rejected": counted(
            Assignment.objects.filter(status=Assignment.Status.REJECTED), "hit__batch__study"
        ),
        "budget_usd": Subquery(
            Budget.objects.filter(study=OuterRef("pk")).order_by().values("cap_usd")[:1]
        ),
    }


def newest_jobs(study: Study) -> list[Job]:
    """Of each kind the newest, and of each result, whatever language it was requested in."""
    jobs = jobs_of(study)
    newest = jobs.order_by().values("kind", "arguments__kind").annotate(last=Max("pk"))
    return list(jobs.filter(pk__in=newest.values("last")))


def decisions_of(
    study: CountedStudy,
    progress: StudyProgress,
    jobs: Sequence[Job],
    permissions: Collection[Permission],
) -> list[Decision]:
    """Everything that waits for somebody with these permissions in a study from `counted()`, whose
    facts were read with `waiting_counts()`."""
    facts = stage_facts(study)
    rows = [
        Decision(tone, message, action, reverse(f"console:{page}", args=[study.slug]))
        for tone, message, action, page in (
            *_failures(study, jobs),
            *_collection(study, progress),
            *_publication(study, progress),
            *_scores(study),
        )
        if NEEDED[page] in permissions
    ]
    if Permission.REVIEW in permissions and facts["n_inquiries"]:
        rows = [inquiry_decision(study, facts["n_inquiries"]), *rows]
    if Permission.REVIEW in permissions and facts["n_appeals"]:
        rows = [appeal_decision(study, facts["n_appeals"]), *rows]
    if Permission.SPEND in permissions and facts["n_rejected"]:
        rows += _rejections(study)
    n_disputed = (facts["n_disputed"] or 0) - (facts["n_decided"] or 0)
    if Permission.ADJUDICATE in permissions and n_disputed > 0 and not facts["n_label_sets"]:
        rows.append(dispute_decision(study, n_disputed))
    if not progress.n_recruited or Permission.SPEND not in permissions:
        return sorted(rows, key=lambda one: TONES.index(one.tone))
    recruited = Batch.objects.of(study).filter(is_recruited=True).select_related("study")
    batches = recruited if progress.n_awaited else recruited.none()
    matters = [one for _batch, one in recruiting_decisions([study.pk], batches)]
    return sorted([*matters, *rows], key=lambda one: TONES.index(one.tone))


def _rejections(study: Study) -> Iterator[Decision]:
    for batch, n in missing_after_rejections(study):
        yield Decision(
            "warning",
            ngettext(
                "%(n)s judgment of batch %(pk)s is missing: its submission was rejected, and "
                "nobody is asked for another.",
                "%(n)s judgments of batch %(pk)s are missing: their submissions were rejected, "
                "and nobody is asked for others.",
                n,
            )
            % {"n": f"{n:,}", "pk": batch.pk},
            _("Offer again"),
            reverse("console:batch-change", args=[study.slug, batch.pk, "repost"]),
        )


def _collection(
    study: CountedStudy, progress: StudyProgress
) -> Iterator[tuple[str, str, str, str]]:
    if n := progress.n_unreadable:
        yield (
            "warning",
            ngettext(
                "%(n)s assignment is kept but could not be read.",
                "%(n)s assignments are kept but could not be read.",
                n,
            )
            % {"n": f"{n:,}"},
            _("See why"),
            "answers",
        )
    if n := progress.n_undecided:
        message = ngettext(
            "%(n)s submission waits for approval.", "%(n)s submissions wait for approval.", n
        ) % {"n": f"{n:,}"}
        dates = [one.first_approval_at for one in collected_work(study)["standings"]]
        if due := min(filter(None, dates), default=None):
            message += " " + ngettext(
                "It is approved automatically on %(day)s at %(time)s UTC.",
                "The first is approved automatically on %(day)s at %(time)s UTC.",
                n,
            ) % {"day": f"{due:%Y-%m-%d}", "time": f"{due:%H:%M}"}
        yield "warning", message, _("Review them"), "review"


def _publication(
    study: CountedStudy, progress: StudyProgress
) -> Iterator[tuple[str, str, str, str]]:
    if not study.n_items:
        yield "info", _("The study has no items yet."), _("Import some"), "items"
        return
    if n := progress.n_hits - progress.n_published:
        yield (
            "info",
            ngettext("%(n)s HIT is not published yet.", "%(n)s HITs are not published yet.", n)
            % {"n": f"{n:,}"},
            _("Launch them"),
            "launch",
        )
    n = progress.n_items_without_hit
    if not progress.n_hits:
        n = 0 if study.n_judgments else study.n_items
    if n:
        yield (
            "info",
            ngettext("%(n)s item is not launched yet.", "%(n)s items are not launched yet.", n)
            % {"n": f"{n:,}"},
            _("Launch them"),
            "launch",
        )


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
        title, page = str(job_kind(job.kind).label), pages.get(job.kind, "")
        if job.kind == RESULT:
            title, page = job.title, job.arguments["kind"]
        if page in NEEDED and job.state == Job.State.FAILED:
            yield (
                "error",
                _("%(job)s failed: %(message)s") % {"job": title, "message": job.message},
                _("Look at it"),
                page,
            )

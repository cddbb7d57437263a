"""What the review desk shows: the queue, one submission beside the others', flags and history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.evidence import FAR, FAST, PASTED, SAME, Evidence, Flag, evidence_of
from annotation.models import Candidate, Judgment, Question, Submission
from hits.drafts import price_usd
from hits.models import Assignment, AssignmentRecordQuerySet, DraftDecision, WorkerBlock

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Study

WAITING, REJECTED, APPROVED = "waiting", "rejected", "approved"
SHOWN = (WAITING, REJECTED, APPROVED)
MOST_ROWS = 500
# Where a line of 120 begins and ends, so that a dot at its end is whole.
LINE_START, LINE_LENGTH = 6, 108


@dataclass(frozen=True)
class FlagNote:
    """A flag in words: its number, and what others did."""

    short: str
    title: str
    text: str


@dataclass(frozen=True)
class QueueRow:
    """One assignment of the queue."""

    assignment: Assignment
    name: str
    flags: Sequence[FlagNote]
    drafts: Sequence[DraftDecision]
    others: Sequence[DraftDecision]

    @property
    def approves_at(self) -> datetime:
        delay = self.assignment.hit.batch.auto_approval_delay_seconds
        return self.assignment.submitted_at + timedelta(seconds=delay)

    @property
    def why(self) -> str:
        """The row's few words: what was decided about it, else what speaks against it."""
        if self.drafts:
            actions = ", ".join(str(draft.get_action_display()) for draft in self.drafts)
            return _("{decisions}: not sent").format(decisions=actions)
        if self.assignment.decision_problem:
            return _("refused by the marketplace")
        words = [flag.short for flag in self.flags]
        submission = self.assignment.submission
        if submission is not None and submission.comment:
            words.append(_("left a comment"))
        return ", ".join(words) or _("no flag")


def listed_assignments(study: Study, show: str) -> AssignmentRecordQuerySet:
    """The assignments of one of the desk's lists."""
    of_study = Assignment.objects.filter(hit__batch__study=study)
    if show == REJECTED:
        return of_study.filter(status=Assignment.Status.REJECTED)
    if show == APPROVED:
        return of_study.filter(status=Assignment.Status.APPROVED)
    return of_study.undecided()


def queue_of(study: Study, user: User, show: str, *, may_view_workers: bool) -> list[QueueRow]:
    """Flagged work first, then what was handed in the longest ago."""
    rows = listed_assignments(study, show).select_related(
        "submission__annotator", "worker", "hit__item", "hit__batch__connection", "appeal"
    )
    evidence = evidence_of(study)
    ordered = rows.order_by("submitted_at", "pk")[:MOST_ROWS]
    drafts = defaultdict(list)
    for draft in DraftDecision.objects.of(study).select_related("reviewer"):
        drafts[draft.assignment_id].append(draft)
    queue = [
        QueueRow(
            assignment=assignment,
            name=name_of(assignment, may_view_workers=may_view_workers),
            flags=notes_on(assignment, evidence),
            drafts=[one for one in drafts[assignment.pk] if one.reviewer_id == user.pk],
            others=[one for one in drafts[assignment.pk] if one.reviewer_id != user.pk],
        )
        for assignment in ordered
    ]
    return sorted(queue, key=lambda row: not row.flags)


def name_of(assignment: Assignment, *, may_view_workers: bool) -> str:
    """The worker's id for those who may see it; else the annotator's pseudonym."""
    if may_view_workers:
        return assignment.worker.worker_id
    submission = assignment.submission
    return submission.annotator.pseudonym if submission else "–"


def notes_on(assignment: Assignment, evidence: Evidence) -> list[FlagNote]:
    """What speaks against an assignment, in words."""
    notes = []
    if assignment.submission is None:
        notes.append(FlagNote(_("not read"), _("Could not be read"), assignment.problem))
        return notes
    if reason := assignment.submission.flag_reason:
        notes.append(FlagNote(_("flagged"), _("Flagged by a member of the team"), reason))
    flags = evidence.flags_of(assignment.submission.pk)
    return [*notes, *(_note(flag) for flag in flags)]


def _note(flag: Flag) -> FlagNote:
    short, title, others = {
        FAST: (
            _("fast"),
            _("{seconds} for all of it").format(seconds=_duration(flag.value)),
            _("Others took {seconds} in the middle.").format(seconds=_duration(flag.typical)),
        ),
        SAME: (
            _("same rating"),
            _("{percent} % of the ratings are the same").format(percent=_percent(flag.value)),
            _("Others: {percent} % in the middle.").format(percent=_percent(flag.typical)),
        ),
        FAR: (
            _("far from others"),
            _("{percent} % of the scale from the others' mean").format(
                percent=_percent(flag.value)
            ),
            _("Others: {percent} % in the middle.").format(percent=_percent(flag.typical)),
        ),
        PASTED: (_("pasted"), _("The reason was pasted"), ""),
    }[flag.name]
    hits = ngettext(
        "Of {all} submission by careful workers, {n} is flagged so too.",
        "Of {all} submissions by careful workers, {n} are flagged so too.",
        flag.n_careful,
    ).format(all=flag.n_careful, n=flag.n_careful_hit)
    return FlagNote(short, title, f"{others} {hits}".strip())


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return _("{m} min {s} s").format(m=minutes, s=rest) if minutes else f"{rest} s"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


@dataclass(frozen=True)
class Dot:
    """A rating on its line."""

    x: float
    is_other: bool


@dataclass(frozen=True)
class Strip:
    """One rating beside those of the others, who are hollow dots."""

    question: Question
    value: str
    dots: Sequence[Dot]
    others: str


@dataclass(frozen=True)
class RatedCandidate:
    """A candidate as it was displayed, with a strip for each question."""

    letter: str
    candidate: Candidate
    strips: Sequence[Strip]


def rated_candidates(submission: Submission) -> list[RatedCandidate]:
    """The candidates of a submission in the order the worker saw."""
    judgments = list(
        Judgment.objects.filter(
            candidate__item=submission.item_id, submission__round=submission.round
        )
        .accepted()
        .select_related("question")
        .order_by("question__position", "question")
    )
    own = Judgment.objects.filter(submission=submission).select_related("question", "candidate")
    mine = {
        (one.candidate_id, one.question_id): one
        for one in own.order_by("question__position", "question")
    }
    others: dict[tuple[int, int], list[float]] = defaultdict(list)
    for one in judgments:
        if one.submission_id != submission.pk:
            others[one.candidate_id, one.question_id].append(one.value)
    place = {key: number for number, key in enumerate(submission.shown_order)}
    pictured = submission.item.candidates.select_related("picture").defer("picture__content")
    ordered = sorted(pictured, key=lambda one: (place.get(one.key, len(place)), one.position))
    return [
        RatedCandidate(
            letter=_letter(number),
            candidate=candidate,
            strips=[
                _strip(judgment, sorted(others[pair]))
                for pair, judgment in mine.items()
                if pair[0] == candidate.pk
            ],
        )
        for number, candidate in enumerate(ordered)
    ]


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def _strip(judgment: Judgment, others: list[float]) -> Strip:
    question = judgment.question
    dots = [Dot(_x(question, value), True) for value in others]
    named = ", ".join(_value(question, value) for value in others)
    return Strip(
        question=question,
        value=_value(question, judgment.value),
        dots=[*dots, Dot(_x(question, judgment.value), False)],
        others=named or _("none yet"),
    )


def _x(question: Question, value: float) -> float:
    share = (value - question.scale_min) / (question.scale_max - question.scale_min)
    return round(LINE_START + LINE_LENGTH * share, 1)


def _value(question: Question, value: float) -> str:
    if question.categories and 0 <= value < len(question.categories):
        return str(question.categories[int(value)])
    return f"{value:g}"


@dataclass(frozen=True)
class History:
    """A worker's record in a team."""

    n_submitted: int
    n_approved: int
    n_rejected: int
    block: WorkerBlock | None
    notes: Sequence[Any] = field(default_factory=list)


def history_of(assignment: Assignment, study: Study) -> History:
    """What a worker has done for the study's team; for the study alone where it has none."""
    mine = Assignment.objects.filter(worker=assignment.worker_id)
    batches = Q(hit__batch__study=study.pk)
    if study.team_id is not None:
        batches |= Q(hit__batch__study__team=study.team_id)
    counts = mine.filter(batches).aggregate(
        submitted=Count("pk"),
        approved=Count("pk", filter=Q(status=Assignment.Status.APPROVED)),
        rejected=Count("pk", filter=Q(status=Assignment.Status.REJECTED)),
    )
    block = WorkerBlock.objects.filter(
        connection=assignment.hit.batch.connection_id, worker=assignment.worker_id, is_wanted=True
    ).first()
    notes = assignment.worker.notes.filter(team=study.team_id).select_related("author")
    return History(counts["submitted"], counts["approved"], counts["rejected"], block, list(notes))


def waiting_usd(rows: Sequence[QueueRow]) -> Decimal:
    """What all of the rows cost, approved."""
    return sum((price_usd(row.assignment) for row in rows), Decimal(0))

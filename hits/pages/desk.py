from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import (
    Case,
    Count,
    Exists,
    IntegerField,
    Min,
    OuterRef,
    Q,
    Value,
    When,
)
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.models import User
from annotation.assignment_facts import DeskWork
from annotation.evidence import CONTRADICTORY, FAR, FAST, PASTED, SAME, Flag
from annotation.flags import EVIDENCE, flags_of
from annotation.models import CountedStudy, Study, Submission, counted
from annotation.pages.stages import stage_facts
from annotation.study_facts import newest_fact
from console.models import PagePreferences
from hits.costs import cost_of_assignment
from hits.drafts import price_usd
from hits.models import (
    Appeal,
    Assignment,
    AssignmentRecordQuerySet,
    Batch,
    DeliveryState,
    DraftDecision,
    Inquiry,
    Message,
    Payment,
    SharedDevice,
)
from hits.pages.evidence import (
    NOTED,
    Devices,
    FlagNote,
    annotator_note,
    check_note,
    device_note,
    devices_of,
    measured_note,
)
from hits.wages import duration_words
from presentation.numbers import group_values

WAITING, REJECTED, APPROVED = "waiting", "rejected", "approved"
LISTS = {
    WAITING: Q(status=Assignment.Status.SUBMITTED, decision=""),
    REJECTED: Q(status=Assignment.Status.REJECTED),
    APPROVED: Q(status=Assignment.Status.APPROVED),
}
FIRST_ROWS = slice(100)
Action = DraftDecision.Action
# The verdict first, if there are several drafts.
MARKS = {
    Action.APPROVE: ("✓", "good"),
    Action.OVERRIDE: ("✓", "good"),
    Action.PART_PAY: ("½", "bad"),
    Action.REJECT: ("✕", "bad"),
    Action.BLOCK: ("⊘", "bad"),
    Action.UNBLOCK: ("●", "muted"),
    Action.BONUS: ("$", "good"),
    Action.MESSAGE: ("✉", "muted"),
}
# No key is longer; a database refuses greater numbers.
MOST_DIGITS = 18
# What is looked at first: flagged by a person or by a measure, or not read at all; then what only a
# shared device speaks against.
SUSPICION = Case(
    When(submission=None, then=2),
    When(submission__flag_reason__gt="", then=2),
    When(submission__evidence__is_flagged=True, then=2),
    When(
        Exists(
            SharedDevice.objects.filter(batch=OuterRef("hit__batch"), worker=OuterRef("worker"))
        ),
        then=1,
    ),
    default=0,
    output_field=IntegerField(),
)


@dataclass(frozen=True)
class QueueRow:
    assignment: Assignment
    flags: Sequence[FlagNote]
    drafts: Sequence[DraftDecision]
    others: Sequence[DraftDecision]

    @property
    def name(self) -> str:
        return name_of(self.assignment)

    @property
    def mark(self) -> tuple[str, str]:
        """A symbol for the queue and its CSS class: what is decided, or whether it is flagged."""
        actions = {draft.action for draft in self.drafts}
        return next(
            (mark for action, mark in MARKS.items() if action in actions),
            ("⚑", "bad") if self.is_held_back else ("○", "muted"),
        )

    @property
    def approves_at(self) -> datetime:
        return self.assignment.submitted_at + timedelta(
            seconds=self.assignment.hit.batch.auto_approval_delay_seconds
        )

    @property
    def is_held_back(self) -> bool:
        return any(flag.holds_back for flag in self.flags)

    @property
    def other_annotators(self) -> list[str]:
        return list(dict.fromkeys(name for flag in self.flags for name in flag.annotators))

    @property
    def measured(self) -> str:
        submission = self.assignment.submission
        return measured_note(submission) if submission else ""

    @property
    def summary(self) -> str:
        if self.drafts:
            return _("{decisions}: not sent").format(
                decisions=", ".join(str(draft.get_action_display()) for draft in self.drafts)
            )
        if self.assignment.decision_problem:
            return _("refused by the marketplace")
        words = list(dict.fromkeys(flag.short for flag in self.flags))
        submission = self.assignment.submission
        if submission is not None and submission.comment:
            words.append(_("left a comment"))
        return ", ".join(words) or _("no flag")


@dataclass(frozen=True)
class DeskFacts:
    n_appeals: int
    n_inquiries: int
    n_refused: int
    is_without_letter_keys: bool
    has_shared_devices: bool
    measured_version: int | None
    n_measured: int | None

    @property
    def has_letter_keys(self) -> bool:
        return not self.is_without_letter_keys

    def is_measured(self, study: Study) -> bool:
        return self.measured_version == study.judgments_version

    def n_unmeasured(self, study: CountedStudy) -> int:
        return max(study.n_submissions - (self.n_measured or 0), 0)


def listed_assignments(study: Study, list_name: str) -> AssignmentRecordQuerySet:
    return Assignment.objects.filter(LISTS.get(list_name, LISTS[WAITING]), hit__batch__study=study)


def queue_of(
    study: Study,
    user: User,
    list_name: str,
    *,
    facts: DeskFacts,
    drafts: Sequence[DraftDecision],
    rows: slice = FIRST_ROWS,
    opened: str = "",
) -> list[QueueRow]:
    # The assignment whose key is `opened` comes first if it would not be in `rows`.
    listed = (
        listed_assignments(study, list_name)
        .select_related(
            *("submission__annotator", "submission__evidence__version", "worker", "appeal"),
            *("hit__item__picture", "hit__batch__connection"),
        )
        .prefetch_related(*NOTED)
    )
    listed = listed.defer("answer_xml", "submission__raw", "hit__item__picture__content")
    in_order = listed.annotate(suspicion=SUSPICION).order_by("-suspicion", "submitted_at", "pk")
    found = list(in_order[rows])
    if opened.isdecimal() and all(str(one.pk) != opened for one in found):
        found = [*in_order.filter(pk=opened[:MOST_DIGITS]), *found]
    devices = devices_of(study) if facts.has_shared_devices else {}
    by_assignment = group_values((draft.assignment_id, draft) for draft in drafts)
    return [
        QueueRow(
            assignment=assignment,
            flags=notes_on(assignment, devices),
            drafts=[one for one in by_assignment[assignment.pk] if one.reviewer_id == user.pk],
            others=[one for one in by_assignment[assignment.pk] if one.reviewer_id != user.pk],
        )
        for assignment in found
    ]


def name_of(assignment: Assignment) -> str:
    """The annotator's pseudonym, by which all pages name them."""
    submission = assignment.submission
    return submission.annotator.pseudonym if submission else "–"


def notes_on(assignment: Assignment, devices: Devices) -> list[FlagNote]:
    notes = []
    if assignment.reading_note:
        title, text = _("Amended as it was read"), assignment.reading_note
        notes.append(FlagNote(_("amended"), title, text, holds_back=False))
    if assignment.submission is None:
        notes.append(FlagNote(_("not read"), _("Could not be read"), assignment.problem))
        return notes
    if reason := assignment.submission.flag_reason:
        notes.append(FlagNote(_("flagged"), _("Flagged by a member of the team"), reason))
    submission = assignment.submission
    notes += [annotator_note(each) for each in submission.annotator.quality_flags.all()]
    if device := devices.get((assignment.hit.batch_id, assignment.worker_id)):
        notes.append(device_note(device))
    notes += [check_note(each) for each in submission.check_answers.all() if each.is_failed]
    return notes + [_note(flag, submission) for flag in flags_of(submission)]


def counted_reasons(assignments: Sequence[Assignment]) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for one in assignments:
        reasons = {note.short for note in notes_on(one, {}) if note.holds_back}
        counts.update(reasons or {_("not measured yet")})
    return counts.most_common()


def _note(flag: Flag, submission: Submission) -> FlagNote:
    short, title, others = {
        CONTRADICTORY: (
            _("times contradict"),
            _("The answer contradicts the measured times"),
            _contradiction(flag, submission),
        ),
        FAST: (
            _("fast"),
            _("{seconds} for all of it").format(seconds=duration_words(flag.value)),
            _("The median of all submissions is {seconds}.").format(
                seconds=duration_words(flag.typical)
            ),
        ),
        SAME: (
            _("same rating"),
            _("{percent} % of the ratings are the same").format(percent=_percent(flag.value)),
            _("The median of all submissions is {percent} %.").format(
                percent=_percent(flag.typical)
            ),
        ),
        FAR: (
            _("far from others"),
            _("{percent} % of the scale from the others' mean").format(
                percent=_percent(flag.value)
            ),
            _("The median of all submissions is {percent} %.").format(
                percent=_percent(flag.typical)
            ),
        ),
        PASTED: (_("pasted"), _("The reason was pasted"), ""),
    }[flag.name]
    hits = ngettext(
        "Of {all} submission by annotators who agree with the others and take their time, {n} is "
        "flagged in the same way.",
        "Of {all} submissions by annotators who agree with the others and take their time, {n} are "
        "flagged in the same way.",
        flag.n_careful,
    ).format(all=flag.n_careful, n=flag.n_careful_hit)
    return FlagNote(short, title, f"{others} {hits}".strip())


def _contradiction(flag: Flag, submission: Submission) -> str:
    if submission.has_unproved_mark:
        return _(
            "It is marked as simulated, and does not come from this site’s simulated annotators."
        )
    return _(
        "The annotator had at most {measured} for it: since they accepted it, or since they "
        "submitted another page. The answer reports more. Annotators who fill in several pages and "
        "then submit them together look the same."
    ).format(measured=duration_words(flag.value))


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def desk_facts(study: Study, user: User) -> DeskFacts:
    refused = {"state": DeliveryState.REFUSED}
    path = "assignment__hit__batch__study"
    counts = {
        "n_appeals": counted(Appeal.objects.unanswered(), path),
        "n_inquiries": counted(Inquiry.objects.unanswered(), "batch__study"),
        "n_refused": counted(Assignment.objects.refused(), "hit__batch__study")
        + counted(Payment.objects.filter(**refused), path)
        + counted(Message.objects.filter(**refused), path)
        + counted(Appeal.objects.filter(**refused), path),
        "is_without_letter_keys": Exists(
            PagePreferences.objects.filter(user=user.pk, has_letter_keys=False)
        ),
        "has_shared_devices": Exists(SharedDevice.objects.filter(batch__study=OuterRef("pk"))),
        "measured_version": newest_fact(EVIDENCE, "judgments_version"),
        "n_measured": newest_fact(EVIDENCE, "n_submissions"),
    }
    facts = stage_facts(study, **counts)
    return DeskFacts(**{name: facts[name] for name in counts})


def waiting_work(study: Study, queue: Sequence[QueueRow], n_waiting: int) -> dict[str, Any]:
    # If the queue has all that waits, it is read from there; else it is counted.
    if n_waiting <= len(queue):
        return {
            "usd": sum((price_usd(row.assignment) for row in queue), Decimal(0)),
            "due": min((row.approves_at for row in queue), default=None),
        }
    groups = list(
        Assignment.objects.undecided()
        .filter(hit__batch__study=study)
        .order_by()
        .values_list("hit__batch", "hit__max_assignments")
        .annotate(n=Count("*"), first=Min("submitted_at"))
    )
    # Most often every batch of which something waits is in the queue's first rows.
    batches = {row.assignment.hit.batch_id: row.assignment.hit.batch for row in queue}
    if missing := {batch for batch, *_ in groups} - set(batches):
        batches |= Batch.objects.select_related("connection").in_bulk(missing)
    usd, due = Decimal(0), []
    for key, size, n, first in groups:
        batch = batches[key]
        usd += n * cost_of_assignment(batch, size or batch.wave_assignments(1))
        due.append(first + timedelta(seconds=batch.auto_approval_delay_seconds))
    return {"usd": usd, "due": min(due, default=None)}


IN_WORDS: dict[str, Promise] = {
    WAITING: gettext_lazy("%(n)s waiting"),
    REJECTED: gettext_lazy("%(n)s rejected"),
    APPROVED: gettext_lazy("%(n)s approved"),
}


def desk_work(study: Study, annotators: Collection[str]) -> dict[str, Sequence[DeskWork]]:
    work: defaultdict[str, list[DeskWork]] = defaultdict(list)
    names = ("submission__annotator__pseudonym", "worker__worker_id")
    rows = Assignment.objects.filter(
        hit__batch__study=study, submission__annotator__pseudonym__in=annotators
    )
    lists = Case(*(When(such, then=Value(name)) for name, such in LISTS.items()))
    counts = rows.order_by().annotate(list_name=lists).values_list(*names, "list_name")
    for name, worker_id, list_name, n, first in sorted(
        counts.exclude(list_name=None).annotate(n=Count("pk"), first=Min("pk")),
        key=lambda row: list(IN_WORDS).index(row[2]),
    ):
        work[name].append(
            DeskWork(list_name, n, first, worker_id, str(IN_WORDS[list_name]) % {"n": f"{n:,}"})
        )
    return dict(work)

"""What a recruiter says became of its participants, as CSV by the requester's hands.

The file may be the recruiter's own export or ours, filled in. It is checked whole before anything
changes, and may be read any number of times: what is so already stays as it is. The recruiter has
decided then, so nothing is written down for it to do.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TextIO

from django.db import transaction
from django.utils.translation import gettext as _

from csv_cells import from_cell
from error_codes import InvalidValue
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidAssignmentState, InvalidStatusFile
from marketplace.hits import review
from marketplace.models import Assignment, Intent, Outcome, RecruitedStudy, Session
from marketplace.recruiting.participants import find_participant
from marketplace.recruiting.sessions import end_session, return_session, time_out_session
from marketplace.users import User

MOST_ERRORS = 20
LONGEST_REASON = 1024
SUBMISSION, PARTICIPANT, STATUS, REASON = "submission_id", "participant_id", "status", "reason"
NO_NEWS = {"active", "reserved", "started", "finished", "awaiting_review", "processing", ""}
State = Session.State


@dataclass(frozen=True)
class Row:
    """One line of the file, of a session that is known."""

    line: int
    session: Session
    status: str
    reason: str


@dataclass(frozen=True)
class Imported:
    """How many participations a file changed and left, and where it contradicts what is here."""

    n_changed: int
    n_unchanged: int
    contradictions: tuple[str, ...] = ()


def read_statuses(study: RecruitedStudy, file: TextIO, *, name: str) -> list[Row]:
    """Check the file and find whose its lines are; refuse it with every error, by line. A recruiter
    that is asked each minute says itself what became of whom."""
    if study.connection.encrypted_token:
        raise InvalidStatusFile(
            _("%(recruiter)s is asked each minute what became of the participants: decide there.")
            % {"recruiter": study.connection.name},
            code="asked_by_api",
        )
    try:
        lines = list(_lines(study, file, name))
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidStatusFile(f"{name}: {error}") from error
    rows: dict[int, Row] = {}
    errors, codes = [], []
    for number, cells in lines:
        try:
            row = _row(study, number, cells)
        except InvalidValue as error:
            codes.append(error.code)
            errors.append(_("%(name)s, line %(n)s: ") % {"name": name, "n": number} + str(error))
            continue
        known = rows.setdefault(row.session.pk, row)
        if known.status != row.status:
            text = _("%(name)s, line %(n)s: line %(other)s says %(status)s of the same one.")
            values = {"name": name, "n": number, "other": known.line, "status": known.status}
            codes.append("contradiction")
            errors.append(text % values)
    if errors:
        more = len(errors) - MOST_ERRORS
        last = [_("And %(n)s more.") % {"n": more}] if more > 0 else []
        raise InvalidStatusFile("\n".join(errors[:MOST_ERRORS] + last), code=codes[0])
    return list(rows.values())


def import_statuses(
    study: RecruitedStudy, rows: Iterable[Row], *, user: User | None = None
) -> Imported:
    """Let each participation become what the recruiter says; those that are so already stay."""
    n_changed = n_unchanged = 0
    contradictions = []
    for row in rows:
        try:
            with transaction.atomic():
                is_changed = CHANGES[row.status](row) if row.status in CHANGES else False
        except InvalidAssignmentState as error:
            contradictions.append(f"{row.session.submission_id}: {error}")
            continue
        n_changed += is_changed
        n_unchanged += not is_changed
    detail = {"changed": n_changed, "contradictions": len(contradictions)}
    requester = study.requester
    note("study.import_statuses", subject=study.name, user=user, requester=requester, detail=detail)
    return Imported(n_changed, n_unchanged, tuple(contradictions))


def _lines(study: RecruitedStudy, file: TextIO, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(file)
    header = [_column(study, cell) for cell in next(reader, [])]
    if STATUS not in header:  # ours has it under the name of what we store
        header = [STATUS if column == "state" else column for column in header]
    if STATUS not in header or not {SUBMISSION, PARTICIPANT} & set(header):
        raise InvalidStatusFile(
            _(
                "%(name)s, line 1: the header needs the columns status, and submission_id or "
                "participant_id."
            )
            % {"name": name},
            code="missing_column",
        )
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield reader.line_num, dict(zip(header, map(_unquoted, cells), strict=False))


def _column(study: RecruitedStudy, cell: str) -> str:
    """The column's name; the study's own names of parameters are understood, too."""
    text = cell.strip().lstrip("\ufeff").lower().replace(" ", "_")
    own = {study.session_parameter.lower(): SUBMISSION, study.worker_parameter.lower(): PARTICIPANT}
    own.pop("", None)
    return own.get(text, text)


def _unquoted(cell: str) -> str:
    """The cell without the sign that keeps spreadsheets from reading a formula."""
    return from_cell(cell.strip())


def _row(study: RecruitedStudy, number: int, cells: Mapping[str, str]) -> Row:
    status = cells.get(STATUS, "").lower().replace(" ", "_").replace("-", "_")
    if status not in CHANGES and status not in NO_NEWS:
        known = ", ".join(sorted(CHANGES))
        text = _("%(status)s is not a known status. Those that change something: %(known)s.")
        text = text % {"status": repr(cells.get(STATUS, "")), "known": known}
        raise InvalidValue(text, code="unknown_status")
    session = _session(study, cells.get(SUBMISSION, ""), cells.get(PARTICIPANT, ""))
    reason = cells.get(REASON, "")[:LONGEST_REASON]
    return Row(number, session, status, reason)


def _session(study: RecruitedStudy, submission_id: str, participant_id: str) -> Session:
    mine = Session.objects.filter(study=study).select_related("study__requester", "connection")
    if participant_id:
        participant = find_participant(study.connection, participant_id)
        mine = mine.filter(worker=participant.worker if participant else None)
    if submission_id:
        mine = mine.filter(submission_id=submission_id)
    elif not participant_id:
        text = _("neither submission_id nor participant_id is given.")
        raise InvalidValue(text, code="missing_id")
    matches = list(mine.order_by("pk")[:2])
    if len(matches) == 1:
        return matches[0]
    if matches:
        text = _("this participant came more than once: say which one by submission_id.")
        raise InvalidValue(text, code="ambiguous_participant")
    given = {"submission": submission_id or "-", "participant": participant_id or "-"}
    text = _(
        "nobody came to this study as submission %(submission)s and participant %(participant)s."
    )
    raise InvalidValue(text % given, code="unknown_participation")


def _returned(row: Row) -> bool:
    return return_session(session=row.session).state != row.session.state


def _timed_out(row: Row) -> bool:
    return time_out_session(session=row.session).state != row.session.state


def _ended(outcome: Outcome) -> Callable[[Row], bool]:
    def end(row: Row) -> bool:
        return end_session(session=row.session, outcome=outcome).outcome != row.session.outcome

    return end


def _approved(row: Row) -> bool:
    session = _locked(row)
    for assignment in _undecided(session, Assignment.Status.REJECTED):
        review.approve_assignment(
            requester=session.study.requester,
            public_id=assignment.public_id,
            feedback="",
            override_rejection=assignment.status == Assignment.Status.REJECTED,
        )
    # A rejection that nobody has acted on is none any more.
    unsent = session.intents.filter(kind=Intent.Kind.REJECT, state=Intent.State.WRITTEN)
    is_taken_back = bool(unsent.delete()[0])
    is_new = _decided(session, State.APPROVED, Intent.Kind.APPROVE)
    _note_reversal(session)
    return is_new or is_taken_back


def _note_reversal(session: Session) -> None:
    """After a rejection that was acted on, so that files do not go on telling whoever pays that it
    was rejected."""
    decisions = session.intents.filter(kind__in=[Intent.Kind.APPROVE, Intent.Kind.REJECT])
    last = decisions.order_by("-pk").first()
    if last is not None and last.kind == Intent.Kind.REJECT:
        n_before = session.intents.filter(kind=Intent.Kind.APPROVE).count()
        Intent.objects.create(
            connection=session.connection,
            session=session,
            kind=Intent.Kind.APPROVE,
            key=f"{Intent.Kind.APPROVE}:{session.pk}:{n_before}",
            state=Intent.State.DONE,
            created_at=clock.now(),
            done_at=clock.now(),
        )


def _rejected(row: Row) -> bool:
    session = _locked(row)
    if session.state == State.APPROVED:
        raise InvalidAssignmentState(_("it is approved here, which can't be taken back."))
    for assignment in _undecided(session):
        review.reject_assignment(
            requester=session.study.requester,
            public_id=assignment.public_id,
            feedback=row.reason or _("Rejected at %(name)s.") % {"name": session.connection.name},
        )
    return _decided(session, State.REJECTED, Intent.Kind.REJECT)


def _locked(row: Row) -> Session:
    locked = Session.objects.select_for_update(no_key=True, of=("self",))
    return locked.select_related("study__requester", "connection").get(pk=row.session.pk)


def _undecided(session: Session, *more: str) -> list[Assignment]:
    rows = Assignment.objects.filter(session_item__session=session)
    statuses = (Assignment.Status.SUBMITTED, *more)
    return list(rows.filter(status__in=statuses).order_by("hit_id"))


def _decided(session: Session, state: str, kind: str) -> bool:
    """Store the state; what was to be done about it at the recruiter is done."""
    waiting = Intent.objects.filter(session=session, kind=kind, state=Intent.State.WRITTEN)
    n_done = waiting.update(state=Intent.State.DONE, done_at=clock.now())
    if session.state == state:
        return n_done > 0
    session.state = state
    session.ended_at = session.ended_at or clock.now()
    session.save(update_fields=["state", "ended_at"])
    return True


CHANGES: dict[str, Callable[[Row], bool]] = {
    "approved": _approved,
    "rejected": _rejected,
    "returned": _returned,
    "timed_out": _timed_out,
    "screened_out": _ended(Outcome.SCREENED_OUT),
    "no_consent": _ended(Outcome.NO_CONSENT),
}

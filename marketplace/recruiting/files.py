"""A study's participants as CSV, for the requester: whom the recruiter is to approve or pay.

The recruiter's ids, of persons and of their submissions, are in the owners' file alone, where they
stand beside the Worker ID; so are the names of an own lab's. Each download of any is written down.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from csv_cells import from_cell, to_cell
from encryption import decrypt, encrypt
from error_codes import InvalidValue, require
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidAssignmentState, InvalidParameter, InvalidStatusFile
from marketplace.hits import review
from marketplace.models import (
    Assignment,
    Intent,
    Outcome,
    RecruitedStudy,
    RecruiterConnection,
    Session,
    SessionDemographics,
)
from marketplace.recruiting.connections import required_recruiter
from marketplace.recruiting.intents import last_decision
from marketplace.recruiting.participants import find_participant
from marketplace.recruiting.records import RecruiterProblem
from marketplace.recruiting.sessions import end_session, return_session, time_out_session
from marketplace.users import User
from work.tasks import request_job

COLUMNS = (
    *("submission_id", "participant_id", "worker_id", "state", "outcome", "code"),
    *("arrived_at", "ended_at", "n_hits", "n_handed_in", "decision", "reason", "bonus", "currency"),
    # Of the decision: whether the recruiter has it, or refused it.
    "decision_state",
    # The outcome whose code was entered at the recruiter; `other` of a code of none.
    "entered",
)
# By which the recruiter knows a person.
THEIRS = COLUMNS[:2]


def note_export(study: RecruitedStudy, name: str, *, user: User | None, reader: str = "") -> None:
    note(
        f"study.export_{name}",
        subject=study.name,
        user=user,
        requester=study.requester,
        detail={"reader": reader} if reader else {},
    )


def participants_file(
    study: RecruitedStudy, *, user: User | None, reader: str = ""
) -> Iterator[tuple[str, ...]]:
    note_export(study, "participants", user=user, reader=reader)
    return (row[len(THEIRS) :] for row in _rows(study))


def join_file(
    study: RecruitedStudy, *, user: User | None, reader: str = ""
) -> Iterator[tuple[str, ...]]:
    note_export(study, "join", user=user, reader=reader)
    return _rows(study)


def invitations_file(
    study: RecruitedStudy, address: Callable[[str], str], *, user: User | None
) -> Iterator[tuple[str, ...]]:
    note_export(study, "invitations", user=user)
    yield ("participant", "link", "worker_id")
    for one in study.invitations.filter(revoked_at=None).select_related("worker").order_by("pk"):
        yield (to_cell(one.label), address(one.token), one.worker.worker_id if one.worker else "")


def _rows(study: RecruitedStudy) -> Iterator[tuple[str, ...]]:
    yield COLUMNS
    for session in (
        Session.objects.filter(study=study)
        .select_related("worker", "connection")
        .order_by("pk")
        .prefetch_related("items__assignment", "intents")
    ):
        yield tuple(
            to_cell(text) for text in (*_facts(session), *_decisions(session), session.reported)
        )


def _facts(session: Session) -> tuple[str, ...]:
    stored = session.encrypted_participant_id
    statuses = [item.assignment.status for item in session.items.all()]
    return (
        session.submission_id,
        decrypt(stored) if stored else "",
        session.worker.worker_id,
        session.state,
        session.outcome,
        session.code,
        session.arrived_at.isoformat(timespec="seconds"),
        session.ended_at.isoformat(timespec="seconds") if session.ended_at else "",
        str(len(statuses)),
        str(sum(status in {"Submitted", "Approved", "Rejected"} for status in statuses)),
    )


def _decisions(session: Session) -> tuple[str, ...]:
    intents = sorted(session.intents.all(), key=lambda intent: intent.pk)
    decided = [one for one in intents if one.kind in (Intent.Kind.APPROVE, Intent.Kind.REJECT)]
    bonuses = [one for one in intents if one.kind == Intent.Kind.BONUS]
    # A recruiter that is called has paid what it said so; whoever pays by this file is told all.
    is_called = session.connection.kind == RecruiterConnection.Kind.PROLIFIC
    states = [Intent.State.DONE] if is_called else [Intent.State.WRITTEN, Intent.State.DONE]
    paid = [one for one in bonuses if one.state in states]
    total = sum(one.amount for one in paid if one.amount is not None)
    return (
        decided[-1].kind if decided else "",
        decided[-1].text if decided else "",
        f"{total:.2f}" if paid else "",
        paid[0].currency if paid else "",
        decided[-1].state if decided else "",
    )


# What a recruiter says became of its participants, as CSV by the requester's hands.
#
# The file may be the recruiter's own export or ours, filled in. It is checked whole before anything
# changes, and may be read any number of times: what is so already stays as it is. The recruiter has
# decided then, so nothing is written down for it to do.

MOST_ERRORS = 20
LONGEST_REASON = 1024
SUBMISSION, PARTICIPANT, STATUS, REASON = "submission_id", "participant_id", "status", "reason"
NO_NEWS = {"active", "reserved", "started", "finished", "awaiting_review", "processing", ""}
State = Session.State


@dataclass(frozen=True)
class Row:
    line: int
    session: Session
    status: str
    reason: str


@dataclass(frozen=True)
class Imported:
    n_changed: int
    n_unchanged: int
    contradictions: tuple[str, ...] = ()


def read_statuses(study: RecruitedStudy, file: TextIO, *, name: str) -> list[Row]:
    """Check the whole file and find each line's session. Raises InvalidStatusFile with every
    error. Refused for a recruiter with an API: it is asked each minute."""
    require(
        not study.connection.encrypted_token,
        InvalidStatusFile(
            _("%(recruiter)s is asked each minute what became of the participants: decide there.")
            % {"recruiter": study.connection.name},
            code="asked_by_api",
        ),
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
    require(
        STATUS in header and {SUBMISSION, PARTICIPANT} & set(header),
        InvalidStatusFile(
            _(
                "%(name)s, line 1: the header needs the columns status, and submission_id or "
                "participant_id."
            )
            % {"name": name},
            code="missing_column",
        ),
    )
    for cells in reader:
        texts = [from_cell(cell.strip()) for cell in cells]
        if any(cell.strip() for cell in cells):
            yield reader.line_num, dict(zip(header, texts, strict=False))


def _column(study: RecruitedStudy, cell: str) -> str:
    text = cell.strip().lstrip("\ufeff").lower().replace(" ", "_")
    own = {study.session_parameter.lower(): SUBMISSION, study.worker_parameter.lower(): PARTICIPANT}
    own.pop("", None)
    return own.get(text, text)


def _row(study: RecruitedStudy, number: int, cells: Mapping[str, str]) -> Row:
    status = cells.get(STATUS, "").lower().replace(" ", "_").replace("-", "_")
    if status not in CHANGES and status not in NO_NEWS:
        raise InvalidValue(
            _("%(status)s is not a known status. Those that change something: %(known)s.")
            % {"status": repr(cells.get(STATUS, "")), "known": ", ".join(sorted(CHANGES))},
            code="unknown_status",
        )
    session = _session(study, cells.get(SUBMISSION, ""), cells.get(PARTICIPANT, ""))
    return Row(number, session, status, cells.get(REASON, "")[:LONGEST_REASON])


def _session(study: RecruitedStudy, submission_id: str, participant_id: str) -> Session:
    mine = Session.objects.filter(study=study).select_related("study__requester", "connection")
    if participant_id:
        participant = find_participant(study.connection, participant_id)
        mine = mine.filter(worker=participant.worker if participant else None)
    if submission_id:
        mine = mine.filter(submission_id=submission_id)
    elif not participant_id:
        raise InvalidValue(
            _("neither submission_id nor participant_id is given."), code="missing_id"
        )
    matches = list(mine.order_by("pk")[:2])
    if len(matches) == 1:
        return matches[0]
    require(
        not matches,
        InvalidValue(
            _("this participant came more than once: say which one by submission_id."),
            code="ambiguous_participant",
        ),
    )
    raise InvalidValue(
        _("nobody came to this study as submission %(submission)s and participant %(participant)s.")
        % {"submission": submission_id or "-", "participant": participant_id or "-"},
        code="unknown_participation",
    )


def _end(outcome: Outcome, row: Row) -> bool:
    return end_session(session=row.session, outcome=outcome).outcome != row.session.outcome


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
    # After a sent rejection, or files would go on saying that it was rejected.
    last = last_decision(session)
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
    require(
        session.state != State.APPROVED,
        InvalidAssignmentState(_("it is approved here, which can't be taken back.")),
    )
    for assignment in _undecided(session):
        review.reject_assignment(
            requester=session.study.requester,
            public_id=assignment.public_id,
            feedback=row.reason or _("Rejected at %(name)s.") % {"name": session.connection.name},
        )
    return _decided(session, State.REJECTED, Intent.Kind.REJECT)


def _locked(row: Row) -> Session:
    return (
        Session.objects.locked()
        .select_related("study__requester", "connection")
        .get(pk=row.session.pk)
    )


def _undecided(session: Session, *more: str) -> list[Assignment]:
    return list(
        Assignment.objects.filter(
            session_item__session=session, status__in=(Assignment.Status.SUBMITTED, *more)
        ).order_by("hit_id")
    )


def _decided(session: Session, state: str, kind: str) -> bool:
    # The recruiter has decided, so a waiting intent of this kind is done.
    n_done = Intent.objects.filter(session=session, kind=kind, state=Intent.State.WRITTEN).update(
        state=Intent.State.DONE, done_at=clock.now()
    )
    if session.state == state:
        return n_done > 0
    session.save_values(state=state, ended_at=session.ended_at or clock.now())
    return True


CHANGES: dict[str, Callable[[Row], bool]] = {
    "approved": _approved,
    "rejected": _rejected,
    "returned": lambda row: return_session(session=row.session).state != row.session.state,
    "timed_out": lambda row: time_out_session(session=row.session).state != row.session.state,
    "screened_out": partial(_end, Outcome.SCREENED_OUT),
    "no_consent": partial(_end, Outcome.NO_CONSENT),
}


# What participants told their recruiter about themselves: fetched on a requester's word, kept
# encrypted beside the session and gone with it, exported by Worker ID.
#
# What says who somebody is at the recruiter (ids, codes, times to the second) is not kept.

FETCH_DEMOGRAPHICS = "fetch_demographics"
MOST_QUESTIONS, LONGEST_NAME, LONGEST_ANSWER = 100, 200, 500


def can_fetch(study: RecruitedStudy) -> bool:
    return bool(study.external_id and study.connection.encrypted_token)


def fetch_demographics(*, study: RecruitedStudy, user: User | None = None) -> int:
    """Ask the recruiter and store the answers of participants whose work is here; return how many.
    Nothing is kept of who did not consent, left or sent nothing."""
    recruiter = required_recruiter(study.connection)
    require(study.external_id, InvalidParameter(_("This recruiter has no demographics.")))
    answered = Assignment.objects.handed_in().filter(session_item__session=OuterRef("pk"))
    mine = Session.objects.filter(Exists(answered), study=study)
    mine = mine.exclude(state=Session.State.RETURNED).exclude(outcome=Outcome.NO_CONSENT)
    sessions = {one.submission_id: one for one in mine}
    try:
        told = recruiter.demographics(study.external_id)
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem)) from problem
    known = {key: answers for key, answers in told.items() if key in sessions}
    with transaction.atomic():
        SessionDemographics.objects.filter(session__study=study).exclude(
            session__in=sessions.values()
        ).delete()  # who left since it was fetched
        for key, answers in known.items():
            some = list(answers.items())[:MOST_QUESTIONS]
            bounded = {name[:LONGEST_NAME]: answer[:LONGEST_ANSWER] for name, answer in some}
            SessionDemographics.objects.update_or_create(
                session=sessions[key],
                defaults={
                    "encrypted_answers": encrypt(json.dumps(bounded)),
                    "fetched_at": clock.now(),
                },
            )
        note(
            "study.fetch_demographics",
            subject=study.name,
            user=user,
            requester=study.requester,
            detail={"participants": len(known)},
        )
    return len(known)


def request_demographics(*, study: RecruitedStudy, user: User | None = None) -> None:
    require(can_fetch(study), InvalidParameter(_("This recruiter has no demographics.")))
    request_job(kind=FETCH_DEMOGRAPHICS, arguments={"study": study.pk}, requested_by=user)


def demographics_file(
    study: RecruitedStudy, *, user: User | None, reader: str = ""
) -> Iterator[tuple[str, ...]]:
    note_export(study, "demographics", user=user, reader=reader)
    return _demographics_rows(study)


def _demographics_rows(study: RecruitedStudy) -> Iterator[tuple[str, ...]]:
    answers = [
        (row.session.worker.worker_id, json.loads(decrypt(row.encrypted_answers)))
        for row in SessionDemographics.objects.filter(session__study=study)
        .order_by("session_id")
        .select_related("session__worker")
    ]
    names = list(dict.fromkeys(name for _worker, one in answers for name in one))
    yield ("worker_id", *map(to_cell, names))
    for worker, one in answers:
        yield (worker, *(to_cell(one.get(name, "")) for name in names))

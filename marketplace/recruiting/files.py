"""A study's participants as CSV, for the requester: whom the recruiter is to approve or pay.

The recruiter's ids, of persons and of their submissions, are in the owners' file alone, where they
stand beside the Worker ID; so are the names of an own lab's. Each download of any is written down.
"""

from collections.abc import Callable, Iterator

from csv_cells import to_cell
from encryption import decrypt
from marketplace.audit_log import note
from marketplace.models import Intent, RecruitedStudy, RecruiterConnection, Session
from marketplace.users import User

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
WRITTEN_OR_DONE = [Intent.State.WRITTEN, Intent.State.DONE]
HANDED_IN = {"Submitted", "Approved", "Rejected"}


def note_export(study: RecruitedStudy, name: str, *, user: User | None, reader: str = "") -> None:
    """Write down who takes a file away: a user of the requester's, or, by the name that it has
    there, whoever another site gave the address to."""
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
    """The rows by Worker ID, the header first."""
    note_export(study, "participants", user=user, reader=reader)
    return (row[len(THEIRS) :] for row in _rows(study))


def join_file(
    study: RecruitedStudy, *, user: User | None, reader: str = ""
) -> Iterator[tuple[str, ...]]:
    """The same with the recruiter's ids, for an owner."""
    note_export(study, "join", user=user, reader=reader)
    return _rows(study)


def invitations_file(
    study: RecruitedStudy, address: Callable[[str], str], *, user: User | None
) -> Iterator[tuple[str, ...]]:
    """Whom an own lab invited, by the link of each and the Worker ID, for an owner."""
    note_export(study, "invitations", user=user)
    yield ("participant", "link", "worker_id")
    for one in study.invitations.select_related("worker").order_by("pk"):
        yield (to_cell(one.label), address(one.token), one.worker.worker_id if one.worker else "")


def _rows(study: RecruitedStudy) -> Iterator[tuple[str, ...]]:
    yield COLUMNS
    sessions = (
        Session.objects.filter(study=study).select_related("worker", "connection").order_by("pk")
    )
    for session in sessions.prefetch_related("items__assignment", "intents"):
        texts = (*_facts(session), *_decisions(session), session.reported)
        yield tuple(to_cell(text) for text in texts)


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
        str(sum(status in HANDED_IN for status in statuses)),
    )


def _decisions(session: Session) -> tuple[str, ...]:
    intents = sorted(session.intents.all(), key=lambda intent: intent.pk)
    decided = [one for one in intents if one.kind in (Intent.Kind.APPROVE, Intent.Kind.REJECT)]
    bonuses = [one for one in intents if one.kind == Intent.Kind.BONUS]
    # A recruiter that is called has paid what it said so; whoever pays by this file is told all.
    is_called = session.connection.kind == RecruiterConnection.Kind.PROLIFIC
    states = [Intent.State.DONE] if is_called else WRITTEN_OR_DONE
    paid = [one for one in bonuses if one.state in states]
    total = sum(one.amount for one in paid if one.amount is not None)
    return (
        decided[-1].kind if decided else "",
        decided[-1].text if decided else "",
        f"{total:.2f}" if paid else "",
        paid[0].currency if paid else "",
        decided[-1].state if decided else "",
    )

"""Participations of people whose data was erased, known again at their recruiter by a seal alone.

A recruiter goes on listing a submission that waits for review there, and its link may be opened
once more. Neither must make an account, or a row with the person's id, of somebody who had all of
that erased.
"""

from collections.abc import Collection, Mapping

from encryption import seals
from marketplace.models import (
    ErasedSubmission,
    Intent,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    RecruiterEvent,
    Session,
    WorkerAccount,
)

PURPOSE = "erased submission"


def seal_submissions_of(worker: WorkerAccount) -> None:
    """Keep seals of all submissions of a worker whose sessions are about to be deleted, and
    forget which news and which charges were about them."""
    sessions = Session.objects.filter(worker=worker).select_related("connection", "study")
    # Who is in the groups is no more to be told by how many came.
    RecruitedStudy.objects.filter(sessions__worker=worker).update(group_size=0)
    uncharged = {session.pk: _uncharged(session) for session in sessions}
    holding = set(sessions.holding_places().values_list("pk", flat=True))
    for session in sessions:
        charges = RecruiterCharge.objects.filter(session=session)
        for charge in charges.filter(external_id=session.submission_id[:100]):
            charge.external_id = f"erased:{charge.pk}"
            charge.save(update_fields=["external_id"])
        RecruiterEvent.objects.filter(
            connection=session.connection, submission_id=session.submission_id
        ).update(submission_id="")
    ErasedSubmission.objects.bulk_create(
        [
            ErasedSubmission(
                connection=session.connection,
                study_id=session.study_id,
                seal=_seals(session.connection, session.submission_id)[0],
                uncharged=uncharged[session.pk],
                is_unpaid=_is_unpaid(session),
                holds_place=session.pk in holding,
            )
            for session in sessions
        ],
        ignore_conflicts=True,
    )


def _uncharged(session: Session) -> str:
    """The kind of the charge that is still to be written down of what the recruiter paid for it."""
    study, kind = session.study, ""
    if _is_approved_there(session) and study.external_id and study.reward is not None:
        kind = RecruiterCharge.Kind.REWARD.value
    if session.state == Session.State.SCREENED_OUT and study.screen_out_reward_paid is not None:
        kind = RecruiterCharge.Kind.SCREEN_OUT.value
    if kind and RecruiterCharge.objects.filter(session=session, kind=kind).exists():
        return ""
    return kind


def _is_unpaid(session: Session) -> bool:
    """Whether the recruiter, which is asked, may still pay for it."""
    is_paid = session.state == Session.State.SCREENED_OUT or _is_approved_there(session)
    return bool(session.study.external_id) and not is_paid


def _is_approved_there(session: Session) -> bool:
    """Whether the recruiter has approved it: an approval that was still to be sent is gone with the
    session, so that time approves it there, or nobody."""
    approvals = session.intents.filter(kind=Intent.Kind.APPROVE, state__in=Intent.OPEN_STATES)
    return session.state == Session.State.APPROVED and not approvals.exists()


def note_paid_since(study: RecruitedStudy, kinds: Mapping[str, str]) -> None:
    """Have those charged for, by the kind of the charge, that were erased before the recruiter paid
    them: once each, and without the id by which it lists them."""
    unpaid = ErasedSubmission.objects.filter(study=study, is_unpaid=True)
    waiting = dict(unpaid.values_list("seal", "pk"))
    if not waiting:
        return
    for submission_id, kind in kinds.items():
        for seal in _seals(study.connection, submission_id):
            if (key := waiting.get(seal)) is not None:
                unpaid.filter(pk=key).update(is_unpaid=False, uncharged=kind)


def note_places_since(study: RecruitedStudy, places: Mapping[str, bool]) -> None:
    """Keep of erased participations, by the ids that the recruiter lists, which hold their place
    there and which have given it back, or lost it, since."""
    rows = ErasedSubmission.objects.filter(study=study)
    known = set(rows.values_list("seal", "holds_place"))
    for submission_id, holds_place in places.items() if known else ():
        for seal in _seals(study.connection, submission_id):
            if (seal, not holds_place) in known:
                rows.filter(seal=seal).update(holds_place=holds_place)


def erased_among(connection: RecruiterConnection, submission_ids: Collection[str]) -> set[str]:
    """Which of these were participations of people whose data was erased."""
    if not submission_ids:
        return set()
    sealed = {seal: one for one in submission_ids for seal in _seals(connection, one)}
    rows = ErasedSubmission.objects.filter(connection=connection)
    # All of them: a recruiter lists more submissions than people have themselves erased.
    return {sealed[seal] for seal in rows.values_list("seal", flat=True) if seal in sealed}


def _seals(connection: RecruiterConnection, submission_id: str) -> list[str]:
    return seals(f"{connection.pk}:{submission_id}", purpose=PURPOSE)

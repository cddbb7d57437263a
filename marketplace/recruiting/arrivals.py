"""How a requester's participants come in, by invite links and by panels' links, and go back.

Whoever comes through a link works under an account made for that, which nobody can sign in to
with a password. So a link that leaks opens the participation it was made for, and never a
person's own account; and an id that a panel sends stands for one account at one connection,
because whoever knows the id can come in with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import ChannelClosed, ParticipantUnknown
from marketplace.models import (
    Invitation,
    RecruitedStudy,
    RecruiterConnection,
    Session,
    WorkerAccount,
)
from marketplace.recruiting.connections import recruiter_of
from marketplace.recruiting.links import panel_of
from marketplace.recruiting.participants import (
    account_of,
    encrypted,
    find_participant,
    new_participant,
)
from marketplace.recruiting.problems import NotVerified, RecruiterProblem, Unreachable
from marketplace.recruiting.sessions import start_session
from marketplace.recruiting.signed_links import (
    PARAMETER,
    Expired,
    published_keys,
    verify_signed_link,
)

Kind = RecruiterConnection.Kind


@dataclass(frozen=True)
class Visit:
    """A participant who opens a study's link, with what the link says about them."""

    study: RecruitedStudy
    invitation: Invitation | None
    external_worker_id: str
    study_id: str
    session_id: str
    # Where the recruiter signs its links.
    signed_token: str = ""


def recognise(token: str, parameters: Mapping[str, str]) -> Visit:
    """Who it is that comes with this link; refused where the link is closed or incomplete."""
    invitation = _invitation(token)
    study = invitation.study if invitation else _study(token)
    if study is None or not study.is_open:
        raise ChannelClosed(
            _("This link is not open, or not any more. Ask whoever sent it to you.")
        )
    try:
        came = panel_of(study).verify_arrival(
            study.external_id, parameters, url="", now=clock.now()
        )
    except NotVerified as error:
        raise ParticipantUnknown(str(error)) from error
    signed = parameters.get(PARAMETER, "")
    return Visit(study, invitation, came.participant, came.study, came.submission, signed)


def enter(visit: Visit, *, known: WorkerAccount | None) -> Session:
    """The visitor's participation, begun at the first visit. `known` is who comes back to the
    same open invite link in the same browser."""
    _require_sent(visit)
    worker = _account(visit, known)
    if worker.user.has_usable_password():
        raise ParticipantUnknown(
            _("This link belongs to an account with a password: sign in to it.")
        )
    submission_id = visit.session_id or f"{visit.study.pk}:{worker.worker_id}"
    return start_session(
        study=visit.study,
        worker=worker,
        submission_id=submission_id,
        encrypted_participant_id=encrypted(visit.external_worker_id),
        external_study_id=visit.study_id,
    )


def _require_sent(visit: Visit) -> None:
    """Refuse ids that were made up: a recruiter with an API is asked whom it sent. Whoever has a
    participation already comes back to it without."""
    connection, study = visit.study.connection, visit.study
    recruiter = recruiter_of(connection, is_hurried=True)
    if recruiter is None or _has_begun(visit):
        return
    parameters = {
        study.worker_parameter: visit.external_worker_id,
        study.study_parameter: visit.study_id,
        study.session_parameter: visit.session_id,
    }
    try:
        if not _is_signed(visit, parameters):
            recruiter.verify_arrival(study.external_id, parameters, url="", now=clock.now())
    except NotVerified as problem:
        text = _("%(recruiter)s did not send this: %(problem)s Open the study from there again.")
        raise ParticipantUnknown(
            text % {"recruiter": connection.name, "problem": problem}
        ) from problem
    except RecruiterProblem as problem:
        text = _("%(recruiter)s can't be asked at the moment. Try again in a minute.")
        raise ParticipantUnknown(text % {"recruiter": connection.name}) from problem


def _is_signed(visit: Visit, parameters: Mapping[str, str]) -> bool:
    """Whether the link itself proves who comes. One that is signed and wrong is refused; of one
    whose two minutes went by over this page, its recruiter is asked."""
    if not visit.signed_token:
        return False
    given = {**parameters, PARAMETER: visit.signed_token}
    keys, study = published_keys(settings.PROLIFIC_KEYS_URL), visit.study.external_id
    try:
        verify_signed_link(keys, study, given, url=settings.SITE_URL, now=clock.now())
    except (Expired, Unreachable):
        return False
    return True


def _has_begun(visit: Visit) -> bool:
    begun = Session.objects.filter(
        connection=visit.study.connection, study=visit.study, submission_id=visit.session_id
    ).first()
    known = find_participant(visit.study.connection, visit.external_worker_id)
    return begun is not None and known is not None and begun.worker_id == known.worker_id


def came_before(study: RecruitedStudy, worker: WorkerAccount) -> bool:
    """Whether this worker has come to this study."""
    return Session.objects.filter(study=study, worker=worker).exists()


def way_back(session: Session) -> str:
    """The address that informs the recruiter of the participant's return, or nothing."""
    return panel_of(session.study, session).way_back(session.code).url


def _invitation(token: str) -> Invitation | None:
    invitations = Invitation.objects.select_related(
        "study__hit_type__requester", "study__connection", "worker__user"
    )
    return invitations.filter(token=token).first()


def _study(token: str) -> RecruitedStudy | None:
    studies = RecruitedStudy.objects.select_related("hit_type__requester", "connection")
    return studies.filter(token=token).first()


def _account(visit: Visit, known: WorkerAccount | None) -> WorkerAccount:
    if visit.invitation is not None:
        return _invited(visit.invitation)
    if visit.study.connection.kind == Kind.OWN_LAB:
        return known or new_participant(visit.study.hit_type.paid_by)
    return account_of(visit.study, visit.external_worker_id)


@transaction.atomic
def _invited(invitation: Invitation) -> WorkerAccount:
    locked = Invitation.objects.select_for_update(of=("self",)).get(pk=invitation.pk)
    if locked.worker is None:
        locked.worker = new_participant(invitation.study.hit_type.paid_by)
        locked.save(update_fields=["worker"])
    return locked.worker

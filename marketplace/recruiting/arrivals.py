"""How a requester's participants come in, by invite links and by panels' links, and go back.

Whoever comes through a link works under an account made for that, which nobody can sign in to
with a password. So a link that leaks opens the participation it was made for, and never a
person's own account; and an id that a panel sends stands for one account at one connection,
because whoever knows the id can come in with it.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import ChannelClosed, ParticipantUnknown, require
from marketplace.models import (
    Invitation,
    PaidBy,
    RecruitedStudy,
    RecruiterConnection,
    Session,
    WorkerAccount,
)
from marketplace.people.erasure import erased_among
from marketplace.recruiting.connections import recruiter_of
from marketplace.recruiting.participants import (
    account_of,
    encrypted,
    find_participant,
    new_participant,
)
from marketplace.recruiting.posting import follow_study
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import NotVerified, RecruiterProblem, Unreachable
from marketplace.recruiting.sessions import start_session
from marketplace.recruiting.signed_links import (
    PARAMETER,
    Expired,
    published_keys,
    verify_signed_link,
)
from marketplace.recruiting.studies import panel_of

# How often a recruiter is asked about arrivals that it did not send.
#
# Each arrival that nothing proves is asked about while a browser waits. Whoever makes ids up would
# have as many calls made as they send requests, and keep those waiting who were sent: so the same
# ids are asked about once in a while, and from one address a few that are unknown of a study.
# Whoever is in a study already, or comes by a signed link, is not asked about.

# A submission may be seen there a moment after its participant is sent.
UNKNOWN_FOR_SECONDS = 15
MOST_UNKNOWN, COUNTED_FOR_SECONDS = 20, 600


def verify_arrival(
    recruiter: Prolific, study: RecruitedStudy, ids: Mapping[str, str], *, address: str
) -> None:
    """Ask the recruiter, or the cache of its recent answers, whether it sent this participant.
    Raises NotVerified if it did not, and Unreachable after too many unknown ids from this
    address."""
    unknown = _key("unknown-arrival", study, *(f"{name}={ids[name]}" for name in sorted(ids)))
    from_there = _key("unknown-arrivals-from", study, address)
    if problem := cache.get(unknown):
        raise NotVerified(problem)
    require(
        not address or cache.get(from_there, 0) < MOST_UNKNOWN,
        Unreachable("Too many arrivals from this address were unknown."),
    )
    try:
        recruiter.verify_arrival(study.external_id, ids)
    except NotVerified as problem:
        cache.set(unknown, str(problem), UNKNOWN_FOR_SECONDS)
        cache.add(from_there, 0, COUNTED_FOR_SECONDS)
        with suppress(ValueError):  # it is over at this moment
            cache.incr(from_there)
        raise


def _key(kind: str, study: RecruitedStudy, *facts: str) -> str:
    # Hashed, so that the cache holds no ids or addresses.
    return f"{kind}:{study.pk}:{salted_hmac(kind, '&'.join(facts)).hexdigest()}"


# Which kind of device somebody comes with, by what its browser says, and whether a study takes it.
#
# A browser that says nothing known is let in: a study is refused to nobody on a guess. Tablets that
# call themselves computers, as iPads do, count as what they say.

DESKTOP, TABLET, MOBILE = "desktop", "tablet", "mobile"
TABLETS = re.compile(r"iPad|Tablet|PlayBook|Silk(?!.*Mobile)|Android(?!.*Mobile)", re.IGNORECASE)
TELEPHONES = re.compile(r"iPhone|iPod|Mobi|Windows Phone", re.IGNORECASE)
COMPUTERS = re.compile(r"Windows NT|Macintosh|X11|CrOS|Linux", re.IGNORECASE)


def device_of(user_agent: str) -> str:
    kinds = ((TABLET, TABLETS), (MOBILE, TELEPHONES), (DESKTOP, COMPUTERS))
    return next((kind for kind, pattern in kinds if pattern.search(user_agent)), "")


def is_compatible(study: RecruitedStudy, user_agent: str) -> bool:
    device = device_of(user_agent)
    return not study.devices or not device or device in study.devices


Kind = RecruiterConnection.Kind
ID, LONGEST_SHOWN = re.compile(r"[\w.@:+~-]+", re.ASCII), 64


@dataclass(frozen=True)
class Visit:
    study: RecruitedStudy
    invitation: Invitation | None
    external_worker_id: str
    study_id: str
    session_id: str
    # Where the recruiter signs its links.
    signed_token: str = ""
    # From where they come.
    address: str = field(default="", repr=False)

    @property
    def shown_id(self) -> str:
        # Only a text that looks like an id: whoever made the link chose it.
        one = self.external_worker_id
        return one if len(one) <= LONGEST_SHOWN and ID.fullmatch(one) else ""


def recognise(
    token: str,
    parameters: Mapping[str, str],
    *,
    known: WorkerAccount | None = None,
    address: str = "",
) -> Visit:
    """Return who comes with this link. Raises ChannelClosed if it is closed and the participant is
    new, ParticipantUnknown if it is incomplete. `known` is the account signed in."""
    invitations = Invitation.objects.select_related(
        "study__hit_type__requester", "study__connection", "worker__user"
    )
    studies = RecruitedStudy.objects.select_related("hit_type__requester", "connection")
    invitation = invitations.filter(token=token).first()
    study = invitation.study if invitation else studies.filter(token=token).first()
    if study is None or (invitation is not None and invitation.revoked_at is not None):
        raise ChannelClosed(_closed())
    try:
        came = panel_of(study).read_arrival(parameters)
    except NotVerified as error:
        if not study.is_open:
            raise ChannelClosed(_closed()) from error
        raise ParticipantUnknown(str(error), code=error.code) from error
    require(
        study.connection.kind != Kind.PROLIFIC or came.study in ("", study.external_id),
        ParticipantUnknown(_("This link is of another study."), code="other_study"),
    )
    signed = parameters.get(PARAMETER, "")
    visit = Visit(study, invitation, came.participant, came.study, came.submission, signed, address)
    is_invited = invitation is not None or study.is_shared
    is_let_in = (study.is_open and is_invited) or has_begun(visit, known)
    require(is_let_in or _is_open_there(study) or _holds_place(visit), ChannelClosed(_closed()))
    return visit


def enter(visit: Visit, *, known: WorkerAccount | None, user_agent: str = "") -> Session:
    """Return the visitor's session, started at the first visit. `known` is the account that this
    browser used before with the same open invite link."""
    if visit.session_id and erased_among(visit.study.connection, [visit.session_id]):
        raise ParticipantUnknown(
            _(
                "You had what was here of this participation erased, so that it can't be taken up "
                "again. Return your place at the recruiter, if you hold one."
            ),
            code="erased",
        )
    _require_sent(visit)
    worker = _account(visit, known)
    require(
        not worker.user.has_usable_password(),
        ParticipantUnknown(
            _("This link belongs to an account with a password: sign in to it."),
            code="has_password",
        ),
    )
    return start_session(
        study=visit.study,
        worker=worker,
        submission_id=_submission_id(visit, worker),
        encrypted_participant_id=encrypted(visit.external_worker_id),
        external_study_id=visit.study_id,
        is_compatible=is_compatible(visit.study, user_agent),
    )


def is_proven(visit: Visit, *, known: WorkerAccount | None) -> bool:
    """Whether the visitor must be the participant, and not somebody else who knows the ids in the
    link: the link is an invitation or signed a moment ago, the id is new here, or the browser
    is signed in as `known`."""
    if visit.invitation is not None or visit.study.connection.kind == Kind.OWN_LAB:
        return True
    worker = _account_of(visit, known)
    if worker is None or worker == known:
        return True
    if not worker.sessions.exists():
        return True
    try:
        return _is_signed(visit)
    except NotVerified:
        return False


def _is_open_there(study: RecruitedStudy) -> bool:
    """Whether the recruiter has the study open again, as after places were added by hand. Asked at
    most once a minute."""
    is_over = study.state in (RecruitedStudy.State.DRAFT, RecruitedStudy.State.STOPPED)
    recruiter = recruiter_of(study.connection, is_hurried=True) if study.external_id else None
    if not is_over or recruiter is None:
        return False
    if not cache.add(f"is_open_there:{study.pk}", True, timeout=60):
        return False
    try:
        follow_study(study, recruiter)
    except RecruiterProblem:
        return False
    return study.is_open


def _holds_place(visit: Visit) -> bool:
    study = visit.study
    recruiter = recruiter_of(study.connection, is_hurried=True) if study.external_id else None
    if recruiter is None or study.state == RecruitedStudy.State.DRAFT:
        return False
    try:
        verify_arrival(recruiter, study, _ids(visit), address=visit.address)
    except NotVerified:
        return False
    except RecruiterProblem as problem:  # no reason to send away who holds a place
        raise _not_asked(study.connection) from problem
    return True


def _require_sent(visit: Visit) -> None:
    """Refuse made-up ids: ask the recruiter, unless the participant has a session already."""
    connection, study = visit.study.connection, visit.study
    recruiter = recruiter_of(connection, is_hurried=True)
    try:
        if _is_signed(visit) or has_begun(visit):
            return
    except NotVerified as problem:
        raise _not_sent(connection, problem) from problem
    if recruiter is None:
        if connection.kind == Kind.PROLIFIC:  # its token was taken back
            raise _not_asked(connection)
        return
    try:
        verify_arrival(recruiter, study, _ids(visit), address=visit.address)
    except NotVerified as problem:
        raise _not_sent(connection, problem) from problem
    except RecruiterProblem as problem:
        raise _not_asked(connection) from problem


def _ids(visit: Visit) -> dict[str, str]:
    study = visit.study
    return {
        study.worker_parameter: visit.external_worker_id,
        study.study_parameter: visit.study_id,
        study.session_parameter: visit.session_id,
    }


def _not_sent(connection: RecruiterConnection, problem: NotVerified) -> ParticipantUnknown:
    return ParticipantUnknown(
        _("%(recruiter)s did not send this: %(problem)s Open the study from there again.")
        % {"recruiter": connection.name, "problem": problem},
        code="not_sent",
    )


def _not_asked(connection: RecruiterConnection) -> ParticipantUnknown:
    text = _("%(recruiter)s can't be asked at the moment. Try again in a minute.")
    return ParticipantUnknown(text % {"recruiter": connection.name}, code="not_asked")


def _is_signed(visit: Visit) -> bool:
    """Whether the link itself proves who comes. Raises NotVerified if its signature is wrong. An
    expired link is no proof: the recruiter is asked instead."""
    if not visit.signed_token or visit.study.connection.kind != Kind.PROLIFIC:
        return False
    given = {**_ids(visit), PARAMETER: visit.signed_token}
    keys, study = published_keys(settings.PROLIFIC_KEYS_URL), visit.study.external_id
    try:
        verify_signed_link(keys, study, given, url=settings.SITE_URL, now=clock.now())
    except (Expired, Unreachable):
        return False
    return True


def has_begun(visit: Visit, known: WorkerAccount | None = None) -> bool:
    worker = _account_of(visit, known)
    if worker is None:
        return False
    return Session.objects.filter(
        study=visit.study, worker=worker, submission_id=_submission_id(visit, worker)
    ).exists()


def _account_of(visit: Visit, known: WorkerAccount | None) -> WorkerAccount | None:
    if visit.invitation is not None:
        return visit.invitation.worker
    if visit.study.connection.kind == Kind.OWN_LAB:
        return known
    participant = find_participant(visit.study.connection, visit.external_worker_id)
    return participant.worker if participant else None


def _submission_id(visit: Visit, worker: WorkerAccount) -> str:
    return visit.session_id or f"{visit.study.pk}:{worker.worker_id}"


def _closed() -> str:
    return _("This link is not open, or not any more. Ask whoever sent it to you.")


def study_at(
    *, session_id: str = "", assignment_id: str = "", hit_type_id: str = ""
) -> RecruitedStudy | None:
    if session_id:
        rows = RecruitedStudy.objects.filter(sessions__public_id=session_id)
    elif assignment_id:
        rows = RecruitedStudy.objects.filter(sessions__items__assignment__public_id=assignment_id)
    else:
        rows = RecruitedStudy.objects.filter(
            hit_type__public_id=hit_type_id, hit_type__paid_by=PaidBy.RECRUITER
        )
    return rows.select_related("connection").order_by("-pk").first()


def way_back(session: Session) -> str:
    return panel_of(session.study, session).way_back(session.code)


def _account(visit: Visit, known: WorkerAccount | None) -> WorkerAccount:
    if visit.invitation is not None:
        return _invited(visit.invitation)
    if visit.study.connection.kind == Kind.OWN_LAB:
        return known or new_participant(visit.study.hit_type.paid_by)
    return account_of(visit.study, visit.external_worker_id)


@transaction.atomic
def _invited(invitation: Invitation) -> WorkerAccount:
    locked = Invitation.objects.select_for_update(of=("self",)).get(pk=invitation.pk)
    if locked.revoked_at is not None:
        raise ChannelClosed(_closed())
    if locked.worker is None:
        locked.worker = new_participant(invitation.study.hit_type.paid_by)
        locked.save(update_fields=["worker"])
    return locked.worker

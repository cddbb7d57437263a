"""How a requester's own participants come in: invite links and panels such as Prolific.

Whoever comes through a channel works under an account made for that, which nobody can
sign in to with a password. So a link that leaks opens the participation it was made for,
and never a person's own account; and an id that a panel sends stands for one account of
one requester's, because whoever knows the id can come in with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import ChannelClosed, ParticipantUnknown
from marketplace.identifiers import new_person_id
from marketplace.models import (
    Arrival,
    Assignment,
    Channel,
    HitType,
    Invitation,
    PanelWorker,
    WorkerAccount,
)
from marketplace.people.enrolment import open_worker_account
from marketplace.users import User

LONGEST_ID = 200


@dataclass(frozen=True)
class Visit:
    """A participant who opens a channel's link, with what the link says about them."""

    channel: Channel
    invitation: Invitation | None
    external_worker_id: str
    study_id: str
    session_id: str


def recognise(token: str, parameters: Mapping[str, str]) -> Visit:
    """Who it is that comes with this link; refused where the link is closed or incomplete."""
    invitation = _invitation(token)
    channel = invitation.channel if invitation else _channel(token)
    if channel is None or not channel.is_active:
        raise ChannelClosed(
            _("This link is not open, or not any more. Ask whoever sent it to you.")
        )
    if channel.kind == Channel.Kind.INVITE:
        return Visit(channel, invitation, "", "", "")
    external_id = _parameter(parameters, channel.worker_parameter)
    if not external_id:
        raise ParticipantUnknown(
            _(
                "The link lacks %(worker_parameter)s, by which %(panel)s says who you are. "
                "Open it from %(panel)s again."
            )
            % {"worker_parameter": channel.worker_parameter, "panel": channel.panel}
        )
    study = _parameter(parameters, channel.study_parameter)
    session = _parameter(parameters, channel.session_parameter)
    return Visit(channel, None, external_id, study, session)


@transaction.atomic
def let_in(visit: Visit, *, known: WorkerAccount | None) -> WorkerAccount:
    """The visitor's account, made at the first visit. `known` is who comes back to the same
    open invite link in the same browser."""
    if visit.invitation is not None:
        worker = _invited(visit.invitation)
    elif visit.channel.kind == Channel.Kind.PANEL:
        worker = _from_panel(visit)
    else:
        worker = known or _new_participant()
    if worker.user.has_usable_password():
        raise ParticipantUnknown(
            _("This link belongs to an account with a password: sign in to it.")
        )
    Arrival.objects.create(
        channel=visit.channel,
        worker=worker,
        external_worker_id=visit.external_worker_id,
        study_id=visit.study_id,
        session_id=visit.session_id,
        arrived_at=clock.now(),
    )
    return worker


def came_before(channel: Channel, worker: WorkerAccount) -> bool:
    """Whether this worker has come through this channel."""
    return Arrival.objects.filter(channel=channel, worker=worker).exists()


def has_finished(channel: Channel, worker: WorkerAccount) -> bool:
    """Whether the worker has handed something in, and has nothing more in hand."""
    mine = Assignment.objects.by(worker).filter(hit__hit_type=channel.hit_type)
    is_working = mine.filter(status=Assignment.Status.ACCEPTED).exists()
    return mine.handed_in().exists() and not is_working


def way_back(channel: Channel, worker: WorkerAccount) -> str:
    """The address that informs the panel of the participant's return, or nothing. It is the
    requester's: nothing in it comes from a visitor's address but quoted ids."""
    latest = Arrival.objects.filter(channel=channel, worker=worker).order_by("-pk").first()
    values = {
        "code": channel.completion_code,
        "worker": latest.external_worker_id if latest else "",
        "study": latest.study_id if latest else "",
        "session": latest.session_id if latest else "",
    }
    address = channel.redirect_url
    for name, value in values.items():
        address = address.replace(f"{{{name}}}", quote(value, safe=""))
    return address


def latest_channel(worker: WorkerAccount, hit_type: HitType) -> Channel | None:
    """The channel through which this worker last came to this group, if any."""
    arrivals = Arrival.objects.filter(worker=worker, channel__hit_type=hit_type)
    latest = arrivals.select_related("channel").order_by("-pk").first()
    return latest.channel if latest else None


def is_address(text: str, *, allow_http: bool) -> bool:
    """Whether this is a full web address, whose host no placeholder can change."""
    schemes = ("https", "http") if allow_http else ("https",)
    try:
        parts = urlsplit(text)
        return parts.scheme in schemes and bool(parts.hostname) and "{" not in parts.netloc
    except ValueError:
        return False


def _invitation(token: str) -> Invitation | None:
    invitations = Invitation.objects.select_related("channel__hit_type__requester", "worker__user")
    return invitations.filter(token=token).first()


def _channel(token: str) -> Channel | None:
    return Channel.objects.select_related("hit_type__requester").filter(token=token).first()


def _parameter(parameters: Mapping[str, str], name: str) -> str:
    value = parameters.get(name, "").strip() if name else ""
    if len(value) > LONGEST_ID or not value.isprintable():
        raise ParticipantUnknown(
            _("What the link says for %(name)s is not an id.") % {"name": name}
        )
    return value


def _invited(invitation: Invitation) -> WorkerAccount:
    locked_invitation = Invitation.objects.select_for_update(of=("self",)).get(pk=invitation.pk)
    if locked_invitation.worker is None:
        locked_invitation.worker = _new_participant()
        locked_invitation.save(update_fields=["worker"])
    return locked_invitation.worker


def _from_panel(visit: Visit) -> WorkerAccount:
    identity = {
        "requester": visit.channel.requester,
        "panel": visit.channel.panel,
        "external_id": visit.external_worker_id,
    }
    participant = PanelWorker.objects.select_related("worker__user").filter(**identity).first()
    if participant is None:
        try:
            with transaction.atomic():
                participant = PanelWorker.objects.create(worker=_new_participant(), **identity)
        except IntegrityError:  # the same person came in on another connection
            participant = PanelWorker.objects.select_related("worker__user").get(**identity)
    return participant.worker


def _new_participant() -> WorkerAccount:
    user = User(username=f"participant-{new_person_id()}")
    user.set_unusable_password()
    user.save()
    return open_worker_account(user=user)

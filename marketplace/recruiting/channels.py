"""Opening and closing the channels through which a requester's own participants come."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import ChannelDoesNotExist, InvalidParameter
from marketplace.models import Channel, HitType, Invitation, Requester
from marketplace.recruiting.arrivals import is_address
from marketplace.users import User

MOST_INVITATIONS = 1000
PLACEHOLDERS = ("{code}", "{worker}", "{study}", "{session}")


@dataclass(frozen=True)
class ChannelValues:
    """What a requester decides about a channel."""

    name: str
    kind: str
    panel: str = ""
    worker_parameter: str = ""
    study_parameter: str = ""
    session_parameter: str = ""
    completion_code: str = ""
    redirect_url: str = ""


PROLIFIC = {
    "panel": "Prolific",
    "worker_parameter": "PROLIFIC_PID",
    "study_parameter": "STUDY_ID",
    "session_parameter": "SESSION_ID",
    "redirect_url": "https://app.prolific.com/submissions/complete?cc={code}",
}


@transaction.atomic
def open_channel(
    *, requester: Requester, hit_type: HitType, values: ChannelValues, user: User | None = None
) -> Channel:
    """A new channel to one of the requester's HIT types."""
    if hit_type.requester_id != requester.pk:
        raise InvalidParameter(_("A channel leads to a HIT type of the requester's own."))
    if values.kind == Channel.Kind.PANEL and not (values.panel and values.worker_parameter):
        raise InvalidParameter(
            _("A panel needs a name, and the URL parameter in which it sends a participant's id.")
        )
    if values.redirect_url and not is_address(values.redirect_url, allow_http=not settings.HTTPS):
        raise InvalidParameter(
            _(
                "The address to go back to must be a full https address; its host can't be a "
                "placeholder. Placeholders after it: %(names)s."
            )
            % {"names": ", ".join(PLACEHOLDERS)}
        )
    channel = Channel.objects.create(
        requester=requester, hit_type=hit_type, created_at=clock.now(), **vars(values)
    )
    note("channel.open", subject=channel.name, user=user, requester=requester)
    return channel


@transaction.atomic
def invite(
    *, channel: Channel, labels: Sequence[str], user: User | None = None
) -> list[Invitation]:
    """A link of their own for each of these participants."""
    if channel.kind != Channel.Kind.INVITE:
        raise InvalidParameter(_("Only an invite channel has links for single participants."))
    if not 1 <= len(labels) <= MOST_INVITATIONS:
        raise InvalidParameter(
            _("At one time 1 to %(n)s can be invited.") % {"n": MOST_INVITATIONS}
        )
    now = clock.now()
    invitations = [
        Invitation.objects.create(channel=channel, label=label[:100], created_at=now)
        for label in labels
    ]
    detail = {"invitations": len(invitations)}
    note(
        "channel.invite",
        subject=channel.name,
        user=user,
        requester=channel.requester,
        detail=detail,
    )
    return invitations


@transaction.atomic
def close_channel(*, channel: Channel, user: User | None = None) -> None:
    """Let no more participants in. Those who came in stay."""
    if Channel.objects.filter(pk=channel.pk, is_active=True).update(is_active=False):
        note("channel.close", subject=channel.name, user=user, requester=channel.requester)


def find_channel(requester: Requester, token: str) -> Channel:
    """The requester's channel with this token."""
    mine = Channel.objects.filter(requester=requester, token=token)
    channel = mine.select_related("hit_type", "requester").first()
    if channel is None:
        raise ChannelDoesNotExist(token)
    return channel

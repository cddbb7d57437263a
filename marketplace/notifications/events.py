"""Writing down the events that requesters want to hear of, in the transaction in which
they happen. Sending them is marketplace.notifications.delivery's."""

import json
import os
import re
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from urllib.parse import urlsplit

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction

from marketplace import clock
from marketplace.exceptions import InvalidParameter, NotificationUndeliverable, require
from marketplace.identifiers import new_entity_id
from marketplace.models import (
    Assignment,
    Hit,
    HitType,
    Notification,
    NotificationSetting,
    Requester,
    Transport,
)
from work.addresses import is_public
from work.tasks import request_job

# Where a requester may have notifications sent: what is theirs to name, and nothing inside the
# site's own network. Checked when it is set and again when something is sent there.

AMAZON_QUEUE = re.compile(
    r"https://(sqs\.[a-z0-9-]+\.amazonaws\.com(\.cn)?|([a-z0-9-]+\.)?queue\.amazonaws\.com)"
    r"/[0-9]{12}/[A-Za-z0-9_-]{1,80}(\.fifo)?"
)
OF_NUMBERS = re.compile(r"[0-9]+|0x[0-9a-f]*")
TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?")


def check_destination(*, requester: Requester, transport: str, destination: str) -> None:
    match Transport(transport):
        case Transport.SQS:
            _require(_is_queue(destination), "an SQS queue's URL")
        case Transport.SNS:
            _require(TOPIC.fullmatch(destination), "an SNS topic's ARN")
        case Transport.EMAIL:
            _check_email(requester, destination)
        case Transport.HTTPS:
            _check_address(destination)


def require_deliverable(transport: str) -> None:
    import boto3

    match Transport(transport):
        case Transport.SQS | Transport.SNS:
            # On a machine of Amazon's this asks a service there, for a second at most.
            require(
                boto3.Session().get_credentials() is not None,
                NotificationUndeliverable(
                    f"This marketplace has no AWS credentials, so it can send nothing to "
                    f"{transport}. Use the Transport HTTPS, or ask its operator."
                ),
            )
        case Transport.EMAIL:
            require(
                settings.SENDS_MAIL,
                NotificationUndeliverable(
                    "This marketplace has no mail server, so it can send no e-mail. Use the "
                    "Transport HTTPS, or ask its operator."
                ),
            )


def _is_queue(destination: str) -> bool:
    endpoint_url = getattr(settings, "AWS_ENDPOINT_URL_SQS", None) or os.environ.get(
        "AWS_ENDPOINT_URL_SQS", ""
    )
    is_operators = bool(endpoint_url) and destination.startswith(f"{endpoint_url.rstrip('/')}/")
    return is_operators or bool(AMAZON_QUEUE.fullmatch(destination))


def _check_email(requester: Requester, destination: str) -> None:
    # Only addresses of the requester's users: mail to others would be spam.
    _require("@" in destination, "an e-mail address")
    if settings.OWN_MACHINE:
        return
    require(
        EmailAddress.objects.filter(
            user__in=requester.users.all(), verified=True, email__iexact=destination
        ).exists(),
        InvalidParameter(
            "Destination must be an e-mail address that a user who acts for this requester has "
            "confirmed."
        ),
    )


def _check_address(destination: str) -> None:
    try:
        parts = urlsplit(destination)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    is_written_well = destination.isascii() and destination.isprintable() and " " not in destination
    if not host or port == 0 or parts.scheme != "https" or not is_written_well:
        raise InvalidParameter("Destination must be an address that begins with https://.")
    if parts.username is not None or parts.fragment:
        raise InvalidParameter("Destination must hold neither a user's name nor a fragment (#).")
    if not settings.OWN_MACHINE and _is_inside(host):
        raise InvalidParameter("Destination is an address inside this marketplace's own network.")


def _is_inside(host: str) -> bool:
    # By its form only; names are looked up when something is sent.
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        ip_address(name)
    except ValueError:
        # No name of the internet ends in a number: it is an address in another form, as 127.1 is.
        return OF_NUMBERS.fullmatch(name.rpartition(".")[2]) is not None
    return not is_public(name)


def _require(is_fine: object, shape: str) -> None:
    require(is_fine, InvalidParameter(f"Destination must be {shape}."))


ASSIGNMENT_EVENTS = tuple(
    f"Assignment{what}"
    for what in ("Accepted", "Abandoned", "Returned", "Submitted", "Rejected", "Approved")
)
HIT_EVENTS = tuple(
    f"HIT{what}" for what in ("Created", "Expired", "Reviewable", "Extended", "Disposed")
)
PING = "Ping"
VERSIONS = ("2006-05-05", "2014-08-15")


def announce(
    event_type: str, *, hit: Hit, at: datetime, assignment: Assignment | None = None
) -> None:
    setting = getattr(hit.hit_type, "notification_setting", None)
    if setting is None or not setting.is_active or event_type not in setting.event_types:
        return
    event = _event(event_type, at, hit.public_id, setting.hit_type.public_id)
    if assignment is not None:
        event["AssignmentId"] = assignment.public_id
    _post(setting.hit_type.requester, setting, event_type, event)


@transaction.atomic
def update_settings(
    *, hit_type: HitType, specification: NotificationSetting | None, is_active: bool | None
) -> None:
    HitType.objects.select_for_update(no_key=True).get(pk=hit_type.pk)  # one after the other
    existing = NotificationSetting.objects.filter(hit_type=hit_type).first()
    if specification is not None:
        check_specification(hit_type.requester, specification)
        require(
            PING not in specification.event_types,
            InvalidParameter("Ping is an event of SendTestEventNotification only."),
        )
        specification.pk = existing.pk if existing else None
        specification.hit_type = hit_type
        existing = specification
    if existing is None:
        raise InvalidParameter(
            "The HIT type has no notification settings: give a Notification, or both."
        )
    if is_active is not None:
        existing.is_active = is_active
    existing.save()


def send_test_event(
    *, requester: Requester, specification: NotificationSetting, event_type: str
) -> None:
    """Put a test event into the outbox, whatever is subscribed to. Refused if it is known to be
    undeliverable."""
    check_specification(requester, specification)
    require_deliverable(specification.transport)
    event = _event(event_type, clock.now(), new_entity_id(), new_entity_id())
    if event_type in ASSIGNMENT_EVENTS:
        event["AssignmentId"] = new_entity_id()
    _post(requester, specification, event_type, event)


def check_specification(requester: Requester, specification: NotificationSetting) -> None:
    require(
        specification.version in VERSIONS,
        InvalidParameter(f"Version must be one of {', '.join(VERSIONS)}."),
    )
    require(specification.event_types, InvalidParameter("EventTypes must name at least one event."))
    check_destination(
        requester=requester,
        transport=specification.transport,
        destination=specification.destination,
    )


def _event(event_type: str, at: datetime, hit_id: str, hit_type_id: str) -> dict[str, str]:
    return {
        "EventType": event_type,
        "EventTimestamp": f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "HITId": hit_id,
        "HITTypeId": hit_type_id,
    }


def _post(
    requester: Requester, setting: NotificationSetting, event_type: str, event: dict[str, str]
) -> None:
    now = clock.now()
    event_doc_id = new_entity_id()
    Notification.objects.create(
        requester=requester,
        event_doc_id=event_doc_id,
        destination=setting.destination,
        transport=setting.transport,
        event_type=event_type,
        body=json.dumps(
            {
                "Events": [event],
                "EventDocId": event_doc_id,
                "SourceAccount": requester.public_id,
                "CustomerId": requester.public_id,
                "EventDocVersion": setting.version,
            }
        ),
        created_at=now,
        next_attempt_at=now,
    )
    transaction.on_commit(partial(request_job, kind="send_notifications"))

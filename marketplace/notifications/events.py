"""Writing down the events that requesters want to hear of, in the transaction in which
they happen. Sending them is marketplace.notifications.delivery's."""

import json
from datetime import UTC, datetime

from django.db import transaction

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.identifiers import new_entity_id
from marketplace.models import (
    Assignment,
    Hit,
    HitType,
    Notification,
    NotificationSetting,
    Requester,
)
from marketplace.notifications.destinations import check_destination, require_deliverable
from work.request import request_job

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
    """Put an event into the outbox, if the HIT type's requester wants to hear of it."""
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
    """Set, replace, switch on or switch off a HIT type's notifications."""
    HitType.objects.select_for_update(no_key=True).get(pk=hit_type.pk)  # one after the other
    existing = NotificationSetting.objects.filter(hit_type=hit_type).first()
    if specification is not None:
        check_specification(hit_type.requester, specification)
        if PING in specification.event_types:
            raise InvalidParameter("Ping is an event of SendTestEventNotification only.")
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
    """Put an event that never happened into the outbox, whatever events are asked for; refused
    where it is known already that it could not be sent."""
    check_specification(requester, specification)
    require_deliverable(specification.transport)
    now = clock.now()
    event = _event(event_type, now, new_entity_id(), new_entity_id())
    if event_type in ASSIGNMENT_EVENTS:
        event["AssignmentId"] = new_entity_id()
    _post(requester, specification, event_type, event)


def check_specification(requester: Requester, specification: NotificationSetting) -> None:
    """Raise InvalidParameter unless the requester may have something sent there."""
    if specification.version not in VERSIONS:
        raise InvalidParameter(f"Version must be one of {', '.join(VERSIONS)}.")
    if not specification.event_types:
        raise InvalidParameter("EventTypes must name at least one event.")
    check_destination(
        requester=requester,
        transport=specification.transport,
        destination=specification.destination,
    )


def _event(event_type: str, at: datetime, hit_id: str, hit_type_id: str) -> dict[str, str]:
    stamp = f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {
        "EventType": event_type,
        "EventTimestamp": stamp,
        "HITId": hit_id,
        "HITTypeId": hit_type_id,
    }


def _post(
    requester: Requester, setting: NotificationSetting, event_type: str, event: dict[str, str]
) -> None:
    now = clock.now()
    event_doc_id = new_entity_id()
    body = {
        "Events": [event],
        "EventDocId": event_doc_id,
        "SourceAccount": requester.public_id,
        "CustomerId": requester.public_id,
        "EventDocVersion": setting.version,
    }
    Notification.objects.create(
        requester=requester,
        event_doc_id=event_doc_id,
        destination=setting.destination,
        transport=setting.transport,
        event_type=event_type,
        body=json.dumps(body),
        created_at=now,
        next_attempt_at=now,
    )
    transaction.on_commit(_send_soon)


def _send_soon() -> None:
    request_job(kind="send_notifications")

from typing import Any

from marketplace.api.registry import Parameters, operation
from marketplace.hits.creation import find_hit_type
from marketplace.models import NotificationSetting, Requester
from marketplace.notifications import events


@operation("UpdateNotificationSettings")
def update_notification_settings(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Set which events of a HIT type to send, and where."""
    notification = parameters["Notification"]
    events.update_settings(
        hit_type=find_hit_type(requester, parameters["HITTypeId"]),
        specification=_specification(notification) if notification else None,
        is_active=parameters["Active"],
    )
    return {}


@operation("SendTestEventNotification")
def send_test_event_notification(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Send an event that never happened."""
    events.send_test_event(
        requester=requester,
        specification=_specification(parameters["Notification"]),
        event_type=parameters["TestEventType"],
    )
    return {}


def _specification(notification: dict[str, Any]) -> NotificationSetting:
    return NotificationSetting(
        destination=notification["Destination"],
        transport=notification["Transport"],
        version=notification["Version"],
        event_types=list(dict.fromkeys(notification["EventTypes"])),
    )

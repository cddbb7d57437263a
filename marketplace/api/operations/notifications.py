from typing import Any

from marketplace import notifying
from marketplace.api.registry import Parameters, operation
from marketplace.models import NotificationSetting, Requester
from marketplace.publishing import find_hit_type


@operation("UpdateNotificationSettings")
def update_notification_settings(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Say which events of a HIT type to tell, and where."""
    given = parameters["Notification"]
    notifying.update_settings(
        hit_type=find_hit_type(requester, parameters["HITTypeId"]),
        specification=_specification(given) if given else None,
        is_active=parameters["Active"],
    )
    return {}


@operation("SendTestEventNotification")
def send_test_event_notification(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Tell an event that never happened."""
    notifying.send_test_event(
        requester=requester,
        specification=_specification(parameters["Notification"]),
        event_type=parameters["TestEventType"],
    )
    return {}


def _specification(given: dict[str, Any]) -> NotificationSetting:
    return NotificationSetting(
        destination=given["Destination"],
        transport=given["Transport"],
        version=given["Version"],
        event_types=list(dict.fromkeys(given["EventTypes"])),
    )

from typing import Any

from marketplace import clock
from marketplace.api.inputs import Parameters, operation
from marketplace.api.outputs import block_output, dollars, page_of
from marketplace.hits import lifecycle
from marketplace.hits.creation import find_hit_type
from marketplace.models import Hit, NotificationSetting, Requester, WorkerBlock
from marketplace.money import ledger
from marketplace.notifications import events
from marketplace.people import messages
from marketplace.recruiting import intents


@operation("CreateWorkerBlock")
def create_worker_block(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    messages.block_worker(
        requester=requester, worker_id=parameters["WorkerId"], reason=parameters["Reason"]
    )
    return {}


@operation("DeleteWorkerBlock")
def delete_worker_block(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    messages.unblock_worker(requester=requester, worker_id=parameters["WorkerId"])
    return {}


@operation("ListWorkerBlocks")
def list_worker_blocks(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    return page_of(
        WorkerBlock.objects.filter(requester=requester).select_related("worker"),
        f"ListWorkerBlocks:{requester.pk}",
        parameters,
        member="WorkerBlocks",
        describe=block_output,
    )


@operation("NotifyWorkers")
def notify_workers(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    message = {"subject": parameters["Subject"], "text": parameters["MessageText"]}
    others = intents.request_messages(
        requester=requester, worker_ids=parameters["WorkerIds"], **message
    )
    undelivered = messages.notify_workers(requester=requester, worker_ids=others, **message)
    failures = [
        {
            "NotifyWorkersFailureCode": "HardFailure",
            "NotifyWorkersFailureMessage": reason,
            "WorkerId": worker_id,
        }
        for worker_id, reason in undelivered.items()
    ]
    return {"NotifyWorkersFailureStatuses": failures}


@operation("UpdateNotificationSettings")
def update_notification_settings(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    notification = parameters["Notification"]
    events.update_settings(
        hit_type=find_hit_type(requester, parameters["HITTypeId"]),
        specification=_specification(notification) if notification else None,
        is_active=parameters["Active"],
    )
    return {}


@operation("SendTestEventNotification")
def send_test_event_notification(requester: Requester, parameters: Parameters) -> dict[str, Any]:
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


@operation("GetAccountBalance")
def get_account_balance(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    lifecycle.settle_due(Hit.objects.of(requester), now=clock.now())
    return {
        "AvailableBalance": dollars(ledger.balance_of(ledger.available_account(requester))),
        "OnHoldBalance": dollars(ledger.balance_of(ledger.held_account(requester))),
    }

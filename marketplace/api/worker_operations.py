from typing import Any

from django.db import transaction
from django.db.models import Q

from marketplace import clock
from marketplace.api.inputs import Parameters, operation
from marketplace.api.outputs import (
    block_output,
    dollars,
    next_token,
    page_of,
    position_of,
    qualification_output,
    qualification_type_output,
    request_output,
    system_qualification_output,
)
from marketplace.hits import lifecycle
from marketplace.hits.creation import find_hit_type
from marketplace.models import (
    Hit,
    NotificationSetting,
    Qualification,
    QualificationRequest,
    QualificationType,
    Requester,
    WorkerBlock,
)
from marketplace.money import ledger
from marketplace.notifications import events
from marketplace.people import messages
from marketplace.people.enrolment import find_worker
from marketplace.qualifications import definitions, requests
from marketplace.qualifications.definitions import find_own_type
from marketplace.qualifications.system import ALL, SystemQualification, find_system
from marketplace.recruiting import intents
from marketplace.recruiting.intents import message_worker


@operation("CreateWorkerBlock")
def create_worker_block(requester: Requester, parameters: Parameters) -> None:
    messages.block_worker(
        requester=requester, worker_id=parameters["WorkerId"], reason=parameters["Reason"]
    )


@operation("DeleteWorkerBlock")
def delete_worker_block(requester: Requester, parameters: Parameters) -> None:
    messages.unblock_worker(requester=requester, worker_id=parameters["WorkerId"])


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
    return {
        "NotifyWorkersFailureStatuses": [
            {
                "NotifyWorkersFailureCode": "HardFailure",
                "NotifyWorkersFailureMessage": reason,
                "WorkerId": worker_id,
            }
            for worker_id, reason in messages.notify_workers(
                requester=requester, worker_ids=others, **message
            ).items()
        ]
    }


@operation("UpdateNotificationSettings")
def update_notification_settings(requester: Requester, parameters: Parameters) -> None:
    notification = parameters["Notification"]
    events.update_settings(
        hit_type=find_hit_type(requester, parameters["HITTypeId"]),
        specification=_specification(notification) if notification else None,
        is_active=parameters["Active"],
    )


@operation("SendTestEventNotification")
def send_test_event_notification(requester: Requester, parameters: Parameters) -> None:
    events.send_test_event(
        requester=requester,
        specification=_specification(parameters["Notification"]),
        event_type=parameters["TestEventType"],
    )


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


@operation("AssociateQualificationWithWorker")
@transaction.atomic
def associate_qualification(requester: Requester, parameters: Parameters) -> None:
    qualification_type = find_own_type(requester, parameters["QualificationTypeId"])
    worker, value = find_worker(parameters["WorkerId"]), parameters["IntegerValue"]
    requests.grant(
        qualification_type=qualification_type, worker=worker, value=value, at=clock.now()
    )
    if parameters["SendNotification"]:
        message_worker(requester, worker, *requests.value_message(qualification_type, value))


@operation("DisassociateQualificationFromWorker")
@transaction.atomic
def disassociate_qualification(requester: Requester, parameters: Parameters) -> None:
    qualification_type = find_own_type(requester, parameters["QualificationTypeId"])
    worker, reason = find_worker(parameters["WorkerId"]), parameters["Reason"]
    requests.disassociate(qualification_type=qualification_type, worker=worker, reason=reason)
    if reason:
        message_worker(requester, worker, *requests.revocation_message(qualification_type, reason))


@operation("GetQualificationScore")
def get_qualification_score(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    qualification_type = find_own_type(requester, parameters["QualificationTypeId"])
    row = requests.find_qualification(qualification_type, find_worker(parameters["WorkerId"]))
    return {"Qualification": qualification_output(row, qualification_type.public_id)}


@operation("ListWorkersWithQualificationType")
def list_workers_with_qualification_type(
    requester: Requester, parameters: Parameters
) -> dict[str, Any]:
    qualification_type = find_own_type(requester, parameters["QualificationTypeId"])
    status = parameters["Status"]
    rows = Qualification.objects.filter(qualification_type=qualification_type)
    if status is not None:
        rows = rows.filter(status=status)
    return page_of(
        rows.select_related("worker"),
        f"ListWorkersWithQualificationType:{qualification_type.pk}:{status}",
        parameters,
        member="Qualifications",
        describe=lambda row: qualification_output(row, qualification_type.public_id),
    )


@operation("ListQualificationRequests")
def list_qualification_requests(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    type_id = parameters["QualificationTypeId"]
    rows = QualificationRequest.objects.filter(
        qualification_type__requester=requester, status=QualificationRequest.Status.SUBMITTED
    )
    if type_id is not None:
        rows = rows.filter(qualification_type=find_own_type(requester, type_id))
    return page_of(
        rows.select_related("qualification_type", "worker"),
        f"ListQualificationRequests:{requester.pk}:{type_id}",
        parameters,
        member="QualificationRequests",
        describe=request_output,
    )


@operation("AcceptQualificationRequest")
def accept_qualification_request(requester: Requester, parameters: Parameters) -> None:
    requests.accept_request(
        requester=requester,
        public_id=parameters["QualificationRequestId"],
        value=parameters["IntegerValue"],
    )


@operation("RejectQualificationRequest")
def reject_qualification_request(requester: Requester, parameters: Parameters) -> None:
    requests.reject_request(
        requester=requester,
        public_id=parameters["QualificationRequestId"],
        reason=parameters["Reason"],
    )


# Of all that is searched: a description's length.
LONGEST_TEXT = 2000


@operation("CreateQualificationType")
def create_qualification_type(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    row = definitions.create_qualification_type(
        requester=requester,
        name=parameters["Name"],
        keywords=parameters["Keywords"],
        values=_values(parameters),
    )
    return {"QualificationType": qualification_type_output(row, requester)}


@operation("UpdateQualificationType")
def update_qualification_type(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    row = definitions.update_qualification_type(
        requester=requester,
        public_id=parameters["QualificationTypeId"],
        values=_values(parameters),
    )
    return {"QualificationType": qualification_type_output(row, requester)}


@operation("GetQualificationType")
def get_qualification_type(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    public_id = parameters["QualificationTypeId"]
    if system := find_system(public_id):
        return {"QualificationType": system_qualification_output(system)}
    return {
        "QualificationType": qualification_type_output(definitions.find_type(public_id), requester)
    }


@operation("DeleteQualificationType")
def delete_qualification_type(requester: Requester, parameters: Parameters) -> None:
    definitions.delete_qualification_type(
        requester=requester, public_id=parameters["QualificationTypeId"]
    )


@operation("ListQualificationTypes")
def list_qualification_types(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    # The marketplace's own types are first, unless only requestable or own ones are requested.
    query = parameters["Query"] or ""
    requestable, owned = parameters["MustBeRequestable"], parameters["MustBeOwnedByCaller"]
    scope = f"ListQualificationTypes:{requester.pk}:{query}:{requestable}:{owned}"
    number, key = position_of(parameters["NextToken"], scope) or (0, 0)
    systems = [] if requestable or owned else _mentioning(query)[number:]
    room = parameters["MaxResults"]
    rows = _search(requester, query, requestable=requestable, owned=owned).filter(pk__gt=key)
    systems = systems[:room]
    page = list(rows.order_by("pk")[: room - len(systems)])
    outputs = [system_qualification_output(each) for each in systems]
    outputs += [qualification_type_output(row, requester) for row in page]
    output: dict[str, Any] = {"NumResults": len(outputs), "QualificationTypes": outputs}
    position = [number + len(systems), page[-1].pk if page else key]
    return output | ({"NextToken": next_token(scope, position)} if outputs else {})


def _mentioning(query: str) -> list[SystemQualification]:
    words = query.lower()
    return [each for each in ALL if words in f"{each.name} {each.description}".lower()]


def _search(requester: Requester, query: str, *, requestable: bool, owned: bool) -> Any:
    rows = QualificationType.objects.existing()
    if owned:
        rows = rows.of(requester)
    elif not requestable:
        rows = rows.filter(Q(requester=requester) | Q(status="Active"))
    if requestable:
        rows = rows.requestable()
    if len(query) > LONGEST_TEXT:  # more than a database searches for
        return rows.none()
    if query:
        rows = rows.filter(
            Q(name__icontains=query)
            | Q(description__icontains=query)
            | Q(keywords__icontains=query)
        )
    return rows


def _values(parameters: Parameters) -> definitions.TypeValues:
    return definitions.TypeValues(
        description=parameters["Description"],
        status=parameters["QualificationTypeStatus"],
        test=parameters["Test"],
        answer_key=parameters["AnswerKey"],
        test_duration_seconds=parameters["TestDurationInSeconds"],
        retry_delay_seconds=parameters["RetryDelayInSeconds"],
        auto_granted=parameters["AutoGranted"],
        auto_granted_value=parameters["AutoGrantedValue"],
    )

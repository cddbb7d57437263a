from typing import Any

from marketplace.api.outputs import qualification_output, request_output
from marketplace.api.pagination import page_of
from marketplace.api.registry import Parameters, operation
from marketplace.models import Qualification, QualificationRequest, Requester
from marketplace.people.enrolment import find_worker
from marketplace.qualifications import grants, requests
from marketplace.qualifications.definitions import find_own_type
from marketplace.recruiting.intents import message_participant


@operation("AssociateQualificationWithWorker")
def associate_qualification(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Give a worker a qualification, or another value of it."""
    qualification_type = find_own_type(requester, parameters["QualificationTypeId"])
    worker, value = find_worker(parameters["WorkerId"]), parameters["IntegerValue"]
    notify = parameters["SendNotification"]
    grants.associate(
        qualification_type=qualification_type, worker=worker, value=value, notify=notify
    )
    if notify:
        message_participant(requester, worker, *grants.value_message(qualification_type, value))
    return {}


@operation("DisassociateQualificationFromWorker")
def disassociate_qualification(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Take it back."""
    qualification_type = find_own_type(requester, parameters["QualificationTypeId"])
    worker, reason = find_worker(parameters["WorkerId"]), parameters["Reason"]
    grants.disassociate(qualification_type=qualification_type, worker=worker, reason=reason)
    if reason:
        text = grants.revocation_message(qualification_type, reason)
        message_participant(requester, worker, *text)
    return {}


@operation("GetQualificationScore")
def get_qualification_score(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """A worker's value of one of the requester's qualifications."""
    qualification_type = find_own_type(requester, parameters["QualificationTypeId"])
    worker = find_worker(parameters["WorkerId"])
    row = grants.find_qualification(qualification_type, worker)
    return {"Qualification": qualification_output(row, qualification_type.public_id)}


@operation("ListWorkersWithQualificationType")
def list_workers_with_qualification_type(
    requester: Requester, parameters: Parameters
) -> dict[str, Any]:
    """Who has, or had, one of the requester's qualifications."""
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
    """The requests that wait for the requester's decision, of one type or all."""
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
def accept_qualification_request(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Grant what a worker asked for."""
    requests.accept_request(
        requester=requester,
        public_id=parameters["QualificationRequestId"],
        value=parameters["IntegerValue"],
    )
    return {}


@operation("RejectQualificationRequest")
def reject_qualification_request(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Don't."""
    requests.reject_request(
        requester=requester,
        public_id=parameters["QualificationRequestId"],
        reason=parameters["Reason"],
    )
    return {}

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from django.core.signing import BadSignature, Signer
from django.db.models import Model, QuerySet

from marketplace.api.inputs import Parameters
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
    Assignment,
    BonusPayment,
    Hit,
    HitQuerySet,
    Qualification,
    QualificationRequest,
    QualificationType,
    Requester,
    ReviewAction,
    ReviewResult,
    WorkerBlock,
)
from marketplace.qualifications.definitions import (
    RequirementValues,
    requirements_of,
    stored_requirements,
)
from marketplace.qualifications.system import SINCE, SystemQualification


def with_output_fields(hits: HitQuerySet) -> HitQuerySet:
    return (
        hits.with_counts()
        .select_related("hit_type")
        .prefetch_related("hit_type__requirements__qualification_type")
    )


def hit_output(hit: Hit, *, is_new: bool = False) -> dict[str, Any]:
    """For a HIT from `with_output_fields()`, or a new one."""
    hit_type = hit.hit_type
    requirements = stored_requirements(hit_type.public_id) if is_new else requirements_of(hit_type)
    output = {
        "HITId": hit.public_id,
        "HITTypeId": hit_type.public_id,
        "HITGroupId": hit_type.group_id,
        "CreationTime": epoch(hit.created_at),
        "Title": hit_type.title,
        "Description": hit_type.description,
        "Question": hit.question,
        "Keywords": hit_type.keywords,
        "HITStatus": hit.status,
        "MaxAssignments": hit.max_assignments,
        "Reward": dollars(hit_type.reward_usd),
        "AutoApprovalDelayInSeconds": hit_type.auto_approval_delay_seconds,
        "Expiration": epoch(hit.expiration),
        "AssignmentDurationInSeconds": hit_type.assignment_duration_seconds,
        "RequesterAnnotation": hit.requester_annotation,
        "QualificationRequirements": [
            requirement_output(requirement) for requirement in requirements
        ],
        "HITReviewStatus": "NotReviewed",
        "NumberOfAssignmentsPending": hit.accepted_count,
        "NumberOfAssignmentsAvailable": hit.free_count,
        "NumberOfAssignmentsCompleted": hit.decided_count,
    }
    return {name: value for name, value in output.items() if value != ""}


def assignment_output(assignment: Assignment, *, hit_id: str) -> dict[str, Any]:
    times = {
        "AutoApprovalTime": assignment.auto_approval_at,
        "AcceptTime": assignment.accepted_at,
        "SubmitTime": assignment.submitted_at,
        "ApprovalTime": assignment.approved_at,
        "RejectionTime": assignment.rejected_at,
        "Deadline": assignment.deadline,
    }
    output: dict[str, Any] = {
        "AssignmentId": assignment.public_id,
        "WorkerId": assignment.worker.worker_id,
        "HITId": hit_id,
        "AssignmentStatus": assignment.status,
        "Answer": assignment.answer,
    }
    if assignment.requester_feedback:
        output["RequesterFeedback"] = assignment.requester_feedback
    return output | {name: epoch(timestamp) for name, timestamp in times.items() if timestamp}


def requirement_output(requirement: RequirementValues) -> dict[str, Any]:
    output: dict[str, Any] = {
        "QualificationTypeId": requirement.type_id,
        "Comparator": requirement.comparator,
        "ActionsGuarded": requirement.actions_guarded,
        "RequiredToPreview": requirement.actions_guarded != "Accept",
    }
    if requirement.integer_values:
        output["IntegerValues"] = list(requirement.integer_values)
    if requirement.locale_values:
        output["LocaleValues"] = [locale_output(*locale) for locale in requirement.locale_values]
    return output


def locale_output(country: str, subdivision: str) -> dict[str, str]:
    return {"Country": country} | ({"Subdivision": subdivision} if subdivision else {})


def bonus_output(bonus: BonusPayment) -> dict[str, Any]:
    return {
        "WorkerId": bonus.assignment.worker.worker_id,
        "BonusAmount": dollars(bonus.amount_usd),
        "AssignmentId": bonus.assignment.public_id,
        "Reason": bonus.reason,
        "GrantTime": epoch(bonus.created_at),
    }


def qualification_type_output(row: QualificationType, requester: Requester) -> dict[str, Any]:
    # Only the owner reads a test and its answers.
    output: dict[str, Any] = {
        "QualificationTypeId": row.public_id,
        "CreationTime": epoch(row.created_at),
        "Name": row.name,
        "Description": row.description,
        "Keywords": row.keywords,
        "QualificationTypeStatus": row.status,
        "TestDurationInSeconds": row.test_duration_seconds,
        "RetryDelayInSeconds": row.retry_delay_seconds,
        "IsRequestable": True,
        "AutoGranted": row.auto_granted,
    }
    if row.requester_id == requester.pk:
        output |= {"Test": row.test, "AnswerKey": row.answer_key}
    if row.auto_granted:
        output["AutoGrantedValue"] = row.auto_granted_value
    return {name: value for name, value in output.items() if value not in ("", None)}


def system_qualification_output(system: SystemQualification) -> dict[str, Any]:
    return {
        "QualificationTypeId": system.public_id,
        "CreationTime": epoch(SINCE),
        "Name": system.name,
        "Description": system.description,
        "QualificationTypeStatus": "Active",
        "IsRequestable": False,
        "AutoGranted": False,
    }


def qualification_output(row: Qualification, type_id: str) -> dict[str, Any]:
    output: dict[str, Any] = {
        "QualificationTypeId": type_id,
        "WorkerId": row.worker.worker_id,
        "GrantTime": epoch(row.granted_at),
        "Status": row.status,
    }
    if row.integer_value is not None:
        output["IntegerValue"] = row.integer_value
    if row.country:
        output["LocaleValue"] = locale_output(row.country, row.subdivision)
    return output


def request_output(row: QualificationRequest) -> dict[str, Any]:
    output: dict[str, Any] = {
        "QualificationRequestId": row.public_id,
        "QualificationTypeId": row.qualification_type.public_id,
        "WorkerId": row.worker.worker_id,
        "Test": row.test,
        "Answer": row.answer,
    }
    if row.submitted_at is not None:
        output["SubmitTime"] = epoch(row.submitted_at)
    return {name: value for name, value in output.items() if value != ""}


def block_output(row: WorkerBlock) -> dict[str, Any]:
    return {"WorkerId": row.worker.worker_id, "Reason": row.reason}


def review_result_output(row: ReviewResult) -> dict[str, Any]:
    output = {
        "ActionId": row.action_id,
        "SubjectId": row.subject_id,
        "SubjectType": row.subject_type,
        "QuestionId": row.question_id,
        "Key": row.key,
        "Value": row.value,
    }
    return {name: value for name, value in output.items() if name != "QuestionId" or value}


def review_action_output(row: ReviewAction) -> dict[str, Any]:
    output: dict[str, Any] = {
        "ActionId": row.action_id,
        "ActionName": row.name,
        "TargetId": row.target_id,
        "TargetType": row.target_type,
        "Status": row.status,
        "CompleteTime": epoch(row.completed_at),
        "Result": row.result,
    }
    return output | ({"ErrorCode": row.error_code} if row.error_code else {})


def epoch(timestamp: datetime) -> float:
    return round(timestamp.timestamp(), 3)


def dollars(amount_usd: Decimal) -> str:
    return f"{amount_usd:.2f}"


# Pages of a list. Every page that isn't empty has a NextToken and the one after the last is empty,
# as at Amazon: clients loop until then.

Row = TypeVar("Row", bound=Model)

SALT = "marketplace.paging"


def next_token(scope: str, position: Any) -> str:
    return _signer(scope).sign_object(position, compress=True)


def position_of(token: str | None, scope: str) -> Any:
    if token is None:
        return None
    try:
        return _signer(scope).unsign_object(token)
    except (BadSignature, ValueError) as error:
        raise InvalidParameter("NextToken is not a token of this list.") from error


def page_of(
    rows: QuerySet[Row],
    scope: str,
    parameters: Parameters,
    *,
    member: str,
    describe: Callable[[Row], dict[str, Any]],
) -> dict[str, Any]:
    position = position_of(parameters["NextToken"], scope)
    if position is not None:
        rows = rows.filter(pk__gt=position)
    page = list(rows.order_by("pk")[: parameters["MaxResults"]])
    return {"NumResults": len(page), member: [describe(row) for row in page]} | (
        {"NextToken": next_token(scope, page[-1].pk)} if page else {}
    )


def _signer(scope: str) -> Signer:
    # A token has 255 characters at most, so the list's name is only in the salt.
    return Signer(salt=f"{SALT}.{scope}")

"""Applying a HIT's review policies: ScoreMyKnownAnswers to each assignment when it is
submitted, SimplePlurality to the HIT each time it becomes reviewable.

What a policy computes and does is written down for ListReviewPolicyResultsForHIT. An action
that can't be done fails by itself, with its reason, and undoes nothing else. The caller holds
the lock on the HIT, and refreshes the HIT afterwards.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import prefetch_related_objects

from marketplace.documents.answers import read_given_answers
from marketplace.exceptions import (
    InsufficientFunds,
    InvalidAssignmentState,
    InvalidMaximumAssignmentsIncrease,
    InvalidParameter,
    MarketplaceError,
    require,
)
from marketplace.hits.policy_scores import (
    Plurality,
    PolicyParameters,
    find_plurality,
    normalized,
    read_parameters,
    score_known_answers,
)
from marketplace.hits.settlement import add_assignments, approve_and_pay, lengthen, reject
from marketplace.identifiers import new_entity_id
from marketplace.models import (
    Assignment,
    Hit,
    LedgerAccount,
    ReviewAction,
    ReviewPolicy,
    ReviewResult,
    SubjectType,
)

EXTEND_TO = 5
Level = ReviewPolicy.Level
Status = Assignment.Status
ERROR_CODES: dict[type[MarketplaceError], str] = {
    InsufficientFunds: "InsufficientFunds",
    InvalidAssignmentState: "InvalidAssignmentState",
    InvalidMaximumAssignmentsIncrease: "InvalidMaximumAssignmentsIncrease",
    InvalidParameter: "InvalidParameterValue",
}


def review_assignment(assignment: Assignment, hit: Hit, *, now: datetime) -> None:
    policy = _policy_of(hit, Level.ASSIGNMENT)
    if policy is None:
        return
    parameters = read_parameters(policy.name, policy.parameters)
    is_correct_by_question = score_known_answers(
        normalized(read_given_answers(assignment.answer)), parameters.answer_key
    )
    report = _Report(policy, now)
    for question, is_correct in is_correct_by_question.items():
        report.record_result(assignment, "KnownAnswerCorrect", int(is_correct), question=question)
    n, n_correct = len(is_correct_by_question), sum(is_correct_by_question.values())
    percent = 100 * n_correct // n
    report.record_result(assignment, "KnownAnswerScore", percent)
    report.record_action("review", assignment, f"{n_correct}/{n} known answers correct")
    _decide(report, assignment, percent, parameters, about="KnownAnswerScore")
    threshold = parameters.values.get("ExtendIfKnownAnswerScoreIsLessThan")
    if threshold is not None and percent < threshold:
        _extend(report, hit, parameters)


def review_hit(hit: Hit, *, now: datetime) -> bool:
    """Apply the HIT's agreement policy; return whether there was anything to review."""
    policy = _policy_of(hit, Level.HIT)
    if policy is None:
        return False
    parameters = read_parameters(policy.name, policy.parameters)
    assignments = _considered(hit, parameters)
    if not assignments:
        return False
    plurality = find_plurality(
        {each.public_id: normalized(read_given_answers(each.answer)) for each in assignments},
        parameters.values["QuestionIds"],
        parameters.values["QuestionAgreementThreshold"],
    )
    report = _Report(policy, now)
    _record_agreement(report, hit, plurality, {each.public_id: each for each in assignments})
    for assignment in assignments:
        percent = plurality.workers[assignment.public_id].percent
        if percent is not None:
            _decide(report, assignment, percent, parameters, about="WorkerAgreementScore")
    threshold = parameters.values.get("ExtendIfHITAgreementScoreIsLessThan")
    if threshold is not None and plurality.percent < threshold:
        _extend(report, hit, parameters)
    return True


class _Report:
    def __init__(self, policy: ReviewPolicy, now: datetime) -> None:
        self.policy, self.now = policy, now
        self.action_id = new_entity_id()

    def record_result(
        self, subject: Assignment | Hit, key: str, value: object, *, question: str = ""
    ) -> None:
        ReviewResult.objects.create(
            policy=self.policy,
            action_id=self.action_id,
            subject_type=_type_of(subject),
            subject_id=subject.public_id,
            question_id=question,
            key=key,
            value=str(value),
            created_at=self.now,
        )

    def record_action(
        self,
        name: str,
        target: Assignment | Hit,
        result: str,
        *,
        error: MarketplaceError | None = None,
    ) -> None:
        statuses = ReviewAction.Status
        ReviewAction.objects.create(
            policy=self.policy,
            name=name,
            target_type=_type_of(target),
            target_id=target.public_id,
            status=statuses.FAILED if error else statuses.SUCCEEDED,
            result=result,
            error_code=f"AWS.MechanicalTurk.{ERROR_CODES[type(error)]}" if error else "",
            completed_at=self.now,
        )

    def attempt(self, name: str, target: Assignment | Hit, action: Callable[[], str]) -> None:
        # The savepoint undoes only this action if it fails.
        try:
            with transaction.atomic():
                result = action()
        except tuple(ERROR_CODES) as error:
            self.record_action(name, target, str(error), error=error)
            target.refresh_from_db()
        else:
            self.record_action(name, target, result)


def _decide(
    report: _Report, assignment: Assignment, percent: int, parameters: PolicyParameters, about: str
) -> None:
    enough = parameters.values.get(f"ApproveIf{about}IsAtLeast")
    too_little = parameters.values.get(f"RejectIf{about}IsLessThan")
    if enough is not None and percent >= enough:
        reason = parameters.values.get("ApproveReason", "")
        report.attempt("approve", assignment, lambda: _approve(assignment, report.now, reason))
    elif too_little is not None and percent < too_little:
        reason = parameters.values.get("RejectReason", "")
        report.attempt("reject", assignment, lambda: _reject(assignment, report.now, reason))


def _approve(assignment: Assignment, now: datetime, reason: str) -> str:
    if assignment.status == Status.APPROVED:
        return "Already approved"
    _require_submitted(assignment)
    approve_and_pay(assignment=assignment, source=LedgerAccount.Kind.HELD, at=now, feedback=reason)
    return "Approved"


def _reject(assignment: Assignment, now: datetime, reason: str) -> str:
    if assignment.status == Status.REJECTED:
        return "Already rejected"
    _require_submitted(assignment)
    reject(assignment=assignment, at=now, feedback=reason)
    return "Rejected"


def _require_submitted(assignment: Assignment) -> None:
    require(
        assignment.status == Status.SUBMITTED,
        InvalidAssignmentState("Assignment was in an invalid state for this operation."),
    )


def _extend(report: _Report, hit: Hit, parameters: PolicyParameters) -> None:
    def extend() -> str:
        if hit.max_assignments >= (parameters.values.get("ExtendMaximumAssignments") or EXTEND_TO):
            return f"Already has {hit.max_assignments} assignments"
        lengthen(
            hit, seconds=parameters.values.get("ExtendMinimumTimeInSeconds") or 0, now=report.now
        )
        add_assignments(hit, additional=1, now=report.now)
        return f"Extended to {hit.max_assignments} assignments"

    report.attempt("extend", hit, extend)


def _record_agreement(
    report: _Report, hit: Hit, plurality: Plurality, assignments: Mapping[str, Assignment]
) -> None:
    for question, agreement in plurality.questions.items():
        report.record_result(
            hit, "AgreedAnswerFound", str(agreement.agreed is not None).lower(), question=question
        )
        if agreement.agreed is not None:
            report.record_result(
                hit, "AgreedAnswer", "|".join(sorted(agreement.agreed)), question=question
            )
            report.record_result(hit, "AnswerAgreementScore", agreement.percent, question=question)
    for public_id, worker in plurality.workers.items():
        assignment = assignments[public_id]
        if worker.percent is not None:
            report.record_result(assignment, "WorkerAgreementScore", worker.percent)
        report.record_result(assignment, "PluralityAnswersCorrect", worker.correct)
        report.record_result(assignment, "PluralityAnswersIncorrect", worker.incorrect)
    report.record_result(hit, "HitAgreementScore", plurality.percent)
    count = len(assignments)
    report.record_action("review", hit, f"Compared {count} assignment{'' if count == 1 else 's'}")


def _considered(hit: Hit, parameters: PolicyParameters) -> list[Assignment]:
    handed_in = Assignment.objects.on(hit).handed_in().order_by("submitted_at", "pk")
    if parameters.values.get("DisregardAssignmentIfRejected"):
        handed_in = handed_in.exclude(status=Status.REJECTED)
    least = parameters.values.get("DisregardAssignmentIfKnownAnswerScoreIsLessThan")
    assignments = list(handed_in.select_related("worker", "hit__hit_type", "hit__requester"))
    if least is None:
        return assignments
    results = ReviewResult.objects.filter(policy__hit=hit, key="KnownAnswerScore")
    scores = {subject: int(value) for subject, value in results.values_list("subject_id", "value")}
    return [each for each in assignments if scores.get(each.public_id, least) >= least]


def _policy_of(hit: Hit, level: Level) -> ReviewPolicy | None:
    prefetch_related_objects([hit], "review_policies")  # once for both levels
    return next((each for each in hit.review_policies.all() if each.level == level), None)


def _type_of(subject: Assignment | Hit) -> SubjectType:
    return SubjectType.HIT if isinstance(subject, Hit) else SubjectType.ASSIGNMENT

"""Appeals: a worker says once why a rejection is wrong, and the requester answers."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import AssignmentDoesNotExist, InvalidParameter, RequestRefused
from marketplace.hits.review import OVERRIDE_WITHIN
from marketplace.hits.worker_messages import report_appeal_answer
from marketplace.models import Appeal, Assignment, Requester, WorkerAccount

LONGEST_TEXT = 4096


def is_appealable(assignment: Assignment, *, now: datetime) -> bool:
    """Whether a rejection can still be overridden, and nobody has appealed."""
    if assignment.status != Assignment.Status.REJECTED or hasattr(assignment, "appeal"):
        return False
    return assignment.submitted_at is not None and assignment.submitted_at > now - OVERRIDE_WITHIN


def appeal(*, worker: WorkerAccount, assignment: Assignment, reason: str) -> Appeal:
    """Say why a rejection is wrong, once."""
    now = clock.now()
    if not is_appealable(assignment, now=now):
        raise RequestRefused(
            _("A rejection can be appealed once, within 30 days of submitting the work.")
        )
    if not 0 < len(reason.strip()) <= LONGEST_TEXT:
        raise RequestRefused(_("Say in at most %(n)s characters why.") % {"n": LONGEST_TEXT})
    try:
        with transaction.atomic():
            return Appeal.objects.create(
                assignment=assignment, reason=reason.strip(), created_at=now
            )
    except IntegrityError as error:
        raise RequestRefused(_("You have appealed already."), code="appealed_already") from error


@transaction.atomic
def answer_appeal(*, requester: Requester, assignment_id: str, answer: str) -> Appeal:
    """Answer an appeal, and write to its worker; the same answer again changes nothing."""
    rows = Appeal.objects.filter(assignment__hit__requester=requester)
    stored = rows.filter(assignment__public_id=assignment_id).first()
    if stored is None:
        raise AssignmentDoesNotExist(assignment_id)
    if not 0 < len(answer.strip()) <= LONGEST_TEXT:
        raise InvalidParameter(f"'answer' must be a text of 1 to {LONGEST_TEXT} characters.")
    unanswered = Appeal.objects.filter(pk=stored.pk, answer="")
    is_new = bool(unanswered.update(answer=answer.strip(), answered_at=clock.now()))
    stored.refresh_from_db()
    if stored.answer != answer.strip():
        raise InvalidParameter("The appeal has another answer already.")
    if is_new:
        report_appeal_answer(stored)
    return stored

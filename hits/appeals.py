"""Appeals of workers at Assay marketplaces: fetched, and answered once."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from hits import requester_api
from hits.contacts import validate_text
from hits.exceptions import DecisionRefused, MarketplaceRefused
from hits.foreign_records import AppealRecord, appeal_records
from hits.models import Appeal, Assignment, Connection, DeliveryState

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Study


def connections_with_rejections() -> list[Connection]:
    """Those with a rejection so new that it may be appealed and overridden."""
    rejections = Assignment.objects.overridable().filter(appeal=None)
    keys = rejections.order_by().values("hit__batch__connection")
    return list(Connection.objects.filter(pk__in=keys))


def fetch_appeals(*, connection: Connection) -> int:
    """Store the appeals that are new to us; return how many. Other marketplaces have none."""
    answer = requester_api.post(connection, "/appeals", {})
    if answer is None:
        return 0
    return sum(_is_new(connection, record) for record in appeal_records(answer))


def _is_new(connection: Connection, record: AppealRecord) -> bool:
    of_connection = Assignment.objects.filter(hit__batch__connection=connection)
    assignment = of_connection.filter(assignment_id=record.assignment_id).first()
    if assignment is None:
        return False
    fields = {
        "reason": record.reason,
        "appealed_at": record.appealed_at,
        "answer": record.answer,
        "state": DeliveryState.CONFIRMED if record.answer else DeliveryState.INTENDED,
    }
    return Appeal.objects.get_or_create(assignment=assignment, defaults=fields)[1]


@transaction.atomic
def answer_appeal(*, appeal: Appeal, answer: str, actor: User, study: Study) -> None:
    """Write down the answer to an appeal, to be sent; the first one stands."""
    validate_text(answer, name=_("An answer"))
    rows = Appeal.objects.filter(pk=appeal.pk, answer="")
    if not rows.update(answer=answer.strip(), answered_by=actor, answered_at=timezone.now()):
        raise DecisionRefused(_("The appeal is answered already."), code="answered_already")
    details = {"assignment": appeal.assignment.assignment_id, "answer": answer.strip()}
    record(
        team=study.team, actor=actor, action="appeal.answer", subject=study.slug, details=details
    )


def send_answers(*, study: Study) -> int:
    """Send the answers that were written; the marketplace takes the same one again.

    What it refused of an answer stays with the answer; where it refused the requester, as for a
    key that holds no longer, the answer waits.
    """
    n_sent = 0
    unsent = Appeal.objects.of(study).unsent()
    for appeal in unsent.select_related("assignment__hit__batch__connection"):
        problem = _delivery_problem(appeal)
        state = DeliveryState.REFUSED if problem else DeliveryState.CONFIRMED
        rows = Appeal.objects.of(study).unsent().filter(pk=appeal.pk)
        if rows.update(state=state, problem=problem) and not problem:
            n_sent += 1
    return n_sent


def _delivery_problem(appeal: Appeal) -> str:
    """Why the marketplace did not take an answer; empty where it did."""
    connection = appeal.assignment.hit.batch.connection
    content = {"assignment_id": appeal.assignment.assignment_id, "answer": appeal.answer}
    try:
        answer = requester_api.post(connection, "/appeals/answer", content)
    except MarketplaceRefused as refusal:
        if refusal.code != str(HTTPStatus.BAD_REQUEST.value):
            raise
        return refusal.message
    return "" if answer is not None else _("The marketplace knows no answers to appeals.")

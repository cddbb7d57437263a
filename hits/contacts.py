"""What goes to workers, or concerns them, beside money: messages, blocks, notes, appeals."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from accounts.audit import record
from accounts.models import Team, User
from annotation.models import Study
from hits import requester_api
from hits.decisions import CONTROL_CHARACTERS
from hits.endpoints import translated_errors
from hits.exceptions import DecisionRefused, MarketplaceRefused
from hits.foreign_records import appeal_records
from hits.limits import earning
from hits.models import (
    Appeal,
    Assignment,
    Connection,
    DeliveryState,
    Message,
    Worker,
    WorkerBlock,
    WorkerNote,
)
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient


LONGEST_SUBJECT, LONGEST_TEXT = 200, 4096
# Where a marketplace says that a message was not passed on, and nothing else.
NO_REASON = gettext_lazy("The marketplace did not pass it on.")


def validate_text(text: str, *, name: str, most: int = LONGEST_TEXT) -> None:
    """DecisionRefused, where the text is empty, too long or nothing a marketplace takes."""
    if not text.strip():
        raise DecisionRefused(_("{name} is needed.").format(name=name), code="empty")
    if len(text) > most or CONTROL_CHARACTERS.search(text):
        raise DecisionRefused(
            _("{name} has at most {n} characters, and no control characters.").format(
                name=name, n=most
            ),
            code="characters",
        )


def request_message(
    *, assignment: Assignment, subject: str, text: str, sent_by: User | None
) -> Message:
    validate_text(subject, name=_("A subject"), most=LONGEST_SUBJECT)
    validate_text(text, name=_("A message"))
    return Message.objects.create(
        connection=assignment.hit.batch.connection,
        worker=assignment.worker,
        assignment=assignment,
        subject=subject.strip(),
        text=text.strip(),
        sent_by=sent_by,
    )


def send_messages(
    *, messages: QuerySet[Message], client: MTurkClient, progress: Progress = silently
) -> int:
    """Send what was written; return how many the marketplace passed on.

    A marketplace knows no token for a message: after a lost answer it may come twice.
    """
    n_sent = 0
    unsent = messages.filter(state=DeliveryState.INTENDED)
    keys = list(unsent.order_by("pk").values_list("pk", flat=True))
    for pk in earning(progress)(keys, len(keys)):
        # Another process may have sent it since.
        message = unsent.filter(pk=pk).select_related("worker").first()
        if message is None:
            continue
        problem = _delivery_problem(client, message)
        state = DeliveryState.REFUSED if problem else DeliveryState.CONFIRMED
        rows = Message.objects.filter(pk=message.pk, state=DeliveryState.INTENDED)
        if rows.update(state=state, problem=problem) and not problem:
            n_sent += 1
    return n_sent


def _delivery_problem(client: MTurkClient, message: Message) -> str:
    """Why the marketplace did not pass a message on; empty where it did."""
    try:
        with translated_errors():
            answer = client.notify_workers(
                Subject=message.subject,
                MessageText=message.text,
                WorkerIds=[message.worker.worker_id],
            )
    except MarketplaceRefused as refusal:
        if not refusal.is_about_request:
            raise
        return refusal.message
    failures = answer.get("NotifyWorkersFailureStatuses", [])
    return " ".join(
        one.get("NotifyWorkersFailureMessage")
        or one.get("NotifyWorkersFailureCode")
        or str(NO_REASON)
        for one in failures
    )


@transaction.atomic
def request_block(
    *, connection: Connection, worker: Worker, reason: str, blocked_by: User | None
) -> WorkerBlock:
    """Write down that a worker is to take no more of a team's work."""
    validate_text(reason, name=_("A reason"))
    block, _is_new = WorkerBlock.objects.update_or_create(
        connection=connection,
        worker=worker,
        defaults={
            "reason": reason.strip(),
            "is_active": True,
            "state": DeliveryState.INTENDED,
            "problem": "",
            "blocked_by": blocked_by,
        },
    )
    return block


def request_unblock(
    *, connection: Connection, worker: Worker, reason: str = "", unblocked_by: User | None
) -> None:
    """Write down that a worker may take a team's work again."""
    rows = WorkerBlock.objects.filter(connection=connection, worker=worker)
    rows.update(
        is_active=False,
        reason=reason.strip(),
        state=DeliveryState.INTENDED,
        problem="",
        blocked_by=unblocked_by,
    )


def send_blocks(*, connection: Connection, client: MTurkClient) -> int:
    """Block and unblock as was written down; return how many workers that was."""
    unsent = WorkerBlock.objects.filter(connection=connection, state=DeliveryState.INTENDED)
    n_sent = 0
    for block in list(unsent.select_related("worker")):
        problem = _refused_block(client, block)
        state = DeliveryState.REFUSED if problem else DeliveryState.CONFIRMED
        # One that was changed meanwhile is sent anew.
        same = unsent.filter(pk=block.pk, is_active=block.is_active, reason=block.reason)
        if same.update(state=state, problem=problem) and not problem:
            n_sent += 1
    return n_sent


def _refused_block(client: MTurkClient, block: WorkerBlock) -> str:
    """Why the marketplace did not block or unblock; empty where it did. Either repeats itself."""
    worker_id = block.worker.worker_id
    try:
        with translated_errors():
            if block.is_active:
                client.create_worker_block(WorkerId=worker_id, Reason=block.reason)
            else:
                client.delete_worker_block(WorkerId=worker_id)
    except MarketplaceRefused as refusal:
        if not refusal.is_about_request:
            raise
        return refusal.message
    return ""


@transaction.atomic
def note_worker(*, team: Team, worker: Worker, text: str, author: User) -> WorkerNote:
    """Write down something about a worker, for the team alone."""
    validate_text(text, name=_("A note"))
    note = WorkerNote.objects.create(team=team, worker=worker, text=text.strip(), author=author)
    record(team=team, actor=author, action="worker.note", subject=worker.worker_id)
    return note


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
    return sum(_is_new(connection, values) for values in appeal_records(answer))


def _is_new(connection: Connection, values: dict[str, Any]) -> bool:
    of_connection = Assignment.objects.filter(hit__batch__connection=connection)
    assignment = of_connection.filter(assignment_id=values.pop("assignment_id")).first()
    if assignment is None:
        return False
    state = DeliveryState.CONFIRMED if values["answer"] else DeliveryState.INTENDED
    return Appeal.objects.get_or_create(assignment=assignment, defaults=values | {"state": state})[
        1
    ]


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
        problem = _answer_problem(appeal)
        state = DeliveryState.REFUSED if problem else DeliveryState.CONFIRMED
        rows = Appeal.objects.of(study).unsent().filter(pk=appeal.pk)
        if rows.update(state=state, problem=problem) and not problem:
            n_sent += 1
    return n_sent


def _answer_problem(appeal: Appeal) -> str:
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

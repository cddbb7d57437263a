from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from accounts.audit import record
from accounts.models import Membership, Team, User
from accounts.roles import PERMISSIONS, Permission, Role
from annotation.models import Study, counted
from hits import connections
from hits.calls import appeal_records, inquiry_records
from hits.connections import client_of
from hits.decisions import CONTROL_CHARACTERS
from hits.endpoints import MTurkClient, translated_errors
from hits.exceptions import DecisionRefused, MarketplaceRefused, require
from hits.limits import earning
from hits.models import (
    Appeal,
    Assignment,
    Batch,
    Connection,
    DeliveryState,
    Exclusion,
    Hit,
    Inquiry,
    Message,
    PracticeHit,
    Worker,
    WorkerBlock,
    WorkerClearance,
    WorkerNote,
)
from presentation.progress import Progress, silently

LONGEST_SUBJECT, LONGEST_TEXT = 200, 4096
# Where a marketplace says that a message was not passed on, and nothing else.
NO_REASON = gettext_lazy("The marketplace did not pass it on.")


def validate_text(text: str, *, name: str, most: int = LONGEST_TEXT) -> None:
    require(text.strip(), DecisionRefused(_("{name} is needed.").format(name=name), code="empty"))
    require(
        len(text) <= most and not CONTROL_CHARACTERS.search(text),
        DecisionRefused(
            _("{name} has at most {n} characters, and no control characters.").format(
                name=name, n=most
            ),
            code="characters",
        ),
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
    """Return how many were sent. A marketplace knows no token for a message: after a lost answer
    it may be sent twice."""
    n_sent = 0
    unsent = messages.filter(state=DeliveryState.INTENDED)
    keys = list(unsent.order_by("pk").values_list("pk", flat=True))
    for pk in earning(progress)(keys, len(keys)):
        # Another process may have sent it since.
        message = unsent.filter(pk=pk).select_related("worker").first()
        if message is None:
            continue
        n_sent += _is_sent(
            Message.objects.filter(pk=message.pk, state=DeliveryState.INTENDED),
            _delivery_problem(client, message),
        )
    return n_sent


def _is_sent(rows: QuerySet[Any], problem: str) -> bool:
    """Write down how a delivery ended, unless the row has changed meanwhile; True if it was sent
    by this process."""
    state = DeliveryState.REFUSED if problem else DeliveryState.CONFIRMED
    return rows.update(state=state, problem=problem) > 0 and not problem


def _delivery_problem(client: MTurkClient, message: Message) -> str:
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
    return " ".join(
        one.get("NotifyWorkersFailureMessage")
        or one.get("NotifyWorkersFailureCode")
        or str(NO_REASON)
        for one in answer.get("NotifyWorkersFailureStatuses", [])
    )


@transaction.atomic
def request_block(
    *, connection: Connection, worker: Worker, reason: str, blocked_by: User | None
) -> WorkerBlock:
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
    WorkerBlock.objects.filter(connection=connection, worker=worker).update(
        is_active=False,
        reason=reason.strip(),
        state=DeliveryState.INTENDED,
        problem="",
        blocked_by=unblocked_by,
    )


def send_blocks(*, connection: Connection, client: MTurkClient) -> int:
    unsent = WorkerBlock.objects.filter(connection=connection, state=DeliveryState.INTENDED)
    n_sent = 0
    for block in list(unsent.select_related("worker")):
        # One that was changed meanwhile is sent anew.
        same = unsent.filter(pk=block.pk, is_active=block.is_active, reason=block.reason)
        n_sent += _is_sent(same, _refused_block(client, block))
    return n_sent


def _refused_block(client: MTurkClient, block: WorkerBlock) -> str:
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
    validate_text(text, name=_("A note"))
    note = WorkerNote.objects.create(team=team, worker=worker, text=text.strip(), author=author)
    record(team=team, actor=author, action="worker.note", subject=worker.worker_id)
    return note


def connections_with_rejections() -> list[Connection]:
    rejections = Assignment.objects.overridable().filter(appeal=None)
    return list(
        Connection.objects.filter(pk__in=rejections.order_by().values("hit__batch__connection"))
    )


def fetch_appeals(*, connection: Connection) -> int:
    answer = connections.post(connection, "/appeals", {})
    if answer is None:
        return 0
    return sum(_is_new(connection, values) for values in appeal_records(answer))


def _is_new(connection: Connection, values: dict[str, Any]) -> bool:
    assignment = Assignment.objects.filter(
        hit__batch__connection=connection, assignment_id=values.pop("assignment_id")
    ).first()
    if assignment is None:
        return False
    return Appeal.objects.get_or_create(
        assignment=assignment,
        defaults=values
        | {"state": DeliveryState.CONFIRMED if values["answer"] else DeliveryState.INTENDED},
    )[1]


@transaction.atomic
def answer_appeal(*, appeal: Appeal, answer: str, actor: User, study: Study) -> None:
    _answer(Appeal.objects.filter(pk=appeal.pk), answer, actor)
    record(
        team=study.team,
        actor=actor,
        action="appeal.answer",
        subject=study.slug,
        details={"assignment": appeal.assignment.assignment_id, "answer": answer.strip()},
    )


def _answer(rows: QuerySet[Any], answer: str, actor: User) -> None:
    validate_text(answer, name=_("An answer"))
    given = {"answer": answer.strip(), "answered_by": actor, "answered_at": timezone.now()}
    require(
        rows.filter(answer="").update(**given),
        DecisionRefused(_("It is answered already."), code="answered_already"),
    )


def send_answers(*, study: Study) -> int:
    # If the requester is refused, such as for an expired key, the answer waits. The marketplace
    # accepts the same answer twice.
    n_sent = 0
    unsent = Appeal.objects.of(study).unsent()
    for appeal in unsent.select_related("assignment__hit__batch__connection"):
        n_sent += _is_sent(unsent.filter(pk=appeal.pk), _answer_problem(appeal))
    return n_sent


def _answer_problem(appeal: Appeal) -> str:
    connection = appeal.assignment.hit.batch.connection
    content = {"assignment_id": appeal.assignment.assignment_id, "answer": appeal.answer}
    try:
        answer = connections.post(connection, "/appeals/answer", content)
    except MarketplaceRefused as refusal:
        if refusal.code != str(HTTPStatus.BAD_REQUEST.value):
            raise
        return refusal.message
    return "" if answer is not None else _("The marketplace knows no answers to appeals.")


# Messages that workers send from a HIT; the answer is a message, too.

# How long after publishing a batch its workers' messages are looked for.
ASKED_WITHIN = timedelta(days=90)


def connections_with_workers() -> list[Connection]:
    lately = Batch.objects.filter(publishing_started_at__gt=timezone.now() - ASKED_WITHIN)
    return list(Connection.objects.filter(pk__in=lately.order_by().values("connection")))


def fetch_inquiries(*, connection: Connection) -> int:
    stored = Inquiry.objects.filter(batch__connection=connection)
    newest, n_new = stored.aggregate(number=Max("number"))["number"] or 0, 0
    while answer := connections.post(connection, "/messages", {"after": newest}):
        records = inquiry_records(answer)
        n_new += sum(_is_new_inquiry(connection, values) for values in records)
        numbers = [values["number"] for values in records]
        if max(numbers, default=0) <= newest:
            break
        newest = max(numbers)
    return n_new


def _is_new_inquiry(connection: Connection, values: dict[str, Any]) -> bool:
    here: dict[str, Any] = {"batch__connection": connection, "hit_id": values["hit_id"]}
    hit = Hit.objects.filter(**here).first()
    about = hit or PracticeHit.objects.filter(**here).first()
    if about is None:  # of another program with the same key
        return False
    worker, _is_known = Worker.objects.get_or_create(
        marketplace=connection.marketplace, worker_id=values["worker_id"]
    )
    facts = {name: values[name] for name in ("text", "sent_at")}
    # A marketplace of an earlier version does not tell.
    facts["is_accepted"] = values.get("is_accepted", True)
    return Inquiry.objects.get_or_create(
        batch_id=about.batch_id,
        number=values["number"],
        defaults=facts | {"hit": hit, "worker": worker},
    )[1]


@transaction.atomic
def answer_inquiry(*, inquiry: Inquiry, answer: str, actor: User, study: Study) -> None:
    _answer(Inquiry.objects.filter(pk=inquiry.pk), answer, actor)
    record(
        team=study.team,
        actor=actor,
        action="inquiry.answer",
        subject=study.slug,
        details={"inquiry": inquiry.pk, "answer": answer.strip()},
    )


def send_replies(*, study: Study) -> int:
    n_sent = 0
    unsent = Inquiry.objects.of(study).unsent()
    for inquiry in unsent.select_related("batch__connection", "worker"):
        subject = _("Re: {title}").format(title=inquiry.batch.title)
        message = Message(worker=inquiry.worker, subject=subject, text=inquiry.answer)
        problem = _delivery_problem(client_of(inquiry.batch.connection), message)
        n_sent += _is_sent(unsent.filter(pk=inquiry.pk), problem)
    return n_sent


def record_of(assignment: Assignment, study: Study, reader: User) -> dict[str, Any]:
    """For the study's team; for the study only if it has no team. The notes are for the team's
    reviewers; others read only their own."""
    batches = Q(hit__batch__study=study.pk)
    if study.team_id is not None:
        batches |= Q(hit__batch__study__team=study.team_id)
    of_team = Assignment.objects.filter(batches)
    block = WorkerBlock.objects.filter(
        connection=assignment.hit.batch.connection_id, worker=OuterRef("pk"), is_active=True
    )
    reviewing = Membership.objects.filter(
        team=OuterRef("team"),
        user=reader,
        role__in=[role for role in Role if Permission.REVIEW in PERMISSIONS[role]],
    )
    notes = WorkerNote.objects.filter(team=study.team_id).filter(
        Q(author=reader) | Q(Exists(reviewing)) | Q(Value(reader.is_superuser))
    )
    held = Exclusion.objects.of(assignment.hit.batch).filter(reason=Exclusion.Reason.HELD)
    held = held.filter(worker=OuterRef("pk"))
    row: dict[str, Any] = dict(
        Worker.objects.filter(pk=assignment.worker_id)
        .values(
            n_submitted=counted(of_team, "worker"),
            n_approved=counted(of_team.filter(status=Assignment.Status.APPROVED), "worker"),
            n_rejected=counted(of_team.filter(status=Assignment.Status.REJECTED), "worker"),
            block_state=Subquery(block.values("state")[:1]),
            block_reason=Subquery(block.values("reason")[:1]),
            n_notes=counted(notes, "worker"),
            is_held=Exists(held)
            & ~Exists(WorkerClearance.objects.filter(worker=OuterRef("pk"), study=study)),
        )
        .get()
    )
    n_notes, state = row.pop("n_notes"), row.pop("block_state")
    return row | {
        "block_reason": row["block_reason"] or "",
        "block_state": str(DeliveryState(state).label) if state else "",
        "notes": list(notes.filter(worker=assignment.worker_id).select_related("author"))
        if n_notes
        else [],
    }

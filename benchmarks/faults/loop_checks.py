"""What must hold after a trial, whatever happened in it: asked of both sides' own records."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal

from django.db.models import Count

from accounts.audit import chain_faults
from accounts.models import AuditChain, AuditEntry
from annotation.models import Judgment, Submission
from hits.decisions import OUTCOMES
from hits.models import Assignment, Batch, DeliveryState, Hit, Message, Payment
from hits.progress import SPENT_USD, batch_report
from marketplace.models import (
    Assignment as Work,
    BonusPayment,
    Hit as PublishedHit,
    Requester,
    WorkerMessage,
)
from marketplace.money import ledger
from marketplace.money.reconciliation import audit


def faults_of(batch: Batch, *, deposit_usd: Decimal) -> list[str]:
    return [
        *_of_hits(batch),
        *_of_bonuses(),
        *_of_money(batch, deposit_usd),
        *_of_launches(),
        *common_faults(),
    ]


def common_faults() -> list[str]:
    return [
        *_of_answers(),
        *_of_decisions(),
        *_of_payments(),
        *_of_messages(),
        *_of_logs(),
        *audit(),
    ]


def n_double_messages() -> int:
    """Messages of people that came twice: a marketplace knows no token for them."""
    written = Message.objects.values("subject")
    return WorkerMessage.objects.filter(subject__in=written).count() - Message.objects.count()


def _of_hits(batch: Batch) -> Iterator[str]:
    planned = {hit.requester_annotation: hit.hit_id for hit in Hit.objects.select_related("batch")}
    rows = PublishedHit.objects.values_list("requester_annotation", "public_id")
    there = Counter(annotation for annotation, _ in rows)
    if double := [name for name, n in there.items() if n > 1]:
        yield f"{len(double)} HITs are published twice, such as {double[0]}."
    if missing := planned.keys() - there.keys():
        yield f"{len(missing)} planned HITs are not published."
    if planned != dict(rows):
        yield "The HITs' ids, or the HITs themselves, differ between the two sides."
    if wrong := PublishedHit.objects.exclude(max_assignments=2).count():
        yield f"{wrong} HITs have not the two assignments that were asked for in two steps."
    if still_open := PublishedHit.objects.filter(status="Assignable").count():
        yield f"{still_open} HITs of the closed batch can still be accepted."
    if Batch.objects.count() != 1:
        yield f"There are {Batch.objects.count()} batches, for one launch."


def _of_answers() -> Iterator[str]:
    there = set(Work.objects.handed_in().values_list("public_id", flat=True))
    here = list(Assignment.objects.values_list("assignment_id", flat=True))
    if set(here) != there or len(here) != len(there):
        yield f"{len(there)} answers were handed in, {len(here)} are stored."
    if unread := Assignment.objects.filter(submission=None).count():
        yield f"{unread} answers were not read."
    if Submission.objects.count() != len(there):
        yield f"There are {Submission.objects.count()} submissions of {len(there)} answers."
    n_each = Submission.objects.annotate(n=Count("judgments")).values_list("n", flat=True)
    if set(n_each) != {8}:
        yield f"Submissions have {sorted(set(n_each))} judgments, not 8 each."
    twice = Judgment.objects.values("submission", "candidate", "question")
    if twice.annotate(n=Count("pk")).filter(n__gt=1).exists():
        yield "A candidate is judged twice in one submission."


def _of_decisions() -> Iterator[str]:
    there = dict(Work.objects.handed_in().values_list("public_id", "status"))
    for assignment in Assignment.objects.select_related("submission"):
        decision, status = assignment.decision, there.get(assignment.assignment_id)
        name = assignment.assignment_id
        if not decision or assignment.decision_problem:
            yield f"{name} is '{decision}' ({assignment.decision_problem})."
        elif status != OUTCOMES[Assignment.Decision(decision)]:
            yield f"{name} is to be '{decision}', and {status} there."
        if assignment.status != status:
            yield f"{name} is {assignment.status} here and {status} there."
        if assignment.submission and assignment.submission.status != str(status).lower():
            yield f"The submission of {name} is {assignment.submission.status}, not {status}."


def _of_payments() -> Iterator[str]:
    rows = Payment.objects.select_related("assignment")
    if unpaid := rows.exclude(state=DeliveryState.CONFIRMED):
        yield f"{len(unpaid)} payments are not confirmed: {unpaid[0].problem or unpaid[0].state}."
    intended = Counter((p.assignment.assignment_id, p.amount_usd, p.reason) for p in rows)
    paid = Counter(
        (p.assignment.public_id, p.amount_usd, p.reason)
        for p in BonusPayment.objects.select_related("assignment")
    )
    if twice := paid - intended:
        yield f"{twice.total()} payments were made that nobody, or only once, intended."
    if missing := intended - paid:
        yield f"{missing.total()} intended payments were not made."


def _of_bonuses() -> Iterator[str]:
    wanted = {pk for pk in Assignment.objects.values_list("pk", flat=True) if pk % 3 == 0}
    if set(Payment.objects.exclude(purpose="part").values_list("assignment", flat=True)) != wanted:
        yield "Bonuses are missing among the intended payments, or too many."


def _of_messages() -> Iterator[str]:
    rejected = Work.objects.exclude(rejected_at=None)
    wanted = {
        "Rejected: ": rejected.count(),
        "Approved after all: ": rejected.filter(status=Work.Status.APPROVED).count(),
        "Bonus of ": BonusPayment.objects.count(),
    }
    for beginning, n_wanted in wanted.items():
        n_there = WorkerMessage.objects.filter(subject__startswith=beginning).count()
        if n_there != n_wanted:
            yield f"Workers were told “{beginning}…” {n_there} times, not {n_wanted}."


def _of_money(batch: Batch, deposit_usd: Decimal) -> Iterator[str]:
    report = batch_report(batch)
    if report.statement is None:
        yield "The marketplace gave no statement."
        return
    there = {name: getattr(report.statement, name) for name in SPENT_USD}
    if asdict(report.spend) != there:
        yield f"Spent here: {report.spend}; there: {there}."
    total_usd = report.spend.total_usd
    requester = Requester.objects.get()
    available_usd = ledger.balance_of(ledger.available_account(requester))
    held_usd = ledger.balance_of(ledger.held_account(requester))
    if held_usd:
        yield f"${held_usd} are held for a closed batch."
    if available_usd + held_usd != deposit_usd - total_usd:
        yield f"${available_usd} of ${deposit_usd} are left, after spending ${total_usd}."


def _of_logs() -> Iterator[str]:
    for chain in AuditChain.objects.all():
        yield from chain_faults(chain)
    verdicts = ("review.approve", "review.reject", "review.part_pay")
    decided: Counter[str] = Counter()
    for entry in AuditEntry.objects.filter(action__in=verdicts):
        decided.update(entry.details["assignments"])
    if any(n > 1 for n in decided.values()):
        yield "The audit log has two verdicts on one assignment."


def _of_launches() -> Iterator[str]:
    n_launches = AuditEntry.objects.filter(action="batch.launch").count()
    if n_launches != 1:
        yield f"The audit log has {n_launches} launches."
    if AuditEntry.objects.filter(action="batch.add_assignments").count() != 1:
        yield "The audit log does not have the added assignments once."

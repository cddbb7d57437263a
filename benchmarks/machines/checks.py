"""What must hold at the end, of what the people of the trial saw and of both sides' records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from benchmarks.faults.loop_checks import common_faults
from benchmarks.machines.requesters import Requester
from hits.exceptions import HitsError
from hits.models import PART, Batch, Payment
from hits.statements import batch_report, fetch_statement, spend_there
from marketplace.hits.assignments import answer_document
from marketplace.models import Assignment, Hit
from marketplace.models import Requester as Account
from marketplace.money import ledger


def faults_of(
    requesters: Sequence[Requester], answers: Mapping[str, str], deposit_usd: Decimal
) -> list[str]:
    """Everything that is wrong, a sentence each."""
    return [
        *_of_what_workers_saw(answers),
        *_of_what_requesters_did(requesters),
        *_of_hits(),
        *_of_money(deposit_usd),
        *common_faults(),
    ]


def _of_what_workers_saw(answers: Mapping[str, str]) -> list[str]:
    rows = Assignment.objects.handed_in().values_list("public_id", "answer")
    there = dict(rows)
    faults = []
    if lost := answers.keys() - there.keys():
        faults.append(f"{len(lost)} answers are lost of which the site said that it has them.")
    if strange := there.keys() - answers.keys():
        faults.append(f"{len(strange)} answers are there that nobody sent, or saw arrive.")
    wrong = [
        key
        for key, answer in answers.items()
        if key in there and there[key] != answer_document([("answer", [answer])])
    ]
    if wrong:
        faults.append(f"{len(wrong)} answers are not as they were sent, such as {wrong[0]}.")
    return faults


def _of_what_requesters_did(requesters: Sequence[Requester]) -> list[str]:
    intended = {name for each in requesters for name in each.bonuses}
    bonuses = Payment.objects.exclude(purpose=PART).select_related("assignment")
    there = {payment.assignment.assignment_id for payment in bonuses}
    if intended != there or len(bonuses) != len(there):
        return [f"{len(intended)} bonuses were decided, and {len(bonuses)} written down."]
    return []


def _of_hits() -> list[str]:
    names = list(Hit.objects.values_list("requester_annotation", flat=True))
    if n_double := len(names) - len(set(names)):
        return [f"{n_double} HITs are published twice."]
    return []


def _of_money(deposit_usd: Decimal) -> list[str]:
    """Spent as each batch's two ledgers have it, and what each requester has left."""
    faults, spent_usd = [], Decimal(0)
    for batch in Batch.objects.select_related("connection", "study"):
        try:
            fetch_statement(batch=batch)
        except HitsError as error:
            faults.append(f"Batch {batch.pk} has no statement: {error}")
        report = batch_report(batch)
        if report.statement is None or report.spend != spend_there(report.statement):
            faults.append(f"Batch {batch.pk}: {report.spend} here, {report.statement} there.")
        spent_usd += report.spend.total_usd
    accounts = Account.objects.all()
    left_usd = sum(
        (ledger.balance_of(ledger.available_account(each)) for each in accounts), spent_usd
    )
    left_usd += sum((ledger.balance_of(ledger.held_account(each)) for each in accounts), Decimal(0))
    if left_usd != deposit_usd * len(accounts):
        faults.append(f"${left_usd} of ${deposit_usd * len(accounts)} are left or spent.")
    return faults

"""What must be true of money and of states at every moment, worked out from the rows
themselves, apart from the code that keeps them; and the requests of which stories are made."""

from collections import Counter, defaultdict
from decimal import Decimal

from marketplace import clock
from marketplace.models import Assignment, BonusPayment, Hit, LedgerEntry, LedgerTransaction, Payout
from tests.marketplace.conftest import HTML_QUESTION

# What may follow what, however much time has passed between.
ASSIGNMENT_MAY_BECOME = {
    "Accepted": {"Accepted", "Submitted", "Approved", "Rejected", "Returned", "Abandoned"},
    "Submitted": {"Submitted", "Approved", "Rejected"},
    "Rejected": {"Rejected", "Approved"},
    "Approved": {"Approved"},
    "Returned": {"Returned"},
    "Abandoned": {"Abandoned"},
}


def check_transactions():
    sums = defaultdict(Decimal)
    for key, amount_usd in LedgerEntry.objects.values_list("transaction", "amount_usd"):
        sums[key] += amount_usd
    assert set(sums.values()) <= {0}
    assert len(sums) == LedgerTransaction.objects.count()


def check_accounts(*, deposited_usd, paid_out_usd):
    earned, spent = defaultdict(Decimal), defaultdict(Decimal)
    for each in Assignment.objects.filter(status="Approved").select_related("hit"):
        earned[each.worker_id] += each.reward_usd
        spent[each.hit.requester_id] += each.price_usd
    for bonus in BonusPayment.objects.select_related("assignment"):
        earned[bonus.assignment.worker_id] += bonus.amount_usd
        spent[bonus.requester_id] += bonus.amount_usd + bonus.fee_usd
    in_payouts = Decimal(0)
    for payout in Payout.objects.all():
        earned[payout.worker_id] -= payout.amount_usd
        in_payouts += payout.amount_usd
    balances = _balances()
    for (kind, owner), amount_usd in balances.items():
        assert kind == "outside" or amount_usd >= 0
        if kind == "earnings":
            assert amount_usd == earned.pop(owner)
    assert not any(earned.values())
    for requester, amount_usd in deposited_usd.items():
        left_usd = balances["available", requester] + balances["held", requester]
        assert left_usd == amount_usd - spent[requester]
    assert balances["payouts", None] == in_payouts - paid_out_usd
    assert -balances["outside", None] == sum(deposited_usd.values()) - paid_out_usd


def check_payments():
    payments = LedgerTransaction.objects.filter(kind="payment")
    paid = Counter(payments.values_list("assignment__public_id", flat=True))
    due = Assignment.objects.filter(status="Approved").exclude(reward_usd=0, fee_usd=0)
    assert paid == Counter(due.values_list("public_id", flat=True))
    assert LedgerTransaction.objects.filter(kind="bonus").count() == BonusPayment.objects.count()


def check_holds():
    held_usd = defaultdict(Decimal)
    entries = LedgerEntry.objects.filter(account__kind="held")
    for key, amount_usd in entries.values_list("transaction__hit", "amount_usd"):
        held_usd[key] += amount_usd
    for hit in Hit.objects.prefetch_related("assignments").select_related("hit_type"):
        assert held_usd[hit.pk] >= 0
        if _is_up_to_date(hit):
            assert held_usd[hit.pk] == _cost_of_open_work(hit)


def check_hits():
    for hit in Hit.objects.prefetch_related("assignments"):
        counts = Counter(each.status for each in hit.assignments.all())
        live = [each.worker_id for each in hit.assignments.all() if _counts(each)]
        assert len(live) == len(set(live)) <= hit.max_assignments
        if _is_up_to_date(hit):
            assert hit.status in _possible_statuses(hit, counts, hit.max_assignments - len(live))


def statuses():
    stored = dict(Assignment.objects.values_list("public_id", "status"))
    return stored | dict(Hit.objects.values_list("public_id", "status"))


def check_changes(before, after):
    for public_id, status in before.items():
        if status in ASSIGNMENT_MAY_BECOME:
            assert after[public_id] in ASSIGNMENT_MAY_BECOME[status]
        assert status != "Disposed" or after[public_id] == "Disposed"
        if after[public_id] == "Reviewing":
            assert status in ("Reviewing", "Reviewable")


def _balances():
    balances = defaultdict(Decimal)
    for kind, requester, worker, amount_usd in LedgerEntry.objects.values_list(
        "account__kind", "account__requester", "account__worker", "amount_usd"
    ):
        balances[kind, requester or worker] += amount_usd
    return balances


def _is_up_to_date(hit):
    return hit.next_transition_at is None or hit.next_transition_at > clock.now()


def _counts(assignment):
    return assignment.status not in ("Returned", "Abandoned")


def _cost_of_open_work(hit):
    """Submitted work costs what was promised. Until the HIT ends a free place costs today's
    price, and so may an accepted assignment that is given back."""
    if hit.status == "Disposed":
        return 0
    assignments = hit.assignments.all()
    price_usd = hit.price_usd if hit.expiration > clock.now() else Decimal(0)
    free_usd = (hit.max_assignments - sum(map(_counts, assignments))) * price_usd
    submitted = [each.price_usd for each in assignments if each.status == "Submitted"]
    accepted = [max(each.price_usd, price_usd) for each in assignments if each.status == "Accepted"]
    return free_usd + sum(submitted) + sum(accepted)


def _possible_statuses(hit, counts, free):
    if hit.status == "Disposed":
        return set() if counts["Accepted"] or counts["Submitted"] else {"Disposed"}
    if free and hit.expiration > clock.now():
        return {"Assignable"}
    if counts["Accepted"]:
        return {"Unassignable"}
    return {"Reviewable", "Reviewing"}


def type_values(reward, delay):
    return {
        "Title": "Rate responses",
        "Description": "Read and judge.",
        "Reward": reward,
        "AssignmentDurationInSeconds": 1200,
        "AutoApprovalDelayInSeconds": delay,
    }


def hit_values(max_assignments, hours, token):
    values = {"MaxAssignments": max_assignments, "LifetimeInSeconds": hours * 3600}
    return values | {"Question": HTML_QUESTION} | with_token(token)


def with_token(token):
    return {} if token is None else {"UniqueRequestToken": token}


def policies(approved_from):
    """Answers of 1 are right. Right enough is approved, else rejected and asked again."""
    if approved_from is None:
        return {}
    numbers = {
        "ApproveIfKnownAnswerScoreIsAtLeast": approved_from,
        "RejectIfKnownAnswerScoreIsLessThan": approved_from,
        "ExtendIfKnownAnswerScoreIsLessThan": 50,
        "ExtendMaximumAssignments": 4,
        "ExtendMinimumTimeInSeconds": 3600,
    }
    key = {"Key": "AnswerKey", "MapEntries": [{"Key": "rating", "Values": ["1"]}]}
    parameters = [{"Key": name, "Values": [str(number)]} for name, number in numbers.items()]
    policy = {"PolicyName": "ScoreMyKnownAnswers/2011-09-01", "Parameters": [key, *parameters]}
    return {"AssignmentReviewPolicy": policy}

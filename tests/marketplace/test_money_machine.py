"""Random stories of everything that moves money. After every step the ledger balances, nothing
has been paid twice, and what is held is what the open work can still cost.

The suite runs a fixed selection of a few stories. By hand, run as many others as you like:

    MONEY_MACHINE_STORIES=500 pytest tests/marketplace/test_money_machine.py -s
"""

import os
import sys
from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings, stateful, strategies as st

from accounts.models import User
from marketplace import clock, exceptions, hits
from marketplace.api import (  # registers the operations
    hit_operations as _hit_operations,  # noqa: F401
    worker_operations as _worker_operations,  # noqa: F401
)
from marketplace.api.inputs import INPUTS, OPERATIONS, read_request
from marketplace.models import Assignment, Deposit, Hit, LedgerTransaction, PayoutBatch, Requester
from marketplace.money import ledger, reconciliation, transfers
from marketplace.people.enrolment import open_worker_account
from tests.marketplace import money

STORIES = int(os.environ.get("MONEY_MACHINE_STORIES", "0"))
STEPS = 30
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
INTERVALS = st.sampled_from([MINUTE, 21 * MINUTE, HOUR, 23 * HOUR, 3 * DAY, 31 * DAY, 121 * DAY])
PICKS = st.integers(0, 2**16)
LABS, WORKERS = st.integers(0, 1), st.integers(0, 4)
TOKENS = st.sampled_from([None, None, "a", "b"])
REWARDS = st.sampled_from(["0.00", "0.01", "0.05", "0.63", "2.50", "40.00"])
MAX_ASSIGNMENTS = st.sampled_from([1, 2, 3, 9, 10])
EVERYTHING = {
    "deposit",
    "reversal",
    "reversal refused: DepositSpent",
    "CreateHIT",
    "CreateHIT refused: HitAlreadyExists",
    "CreateHIT refused: InsufficientFunds",
    "CreateHITWithHITType",
    "CreateAdditionalAssignmentsForHIT",
    "UpdateExpirationForHIT",
    "UpdateHITTypeOfHIT",
    "UpdateHITReviewStatus",
    "DeleteHIT",
    "DeleteHIT refused: HitDoesNotExist",
    "ApproveAssignment",
    "RejectAssignment",
    "override",
    "SendBonus",
    "SendBonus refused: DuplicateRequest",
    "accept",
    "accept next",
    "submit",
    "return",
    "payout",
    "paid out",
}


class Marketplace(stateful.RuleBasedStateMachine):
    """One marketplace with two requesters and five workers. `done` counts, over all the
    stories, what was done and what was refused."""

    def __init__(self, done, settings):
        super().__init__()
        self.done, self.settings = done, settings
        self.deposited_usd, self.paid_out_usd, self.statuses = {}, Decimal(0), {}
        self.story = transaction.atomic()
        self.story.__enter__()
        clock.reset()

    @stateful.initialize(
        schedule=st.sampled_from(["mturk", "none"]),
        deposit=st.sampled_from(["5.00", "40.00", "300.00"]),
    )
    def two_labs_five_workers_and_a_hit(self, schedule, deposit):
        self.settings.MARKETPLACE_FEE_SCHEDULE = schedule
        now = clock.now()
        self.labs = [Requester.objects.create(name=name, created_at=now) for name in "AB"]
        users = [User.objects.create(username=f"worker{number}") for number in range(5)]
        self.workers = [open_worker_account(user=user) for user in users]
        for lab in self.labs:
            self._deposit(lab, deposit)
        self.create_hit(0, "0.63", 3, 400, 3 * 86_400, None, None)

    def teardown(self):
        try:
            if hasattr(self, "labs"):
                clock.advance(400 * DAY)
                hits.lifecycle.sweep(clock.now())
                self.all_is_right()
                assert reconciliation.audit() == []
                assert set(Hit.objects.values_list("status", flat=True)) == {"Disposed"}
                for lab in self.labs:
                    assert ledger.balance_of(ledger.held_account(lab)) == 0
        finally:
            transaction.set_rollback(True)
            self.story.__exit__(None, None, None)
            clock.reset()

    # What requesters do, through the API's own checks.

    @stateful.rule(
        lab=LABS, amount=st.sampled_from(["0.01", "1.00", "9.99", "60.00", "-3", "0.001"])
    )
    def deposit(self, lab, amount):
        self._try("deposit", lambda: self._deposit(self.labs[lab], amount))

    @stateful.rule(
        lab=LABS,
        reward=REWARDS,
        max_assignments=MAX_ASSIGNMENTS,
        hours=st.sampled_from([1, 24, 400]),
        delay=st.sampled_from([0, 3600, 3 * 86_400]),
        token=TOKENS,
        approved_from=st.sampled_from([None, 50]),
    )
    def create_hit(self, lab, reward, max_assignments, hours, delay, token, approved_from):
        values = money.type_values(reward, delay) | money.hit_values(max_assignments, hours, token)
        self._call(self.labs[lab], "CreateHIT", **values | money.policies(approved_from))

    @stateful.rule(pick=PICKS, max_assignments=MAX_ASSIGNMENTS, token=TOKENS)
    def create_another_of_its_type(self, pick, max_assignments, token):
        hit = self._hit(pick)
        values = {"HITTypeId": hit.hit_type.public_id} | money.hit_values(
            max_assignments, 24, token
        )
        self._call(hit.requester, "CreateHITWithHITType", **values)

    @stateful.rule(pick=PICKS, hours=st.sampled_from([-1, 0, 1, 30, 500, 9000]))
    def update_expiration(self, pick, hours):
        hit, at = self._hit(pick), clock.now() + hours * HOUR
        values = {"HITId": hit.public_id, "ExpireAt": at.timestamp()}
        self._call(hit.requester, "UpdateExpirationForHIT", **values)

    @stateful.rule(pick=PICKS, more=st.sampled_from([1, 2, 8]), token=TOKENS)
    def add_assignments(self, pick, more, token):
        hit = self._hit(pick)
        values = {"HITId": hit.public_id, "NumberOfAdditionalAssignments": more}
        self._call(
            hit.requester, "CreateAdditionalAssignmentsForHIT", **values | money.with_token(token)
        )

    @stateful.rule(pick=PICKS, reward=REWARDS)
    def change_the_type(self, pick, reward):
        hit = self._hit(pick)
        created = self._call(hit.requester, "CreateHITType", **money.type_values(reward, 3600))
        values = {"HITId": hit.public_id, "HITTypeId": created["HITTypeId"]}
        self._call(hit.requester, "UpdateHITTypeOfHIT", **values)

    @stateful.rule(pick=PICKS, action=st.sampled_from(["review", "revert", "delete", "meddle"]))
    def close(self, pick, action):
        hit = self._hit(pick, "Reviewing" if action == "revert" else "Reviewable")
        if action == "delete":
            self._call(hit.requester, "DeleteHIT", HITId=hit.public_id)
        elif action == "meddle":
            stranger = next(lab for lab in self.labs if lab != hit.requester)
            assert self._call(stranger, "DeleteHIT", HITId=hit.public_id) is None
        else:
            values = {"HITId": hit.public_id, "Revert": action == "revert"}
            self._call(hit.requester, "UpdateHITReviewStatus", **values)

    @stateful.rule(pick=PICKS, decision=st.sampled_from(["approve", "reject", "repent"]))
    def decide(self, pick, decision):
        assignment = self._assignment(pick, "Submitted")
        if assignment is None:
            return
        lab, values = assignment.hit.requester, {"AssignmentId": assignment.public_id}
        if decision == "approve":
            self._call(lab, "ApproveAssignment", **values)
        else:
            self._call(lab, "RejectAssignment", **values, RequesterFeedback="No.")
        if decision == "repent":
            self._override(assignment)

    @stateful.rule(pick=PICKS)
    def override_a_rejection(self, pick):
        assignment = self._assignment(pick, "Rejected")
        if assignment:
            self._override(assignment)

    @stateful.rule(pick=PICKS, amount=st.sampled_from(["0.01", "0.99", "20.00"]), token=TOKENS)
    def send_bonus(self, pick, amount, token):
        assignment = self._assignment(pick, "Approved")
        if assignment:
            values = {
                "AssignmentId": assignment.public_id,
                "WorkerId": assignment.worker.worker_id,
                "BonusAmount": amount,
                "Reason": "Good work.",
            }
            self._call(assignment.hit.requester, "SendBonus", **values | money.with_token(token))

    # What workers do.

    @stateful.rule(worker=WORKERS, pick=PICKS, finish=st.booleans())
    def accept(self, worker, pick, finish):
        worker, hit = self.workers[worker], self._hit(pick, "Assignable")
        accepted = self._try("accept", lambda: hits.assignments.accept_hit(worker=worker, hit=hit))
        if accepted and finish:
            self._submit(accepted)

    @stateful.rule(worker=WORKERS, pick=PICKS, finish=st.booleans())
    def accept_next_of_a_group(self, worker, pick, finish):
        worker, hit_type = self.workers[worker], self._hit(pick, "Assignable").hit_type
        accepted = self._try(
            "accept next", lambda: hits.assignments.accept_next(worker=worker, hit_type=hit_type)
        )
        if accepted and finish:
            self._submit(accepted)

    @stateful.rule(pick=PICKS, finish=st.booleans())
    def let_go(self, pick, finish):
        assignment = self._assignment(pick, "Accepted")
        if assignment and finish:
            self._submit(assignment)
        elif assignment:
            self._try("return", lambda: hits.assignments.return_assignment(assignment=assignment))

    # What an operator does.

    @stateful.rule(minimum=st.sampled_from(["0.01", "1.00"]))
    def take_earnings_to_be_paid_out(self, minimum):
        self.done["payout"] += transfers.make_batch(minimum_usd=Decimal(minimum)) is not None

    @stateful.rule(pick=PICKS)
    def mark_a_batch_paid(self, pick):
        batches = list(PayoutBatch.objects.order_by("pk"))
        if batches:
            rows = batches[pick % len(batches)].payouts
            self.paid_out_usd += sum(row.amount_usd for row in rows.filter(paid_at=None))
            self.done["paid out"] += transfers.mark_paid(rows.all())
            assert transfers.mark_paid(rows.all()) == 0

    @stateful.rule(pick=PICKS)
    def take_a_deposit_out(self, pick):
        rows = list(Deposit.objects.select_related("requester").order_by("pk"))
        deposit = rows[pick % len(rows)]
        reverse = transfers.reverse_deposit
        if self._try("reversal", lambda: reverse(deposit=deposit, reason="A mistake.")):
            self.deposited_usd[deposit.requester_id] -= deposit.amount_usd
            assert not reverse(deposit=deposit, reason="A mistake.")

    # What time does.

    @stateful.rule(step=INTERVALS, is_swept=st.booleans())
    def time_passes(self, step, is_swept):
        clock.advance(step)
        if is_swept:
            hits.lifecycle.sweep(clock.now())
            assert hits.lifecycle.sweep(clock.now()) == 0

    # What is true after every step.

    @stateful.invariant()
    def all_is_right(self):
        if STORIES:  # the audit takes longer than all other checks: else once, in the end
            assert reconciliation.audit() == []
        money.check_transactions()
        money.check_accounts(deposited_usd=self.deposited_usd, paid_out_usd=self.paid_out_usd)
        money.check_payments()
        money.check_holds()
        money.check_hits()
        before, self.statuses = self.statuses, money.statuses()
        money.check_changes(before, self.statuses)

    def _submit(self, assignment):
        public_id, fields = assignment.public_id, [("rating", [str(assignment.pk % 2)])]
        self._try(
            "submit", lambda: hits.assignments.submit_assignment(public_id=public_id, fields=fields)
        )

    def _override(self, assignment):
        values = {"AssignmentId": assignment.public_id, "OverrideRejection": True}
        output = self._call(assignment.hit.requester, "ApproveAssignment", **values)
        self.done["override"] += output is not None

    def _call(self, lab, operation, **payload):
        members, function = INPUTS[operation], OPERATIONS[operation]
        return self._try(operation, lambda: function(lab, read_request(members, payload)) or {})

    def _try(self, what, act):
        """The result; None where it was refused, and then it has moved no money (but time
        may have, when it had something to do)."""
        time_did_something = Hit.objects.due(clock.now()).exists()
        before = LedgerTransaction.objects.count()
        try:
            result = act()
        except exceptions.MarketplaceError as error:
            self.done[f"{what} refused: {type(error).__name__}"] += 1
            assert time_did_something or LedgerTransaction.objects.count() == before
            return None
        self.done[what] += 1
        return result

    def _deposit(self, lab, amount):
        transfers.deposit(requester=lab, amount_usd=Decimal(amount))
        self.deposited_usd[lab.pk] = self.deposited_usd.get(lab.pk, 0) + Decimal(amount)

    def _hit(self, pick, status="Assignable"):
        return _pick(Hit.objects.select_related("hit_type", "requester"), pick, status)

    def _assignment(self, pick, status):
        return _pick(Assignment.objects.select_related("hit__requester", "worker"), pick, status)


def _pick(rows, pick, status):
    number, whim = divmod(pick, 10)
    pool = list(rows.filter(status=status).order_by("pk")) if whim else []
    pool = pool or list(rows.order_by("pk"))
    return pool[number % len(pool)] if pool else None


@pytest.mark.slow
@pytest.mark.timeout(0 if STORIES else 300)
def test_the_money_is_right_whatever_happens(db, settings):
    done = Counter()
    stateful.run_state_machine_as_test(lambda: Marketplace(done, settings), settings=_profile())
    for what, count in sorted(done.items()):
        sys.stdout.write(f"{count:7} {what}\n")
    assert min(done["CreateHIT"], done["accept"], done["submit"]) > 0


@pytest.mark.slow
def test_each_of_the_things_that_may_happen_can_happen(db, settings):
    done = Counter()
    story = Marketplace(done, settings)
    first, second = 1, 11  # the first, or second, of those there are of the right status
    story.two_labs_five_workers_and_a_hit("mturk", "300.00")
    for step, arguments in (
        (story.deposit, (0, "60.00")),
        (story.deposit, (1, "9.99")),
        (story.take_a_deposit_out, (3,)),
        (story.create_hit, (0, "2.50", 2, 24, 3600, "a", None)),
        (story.create_hit, (0, "2.50", 2, 24, 3600, "a", None)),
        (story.create_hit, (0, "40.00", 9, 24, 3600, None, None)),
        (story.create_another_of_its_type, (first, 1, None)),
        (story.add_assignments, (first, 1, None)),
        (story.change_the_type, (first, "0.05")),
        (story.update_expiration, (first, 500)),
        (story.accept, (0, first, True)),
        (story.accept, (1, first, True)),
        (story.accept, (2, first, False)),
        (story.let_go, (first, False)),
        (story.accept_next_of_a_group, (3, second, True)),
        (story.accept, (4, second, True)),
        (story.decide, (first, "approve")),
        (story.decide, (first, "repent")),
        (story.decide, (first, "reject")),
        (story.send_bonus, (first, "0.99", "b")),
        (story.send_bonus, (first, "0.99", "b")),
        (story.take_earnings_to_be_paid_out, ("0.01",)),
        (story.mark_a_batch_paid, (0,)),
        (story.update_expiration, (first, -1)),
        (story.time_passes, (HOUR, True)),
        (story.close, (first, "review")),
        (story.close, (first, "revert")),
        (story.close, (first, "meddle")),
        (story.time_passes, (HOUR, False)),
        (story.close, (first, "delete")),
        (story.create_hit, (0, "40.00", 3, 24, 3600, None, None)),
        (story.take_a_deposit_out, (0,)),
    ):
        step(*arguments)
        story.all_is_right()
        assert reconciliation.audit() == []
    story.teardown()
    assert {what for what, count in done.items() if count} >= EVERYTHING


def _profile():
    phases = [Phase.explicit, Phase.generate]  # making a failure short takes minutes
    quick = {"max_examples": 3, "derandomize": True, "phases": phases}
    return settings(
        **({"max_examples": STORIES} if STORIES else quick),
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

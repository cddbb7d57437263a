"""Sending decisions, killed before and after each of its calls, and then done again."""

from decimal import Decimal

import pytest

from accounts.audit import chain_faults
from accounts.models import AuditChain, User
from accounts.teams import create_team
from annotation.access import give_to_team
from annotation.models import Study
from hits.draft_costs import summary_of
from hits.drafts import Action, draft_decision, drafts_of
from hits.expenses import spend_of
from hits.models import Assignment, Batch, Payment
from hits.record_drafts import record_drafts
from hits.review_dispatch import send_review
from marketplace.models import Assignment as Work
from marketplace.models import BonusPayment, WorkerBlock, WorkerMessage
from tests.annotation.studies import rating_study
from tests.hits.wire import Killed, killed_after, killed_before
from tests.hits.work import balance_of, collected_work, requester_keys

pytestmark = pytest.mark.django_db
N_CALLS = 10


@pytest.fixture(scope="module")
def keys(stored_for_module):
    """Of the requester of all these tests, whose decisions are recorded: of six assignments two
    approved, two rejected, one paid in part; a bonus, words, a block."""
    keys = requester_keys()
    rosa = User.objects.create_user("rosa")
    study = rating_study(owner=rosa)
    give_to_team(study=study, team=create_team(name="Lab", owner=rosa), actor=rosa)
    collected_work(study, keys, "ann", "bob")
    first, second, third, fourth, fifth, _sixth = Assignment.objects.order_by("pk")

    def draft(assignment, action, text="", amount=None, **fields):
        amount_usd = None if amount is None else Decimal(amount)
        fields |= {"action": action, "text": text, "amount_usd": amount_usd}
        draft_decision(reviewer=rosa, assignment=assignment, **fields)

    draft(first, Action.APPROVE)
    draft(second, Action.APPROVE)
    draft(third, Action.REJECT, "Too quick.")
    draft(fourth, Action.REJECT, "Too quick.")
    draft(fifth, Action.PART_PAY, "Half is there.", "0.40")
    draft(first, Action.BONUS, "Well argued.", "0.15")
    draft(fifth, Action.BONUS, "Well argued.", "0.15")
    draft(first, Action.MESSAGE, "More on Monday.", subject="Thanks")
    draft(fourth, Action.BLOCK, "Clicks.")
    digest = summary_of(drafts_of(study, rosa)).digest
    assert record_drafts(reviewer=rosa, study=study, digest=digest).n_recorded == 9
    return keys


@pytest.fixture
def recorded(keys, db):
    return Study.objects.get()


@pytest.mark.parametrize("how", [killed_before, killed_after])
@pytest.mark.parametrize("at", range(1, N_CALLS + 1))
def test_what_was_decided_is_done_once_wherever_sending_is_killed(recorded, wire, at, how):
    wire.calls.clear()
    wire.fail("*", how, at=at)
    with pytest.raises(Killed):
        send_review(study=recorded, client_for=lambda _connection: wire.client)
    send_review(study=recorded, client_for=lambda _connection: wire.client)
    here = dict(Assignment.objects.values_list("assignment_id", "status"))
    assert dict(Work.objects.values_list("public_id", "status")) == here
    statuses = ["Approved", "Approved", "Rejected", "Rejected", "Rejected", "Submitted"]
    assert list(Assignment.objects.order_by("pk").values_list("status", flat=True)) == statuses
    paid = sorted(BonusPayment.objects.values_list("amount_usd", flat=True))
    assert paid == [Decimal("0.15"), Decimal("0.15"), Decimal("0.40")]
    assert set(Payment.objects.values_list("state", flat=True)) == {"confirmed"}
    assert WorkerBlock.objects.count() == 1
    # Three rejections, three bonuses and a block: workers read of each once.
    events = WorkerMessage.objects.filter(subject__regex="^(Rejected|Bonus of)|takes no more work")
    assert events.count() == 7
    # The one thing that has no token: it may come twice, and never not at all.
    n_written = WorkerMessage.objects.count() - 7
    assert n_written in ((1, 2) if how is killed_after else (1,))
    assert balance_of(wire.client) == ("6.30", "1.00")
    assert spend_of(Batch.objects.get()).total_usd == Decimal("2.70")
    assert [fault for chain in AuditChain.objects.all() for fault in chain_faults(chain)] == []

"""Bonuses and parts of rewards: paid once, whatever happens to answers and processes."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from hits.budgets import commitments
from hits.endpoints import AccessKey, connect
from hits.exceptions import MarketplaceRefused, MarketplaceUnreachable, PaymentRefused
from hits.expenses import spend_of
from hits.models import PART, Assignment, Batch, DeliveryState, Payment
from hits.payments import bonus_purpose, request_payment, send_payments
from hits.review import APPROVE, REJECT, decide, send_decisions
from marketplace.models import BonusPayment
from tests.boto_clients import ENDPOINT_URL
from tests.codes import refused
from tests.hits.wire import Wire, answer_lost, refusal, unreachable
from tests.hits.work import balance_of

REASON = "Thank you for the careful reasons."


def test_a_payment_is_written_down_before_it_is_sent_and_confirmed_after_and_sent_once(
    three_bonuses, batch, client, wire
):
    assert (states(), bonuses_there()) == (["intended"] * 3, [])
    result = send_payments(batch=batch, client=client)
    assert (result.n_paid, result.paid_usd) == (3, Decimal("1.50"))
    assert (states(), bonuses_there()) == (["confirmed"] * 3, [(Decimal("0.50"), REASON)] * 3)
    assert balance_of(client) == ("5.50", "3.00")
    wire.calls.clear()
    assert send_payments(batch=batch, client=client).n_paid == 0
    assert not wire.calls


@pytest.fixture(scope="module")
def keys(stored_work):
    return stored_work


def bonus(assignment, amount_usd="0.50", reason=REASON) -> Payment | None:
    purpose, amount_usd = bonus_purpose(reason), Decimal(amount_usd)
    return request_payment(
        assignment=assignment, purpose=purpose, amount_usd=amount_usd, reason=reason
    )


@pytest.fixture
def three_bonuses(batch):
    return [bonus(assignment) for assignment in Assignment.objects.of(batch)]


def bonuses_there():
    """The marketplace's own record."""
    return sorted(BonusPayment.objects.values_list("amount_usd", "reason"))


def states():
    return list(Payment.objects.order_by("pk").values_list("state", flat=True))


def test_hundreds_of_payments_add_up_to_the_cent(batch):
    """SQLite adds in binary, and a ledger does not."""
    amounts = [Decimal(amount) for amount in ("0.07", "0.13", "0.35")] * 180
    Payment.objects.bulk_create(
        Payment(
            assignment=Assignment.objects.of(batch).first(),
            purpose=bonus_purpose(f"{REASON} {n}"),
            amount_usd=amount_usd,
            fee_usd=Decimal("0.01"),
            reason=f"{REASON} {n}",
            state="confirmed",
        )
        for n, amount_usd in enumerate(amounts)
    )
    spend = spend_of(batch)
    assert (spend.bonuses_usd, spend.bonus_fees_usd) == (Decimal("99.00"), Decimal("5.40"))
    [commitment] = commitments(Batch.objects.all())
    assert commitment.usd == commitment.usd.quantize(Decimal("0.01"))


def test_the_same_bonus_is_not_requested_twice_and_another_is(batch, three_bonuses):
    first = Assignment.objects.of(batch).first()
    assert bonus(first) is None
    assert bonus(first, "2.00", f"  {REASON.replace(' ', '  ')} ") is None
    assert bonus(first, reason="Second round.") is not None


@pytest.mark.parametrize("fault", [answer_lost, unreachable])
@pytest.mark.parametrize("days", [0, 3])
def test_after_a_lost_answer_the_marketplace_is_asked_before_a_payment_is_sent_again(
    three_bonuses, batch, client, wire, fault, days
):
    """Also after a day, when the token is forgotten."""
    wire.fail("SendBonus", fault, at=2)
    with pytest.raises(MarketplaceUnreachable):
        send_payments(batch=batch, client=client)
    assert states() == ["confirmed", "intended", "intended"]
    if days:
        BonusPayment.objects.update(unique_request_token=None)
        Payment.objects.update(first_sent_at=timezone.now() - timedelta(days=days))
    wire.calls.clear()
    assert send_payments(batch=batch, client=client).n_paid == 2
    assert wire.calls["ListBonusPayments"] >= 1
    assert wire.calls["SendBonus"] == (1 if fault is answer_lost else 2)
    assert len(bonuses_there()) == 3
    assert states() == ["confirmed"] * 3
    assert balance_of(client) == ("5.50", "3.00")


def test_what_boto3_sent_twice_is_paid_once(three_bonuses, batch, keys):
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])
    wire = Wire(connect(key=key, endpoint_url=ENDPOINT_URL))
    wire.fail("SendBonus", answer_lost, at=2)
    assert send_payments(batch=batch, client=wire.client).n_paid == 3
    assert wire.calls["SendBonus"] == 4
    assert len(bonuses_there()) == 3


def test_throttling_leaves_what_is_not_sent_for_the_next_run(three_bonuses, batch, client, wire):
    wire.fail("SendBonus", refusal("ThrottlingException"), at=2)
    with pytest.raises(MarketplaceRefused) as error:
        send_payments(batch=batch, client=client)
    assert error.value.is_momentary
    assert states() == ["confirmed", "intended", "intended"]
    send_payments(batch=batch, client=client)
    assert (states(), len(bonuses_there())) == (["confirmed"] * 3, 3)


def test_what_the_account_cannot_pay_is_refused_with_what_to_do_and_paid_later(batch, client, keys):
    first, second, _ = Assignment.objects.of(batch)
    bonus(first, "50.00")
    bonus(second, "0.25")
    result = send_payments(batch=batch, client=client)
    assert (result.n_paid, result.n_refused, states()) == (1, 1, ["refused", "confirmed"])
    assert Payment.objects.first().problem
    assert bonus(first, "0.75") is not None
    assert send_payments(batch=batch, client=client).n_paid == 1
    assert [str(amount) for amount, _ in bonuses_there()] == ["0.25", "0.75"]


@pytest.mark.parametrize("is_approved", [False, True])
def test_part_of_a_reward_is_paid_after_the_rejection_and_never_beside_an_approval(
    batch, client, is_approved
):
    first = Assignment.objects.of(batch).first()
    assignments = Assignment.objects.filter(pk=first.pk)
    part = {"purpose": PART, "amount_usd": Decimal("0.40"), "reason": "Half is missing."}
    request_payment(assignment=first, **part)
    decision, feedback = (APPROVE, "") if is_approved else (REJECT, "Half is missing.")
    decide(assignments=assignments, decision=decision, feedback=feedback)
    if not is_approved:
        assert send_payments(batch=batch, client=client).n_paid == 0
    send_decisions(batch=batch, client=client)
    result = send_payments(batch=batch, client=client)
    payment = Payment.objects.get()
    if is_approved:
        assert (result.n_refused, payment.state) == (1, DeliveryState.REFUSED)
        assert payment.problem
        assert bonuses_there() == []
    else:
        assert result.n_paid == 1
        assert balance_of(client) == ("7.60", "2.00")


def test_an_amount_or_a_reason_that_no_marketplace_takes_is_refused(batch):
    first = Assignment.objects.of(batch).first()
    for amount in ("0", "0.001", "-1", "0.015", "10000.01"):
        with refused(PaymentRefused, "amount"):
            bonus(first, amount)
    for reason, code in (
        ("", "no_reason"), ("  ", "no_reason"), ("x" * 4097, "reason_characters"),
        ("bell \7", "reason_characters"),
    ):  # fmt: skip
        with refused(PaymentRefused, code):
            bonus(first, reason=reason)
    assert not Payment.objects.exists()
    batch.connection.fees = "mturk"
    batch.connection.save()
    payment = bonus(Assignment.objects.of(batch).first(), "0.63")
    assert payment.fee_usd == Decimal("0.13")

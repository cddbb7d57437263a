"""Bonuses in the currency of a recruiter's account, which the protocol's dollars cannot say."""

from decimal import Decimal

import pytest

from marketplace.models import Intent, LedgerTransaction, RecruiterCharge
from marketplace.recruiting.calls import call_recruiters
from tests.marketplace.prolific import hand_in, minutes, paid, session_of


@pytest.fixture
def facts(fake, posted):
    """A bonus for somebody who has finished and is approved."""
    submission = hand_in(fake, posted)
    fake.world.approve(submission)
    call_recruiters()
    worker = session_of(submission).worker
    return {
        "study": posted.token,
        "worker_id": worker.worker_id,
        "amount": "0.75",
        "currency": "GBP",
        "reason": "Careful reasons.",
        "request_token": "b1",
    }


@pytest.mark.slow
def test_a_bonus_in_pounds_is_paid_once_however_often_it_is_said(ask, facts, fake):
    movements = LedgerTransaction.objects.count()
    first = ask("/bonus", **facts)
    assert ask("/bonus", **facts) == first
    assert first[0] == 200
    minutes(3)
    assert paid(fake, "bonus") == [Decimal(100)]  # pence, with a fee of a third
    assert Intent.objects.get(kind="bonus").state == "done"
    assert RecruiterCharge.objects.filter(kind="bonus").count() == 1
    assert LedgerTransaction.objects.count() == movements
    status, answer = ask("/bonus", **facts | {"amount": "0.80"})
    assert (status, answer["code"]) == (400, "token_used")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"currency": "USD"}, "other_currency"),
        ({"amount": "0"}, "bad_amount"),
        ({"amount": "0.755"}, "bad_amount"),
        ({"worker_id": "NOBODY"}, "unknown_participant"),
        ({"study": "none"}, "channel_does_not_exist"),
        ({"reason": ""}, "bad_text"),
    ],
)
def test_a_bonus_that_cannot_be_is_refused(ask, facts, changed, code):
    status, answer = ask("/bonus", **facts | changed)
    assert (status, answer["code"]) == (400, code)
    assert not Intent.objects.filter(kind="bonus").exists()

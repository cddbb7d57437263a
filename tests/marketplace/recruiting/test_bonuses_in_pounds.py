"""Bonuses in the currency of a recruiter's account, which the protocol's dollars cannot say."""

import json
from decimal import Decimal

import pytest

from marketplace.models import Intent, LedgerTransaction, RecruiterCharge, Session
from marketplace.recruiting.calls import call_recruiters
from tests.marketplace.recruiting.test_recruiting_api import ask
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
    assert (status, "another bonus" in answer["error"]) == (400, True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"currency": "USD"}, "is in GBP"),
        ({"amount": "0"}, "whole cents"),
        ({"amount": "0.755"}, "whole cents"),
        ({"worker_id": "NOBODY"}, "no participant of this study"),
        ({"study": "none"}, "does not exist"),
        ({"reason": ""}, "'reason' must be a text"),
    ],
)
def test_a_bonus_that_cannot_be_is_refused_in_words(ask, facts, changed, said):
    status, answer = ask("/bonus", **facts | changed)
    assert (status, said in answer["error"]) == (400, True), json.dumps(answer)
    assert not Intent.objects.filter(kind="bonus").exists()

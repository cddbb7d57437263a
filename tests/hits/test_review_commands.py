"""The commands that decide and pay: each says first what it would do, and does it once."""

import json
from decimal import Decimal

import pytest
from django.core.management import CommandError

from hits.budgets import set_budget
from hits.collect import collect_batch
from hits.exceptions import (
    AssignmentsUnknown,
    BonusFileRefused,
    FeedbackUnfit,
    OverBudget,
    PaymentRefused,
    WorkerUnknown,
)
from hits.models import Assignment, Connection, Payment
from marketplace.models import BonusPayment, WorkerBlock
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.hits.work import balance_of, hand_in, hit_on, published_batch, tables

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


@pytest.fixture
def ids(study, client, ann):
    """Three assignments of $1.00 that Ann has handed in and we have collected."""
    batch = published_batch(study, client, reward_usd="1.00")
    ids = [
        hand_in(ann, hit_on(batch, f"d{position}"), {"alpha": position, "beta": 50})
        for position in range(3)
    ]
    collect_batch(batch=batch, client=client)
    return ids


@pytest.fixture
def file(tmp_path, ids):
    path = tmp_path / "bonuses.csv"
    rows = [f"{ids[0]},0.25,Thanks.", f"{ids[1]},$0.50,Thanks."]
    path.write_text("\n".join(["assignment_id,amount_usd,reason", *rows]))
    return path


def statuses():
    return dict(Assignment.objects.values_list("assignment_id", "status"))


def report_of(command, *words, **options):
    return json.loads(command_output(command, "ratings", *words, json=True, **options))


@pytest.mark.slow
def test_submissions_are_rejected_with_their_reason_and_a_part(ids, client):
    options = {"assignment": [ids[0]], "reason": "Half is missing.", "part": Decimal("0.40")}
    before = tables()
    for part in ("1.00", "400.00", "0.005", "0"):
        for dry_run in (True, False):
            wrong = options | {"part": Decimal(part), "dry_run": dry_run}
            with pytest.raises(PaymentRefused):
                command_output("reject_submissions", "ratings", **wrong)
    with refused(FeedbackUnfit, "no_feedback"):
        command_output("reject_submissions", "ratings", assignment=[ids[0]], reason=" ")
    with refused_naming(AssignmentsUnknown, "3NOSUCH"):
        command_output("reject_submissions", "ratings", assignment=["3NOSUCH"], reason="No.")
    preview = command_output("reject_submissions", "ratings", dry_run=True, **options)
    assert ("1" in preview.split(), "$0.40" in preview) == (True, True)
    assert tables() == before
    report = report_of("reject_submissions", **options)
    assert (report["n_rejected"], report["paid_usd"]) == (1, "0.40")
    assert statuses()[ids[0]] == "Rejected"
    assert balance_of(client) == ("7.60", "2.00")


@pytest.mark.slow
def test_a_part_needs_no_more_budget_than_the_reward_that_it_stands_for(ids, study, client):
    # Three assignments of $1.00 are committed, and no cent is left.
    set_budget(study=study, cap_usd=Decimal("3.00"), actor=None)
    options = {"assignment": [ids[0]], "reason": "Half is missing."}
    command_output("reject_submissions", "ratings", part=Decimal("0.40"), **options)
    assert statuses()[ids[0]] == "Rejected"
    # $2.40 are committed then; what is more is held to the budget.
    bonus = {"assignment": ids[1], "reason": "Thanks."}
    with pytest.raises(OverBudget):
        command_output("pay_bonuses", "ratings", amount=Decimal("0.70"), **bonus)
    command_output("pay_bonuses", "ratings", amount=Decimal("0.60"), **bonus)


@pytest.mark.slow
def test_bonuses_of_a_file_are_paid_once_however_often_it_is_given(ids, file, client):
    preview = command_output("pay_bonuses", "ratings", file, dry_run=True)
    assert ("$0.75" in preview, "$0.00" in preview) == (True, True)
    assert not BonusPayment.objects.exists()
    report = report_of("pay_bonuses", file)
    assert (report["n_paid"], report["paid_usd"]) == (2, "0.75")
    again = report_of("pay_bonuses", file)
    assert (again["n_paid"], len(again["problems"])) == (0, 2)
    assert balance_of(client) == ("6.25", "3.00")
    options = {"assignment": ids[2], "amount": Decimal("0.10"), "reason": "Thanks."}
    command_output("pay_bonuses", "ratings", **options)
    assert balance_of(client) == ("6.15", "3.00")
    with pytest.raises(CommandError):
        command_output("pay_bonuses", "ratings", assignment=ids[0])


@pytest.mark.slow
def test_what_is_paid_elsewhere_is_typed_first_and_paid_once(elsewhere, file):
    for typed in (None, Decimal("0.50"), Decimal("75")):
        with refused_naming(PaymentRefused, "--spend 0.75"):
            command_output("pay_bonuses", "ratings", file, spend=typed)
    assert not Payment.objects.exists()
    assert not BonusPayment.objects.exists()
    command_output("pay_bonuses", "ratings", file, spend=Decimal("0.75"))
    assert BonusPayment.objects.count() == 2
    # The second time there is nothing to spend, and so nothing to type.
    command_output("pay_bonuses", "ratings", file)
    assert BonusPayment.objects.count() == 2


@pytest.fixture
def elsewhere(ids):
    """The batch is on another marketplace, as its connection says."""
    Connection.objects.update(marketplace="there.example.org")


@pytest.mark.slow
def test_a_part_and_an_override_elsewhere_are_typed_first(elsewhere, ids):
    options = {"assignment": [ids[0]], "reason": "Half is missing."}
    with refused_naming(PaymentRefused, "--spend 0.40"):
        command_output("reject_submissions", "ratings", part=Decimal("0.40"), **options)
    assert statuses()[ids[0]] == "Submitted"
    command_output("reject_submissions", "ratings", **options)
    with refused_naming(PaymentRefused, "--spend 1.00"):
        command_output("override_rejections", "ratings", all=True)
    assert statuses()[ids[0]] == "Rejected"
    command_output("override_rejections", "ratings", all=True, spend=Decimal("1.00"))
    assert statuses()[ids[0]] == "Approved"


@pytest.mark.slow
def test_a_file_that_cannot_be_paid_is_refused_whole(ids, tmp_path):
    path = tmp_path / "wrong.csv"
    for content, code, shown in (
        ("assignment_id,amount_usd\nA,1", "missing_column", "reason"),
        ("assignment_id,amount_usd,reason\nA,much,Thanks", "not_an_amount", "'much'"),
        ("assignment_id,amount_usd,reason\nA,1,T\nA,2,T", "named_twice", path.name),
    ):
        path.write_text(content)
        with refused(BonusFileRefused, code) as error:
            command_output("pay_bonuses", "ratings", path)
        assert shown in str(error.value)
    assert not BonusPayment.objects.exists()


@pytest.mark.slow
def test_a_worker_is_blocked_and_unblocked(ids, ann):
    words = ("block_worker", "ratings", ann.worker_id)
    with pytest.raises(CommandError):
        command_output(*words)
    with refused_naming(WorkerUnknown, "A0NOBODY"):
        command_output("block_worker", "ratings", "A0NOBODY", reason="No.")
    command_output(*words, reason="Random answers.", dry_run=True)
    assert not WorkerBlock.objects.exists()
    command_output(*words, reason="Random answers.")
    assert WorkerBlock.objects.get().reason == "Random answers."
    command_output(*words, unblock=True)
    assert not WorkerBlock.objects.exists()

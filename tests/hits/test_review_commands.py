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
from tests.hits.work import balance_of, hand_in, hit_on, published_batch, tables

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def site(live_server, keys, settings):
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = keys["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys["secret_access_key"]


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


def test_submissions_are_rejected_with_their_reason_and_a_part(ids, client):
    options = {"assignment": [ids[0]], "reason": "Half is missing.", "part": Decimal("0.40")}
    before = tables()
    preview = command_output("reject_submissions", "ratings", dry_run=True, **options)
    assert preview == "Would reject 1 assignment, with $0.40 paid in parts. Nothing was sent.\n"
    assert tables() == before
    report = json.loads(command_output("reject_submissions", "ratings", json=True, **options))
    assert (report["n_rejected"], report["paid_usd"]) == (1, "0.40")
    assert statuses()[ids[0]] == "Rejected"
    assert balance_of(client) == ("7.60", "2.00")


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("part", ["1.00", "400.00", "0.005", "0"])
def test_a_part_is_less_than_the_reward_and_in_cents(ids, client, part, dry_run):
    before = tables()
    with pytest.raises(PaymentRefused):
        command_output(
            "reject_submissions",
            "ratings",
            assignment=[ids[0]],
            reason="Half is missing.",
            part=Decimal(part),
            dry_run=dry_run,
        )
    assert tables() == before


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


def test_a_rejection_needs_a_reason(ids):
    with pytest.raises(FeedbackUnfit):
        command_output("reject_submissions", "ratings", assignment=[ids[0]], reason=" ")


def test_bonuses_of_a_file_are_paid_once_however_often_it_is_given(ids, file, client):
    preview = command_output("pay_bonuses", "ratings", file, dry_run=True)
    assert "Would pay 2 bonuses, $0.75 and $0.00 in fees" in preview
    assert not BonusPayment.objects.exists()
    assert "2 payments, $0.75" in command_output("pay_bonuses", "ratings", file)
    again = json.loads(command_output("pay_bonuses", "ratings", file, json=True))
    assert (again["n_paid"], len(again["problems"])) == (0, 2)
    assert balance_of(client) == ("6.25", "3.00")


def test_one_bonus_is_paid_by_its_assignment(ids, client):
    options = {"assignment": ids[2], "amount": Decimal("0.10"), "reason": "Thanks."}
    command_output("pay_bonuses", "ratings", **options)
    assert balance_of(client) == ("6.90", "3.00")


@pytest.fixture
def elsewhere(ids):
    """The batch is on another marketplace, as its connection says."""
    Connection.objects.update(marketplace="there.example.org")


@pytest.mark.parametrize("typed", [None, Decimal("0.50"), Decimal("75")])
def test_what_is_paid_elsewhere_is_typed_first(elsewhere, file, typed):
    with pytest.raises(PaymentRefused, match=r"\$0\.75 with fees .* --spend 0\.75"):
        command_output("pay_bonuses", "ratings", file, spend=typed)
    assert not Payment.objects.exists()
    assert not BonusPayment.objects.exists()


def test_what_was_typed_is_paid_elsewhere_once(elsewhere, file):
    command_output("pay_bonuses", "ratings", file, spend=Decimal("0.75"))
    assert BonusPayment.objects.count() == 2
    # The second time there is nothing to spend, and so nothing to type.
    command_output("pay_bonuses", "ratings", file)
    assert BonusPayment.objects.count() == 2


def test_a_part_and_an_override_elsewhere_are_typed_first(elsewhere, ids):
    options = {"assignment": [ids[0]], "reason": "Half is missing."}
    with pytest.raises(PaymentRefused, match=r"--spend 0\.40"):
        command_output("reject_submissions", "ratings", part=Decimal("0.40"), **options)
    assert statuses()[ids[0]] == "Submitted"
    command_output("reject_submissions", "ratings", **options)
    with pytest.raises(PaymentRefused, match=r"--spend 1\.00"):
        command_output("override_rejections", "ratings", all=True)
    assert statuses()[ids[0]] == "Rejected"
    command_output("override_rejections", "ratings", all=True, spend=Decimal("1.00"))
    assert statuses()[ids[0]] == "Approved"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("assignment_id,amount_usd\nA,1", "lacks the column reason"),
        ("assignment_id,amount_usd,reason\nA,much,Thanks", "Line 2.*'much' is not an amount"),
        ("assignment_id,amount_usd,reason\nA,1,T\nA,2,T", "twice for the same reason"),
    ],
)
def test_a_file_that_cannot_be_paid_is_refused_whole(ids, tmp_path, content, problem):
    path = tmp_path / "wrong.csv"
    path.write_text(content)
    with pytest.raises(BonusFileRefused, match=problem):
        command_output("pay_bonuses", "ratings", path)
    assert not BonusPayment.objects.exists()


def test_a_bonus_command_needs_a_file_or_an_assignment(ids):
    with pytest.raises(CommandError, match="Name a FILE"):
        command_output("pay_bonuses", "ratings", assignment=ids[0])


def test_rejections_are_overridden_and_paid(ids, client):
    two = [f"--assignment={one}" for one in ids[:2]]
    command_output("reject_submissions", "ratings", *two, "--reason=Too quick.")
    preview = command_output("override_rejections", "ratings", all=True, dry_run=True)
    assert preview == "Would override 2 rejections, $2.00. Nothing was paid.\n"
    report = json.loads(
        command_output("override_rejections", "ratings", assignment=[ids[0]], json=True)
    )
    assert report["n_overridden"] == 1
    assert [statuses()[one] for one in ids] == ["Approved", "Rejected", "Submitted"]
    assert "1 rejection overridden" in command_output("override_rejections", "ratings", all=True)
    assert balance_of(client) == ("7.00", "1.00")


def test_a_worker_is_blocked_and_unblocked(ids, ann):
    words = ("block_worker", "ratings", ann.worker_id)
    with pytest.raises(CommandError, match="--reason"):
        command_output(*words)
    assert "Nothing was sent." in command_output(*words, reason="Random answers.", dry_run=True)
    assert not WorkerBlock.objects.exists()
    assert "1 worker blocked" in command_output(*words, reason="Random answers.")
    assert WorkerBlock.objects.get().reason == "Random answers."
    command_output(*words, unblock=True)
    assert not WorkerBlock.objects.exists()


def test_approving_reports_as_json(ids, client):
    preview = json.loads(command_output("approve_study", "ratings", dry_run=True, json=True))
    assert (preview["batches"][0]["would_approve"], balance_of(client)[1]) == (3, "3.00")
    report = json.loads(command_output("approve_study", "ratings", json=True))
    assert report["batches"][0]["n_approved"] == 3
    assert balance_of(client) == ("7.00", "0.00")


def test_what_is_not_of_the_study_is_refused_by_name(ids):
    with pytest.raises(AssignmentsUnknown, match="3NOSUCH"):
        command_output("reject_submissions", "ratings", assignment=["3NOSUCH"], reason="No.")
    with pytest.raises(WorkerUnknown, match="A0NOBODY"):
        command_output("block_worker", "ratings", "A0NOBODY", reason="No.")

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
from hits.models import Assignment
from marketplace.models import BonusPayment, WorkerBlock
from tests.annotation.importing import told
from tests.hits.work import balance_of, hand_in, hit_on, published, tables

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def site(live_server, keys, settings):
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = keys["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys["secret_access_key"]


@pytest.fixture
def ids(study, client, ann):
    """Three assignments of $1.00 that Ann has handed in and we have collected."""
    batch = published(study, client, reward_usd="1.00")
    ids = [
        hand_in(ann, hit_on(batch, f"d{place}"), {"alpha": place, "beta": 50}) for place in range(3)
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
    preview = told("reject_submissions", "ratings", dry_run=True, **options)
    assert preview == "Would reject 1 assignments, with $0.40 paid in parts. Nothing was sent.\n"
    assert tables() == before
    report = json.loads(told("reject_submissions", "ratings", json=True, **options))
    assert (report["n_rejected"], report["paid_usd"]) == (1, "0.40")
    assert statuses()[ids[0]] == "Rejected"
    assert balance_of(client) == ("7.60", "2.00")


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("part", ["1.00", "400.00", "0.005", "0"])
def test_a_part_is_less_than_the_reward_and_in_cents(ids, client, part, dry_run):
    before = tables()
    with pytest.raises(PaymentRefused):
        told(
            "reject_submissions",
            "ratings",
            assignment=[ids[0]],
            reason="Half is missing.",
            part=Decimal(part),
            dry_run=dry_run,
        )
    assert tables() == before


def test_parts_are_held_to_the_budget(ids, study, client):
    # Three assignments of $1.00 are committed; a part counts beside the rejected one until then.
    set_budget(study=study, cap_usd=Decimal("3.20"), actor=None)
    before = tables()
    options = {"assignment": [ids[0]], "reason": "Half is missing."}
    with pytest.raises(OverBudget):
        told("reject_submissions", "ratings", part=Decimal("0.40"), **options)
    assert tables() == before
    told("reject_submissions", "ratings", part=Decimal("0.20"), **options)
    assert statuses()[ids[0]] == "Rejected"


def test_a_rejection_needs_a_reason(ids):
    with pytest.raises(FeedbackUnfit):
        told("reject_submissions", "ratings", assignment=[ids[0]], reason=" ")


def test_bonuses_of_a_file_are_paid_once_however_often_it_is_given(ids, file, client):
    preview = told("pay_bonuses", "ratings", file, dry_run=True)
    assert "Would pay 2 bonuses, $0.75 and $0.00 in fees" in preview
    assert not BonusPayment.objects.exists()
    assert "2 payments, $0.75" in told("pay_bonuses", "ratings", file)
    again = json.loads(told("pay_bonuses", "ratings", file, json=True))
    assert (again["n_paid"], len(again["problems"])) == (0, 2)
    assert balance_of(client) == ("6.25", "3.00")


def test_one_bonus_is_paid_by_its_assignment(ids, client):
    options = {"assignment": ids[2], "amount": Decimal("0.10"), "reason": "Thanks."}
    told("pay_bonuses", "ratings", **options)
    assert balance_of(client) == ("6.90", "3.00")


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
        told("pay_bonuses", "ratings", path)
    assert not BonusPayment.objects.exists()


def test_a_bonus_command_needs_a_file_or_an_assignment(ids):
    with pytest.raises(CommandError, match="Name a FILE"):
        told("pay_bonuses", "ratings", assignment=ids[0])


def test_rejections_are_overridden_and_paid(ids, client):
    two = [f"--assignment={one}" for one in ids[:2]]
    told("reject_submissions", "ratings", *two, "--reason=Too quick.")
    preview = told("override_rejections", "ratings", all=True, dry_run=True)
    assert preview == "Would override 2 rejections, $2.00. Nothing was paid.\n"
    report = json.loads(told("override_rejections", "ratings", assignment=[ids[0]], json=True))
    assert report["n_overridden"] == 1
    assert [statuses()[one] for one in ids] == ["Approved", "Rejected", "Submitted"]
    assert "1 rejections overridden" in told("override_rejections", "ratings", all=True)
    assert balance_of(client) == ("7.00", "1.00")


def test_a_worker_is_blocked_and_unblocked(ids, ann):
    words = ("block_worker", "ratings", ann.worker_id)
    with pytest.raises(CommandError, match="--reason"):
        told(*words)
    assert "Nothing was sent." in told(*words, reason="Random answers.", dry_run=True)
    assert not WorkerBlock.objects.exists()
    assert "1 workers blocked" in told(*words, reason="Random answers.")
    assert WorkerBlock.objects.get().reason == "Random answers."
    told(*words, unblock=True)
    assert not WorkerBlock.objects.exists()


def test_approving_reports_as_json(ids, client):
    preview = json.loads(told("approve_study", "ratings", dry_run=True, json=True))
    assert (preview["batches"][0]["would_approve"], balance_of(client)[1]) == (3, "3.00")
    report = json.loads(told("approve_study", "ratings", json=True))
    assert report["batches"][0]["n_approved"] == 3
    assert balance_of(client) == ("7.00", "0.00")


def test_what_is_not_of_the_study_is_refused_by_name(ids):
    with pytest.raises(AssignmentsUnknown, match="3NOSUCH"):
        told("reject_submissions", "ratings", assignment=["3NOSUCH"], reason="No.")
    with pytest.raises(WorkerUnknown, match="A0NOBODY"):
        told("block_worker", "ratings", "A0NOBODY", reason="No.")

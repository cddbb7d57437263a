from decimal import Decimal

import pytest

from annotation.access import give_to_team
from assay_client import InvalidRequest, LaunchHeld, RequestRefused
from hits import connections, models, progress
from hits.crowd import replay, simulated
from marketplace.models import Assignment, BonusPayment, Hit
from tests.annotation import importing, studies
from tests.codes import refused, refused_naming
from tests.marketplace.conftest import assert_ledger_balances

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
TERMS = {"how": "rest", "reward_usd": "0.20", "max_assignments": 2}


@pytest.fixture
def study(rosa, team, connection):
    study = studies.rating_study("ratings", owner=rosa)
    give_to_team(study=study, team=team, actor=rosa)
    return study


def let_a_crowd_work(study, site_url):
    replay.replay_group(
        hit_type_id=models.Batch.objects.of(study).latest("pk").hit_type_id,
        names=replay.crowd_names(2, seed=7),
        source=simulated.SimulatedAnswers(study, seed=7),
        site_url=site_url,
        total=6,
    )


def funds(connection):
    return connections.balance_usd(connections.client_of(connection))


def test_a_study_is_launched_answered_decided_on_and_read(client, study, live_server):
    mine = client.study("ratings")
    preview = mine.preview_launch(**TERMS)
    assert (preview.n_items, preview.total_usd, preview.faults) == (3, Decimal("1.20"), [])
    batch = mine.launch(preview)
    published = batch.record["batch"]
    assert (published["n_published"], published["reward_usd"]) == (3, "0.20")
    let_a_crowd_work(study, live_server.url)
    assert "6" in mine.collect().message
    waiting = mine.assignments()
    assert len(waiting) == 6
    assert set(waiting["price_usd"]) == {"0.20"}
    assert waiting["submitted_at"].dt.tz is not None
    rejected, *approved = waiting["id"]
    mine.decide(approved, "approve")
    summary = mine.decide([rejected], "reject", text="Not about the page.")
    assert (summary["numbers"], summary["total_usd"]) == ({"approve": 5, "reject": 1}, "1.00")
    result = mine.send(summary)
    assert (result["n_recorded"], result["problems"]) == (6, [])
    assert importing.numbers_in(result["message"]) == [5, 1]
    assert Assignment.objects.filter(status="Approved").count() == 5
    progress.fetch_statement(batch=models.Batch.objects.get())
    report = mine.batch(batch.id).record
    assert (report["spend"]["total_usd"], report["difference_usd"]) == ("1.00", "0.00")
    assert_ledger_balances()


def test_the_same_key_spends_once(client, study, connection, live_server):
    mine, before = client.study("ratings"), funds(connection)
    preview = mine.preview_launch(**TERMS)
    first, second = (mine.launch(preview, key="the pilot") for _ in range(2))
    assert first.id == second.id
    assert models.Batch.objects.count() == 1
    assert Hit.objects.count() == 3
    assert before - funds(connection) == preview.total_usd
    let_a_crowd_work(study, live_server.url)
    mine.collect()
    keys = list(mine.assignments()["id"])
    mine.decide(keys, "approve")
    summary = mine.decide(keys[:1], "bonus", text="Thank you.", amount_usd="0.50")
    for _ in range(2):
        assert mine.send(summary, key="all of it")["n_recorded"] == 7
    assert BonusPayment.objects.get().amount_usd == Decimal("0.50")
    assert before - funds(connection) == Decimal("1.70")
    with refused(RequestRefused, "idempotency_key_reused"):
        mine.send({"digest": "another"}, key="all of it")
    assert_ledger_balances()


def test_a_launch_at_another_price_over_budget_or_unconfirmed_is_refused(client, study, connection):
    mine = client.study("ratings")
    preview = mine.preview_launch(**TERMS)
    preview.terms["reward_usd"] = "0.30"
    with refused_naming(InvalidRequest, "$1.80"):
        mine.launch(preview)
    held = mine.preview_launch(**TERMS | {"budget_usd": "1.00"})
    assert held.faults
    with refused(LaunchHeld, "faults"):
        mine.launch(held)
    assert not models.Batch.objects.exists()
    models.Connection.objects.update(marketplace="marketplace.example.org")
    preview = mine.preview_launch(**TERMS)
    assert preview.needs_amount
    with refused(LaunchHeld, "unconfirmed_amount") as caught:
        mine.launch(preview)
    assert "confirm_usd='1.20'" in str(caught.value)


def test_a_batch_is_changed_at_the_price_of_its_preview(client, study, connection):
    mine, before = client.study("ratings"), funds(connection)
    batch = mine.launch(mine.preview_launch(**TERMS))
    assert batch.preview("more", n_more=1)["cost"]["total_usd"] == "0.60"
    batch.change("more", n_more=1)
    assert before - funds(connection) == Decimal("1.80")
    with pytest.raises(InvalidRequest):
        batch.change("more", n_more=0)
    batch.change("close")
    assert mine.batch(batch.id).record["batch"]["closed_at"]
    assert funds(connection) == before

"""Launches of samples, lists and the rest: each item once, however often and from wherever."""

from collections import Counter
from decimal import Decimal
from threading import Barrier, Thread

import pytest
from django.db import connection

from accounts.models import AuditEntry, User
from accounts.teams import create_team
from annotation.access import give_to_team
from annotation.models import Item
from hits.budgets import rooms_of, set_budget
from hits.exceptions import BatchUnfit, LaunchedMeanwhile, OverBudget
from hits.launch_plans import draft_batch, plan_batch
from hits.models import Batch, Hit
from hits.publish import publish_batch
from hits.selections import REST, draw, item_list, of_round, sample
from tests.annotation.importing import command_output
from tests.annotation.studies import rating_study
from tests.hits.work import hits_there


@pytest.fixture
def study(db):
    return rating_study(n_items=12, systems=["alpha"])


def draft(study, selection, **settings):
    terms = {"reward_usd": Decimal("0.05"), "max_assignments": 2} | settings
    texts = {"title": "Rate", "description": "Read and rate."}
    return draft_batch(study=study, selection=selection, **texts, **terms)


def keys_of(batch):
    return set(Hit.objects.of(batch).values_list("item__key", flat=True))


def planned_items():
    """How many HITs each item has."""
    return Counter(Hit.objects.values_list("item__key", flat=True))


def test_a_pilot_is_a_sample_that_its_seed_draws_again(study):
    first = plan_batch(draft=draft(study, sample(5, seed=7)), part=1).batch
    assert first.selection == {"n": 5, "seed": 7}
    rows = [(item.pk, item.key, "") for item in study.items.all()]
    assert {key for pk, key, _ in rows if pk in draw(rows, n_items=5, seed=7)} == keys_of(first)
    assert draw(rows, n_items=5, seed=7) != draw(rows, n_items=5, seed=8)


def test_a_sample_is_spread_over_the_conditions():
    rows = [(n, f"i{n}", "formal" if n < 20 else "informal") for n in range(24)]
    keys = draw(rows, n_items=6, seed=1)
    assert Counter(condition for pk, _, condition in rows if pk in keys) == {
        "formal": 3,
        "informal": 3,
    }
    assert len(draw(rows, n_items=20, seed=1)) == 20


def test_the_rest_is_what_the_pilot_left(study):
    pilot = plan_batch(draft=draft(study, sample(5, seed=7)), part=1).batch
    rest = plan_batch(draft=draft(study, REST), part=2).batch
    assert (pilot.part, rest.part) == (1, 2)
    assert not keys_of(pilot) & keys_of(rest)
    assert set(planned_items().values()) == {1}
    assert len(planned_items()) == 12


def test_a_list_of_items_is_launched_and_what_is_wrong_with_it_is_said_whole(study):
    batch = plan_batch(draft=draft(study, item_list(["d3", "d1", "d3"])), part=1).batch
    assert keys_of(batch) == {"d1", "d3"}
    with pytest.raises(BatchUnfit, match=r"no item 'x', 'y'\. .* there already for 'd1'"):
        plan_batch(draft=draft(study, item_list(["d1", "d2", "x", "y"])), part=2)


def test_a_second_round_asks_again_about_items_that_were_asked_about(study):
    pilot = plan_batch(draft=draft(study, sample(5, seed=7))).batch
    Hit.objects.of(pilot).update(hit_id="3PUBLISHED")
    plan_batch(draft=draft(study, REST))
    again = of_round(sample(3, seed=2), 1)
    second = plan_batch(draft=draft(study, again, round=2)).batch
    assert len(keys_of(second)) == 3
    assert keys_of(second) < keys_of(pilot)
    with pytest.raises(BatchUnfit, match=": 2 items have no HIT"):
        plan_batch(draft=draft(study, of_round(sample(3, seed=5), 1), round=2))


@pytest.mark.parametrize("n_items", [0, 13])
def test_a_sample_of_more_than_there_are_is_refused(study, n_items):
    with pytest.raises(BatchUnfit, match=": 12 items have no HIT"):
        plan_batch(draft=draft(study, sample(n_items, seed=7)), part=1)
    assert not Batch.objects.exists()


def test_the_same_launch_requested_twice_is_one(study):
    first = plan_batch(draft=draft(study, sample(5, seed=7)), part=1)
    second = plan_batch(draft=draft(study, sample(5, seed=7)), part=1)
    assert (first.is_new, second.is_new) == (True, False)
    assert first.batch == second.batch
    assert planned_items().total() == 5


def test_another_launch_made_for_the_same_moment_is_refused(study):
    plan_batch(draft=draft(study, sample(5, seed=7)), part=1)
    with pytest.raises(LaunchedMeanwhile, match="Nothing was launched now"):
        plan_batch(draft=draft(study, REST), part=1)
    with pytest.raises(LaunchedMeanwhile):
        plan_batch(draft=draft(study, sample(5, seed=7), reward_usd=Decimal("0.06")), part=1)
    assert planned_items().total() == 5


def test_nothing_is_planned_where_every_item_has_a_hit(study):
    plan_batch(draft=draft(study, REST), part=1)
    with pytest.raises(BatchUnfit, match=r"Every item .* round 1 already"):
        plan_batch(draft=draft(study, REST), part=2)
    assert plan_batch(draft=draft(study, REST, round=2), part=1).is_new


@pytest.mark.django_db(transaction=True)
def test_two_browsers_that_press_at_once_plan_each_item_once():
    study = rating_study(n_items=12, systems=["alpha"])
    drafts = [draft(study, sample(5, seed=7)) for _ in range(4)]
    together, plans = Barrier(4), []

    def press(mine):
        together.wait()
        plans.append(plan_batch(draft=mine, part=1))
        connection.close()

    threads = [Thread(target=press, args=[mine]) for mine in drafts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(plan.is_new for plan in plans) == [False, False, False, True]
    assert len({plan.batch.pk for plan in plans}) == 1
    assert planned_items().total() == 5


def test_an_item_imported_later_belongs_to_no_launch_of_some(study, client):
    batch = plan_batch(draft=draft(study, REST), part=1).batch
    item = Item.objects.create(study=study, key="later", position=99)
    publish_batch(batch=batch, client=client)
    assert not Hit.objects.filter(item=item).exists()
    assert len(hits_there(client)) == 12


def test_a_budget_is_a_hard_cap_on_what_is_committed(study):
    set_budget(study=study, cap_usd=Decimal("1.00"), actor=None)
    plan_batch(draft=draft(study, sample(5, seed=7)), part=1)
    [room] = rooms_of(study)
    assert (room.committed_usd, room.left_usd) == (Decimal("0.50"), Decimal("0.50"))
    with pytest.raises(OverBudget, match=r"study's budget is \$1\.00, of which \$0\.50"):
        plan_batch(draft=draft(study, REST), part=2)
    assert Batch.objects.count() == 1
    plan_batch(draft=draft(study, sample(5, seed=7)), part=2)
    assert rooms_of(study)[0].left_usd == 0


def test_a_teams_studies_share_its_budget(study):
    owner = User.objects.create_user("ada")
    team = create_team(name="Lab", owner=owner)
    other = rating_study("other", n_items=2, systems=["alpha"])
    for each in (study, other):
        give_to_team(study=each, team=team, actor=None)
    set_budget(team=team, cap_usd=Decimal("0.50"), actor=owner)
    plan_batch(draft=draft(other, REST), part=1, launched_by=owner)
    with pytest.raises(OverBudget, match="team's budget"):
        plan_batch(draft=draft(study, sample(4, seed=7)), part=1)
    plan_batch(draft=draft(study, sample(3, seed=7)), part=1, launched_by=owner)
    entries = AuditEntry.objects.of(team).filter(action="batch.launch")
    assert [entry.details["total_usd"] for entry in entries] == ["0.30", "0.20"]
    assert {entry.actor for entry in entries} == {owner}


def test_a_batchs_own_budget_holds_too(study):
    with pytest.raises(OverBudget, match="batch's budget"):
        plan_batch(draft=draft(study, REST), part=1, budget_usd=Decimal("1.19"))
    assert not Batch.objects.exists()
    plan_batch(draft=draft(study, REST), part=1, budget_usd=Decimal("1.20"))


@pytest.mark.django_db(transaction=True)
def test_launches_with_budgets_of_their_own_do_not_lock_each_other_out():
    """Each waits for the team's budget and for its log, in the same order."""
    owner = User.objects.create_user("ada")
    team = create_team(name="Lab", owner=owner)
    studies = [rating_study(f"s{n}", n_items=2, systems=["alpha"]) for n in range(4)]
    for each in studies:
        give_to_team(study=each, team=team, actor=None)
    set_budget(team=team, cap_usd=Decimal(9), actor=owner)
    drafts = [draft(each, REST) for each in studies]
    together, plans = Barrier(4), []

    def press(number, mine):
        together.wait()
        plans.append(plan_batch(draft=mine, part=1, budget_usd=Decimal(number) if number else None))
        connection.close()

    threads = [Thread(target=press, args=[n % 2, mine]) for n, mine in enumerate(drafts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(plans) == 4


@pytest.mark.django_db(transaction=True)
def test_two_launches_at_once_do_not_share_the_last_of_a_budget():
    study = rating_study(n_items=12, systems=["alpha"])
    other = rating_study("other", n_items=12, systems=["alpha"])
    owner = User.objects.create_user("ada")
    team = create_team(name="Lab", owner=owner)
    for each in (study, other):
        give_to_team(study=each, team=team, actor=None)
    set_budget(team=team, cap_usd=Decimal("1.50"), actor=owner)
    drafts = [draft(study, REST), draft(other, REST)]
    together, outcomes = Barrier(2), []

    def press(mine):
        together.wait()
        try:
            plan_batch(draft=mine, part=1)
            outcomes.append("planned")
        except OverBudget:
            outcomes.append("refused")
        connection.close()

    threads = [Thread(target=press, args=[mine]) for mine in drafts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["planned", "refused"]


@pytest.fixture
def site(live_server, keys, settings):
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = keys["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys["secret_access_key"]


@pytest.mark.django_db(transaction=True)
def test_the_command_launches_a_sample_and_then_the_rest(site, client):
    rating_study("ratings", n_items=12, systems=["alpha"])
    terms = {"reward": Decimal("0.05"), "assignments": 2}
    report = command_output("publish_study", "ratings", items=5, seed=3, json=True, **terms)
    assert '"hits": 5' in report
    assert '"total_usd": "0.50"' in report
    assert "0 HITs" in command_output("publish_study", "ratings", items=5, seed=3, **terms)
    assert "Published 7 HITs" in command_output("publish_study", "ratings", **terms)
    assert set(planned_items().values()) == {1}
    assert len(hits_there(client)) == 12

import json
from collections import Counter
from decimal import Decimal
from functools import partial
from threading import Barrier, Thread

import pytest
from django.db import connection

from accounts.models import AuditEntry, User
from accounts.teams import create_team
from annotation import access, frames, models
from hits import costs, exceptions, publications
from hits.models import Batch, Hit
from hits.plans import add_hits, draft_batch, plan_batch
from hits.selections import ALL_ITEMS, REST, draw, item_list, least_sure, of_round, sample
from metrics.models import ScoringRun
from metrics.stored_scores import write_scores
from tests.annotation.importing import command_output
from tests.annotation.studies import rate, rating_study
from tests.codes import refused
from tests.hits.work import hits_there


@pytest.fixture
def study(db):
    return rating_study(n_items=12, systems=["alpha"], conditions=("calm", "cross"))


def draft(study, selection, **settings):
    terms = {"reward_usd": Decimal("0.05"), "max_assignments": 2} | settings
    texts = {"title": "Rate", "description": "Read and rate."}
    return draft_batch(study=study, selection=selection, **texts, **terms)


def keys_of(batch):
    return set(Hit.objects.of(batch).values_list("item__key", flat=True))


def planned_items():
    """How many HITs each item has."""
    return Counter(Hit.objects.values_list("item__key", flat=True))


def press_at_once(*presses):
    """Call all from threads at the same moment; return what each returned, or the error's class."""
    together, results = Barrier(len(presses)), []

    def press(do):
        together.wait()
        try:
            results.append(do())
        except exceptions.OverBudget as error:
            results.append(type(error))
        connection.close()

    threads = [Thread(target=press, args=[do]) for do in presses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def team_of(owner, *studies):
    team = create_team(name="Lab", owner=owner)
    for each in studies:
        access.give_to_team(study=each, team=team, actor=None)
    return team


def test_a_pilot_is_a_sample_that_its_seed_draws_again(study):
    first = plan_batch(draft=draft(study, sample(5, seed=7)), part=1).batch
    assert first.selection == {"n": 5, "seed": 7}
    rows = [(item.pk, item.key, item.condition) for item in study.items.all()]
    assert {key for pk, key, _ in rows if pk in draw(rows, n_items=5, seed=7)} == keys_of(first)
    assert draw(rows, n_items=5, seed=7) != draw(rows, n_items=5, seed=8)
    # It is spread over the conditions.
    rows = [(n, f"i{n}", "formal" if n < 20 else "informal") for n in range(24)]
    keys = draw(rows, n_items=6, seed=1)
    conditions = Counter(condition for pk, _, condition in rows if pk in keys)
    assert conditions == {"formal": 3, "informal": 3}
    assert len(draw(rows, n_items=20, seed=1)) == 20


def test_the_rest_is_what_the_pilot_left_and_then_nothing_is_left(study, client):
    pilot = plan_batch(draft=draft(study, sample(5, seed=7)), part=1).batch
    rest = plan_batch(draft=draft(study, REST), part=2).batch
    assert (pilot.part, rest.part) == (1, 2)
    assert not keys_of(pilot) & keys_of(rest)
    assert (set(planned_items().values()), len(planned_items())) == ({1}, 12)
    with refused(exceptions.BatchUnfit, "nothing_left"):
        plan_batch(draft=draft(study, REST), part=3)
    assert plan_batch(draft=draft(study, REST, round=2), part=1).is_new
    # An item that is imported later belongs to none of them.
    item = models.Item.objects.create(study=study, key="later", position=99)
    publications.publish_batch(batch=rest, client=client)
    assert not Hit.objects.filter(item=item).exists()
    assert len(hits_there(client)) == 7


def test_a_list_of_items_is_launched_and_what_is_wrong_with_it_is_said_whole(study):
    batch = plan_batch(draft=draft(study, item_list(["d3", "d1", "d3"])), part=1).batch
    assert keys_of(batch) == {"d1", "d3"}
    with refused(exceptions.BatchUnfit, "items_unavailable") as error:
        plan_batch(draft=draft(study, item_list(["d1", "d2", "x", "y"])), part=2)
    assert all(f"'{key}'" in str(error.value) for key in ("d1", "x", "y"))
    assert "'d2'" not in str(error.value)


def test_a_second_round_asks_again_about_items_that_were_asked_about(study):
    for n_items in (0, 13):
        with refused(exceptions.BatchUnfit, "too_few_items") as error:
            plan_batch(draft=draft(study, sample(n_items, seed=7)), part=1)
        assert "12" in str(error.value)
    assert not Batch.objects.exists()
    pilot = plan_batch(draft=draft(study, sample(5, seed=7))).batch
    Hit.objects.of(pilot).update(hit_id="3PUBLISHED")
    plan_batch(draft=draft(study, REST))
    second = plan_batch(draft=draft(study, of_round(sample(3, seed=2), 1), round=2)).batch
    assert len(keys_of(second)) == 3
    assert keys_of(second) < keys_of(pilot)
    with refused(exceptions.BatchUnfit, "too_few_items") as error:
        plan_batch(draft=draft(study, of_round(sample(3, seed=5), 1), round=2))
    assert "2" in str(error.value)


def test_the_same_launch_requested_twice_is_one_and_another_is_refused(study):
    first = plan_batch(draft=draft(study, sample(5, seed=7)), part=1)
    second = plan_batch(draft=draft(study, sample(5, seed=7)), part=1)
    assert (first.is_new, second.is_new) == (True, False)
    assert first.batch == second.batch
    dearer = draft(study, sample(5, seed=7), reward_usd=Decimal("0.06"))
    for other in (draft(study, REST), dearer):
        with refused(exceptions.LaunchedMeanwhile, "launched_meanwhile"):
            plan_batch(draft=other, part=1)
    assert planned_items().total() == 5


@pytest.mark.django_db(transaction=True)
def test_two_browsers_that_press_at_once_plan_each_item_once():
    study = rating_study(n_items=12, systems=["alpha"])
    drafts = [draft(study, sample(5, seed=7)) for _ in range(4)]
    plans = press_at_once(*(partial(plan_batch, draft=mine, part=1) for mine in drafts))
    assert sorted(plan.is_new for plan in plans) == [False, False, False, True]
    assert (len({plan.batch.pk for plan in plans}), planned_items().total()) == (1, 5)


def test_a_budget_is_a_hard_cap_on_what_is_committed(study):
    with refused(exceptions.OverBudget, "batch_budget"):
        plan_batch(draft=draft(study, REST), part=1, budget_usd=Decimal("1.19"))
    assert not Batch.objects.exists()
    costs.set_budget(study=study, cap_usd=Decimal("1.00"), actor=None)
    plan_batch(draft=draft(study, sample(5, seed=7)), part=1, budget_usd=Decimal("0.50"))
    [room] = costs.rooms_of(study)
    assert (room.committed_usd, room.left_usd) == (Decimal("0.50"), Decimal("0.50"))
    with refused(exceptions.OverBudget, "study_budget") as error:
        plan_batch(draft=draft(study, REST), part=2)
    assert all(amount in str(error.value) for amount in ("$1.00", "$0.50", "$0.70"))
    assert Batch.objects.count() == 1
    plan_batch(draft=draft(study, sample(5, seed=7)), part=2)
    assert costs.rooms_of(study)[0].left_usd == 0


def test_a_teams_studies_share_its_budget(study):
    owner = User.objects.create_user("ada")
    other = rating_study("other", n_items=2, systems=["alpha"])
    team = team_of(owner, study, other)
    costs.set_budget(team=team, cap_usd=Decimal("0.50"), actor=owner)
    plan_batch(draft=draft(other, REST), part=1, launched_by=owner)
    with refused(exceptions.OverBudget, "team_budget"):
        plan_batch(draft=draft(study, sample(4, seed=7)), part=1)
    plan_batch(draft=draft(study, sample(3, seed=7)), part=1, launched_by=owner)
    entries = AuditEntry.objects.of(team).filter(action="batch.launch")
    assert [entry.details["total_usd"] for entry in entries] == ["0.30", "0.20"]
    assert {entry.actor for entry in entries} == {owner}


@pytest.mark.django_db(transaction=True)
def test_launches_with_budgets_of_their_own_do_not_lock_each_other_out():
    """Each waits for the team's budget and for its log, in the same order."""
    owner = User.objects.create_user("ada")
    studies = [rating_study(f"s{n}", n_items=2, systems=["alpha"]) for n in range(4)]
    costs.set_budget(team=team_of(owner, *studies), cap_usd=Decimal(9), actor=owner)
    drafts = [draft(each, REST) for each in studies]
    presses = [partial(plan_batch, draft=mine, part=1) for mine in drafts[:2]]
    presses += [
        partial(plan_batch, draft=mine, part=1, budget_usd=Decimal(1)) for mine in drafts[2:]
    ]
    assert [plan.is_new for plan in press_at_once(*presses)] == [True] * 4


@pytest.mark.django_db(transaction=True)
def test_two_launches_at_once_do_not_share_the_last_of_a_budget():
    owner = User.objects.create_user("ada")
    studies = [rating_study(f"s{n}", n_items=12, systems=["alpha"]) for n in range(2)]
    costs.set_budget(team=team_of(owner, *studies), cap_usd=Decimal("1.50"), actor=owner)
    drafts = [draft(each, REST) for each in studies]
    results = press_at_once(*(partial(plan_batch, draft=mine, part=1) for mine in drafts))
    assert (results.count(exceptions.OverBudget), Batch.objects.count()) == (1, 1)


@pytest.mark.slow
def test_the_command_launches_a_sample_and_then_the_rest(site, client):
    rating_study("ratings", n_items=12, systems=["alpha"])
    terms = {"reward": Decimal("0.05"), "assignments": 2, "json": True}

    def launch(**options):
        report = json.loads(command_output("publish_study", "ratings", **options, **terms))
        return report["hits"], report["total_usd"]

    assert launch(items=5, seed=3) == (5, "0.50")
    assert launch(items=5, seed=3) == (0, "0.00")
    assert launch() == (7, "0.70")
    assert set(planned_items().values()) == {1}
    assert len(hits_there(client)) == 12


def launched(study, selection, part=None):
    return plan_batch(draft=draft(study, selection, max_assignments=1), part=part).batch


def probabilities_of(batch):
    rows = models.SampledItem.objects.filter(sample=batch.item_sample)
    return dict(rows.values_list("item__key", "probability"))


def test_each_launch_stores_the_chances_of_its_items(study):
    pilot = launched(study, sample(4, seed=7), part=1)
    next_key = study.items.filter(hits=None).order_by("position").first().key
    listed = launched(study, item_list([next_key]), part=2)
    rest = launched(study, REST, part=3)
    assert set(probabilities_of(pilot).values()) == {4 / 12}
    assert set(probabilities_of(listed).values()) == {None}
    assert set(probabilities_of(rest).values()) == {1.0}
    assert [len(probabilities_of(batch)) for batch in (pilot, listed, rest)] == [4, 1, 7]
    samples = models.ItemSample.objects.order_by("number")
    assert [(one.number, one.method, one.seed, one.n_available) for one in samples] == [
        (1, "random", 7, 12), (2, "listed", None, 8), (3, "all", None, 7),
    ]  # fmt: skip
    assert probabilities_of(pilot).keys() == keys_of(pilot)


def test_each_condition_has_chances_of_its_own_if_the_sample_can_reach_it(study):
    study.items.filter(key__in=["d1", "d3", "d5", "d7"]).update(condition="calm")
    batch = launched(study, sample(4, seed=7), part=1)
    by_condition = {"calm": 2 / 10, "cross": 2 / 2}
    conditions = dict(study.items.values_list("key", "condition"))
    assert probabilities_of(batch) == {key: by_condition[conditions[key]] for key in keys_of(batch)}
    small = rating_study("small", n_items=2, systems=["alpha"], conditions=("calm", "cross"))
    assert set(probabilities_of(launched(small, sample(1, seed=7))).values()) == {None}
    # Items that are imported later join the sample of all.
    other = rating_study("other", n_items=2, systems=["alpha"])
    batch = launched(other, ALL_ITEMS)
    models.Item.objects.create(study=other, key="new", position=99)
    add_hits(batch=batch)
    assert probabilities_of(batch)["new"] == 1.0


def test_an_item_is_of_the_first_sample_that_sent_it(study):
    launched(study, sample(4, seed=7), part=1)
    later = launched(study, REST, part=2)
    first = study.items.get(key=first_key())
    models.SampledItem.objects.create(sample=later.item_sample, item=first, probability=0.9)
    design = frames.sample_design(study).set_index("item")
    assert (len(design), design.loc[first_key(), "batch"]) == (12, 1)
    assert frames.sample_design(study, 2).empty


def first_key():
    return Hit.objects.order_by("pk").first().item.key


def test_the_draw_that_follows_the_judge_is_the_same_until_a_rating_comes_in(study):
    values = {(f"d{n}", "alpha"): float(n) for n in range(12)}
    write_scores(study=study, metric="judge", signature="judge|v:1", values=values)
    run, question = ScoringRun.objects.get().pk, study.questions.get().pk
    chosen = least_sure(1, 3, run=run, question=question)
    with refused(exceptions.BatchUnfit, "pilot_too_small") as error:
        launched(study, chosen)
    assert "10" in str(error.value)
    for n in range(10):
        rate(study, "Ann", f"d{n}", {"alpha": 50 + n * n})
    first = launched(study, chosen, part=1)
    assert len(probabilities_of(first)) == 1
    assert launched(study, chosen, part=1) == first
    assert 0 < next(iter(probabilities_of(first).values())) <= 1
    with refused(exceptions.BatchUnfit, "selection_gone"):
        launched(study, least_sure(1, 3, run=run + 1, question=question), part=2)

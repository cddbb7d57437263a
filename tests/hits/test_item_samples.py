"""What a launch stores of its draw, and what the migration says of batches from before."""

from decimal import Decimal
from importlib import import_module

import pytest
from django.apps import apps

from annotation.item_samples import sample_design
from annotation.models import Item, ItemSample, SampledItem
from hits.exceptions import BatchUnfit
from hits.launch_plans import add_hits, draft_batch, plan_batch
from hits.models import Batch, Hit
from hits.selections import ALL_ITEMS, REST, item_list, least_sure, sample
from metrics.models import ScoringRun
from metrics.stored_scores import write_scores
from tests.annotation.studies import rate, rating_study
from tests.codes import refused

migration = import_module("hits.migrations.0022_samples_of_batches")


@pytest.fixture
def study(db):
    return rating_study(n_items=12, systems=["alpha"], conditions=("calm", "cross"))


def launched(study, selection, part=None):
    texts = {"title": "Rate", "description": "Read and rate."}
    terms = {"reward_usd": Decimal("0.05"), "max_assignments": 1, "selection": selection}
    return plan_batch(draft=draft_batch(study=study, **texts, **terms), part=part).batch


def probabilities_of(batch):
    rows = SampledItem.objects.filter(sample=batch.item_sample)
    return dict(rows.values_list("item__key", "probability"))


def test_each_launch_stores_the_chances_of_its_items(study):
    pilot = launched(study, sample(4, seed=7), part=1)
    listed = launched(study, item_list([next_key(study)]), part=2)
    rest = launched(study, REST, part=3)
    assert set(probabilities_of(pilot).values()) == {4 / 12}
    assert set(probabilities_of(listed).values()) == {None}
    assert set(probabilities_of(rest).values()) == {1.0}
    assert [len(probabilities_of(batch)) for batch in (pilot, listed, rest)] == [4, 1, 7]
    samples = ItemSample.objects.order_by("number")
    assert [(one.number, one.method, one.seed, one.n_available) for one in samples] == [
        (1, "random", 7, 12), (2, "listed", None, 8), (3, "all", None, 7),
    ]  # fmt: skip
    assert probabilities_of(pilot).keys() == keys_of(pilot)


def keys_of(batch):
    return set(Hit.objects.of(batch).values_list("item__key", flat=True))


def next_key(study):
    return study.items.filter(hits=None).order_by("position").first().key


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
    Item.objects.create(study=other, key="new", position=99)
    add_hits(batch=batch)
    assert probabilities_of(batch)["new"] == 1.0


def test_an_item_is_of_the_first_sample_that_sent_it(study):
    launched(study, sample(4, seed=7), part=1)
    later = launched(study, REST, part=2)
    SampledItem.objects.create(
        sample=later.item_sample, item=study.items.get(key=first_key()), probability=0.9
    )
    design = sample_design(study).set_index("item")
    assert (len(design), design.loc[first_key(), "batch"]) == (12, 1)
    assert sample_design(study, 2).empty


def first_key():
    return Hit.objects.order_by("pk").first().item.key


def test_the_draw_that_follows_the_judge_is_the_same_until_a_rating_comes_in(study):
    values = {(f"d{n}", "alpha"): float(n) for n in range(12)}
    write_scores(study=study, metric="judge", signature="judge|v:1", values=values)
    run, question = ScoringRun.objects.get().pk, study.questions.get().pk
    chosen = least_sure(1, 3, run=run, question=question)
    with refused(BatchUnfit, "pilot_too_small") as error:
        launched(study, chosen)
    assert "10" in str(error.value)
    for n in range(10):
        rate(study, "Ann", f"d{n}", {"alpha": 50 + n * n})
    first = launched(study, chosen, part=1)
    assert len(probabilities_of(first)) == 1
    assert launched(study, chosen, part=1) == first
    assert 0 < next(iter(probabilities_of(first).values())) <= 1
    with refused(BatchUnfit, "selection_gone"):
        launched(study, least_sure(1, 3, run=run + 1, question=question), part=2)


def test_the_migration_draws_again_and_claims_no_chance_where_the_draw_differs(study):
    batches = [
        launched(study, sample(4, seed=7), part=1),
        launched(study, sample(4, seed=8), part=2),
        launched(study, item_list([next_key(study)]), part=3),
        launched(study, REST, part=4),
    ]
    known = [probabilities_of(batch) for batch in batches]
    forget_samples()
    migration.write_samples(apps, None)
    assert [probabilities_of(Batch.objects.get(pk=batch.pk)) for batch in batches] == known
    samples = ItemSample.objects.order_by("number")
    assert [one.method for one in samples] == ["random", "random", "listed", "all"]
    assert [one.n_available for one in samples] == [12, 8, 4, 3]

    forget_samples()
    Hit.objects.filter(batch=batches[0]).first().delete()
    migration.write_samples(apps, None)
    first = Batch.objects.get(pk=batches[0].pk)
    assert list(probabilities_of(first).values()) == [None] * 3


def forget_samples():
    Batch.objects.update(item_sample=None)
    ItemSample.objects.all().delete()

"""The figures of a draft: what it costs, and which differences it can detect."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from accounts.models import User
from annotation import flags, models
from annotation.protocols.records import Pairs, ProtocolQuestion
from annotation.protocols.versions import current_document
from hits.study_sizes import study_size
from stats.inference.larger_studies import FamilyOfMeans, least_of_design
from stats.inference.two_systems import difference_of_systems
from tests.annotation.studies import rate, rating_study
from tests.hits.samples import lab_study

SYSTEMS = ("alpha", "beta", "gamma")
N_ITEMS = 40
LIKERT = ProtocolQuestion(
    name="helpful", kind="likert", wording="How helpful?", points=("no", "", "", "", "yes")
)
BEST = ProtocolQuestion(name="best", kind="preference", wording="Which is better?")


@pytest.fixture
def study(db):
    return lab_study(User.objects.create_user("rosa"), "mine", n_items=N_ITEMS, systems=SYSTEMS)


def planned(study, *, questions=(LIKERT,), n_annotators=3, most=None):
    document = current_document(study)
    completion = replace(document.completion, assignments_per_item=n_annotators)
    people = replace(document.qualifications, most_hits_per_worker=most)
    return replace(document, questions=questions, completion=completion, qualifications=people)


def rate_at_random(study, *, sd, n_annotators=8, seed=0):
    rng = np.random.default_rng(seed)
    for item in range(N_ITEMS):
        for number in rng.permutation(n_annotators)[:3]:
            values = np.clip(50 + sd * rng.normal(size=3), 0, 100)
            rate(study, f"Ann {number}", f"d{item}", dict(zip(SYSTEMS, values, strict=True)))


def test_assignments_cost_and_hourly_pay_follow_the_draft_and_the_teams_minimum(study):
    study.team.wage_floor_usd = Decimal(15)
    size = study_size(study, planned(study, n_annotators=4))
    assert (size.n_hits, size.n_assignments) == (N_ITEMS, 4 * N_ITEMS)
    assert size.cost_usd == size.reward_usd * size.n_assignments
    assert (size.least_hourly_usd, size.is_paid_too_little) == (15, False)
    assert size.hourly_usd >= 15


def test_more_annotators_or_fewer_systems_detect_smaller_differences_of_a_stated_default(study):
    three, five, two = (
        study_size(one, planned(one, n_annotators=n)).precision
        for one, n in [
            (study, 3),
            (study, 5),
            (rating_study("two", n_items=N_ITEMS, systems=SYSTEMS[:2]), 3),
        ]
    )
    assert (three.source, three.n_systems, three.alpha) == ("assumed", 3, pytest.approx(0.05 / 3))
    assert three.scale == (1, 5)
    assert five.difference < three.difference
    assert two.difference < three.difference
    best = planned(study, questions=(BEST,))
    sizes = [study_size(study, replace(best, pairs=each)) for each in (Pairs(), Pairs("balanced"))]
    assert [(each.n_hits, each.precision.n_items) for each in sizes] == [(120, 40), (40, 13)]
    assert 50 < sizes[0].precision.win_percent < sizes[1].precision.win_percent
    # Annotators with fewer HITs are more annotators.
    assert three.n_annotators == 12
    assert study_size(study, planned(study, most=3)).precision.n_annotators == N_ITEMS


@pytest.mark.django_db
def test_without_two_systems_or_a_question_on_each_response_nothing_is_claimed():
    for systems, question in (
        (SYSTEMS[:1], LIKERT),
        (SYSTEMS, replace(LIKERT, kind="short_text", points=())),
        (SYSTEMS, replace(LIKERT, about="item")),
    ):
        one = rating_study(f"s{question.kind}{len(systems)}{question.about}", systems=systems)
        assert study_size(one, planned(one, questions=(question,))).precision is None


def test_a_pilots_variance_replaces_the_default_and_another_scale_does_not(study):
    document = current_document(study)
    assumed = study_size(study, document).precision
    rate_at_random(study, sd=5)
    study.refresh_from_db()
    found = study_size(study, document).precision
    assert (found.source, found.n_judgments) == ("pilot", models.Judgment.objects.count())
    # Ratings that differ by 7 points instead of 35.
    assert found.difference == pytest.approx(assumed.difference / 5, rel=0.25)
    assert study_size(study, planned(study)).precision.source == "assumed"


def test_the_variance_is_the_rehearsals_until_there_is_a_pilot_and_the_panel_names_it(study):
    fields = {"n_items": N_ITEMS, "systems": SYSTEMS, "rehearsal_of": study}
    rehearsal = rating_study("mine-rehearsal-000001", **fields)
    rate_at_random(rehearsal, sd=10)
    client = Client()
    client.force_login(study.owner)

    def panel():
        cache.clear()
        answer = client.get(reverse("console:protocol-size", args=["mine"]))
        one = answer.context["size"].precision
        assert f'data-source="{one.source}"' in answer.content.decode()
        return one

    rehearsed = panel()
    assert (rehearsed.source, rehearsed.n_judgments) == ("rehearsal", 3 * 3 * N_ITEMS)
    rate_at_random(study, sd=5)
    measured = panel()
    assert measured.source == "pilot"
    assert measured.difference == pytest.approx(rehearsed.difference / 2, rel=0.25)
    # Ratings that say nothing about the question leave it to the rehearsal.
    models.Judgment.objects.of(study).delete()
    flags.count_judgments_change(study_ids=[study.pk])
    assert panel().source == "rehearsal"


@pytest.mark.parametrize("n_annotators", [18, 180])
def test_the_power_at_the_stated_difference_is_80_percent(n_annotators):
    """The test of results finds it about four times in five, in ratings of 60 items."""
    n_items, n_each, alpha = 60, 3, 0.05 / 3
    family = FamilyOfMeans(items=0.4, annotators=0.02, cells=1.2)
    least = least_of_design(
        family, n_items=n_items, n_annotators=n_annotators, n_each=n_each, alpha=alpha
    )
    rng, n_studies, n_found = np.random.default_rng(3), 300, 0
    item = np.repeat(np.arange(n_items), n_each)
    for _ in range(n_studies):
        people = rng.permutation(n_annotators)[np.arange(n_items * n_each) % n_annotators]
        half = least / 2 + 0.5 * (
            0.4**0.5 * rng.normal(size=n_items)[item]
            + 0.02**0.5 * rng.normal(size=n_annotators)[people]
            + 1.2**0.5 * rng.normal(size=len(item))
        )
        is_first, values = np.arange(2 * len(item)) < len(item), np.concatenate([half, -half])
        mean = difference_of_systems(np.tile(item, 2), np.tile(people, 2), is_first, values)
        n_found += mean.p < alpha
    assert n_found / n_studies == pytest.approx(0.8, abs=0.06)


def test_the_panel_follows_unsaved_values_in_few_statements_and_links_to_sample_sizes(
    study, django_assert_max_num_queries
):
    client = Client()
    client.force_login(study.owner)
    address = reverse("console:protocol-size", args=["mine"])
    client.get(address)
    with django_assert_max_num_queries(22):  # with session, user and access to the study
        answer = client.get(address)
    form = {"completion-assignments_per_item": "5", "n_questions": "1", "q0-about": "candidate"}
    form |= {"q0-name": "helpful", "q0-kind": "likert", "q0-wording": "How?"}
    form |= {"q0-n_points": "2", "q0-point0": "a", "q0-point1": "b"}
    changed = client.post(address, form)
    assert changed.context["size"].n_assignments == 5 * N_ITEMS
    assert changed.context["size"].precision.scale == (1, 2)
    assert current_document(study).completion.assignments_per_item == 3
    assert client.get(answer.context["query"]).context["answer"].size.n == N_ITEMS

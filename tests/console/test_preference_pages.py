"""A preference on the pages of agreement and adjudication: one choice of an item."""

import re

import pytest
from django.urls import reverse

from console.results import AGREEMENT, compute
from tests.console.filled import add_batch
from tests.console.test_results_page import preferred_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    study = preferred_study(researcher)
    compute(study, AGREEMENT)
    return study


@pytest.fixture
def view(rosa, study):
    def get_view(name):
        answer = rosa.get(reverse(f"console:{name}", args=[study.slug]))
        assert answer.status_code == 200
        return answer.context["view"]

    return get_view


def test_results_and_agreement_count_the_same_answers_about_the_same_items(view):
    results = view("results")
    shown = results.displayed
    assert (shown.n_judgments, shown.n_items, shown.n_annotators) == (36, 12, 3)
    assert results.study_question.is_one_choice
    for alpha in (results.alphas[0], view("agreement").coefficients[0].all):
        assert alpha.name == "krippendorff_alpha"
        assert (alpha.n_items, alpha.n_annotators, alpha.n_labels) == (12, 3, 36)


def test_no_candidate_of_a_preference_is_in_dispute(rosa, view, study):
    for name in ("agreement", "disagreement"):
        assert view(name).displayed.question.is_one_choice
    page = rosa.get(reverse("console:disagreement", args=[study.slug])).content.decode()
    assert "<table" not in page
    page = rosa.get(reverse("console:adjudication", args=[study.slug]))
    assert page.context["question"].is_one_choice
    assert 'name="threshold"' not in page.content.decode()


def test_what_to_buy_next_counts_answers_of_each_item(view, study):
    add_batch(study)
    verdict = view("results").verdict
    assert re.search(r"\b\d+ \S+ 100\b", verdict.chance + verdict.purchase)
    assert re.search(r"\b3\b", verdict.purchase)
    assert "%" not in verdict.purchase.replace("95 %", "")

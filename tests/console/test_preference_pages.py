"""A preference on the pages of agreement and adjudication: one choice of an item."""

import re

import pytest

from console.results import AGREEMENT, compute
from tests.console.filled import add_batch
from tests.console.test_results_page import preferred_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    study = preferred_study(researcher)
    compute(study, AGREEMENT)
    return study


def test_results_and_agreement_count_the_same_answers_about_the_same_items(page_text, study):
    results = page_text(study, "results")
    assert "36 answers about 12 items by 3 annotators." in results
    assert "Distributions 36 answers" in results
    assert ", n = 12 items" in results
    page = page_text(study, "agreement")
    assert "Items Annotators Answers Interval by" in page
    assert re.search(r"Krippendorff's alpha \S+ \[.+?\] 12 3 36 ", page)
    assert "Answers Median time" in page_text(study, "annotators")


def test_no_candidate_of_a_preference_is_said_to_come_into_dispute(page_text, study):
    for name in ("agreement", "disagreement"):
        page = page_text(study, name)
        assert "annotators are compared by item, and no candidate is in dispute by itself." in page
        assert "Candidates will appear here" not in page


def test_adjudication_says_that_preferences_are_not_adjudicated(page_text, study):
    page = page_text(study, "adjudication")
    assert "Preferences are not adjudicated: each is one annotator's choice among an" in page
    assert "0 of 0" not in page
    assert "Candidates will appear here" not in page
    assert "Disputed beyond" not in page


def test_what_to_buy_next_speaks_of_answers_as_the_page_does(page_text, study):
    add_batch(study)
    page = page_text(study, "results")
    advice = page[page.index("What to buy next") : page.index("What it rests on")]
    assert re.search(r"\(a net \d+ in 100 answers\)", advice)
    assert re.search(r"shows differences from about a net \d+ in 100 answers up", advice)
    assert "with 3 answers each as now" in advice
    assert "% of ratings" not in advice

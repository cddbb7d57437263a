"""The pages in the field's words: no code names, and errors that say what to do."""

import pytest
from django.test import Client
from django.urls import reverse

from console.results import compute
from tests.annotation.studies import rated_study
from tests.console.pages import words_of

pytestmark = pytest.mark.django_db


def test_how_an_interval_was_computed_is_written_out(rosa, researcher):
    study = rated_study(owner=researcher)
    compute(study, "agreement")
    words = words_of(rosa.get(reverse("console:agreement", args=[study.slug])).content.decode())
    assert "jackknife over items" in words
    assert "jackknife-t" not in words


def test_an_unexpected_error_says_so_and_what_to_do(db, settings):
    settings.ROOT_URLCONF = "tests.config.failing_urls"
    browser = Client(raise_request_exception=False, headers={"host": "localhost"})
    answer = browser.get("/broken/")
    assert answer.status_code == 500
    assert "Unexpected error." in answer.content.decode()

import re

import pytest
from django.core import signing
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect

from annotation.models import Judgment, Submission
from hits.models import Assignment
from hits.pages.protocol import SALT
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, rate_all, sign_in
from tests.console.conftest import PASSWORD


@pytest.fixture
def study(researcher):
    return rating_study("mine", owner=researcher, n_items=2, systems=("alpha", "beta"))


def page_of(study, name, *, token=None):
    item = study.items.first()
    return reverse(f"console:trial-{name}", args=[token or signing.dumps(item.pk, salt=SALT)])


def test_the_page_is_sandboxed_needs_a_token_and_says_what_could_not_be_read(rosa, study):
    browser = Client(headers={"host": "localhost"})
    answer = browser.get(page_of(study, "page"))
    assert answer["Content-Security-Policy"].startswith("sandbox allow-scripts")
    assert "Context 0" in answer.content.decode()
    assert browser.get(page_of(study, "page", token="made-up")).status_code == 404
    other = signing.dumps(study.items.first().pk, salt="another purpose")
    assert browser.get(page_of(study, "page", token=other)).status_code == 404
    answer = browser.post(page_of(study, "sent"), {"answer": '{"version": 1, "item": "<b>"}'})
    assert answer.context["sent"]["problem"]
    assert "<b>" not in answer.content.decode()
    empty = rating_study("empty", owner=study.owner, n_items=0)  # has nothing to try
    assert rosa.get(reverse("console:try", args=[empty.slug])).status_code == 404


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_researcher_answers_and_sees_what_would_be_sent(chromium, live_server, study, width):
    viewport = {"width": width, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto("/studies/mine/items/")
        page.locator("a[href$='/try/']").click()
        expect(page.locator("iframe#task")).to_be_visible()
        rate_all(page)
        assert accessibility_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        frame = page.frame_locator("iframe#task")
        frame.locator("#send [type=submit]").click()
        expect(frame.locator("table.sums tbody tr", has_text="appropriateness")).to_have_count(2)
        page.locator("a[href$='as=desktop']").click()
        expect(page.locator("iframe.trial.desktop")).to_be_visible()
        page.locator("a[rel=next]").click()
        expect(page.locator("iframe.trial.desktop")).to_have_attribute("title", re.compile("d1"))
    assert not Submission.objects.exists()
    assert not Judgment.objects.exists()
    assert not Assignment.objects.exists()

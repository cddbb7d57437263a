"""Downloads and reports in a real Chromium: every form is reached, and fits a phone."""

import pytest
from django.test import Client
from django.urls import reverse

from console.results import AGREEMENT, REPORT, compute
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.filled import scored_study

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = [{"width": 390, "height": 800}, {"width": 1280, "height": 900}]


@pytest.fixture
def page(chromium, live_server, settings):
    settings.SITE_URL = live_server.url
    with opened_page(chromium, base_url=live_server.url, viewport=SIZES[1]) as page:
        yield page


def check_accessible(page):
    for size in SIZES:
        page.set_viewport_size(size)
        assert accessibility_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_downloads_and_datasheets_are_reached_and_fit_a_phone(page, researcher, tmp_path):
    study = scored_study(owner=researcher)
    compute(study, AGREEMENT)
    compute(study, REPORT)
    sign_in(page, "/login/", "rosa", PASSWORD)
    page.goto(reverse("console:downloads", args=[study.slug]))
    check_accessible(page)
    page.locator("[name=license]").select_option("cc-by-4.0")
    with page.expect_download() as saved:
        page.locator("form:has([name=license]) button").press("Enter")
    assert saved.value.suggested_filename == "scored-dataset.zip"
    page.goto(reverse("console:report", args=[study.slug]))
    check_accessible(page)
    with page.expect_download() as saved:
        page.get_by_role("link", name="heds.html").press("Enter")
    path = tmp_path / "heds.html"
    saved.value.save_as(path)
    page.goto(path.as_uri())
    check_accessible(page)
    client = Client()
    client.force_login(researcher)
    for name in ("datasheet.html", "report.html"):
        where = reverse("console:report-file", args=[study.slug, name])
        path = tmp_path / name
        path.write_bytes(client.get(where).content)
        page.goto(path.as_uri())
        check_accessible(page)

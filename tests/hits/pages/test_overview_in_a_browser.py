import pytest
from django.urls import reverse

from hits.models import Hit
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.filled import add_assignment, add_batch
from tests.hits.pages.test_overview import N_ITEMS, answered_study, rehearse

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_overview_passes_axe_in_each_state_and_fits_a_telephone(
    chromium, live_server, researcher, settings
):
    settings.SITE_URL = live_server.url
    empty = rating_study("empty", owner=researcher)
    rehearsed = rating_study("rehearsed", owner=researcher, n_items=N_ITEMS)
    rehearse(rehearsed)
    study = answered_study(researcher, systems=tuple(f"s{n}" for n in range(9)))
    add_batch(study, n_published=3)
    for hit in Hit.objects.filter(batch__study=study).published():
        add_assignment(hit)
    few = answered_study(researcher, "few", n_items=4)
    for width in (1280, 390):
        viewport = {"width": width, "height": 900}
        with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
            sign_in(page, "/login/", "rosa", PASSWORD)
            for one in (empty, rehearsed, study, few):
                page.goto(reverse("console:study", args=[one.slug]))
                assert accessibility_problems(page) == []
                assert page.evaluate("document.documentElement.scrollWidth") == width
            page.goto(reverse("console:study", args=[study.slug]))
            hidden = page.locator("[data-panel=ranking] details li")
            assert hidden.count() == 3
            assert not hidden.first.is_visible()
            page.locator("[data-panel=ranking] summary").click()
            assert hidden.first.is_visible()

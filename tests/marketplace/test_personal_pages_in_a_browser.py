"""Privacy, a worker's data, erasure and payout at a telephone's width: axe, nothing too wide."""

import os
from pathlib import Path

import pytest

from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in
from tests.marketplace.conftest import HIT, PASSWORD, submit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURES = os.environ.get("PICTURES_FOLDER")
PAGES = ("privacy", "your-data", "your-data/erase", "profile", "payout", "messages", "erased")


def test_the_pages_are_accessible_at_390_pixels(chromium, live_server, mturk, worker):
    rejected = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    mturk.reject_assignment(AssignmentId=rejected, RequesterFeedback="Half is missing.")
    options = {"viewport": {"width": 390, "height": 844}}
    with opened_page(chromium, base_url=live_server.url, **options) as page:
        sign_in(page, "/worker/login/", "ada", PASSWORD)
        for name in PAGES:
            page.goto(f"/worker/{name}/")
            assert accessibility_problems(page, frames=False) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
            if PICTURES:
                take_pictures(page, name.replace("/", "-"))


def take_pictures(page, name):
    """At both widths, light and dark."""
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        for look in ("light", "dark"):
            page.emulate_media(color_scheme=look)
            page.screenshot(path=Path(PICTURES, f"{name}-{width}-{look}.png"), full_page=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 844})

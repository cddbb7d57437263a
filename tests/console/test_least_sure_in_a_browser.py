"""From the mean over all scored items to a launch where the judge is least sure, in a browser."""

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from console.results import VALIDATION, compute
from hits.models import Batch
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.test_launch_in_a_browser import (
    DESK,
    TELEPHONE,
    assert_in_order,
    background_worker,
)
from tests.console.test_least_sure import answer_all, launch, site, study

__all__ = ["site", "study"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("width", [DESK, TELEPHONE])
def test_a_sample_where_the_judge_is_least_sure_is_launched_at_its_price(
    width, chromium, live_server, rosa, study
):
    answer_all(study, launch(rosa, study, how="sample", n_items=20))
    compute(study, VALIDATION)
    call_command("run_worker", until_empty=True)
    viewport = {"width": width, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto(f"/studies/{study.slug}/validation/")
        page.locator("#estimated-mean summary").click()
        assert_in_order(page)
        page.locator("#estimated-mean a[href$='?where=unsure']").click()
        with background_worker():
            expect(page.locator("[name=how][value=unsure]")).to_be_checked()
            page.locator("#id_n_unsure").fill("7")
            # 7 HITs of one assignment at 0.12, without a fee here
            expect(page.locator("#price-unsure")).to_have_text("$0.84")
            assert_in_order(page)
            page.locator("button[form=launch-form].btn-primary").click()
            expect(page.locator("td a[href*='/batches/']")).to_have_count(2)
    batch = Batch.objects.latest("pk")
    assert (batch.item_sample.method, batch.item_sample.items.count()) == ("unsure", 7)

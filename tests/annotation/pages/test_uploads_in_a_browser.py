import os
import re
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import User
from annotation.models import Study
from tests.accessibility import accessibility_problems
from tests.annotation.importing import as_excel
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_immediate_tasks"),
]
SHOTS = os.environ.get("SCREENSHOTS")


HEADER = ("Dialog ID", "History", "Bot", "Text", "ms")
TURNS = "User: My flight {} was cancelled.\nAssistant: May I have your code?"
WORKBOOK = [
    (f"d{n}", TURNS.format(n), system, f"Answer {n} of a friendly bot.", n)
    for n in range(6)
    for system in ("alpha", "beta")
]


@pytest.fixture(params=[(1280, True), (390, True), (1280, False)], ids=["desk", "phone", "no-js"])
def page(request: pytest.FixtureRequest, chromium: Any, live_server: Any, researcher: User) -> Any:
    width, has_script = request.param
    size = {"width": width, "height": 900}
    options = {"base_url": live_server.url, "viewport": size, "java_script_enabled": has_script}
    with opened_page(chromium, **options) as page:
        sign_in(page, "/", researcher.username, PASSWORD)
        page.has_script = has_script
        yield page


def check(page: Page, name: str) -> None:
    if not page.has_script:
        return
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}-{page.viewport_size['width']}.png", full_page=True)
    assert accessibility_problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_excel_file_becomes_a_study_that_can_be_launched(page):
    check(page, "no-studies")
    page.locator(f"a[href='{reverse('console:new-study')}']").first.click()
    page.locator("[name=title]").fill("Airline help desk")
    page.locator("[name=template]").select_option("likert_agreement")
    content = as_excel([HEADER, *WORKBOOK])
    sent = {"name": "airline.xlsx", "mimeType": "application/octet-stream", "buffer": content}
    page.locator("input[type=file]").set_input_files(sent)
    check(page, "new-study")
    page.locator("form.new-study button").click()
    # Every column but the last has a name that is guessed; the text is put right by hand.
    expect(page.locator(".file-found")).to_contain_text("airline.xlsx")
    expect(page.locator("#use-2")).to_have_value("system")
    expect(page.locator(".go strong")).to_have_text(re.compile(r"^\D*6\D+12\D+2\D+$"))
    page.locator("#use-3").select_option("")
    if not page.has_script:
        page.locator("#mapping button").click()
    expect(page.locator("#upload-preview [role=alert]")).to_be_visible()
    check(page, "mapping-wrong")
    page.locator("#use-3").select_option("response")
    if not page.has_script:
        page.locator("#mapping button").click()
    expect(page.get_by_text("Answer 0 of a friendly bot.").first).to_be_visible()
    check(page, "mapping")
    page.locator(".go button").click()
    expect(page.get_by_role("heading", name="Airline help desk")).to_be_visible()
    study = Study.objects.get()
    assert (study.items.count(), study.protocols.count()) == (6, 1)
    check(page, "study")
    page.goto(f"/studies/{study.slug}/launch/")
    expect(page.locator("h1")).to_be_visible()
    page.goto(f"/studies/{study.slug}/items/")
    page.locator(f"a[href='{reverse('console:add-items', args=[study.slug])}']").click()
    check(page, "add-items")

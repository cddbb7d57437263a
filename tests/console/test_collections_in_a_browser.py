"""A collection in a browser: files sent, runs evaluated, pages on a desk and on a telephone."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.roles import Permission
from accounts.teams import create_team
from retrieval.models import Collection
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in
from tests.console.collection_addresses import PAGES_OF_A_COLLECTION, address_of
from tests.console.conftest import PASSWORD
from tests.console.evaluated_collection import evaluated_collection
from tests.console.test_layout_in_a_browser import sideways
from tests.pictures import keep_picture
from tests.retrieval.collections import add_file, qrels_text, run_text

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_immediate_tasks"),
]
DESK, TELEPHONE, SMALLEST = 1280, 390, 320
FILES = {name for name, needed in PAGES_OF_A_COLLECTION.items() if needed is Permission.EXPORT}
PICTURES = {name for name in PAGES_OF_A_COLLECTION if name.endswith("-picture")}
NO_PAGES = FILES | PICTURES | {"collection-work"}


@pytest.fixture
def page(chromium, live_server, researcher):
    """The researcher Rosa's browser."""
    viewport = {"width": DESK, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        yield page


@pytest.fixture
def team(researcher):
    return create_team(name="Lab", owner=researcher)


def sent_files():
    files = {"qrels.txt": qrels_text(), "bad.run": "t0 Q0 d1 1 high dense\n"}
    for tag, skill, seed in (("dense", 3.0, 1), ("bm25", 0.5, 2)):
        files[f"{tag}.run"] = run_text(tag, skill=skill, seed=seed)
    return [
        {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
        for name, text in files.items()
    ]


def test_a_collection_is_made_filled_and_evaluated_by_the_keyboard(page, team):
    page.goto("/collections/")
    page.locator("main a[href='/new-collection/']").first.press("Enter")
    page.locator("[name=name]").fill("Shoes")
    page.keyboard.press("Enter")
    page.wait_for_url("**/collections/shoes/files/")
    page.locator("[name=uploads]").set_input_files(sent_files())
    page.locator("form.narrow button").press("Enter")
    fault = page.locator(".notice.error").filter(has_text="bad.run")
    expect(fault.locator("li")).to_contain_text("1: ")
    fault.locator("form[action*='/remove/'] button").press("Enter")
    expect(fault).to_have_count(0)
    page.locator("a[href$='/evaluation/']").first.press("Enter")
    page.locator("#evaluate button").press("Enter")
    expect(page.locator("[data-code=best]")).to_contain_text("dense")
    page.locator("figure.chart canvas, figure.chart svg").first.wait_for()
    assert accessibility_problems(page) == []
    page.get_by_role("link", name="RR@10").press("Enter")
    expect(page.locator(".said-first")).to_contain_text("RR@10")
    assert Collection.objects.get().versions.count() == 1


def cut_choices(page):
    """What is chosen in a list and is wider than its box; captions of one word a line."""
    return page.evaluate(
        """() => {
          const pen = document.createElement("canvas").getContext("2d");
          const isCut = (list) => {
            const style = getComputedStyle(list);
            pen.font = style.font;
            const room = list.clientWidth - 16 - parseFloat(style.paddingLeft);
            return pen.measureText(list.selectedOptions[0]?.text ?? "").width > room;
          };
          const lists = [...document.querySelectorAll("select")].filter((one) => one.clientWidth);
          const narrow = [...document.querySelectorAll("caption")]
            .filter((one) => one.clientWidth && one.clientWidth < 0.6 * one.parentNode.clientWidth);
          return [...lists.filter(isCut).map((one) => one.selectedOptions[0].text),
                  ...narrow.map((one) => one.textContent.trim())];
        }"""
    )


def test_every_page_is_accessible_and_none_scrolls_sideways_on_a_telephone(page, team, researcher):
    collection = evaluated_collection(team, researcher)
    add_file(collection, "shoes.csv", "docno,title\nd1,Red boot\nd2,Blue shoe\n", kind="catalogue")
    wrong = {}
    where = {name: address_of(name) for name in PAGES_OF_A_COLLECTION.keys() - NO_PAGES}
    where |= {name: reverse(f"console:{name}") for name in ("collections", "new-collection")}
    for name, address in where.items():
        page.set_viewport_size({"width": DESK, "height": 900})
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        wrong[name] = accessibility_problems(page)
        keep_picture(page)
        for width in (SMALLEST, TELEPHONE):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(100)
            keep_picture(page)
            wrong[name] += [(width, each) for each in sideways(page)]
        wrong[name] += [(TELEPHONE, each) for each in cut_choices(page)]
    assert {name: problems for name, problems in wrong.items() if problems} == {}

import os
import re
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from annotation.models import Study, Upload
from annotation.uploads import IMPORT_UPLOAD, jobs_of_upload
from tests.accessibility import accessibility_problems
from tests.annotation.importing import as_excel, as_zip
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


def check(page: Page, name: str, *, frames: bool = False) -> None:
    if not page.has_script:
        return
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}-{page.viewport_size['width']}.png", full_page=True)
    # The annotator's page in the frame has tests of its own, and is looked at here once.
    assert accessibility_problems(page, frames=frames) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check_in_both_schemes(page: Page, name: str, *, frames: bool = False) -> None:
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        check(page, f"{name}-{scheme}", frames=frames)


def choose(page: Page, column: int, use: str) -> None:
    page.locator(f"#use-{column}").select_option(use)
    if not page.has_script:
        page.locator("#mapping button").click()


def seen(page: Page) -> Any:
    """The item as annotators see it."""
    return page.frame_locator("iframe.trial")


def send(page: Page, name: str, content: bytes) -> None:
    page.goto(reverse("console:new-study"))
    page.locator("[name=title]").fill("Fashion alternatives")
    sent = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.locator("input[type=file]").set_input_files(sent)
    page.locator("form.new-study button").click()
    expect(page.locator(".file-found")).to_contain_text(name)


COLOURS = ("#2a2a2d", "#6b4423", "#b98b5e", "#2c3e66", "#7a1f2b", "#444", "#987")
SHAPE = '<path d="M24 16H54V52l34 20v14H20z" fill="{}"/><text x="4" y="12" font-size="9">{}</text>'


def drawing(name: str, number: int) -> str:
    shape = SHAPE.format(COLOURS[number % 7], name)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 104">{shape}</svg>'


def fashion(*, has_problems: bool = False) -> bytes:
    """12 targets with 7 candidates, and their pictures in a folder; cells have the file names."""
    header = (
        *("topic", "target picture", "description", "candidate", "candidate picture"),
        *("candidate text", "price_eur"),
    )
    rows = [
        [f"T{n:02}", f"target{n:02}.svg", f"Women’s ankle boot, black leather, heel {n} cm",
         f"T{n:02}-C{c}", f"t{n:02}_c{c}.svg", f"Boot {c} for {n}, black suede", 19.9 + n + c]
        for n in range(1, 13) for c in range(1, 8)
    ]  # fmt: skip
    names = sorted({str(row[k]) for row in rows for k in (1, 4)})
    pictures = {f"pics/{name}": drawing(name, n) for n, name in enumerate(names)}
    if has_problems:
        rows[29][5] = rows[56][5] = ""
        rows[45][4:6] = rows[42][4:6]
        rows[70][4] = "gone.svg"
        pictures |= {f"old/{name}": drawing(name, 3) for name in names[:8]}
    return as_zip({"fashion.xlsx": as_excel([header, *rows], ["Candidates"]), **pictures})


def test_a_zip_with_pictures_in_a_folder_becomes_a_study_without_a_wrong_turn(page):
    send(page, "fashion.zip", fashion())
    expect(page.locator(".go strong")).to_have_text(re.compile(r"^\D*12\D+84\D*$"))
    if page.has_script:
        expect(seen(page).locator("img").first).to_be_visible()
        picture = "document.querySelector('img').naturalWidth"
        assert page.frames[1].evaluate(picture) > 0
    page.locator("[data-code=picture_folders] button").click()
    expect(page.locator("[data-code=picture_folders] [aria-pressed=true]")).to_be_visible()
    if page.has_script:
        page.wait_for_load_state("networkidle")
    check_in_both_schemes(page, "columns-fashion", frames=True)
    if page.has_script:
        page.locator("#next-item").click()
        expect(seen(page).get_by_text("heel 2 cm").first).to_be_visible()
    page.locator(".go button").click()
    page.wait_for_url("**/protocol/")
    study = Study.objects.get()
    assert (study.kind, study.items.count()) == ("alternatives", 12)


def test_problems_are_resolved_by_one_button_for_each_kind(page):
    send(page, "fashion.zip", fashion(has_problems=True))
    button = page.locator(".go button")
    expect(button).to_be_disabled()
    rows = page.locator(".to-resolve li[data-code]")
    assert [row.get_attribute("data-code") for row in rows.all() if row.is_visible()] == [
        *("several_pictures", "no_picture", "picture_folders"),
        *("candidate_without_text", "repeated_candidate"),
    ]
    check(page, "columns-problems")
    choose(page, 0, "")
    expect(page.locator("[data-code=no_item_column]")).to_be_visible()
    check(page, "columns-no-item")
    page.locator("#fix-no_item_column-1").press("Enter")
    expect(page.locator("#use-0")).to_have_value("item")
    for code in ("several_pictures", "no_picture", "repeated_candidate"):
        page.locator(f"#fix-{code}-1").press("Enter")
        expect(page.locator(f"#fix-{code}-1[aria-pressed=true]")).to_be_visible()
    expect(button).to_be_enabled()
    check(page, "columns-resolved")


def test_a_large_file_is_read_and_imported_in_view(page):
    header = ("No.", "context", "Bot A", "Bot B")
    rows = [(n, f"User: hello {n}", f"Reply A to {n}", f"Reply B to {n}") for n in range(1, 1201)]
    send(page, "bots.xlsx", as_excel([header, *rows]))
    expect(page.locator(".go .of-sample")).to_contain_text(re.compile(r"1,000\D+1,200"))
    expect(page.locator(".turn-pages")).to_contain_text("1,000")
    check_in_both_schemes(page, "columns-sample")
    upload = Upload.objects.get()
    jobs = jobs_of_upload(upload)
    now = timezone.now()
    times = {"started_at": now, "progress_at": now, "leased_until": now + timedelta(hours=1)}
    jobs.update(state="running", finished_at=None, n_done=800, n_total=0, **times)
    Upload.objects.update(n_rows=None)
    page.goto(page.url)
    expect(page.locator("#upload-job")).to_contain_text("800")
    expect(page.locator(".skeleton > li").first).to_be_visible()
    expect(page.locator(".go")).to_have_count(0)
    check_in_both_schemes(page, "columns-reading")
    Upload.objects.update(n_rows=1200)
    jobs.update(kind=IMPORT_UPLOAD, n_total=1200)
    page.goto(page.url)
    expect(page.locator("#upload-job")).to_contain_text(re.compile(r"800\D+1,200"))
    expect(page.locator("#mapping, .skeleton")).to_have_count(0)
    check_in_both_schemes(page, "columns-importing")


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
    choose(page, 3, "")
    # What is missing is asked for; it is not an error.
    expect(page.locator("[data-code=no_response]")).to_be_visible()
    expect(page.locator("[role=alert]:not([hidden])")).to_have_count(0)
    expect(page.locator(".go button")).to_be_disabled()
    check_in_both_schemes(page, "columns-no-response")
    choose(page, 3, "response")
    expect(page.locator(".go button")).to_be_enabled()
    if page.has_script:
        # Sent with the preview: the reason of the column, and that the choice is stored.
        expect(page.locator("#why-3")).not_to_have_class(re.compile("changed"))
        choose(page, 4, "condition")
        expect(page.locator("#why-4")).to_have_class(re.compile("changed"))
        expect(page.locator("#mapping-saved .good")).to_be_visible()
        choose(page, 4, "")
        expect(seen(page).get_by_text("Answer 0 of a friendly bot.").first).to_be_visible()
    check(page, "columns")
    page.locator(".go button").click()
    page.wait_for_url("**/protocol/")
    study = Study.objects.get()
    assert (study.items.count(), study.protocols.count()) == (6, 1)
    check(page, "study")
    page.goto(f"/studies/{study.slug}/launch/")
    expect(page.locator("h1")).to_be_visible()
    page.goto(f"/studies/{study.slug}/items/")
    page.locator(f"a[href='{reverse('console:add-items', args=[study.slug])}']").click()
    check(page, "add-items")

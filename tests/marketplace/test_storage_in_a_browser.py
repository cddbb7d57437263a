"""Storage for pages that have none of their own, in a real Chromium: what a worker has entered
outlives a reload, and stays with the worker and the requester it belongs to."""

import pytest
from playwright.sync_api import expect

from tests.browsers import wait_until
from tests.marketplace.conftest import HIT, question_with

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# As pages are written that run where storage is a matter of course.
NOTES = """<!doctype html><html lang="en"><title>Task</title><form method="post"
action="https://www.mturk.com/mturk/externalSubmit"><input name="assignmentId" type="hidden">
<label>Notes <textarea name="notes"></textarea></label></form><script>
const notes = document.querySelector("textarea");
document.title = document.compatMode;
notes.value = localStorage.getItem("notes") ?? "";
notes.addEventListener("input", () => {
  localStorage.notes = notes.value;
  sessionStorage["seen"] = "yes";
});
</script></html>"""


@pytest.fixture
def page(worker_page):
    return worker_page


def publish(client):
    return client.create_hit(**HIT | {"Question": question_with(NOTES)})["HIT"]["HITId"]


def accept(page, hit_id):
    page.goto(f"/worker/hits/{hit_id}/")
    page.locator("form.accept button").click()
    page.wait_for_url("**/worker/assignments/**")
    return page.frame_locator("iframe#task").get_by_label("Notes")


def in_frame(page, script):
    """What the script gives in the frame there is now, once its page is there."""
    return page.frame_locator("iframe#task").get_by_label("Notes").evaluate(script)


def enter(page, notes, text):
    notes.fill(text)
    wait_until(page, f"Object.values(sessionStorage).join().includes({text!r})")


def test_what_is_stored_outlives_a_reload(page, mturk):
    notes = accept(page, publish(mturk))
    enter(page, notes, "half a thought")
    for _ in range(2):
        page.reload()
        expect(notes).to_have_value("half a thought")
    enter(page, notes, "a whole thought")
    page.reload()
    expect(notes).to_have_value("a whole thought")
    assert in_frame(page, "[sessionStorage.seen, document.title]") == ["yes", "CSS1Compat"]


def test_another_requesters_page_finds_nothing(page, mturk, other_lab):
    enter(page, accept(page, publish(mturk)), "private")
    expect(accept(page, publish(other_lab))).to_have_value("")
    assert in_frame(page, "localStorage.length") == 0


def test_the_storage_behaves_as_browsers_do(page, mturk):
    accept(page, publish(mturk))
    assert in_frame(
        page,
        """() => {
          localStorage.setItem("a", 1);
          localStorage.b = "two";
          const seen = [{ ...localStorage }, localStorage.key(1), localStorage.getItem("c"),
            localStorage.c, "b" in localStorage, localStorage.length];
          delete localStorage.b;
          localStorage.removeItem("a");
          return [...seen, Object.keys(localStorage)];
        }""",
    ) == [{"a": "1", "b": "two"}, "b", None, None, True, 2, []]


def test_the_storage_is_bounded_as_browsers_bound_it(page, mturk):
    accept(page, publish(mturk))
    script = """() => { try { localStorage.big = "x".repeat(200_001); } catch (error) {
        return [error.name, localStorage.length]; } }"""
    assert in_frame(page, script) == ["QuotaExceededError", 0]
    in_frame(page, 'localStorage.big = "x".repeat(199_000)')
    wait_until(page, "Object.values(sessionStorage).join().length > 199_000")
    page.reload()
    wait_until(page, "document.getElementById('task').name !== ''")
    assert in_frame(page, "localStorage.big.length") == 199_000


def test_a_message_that_is_too_large_or_no_text_is_not_kept(page, mturk):
    accept(page, publish(mturk))
    page.evaluate(
        "window.seen = 0; window.addEventListener('message', () => { window.seen += 1; })"
    )
    for items in ('"x".repeat(500_001)', "{}", "7"):
        in_frame(
            page, f'parent.postMessage({{type: "assay:stored", token: "", items: {items}}}, "*")'
        )
    wait_until(page, "window.seen === 3")
    assert page.evaluate("sessionStorage.length") == 0

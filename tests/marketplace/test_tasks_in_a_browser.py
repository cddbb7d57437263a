"""The pages that requesters write, done by a worker in a real Chromium under the content policy."""

import json
import re

import pytest
from playwright.sync_api import expect

from marketplace.models import Assignment
from tests.browsers import opened_page, wait_until
from tests.marketplace import conftest, forms

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FORM = forms.form(
    "<Overview><Title>Judge a lamp</Title><Text>Think of your own hall.</Text></Overview>",
    forms.question("style", forms.selection("plain", "ornate")),
    forms.question(
        "colours",
        forms.selection("red", "green", "blue", counts=forms.TWO_OR_THREE, style="checkbox"),
    ),
    forms.question("room", forms.selection("hall", "attic", style="dropdown", other=forms.OTHER)),
    forms.question("price", forms.free_text("<IsNumeric minValue='1' maxValue='500'/>")),
    forms.question(
        "reason", forms.free_text("", "<NumberOfLinesSuggestion>3</NumberOfLinesSuggestion>")
    ),
)
CROWD_FORM = """<!doctype html><html lang="en"><title>Task</title>
<script src="https://assets.crowd.aws/crowd-html-elements.js"></script>
<crowd-form>
  <crowd-instructions link-text="View instructions"><short-summary>Be fair.</short-summary>
  </crowd-instructions>
  <crowd-classifier name="sentiment" categories="['Positive', 'Negative']" header="The tone?">
    <classification-target>I love it.</classification-target>
    <full-instructions header="How">Judge the tone alone.</full-instructions>
  </crowd-classifier>
  <crowd-radio-group label="Would you answer?">
    <crowd-radio-button name="yes" value="y">Yes</crowd-radio-button>
    <crowd-radio-button name="no" value="n">No</crowd-radio-button>
  </crowd-radio-group>
  <crowd-checkbox name="sure" value="certain">I am certain</crowd-checkbox>
  <crowd-slider name="fluency" min="0" max="10" step="1" value="3" label="Fluency"></crowd-slider>
  <crowd-input name="word" label="One word" required max-length="20"></crowd-input>
  <crowd-text-area name="why" label="Why" rows="2"></crowd-text-area>
  <label>Year <input type="number" name="year"></label>
  <input type="hidden" name="seen" value="no">
</crowd-form>
<script>
  document.querySelector("crowd-form").onsubmit = () => {
    document.querySelector("[name=seen]").value = "yes";
  };
</script></html>"""
PLAIN = """<!doctype html><html lang="en"><title>Task</title>
<script src="https://s3.amazonaws.com/mturk-public/externalHIT_v1.js"></script>
<form name="mturk_form" method="post" id="mturk_form"
      action="https://www.mturk.com/mturk/externalSubmit">
<input type="hidden" value="" name="assignmentId" id="assignmentId">
<label>Rating <input name="rating"></label><input type="submit" id="submitButton" value="Submit">
</form><script>turkSetAssignmentID();</script></html>"""


PICTURE = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01"
PICTURE += b"\x00\x01\x00\x00\x02\x02D\x01\x00;"
TASK = """<!doctype html><html lang="en"><title>Task</title><body>
<form method="post"><input type="hidden" name="assignmentId" id="key">
<label>Rating <input name="rating"></label><button>Submit</button></form>
<p id="origin"></p>
<script>
const query = new URLSearchParams(location.search);
document.getElementById("key").value = query.get("assignmentId");
document.forms[0].action = query.get("turkSubmitTo") + "/mturk/externalSubmit";
let cookies;
try { cookies = document.cookie } catch (error) { cookies = error.name }
document.getElementById("origin").textContent = `${self.origin} ${cookies}`;
</script></body></html>"""


@pytest.fixture
def page(worker_page):
    return worker_page


@pytest.fixture
def publish(mturk):
    def publish(html, times=1):
        for _ in range(times):
            mturk.create_hit(**conftest.HIT | {"Question": conftest.question_with(html)})

    return publish


def open_preview(page):
    page.goto("/worker/")
    page.locator("a[href*='/worker/groups/']").press("Enter")
    page.wait_for_url("**/worker/groups/**")


def accept(page):
    page.locator("form.accept button").press("Enter")
    page.wait_for_url("**/worker/assignments/**")


def message(page, code):
    return page.locator(f"[role=status][data-code={code}]")


def rate(page):
    frame = page.frame_locator("iframe#task")
    frame.get_by_label("Rating").fill("4")
    frame.get_by_label("Rating").press("Enter")


def answers():
    submitted = Assignment.objects.get()
    assert submitted.status == "Submitted"
    return dict(
        re.findall(
            "<QuestionIdentifier>(.*?)</QuestionIdentifier>(.*?)</Answer>",
            submitted.answer,
            re.DOTALL,
        )
    )


def test_a_question_form_is_done_by_the_keyboard(page, mturk):
    mturk.create_hit(**conftest.HIT | {"Question": FORM})
    open_preview(page)
    expect(page.get_by_role("radio", name="Choice plain")).to_be_disabled()
    conftest.check_accessible(page)
    accept(page)
    conftest.check_accessible(page)
    submit = page.locator("form.questions button")
    submit.press("Enter")
    expect(page.locator("#question-1-complaint")).to_have_attribute("data-code", "unanswered")
    expect(page.locator("#complaints")).to_be_focused()
    conftest.check_accessible(page)
    page.locator("#complaints a[href='#question-1']").press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("radio", name="Choice plain")).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    page.keyboard.type("The cellar")
    page.keyboard.press("Tab")
    page.keyboard.type("20")
    page.keyboard.press("Tab")
    page.keyboard.type("It is small.")
    page.keyboard.press("Tab")
    expect(submit).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/worker/")
    expect(message(page, "received")).to_be_visible()
    chosen = "<SelectionIdentifier>{}</SelectionIdentifier>".format
    assert answers() == {
        "style": chosen("ornate"),
        "colours": chosen("red") + chosen("blue"),
        "room": "<OtherSelectionText>The cellar</OtherSelectionText>",
        "price": "<FreeText>20</FreeText>",
        "reason": "<FreeText>It is small.</FreeText>",
    }


def test_a_crowd_form_posts_one_json_answer(page, publish):
    publish(CROWD_FORM)
    open_preview(page)
    frame = page.frame_locator("iframe#task")
    expect(frame.get_by_role("button", name="Submit")).to_be_disabled()
    accept(page)
    submit = frame.get_by_role("button", name="Submit")
    submit.press("Enter")
    expect(frame.get_by_role("alert").first).to_be_visible()
    conftest.check_accessible(page, frames=True)
    frame.get_by_role("radio", name="Negative").focus()
    page.keyboard.press("ArrowUp")
    expect(frame.get_by_role("radio", name="Positive")).to_be_checked()
    frame.get_by_role("radio", name="Yes").focus()
    page.keyboard.press("ArrowDown")
    expect(frame.get_by_role("radio", name="No", exact=True)).to_be_checked()
    frame.get_by_role("checkbox", name="I am certain").press("Space")
    frame.get_by_role("slider", name="Fluency").press("ArrowRight")
    frame.get_by_label("Why").fill("Love is\nlove.")
    frame.get_by_label("Year").fill("1999")
    submit.press("Enter")
    expect(frame.get_by_label("One word")).to_be_focused()
    page.keyboard.type("warm")
    submit.press("Enter")
    page.wait_for_url("**/worker/")
    free = re.fullmatch("<FreeText>(.*)</FreeText>", answers()["taskAnswers"], re.DOTALL)[1]
    assert json.loads(free) == [
        {
            "sentiment": {"label": "Positive"},
            "yes": {"y": False},
            "no": {"n": True},
            "sure": {"certain": True},
            "fluency": 4,
            "word": "warm",
            "why": "Love is\nlove.",
            "year": "1999",
            "seen": "yes",
        }
    ]


def test_a_flat_crowd_form_posts_an_answer_for_each_leaf(page, publish):
    flat = '<crowd-form answer-format="flatten-objects">'
    publish(
        '<!doctype html><title>Task</title><script src="https://assets.crowd.aws/'
        f'crowd-html-elements.js"></script>{flat}<label><input type="radio" name="tone" value="1">'
        'One</label><label><input type="radio" name="tone" value="2">Two</label></crowd-form>'
    )
    open_preview(page)
    accept(page)
    frame = page.frame_locator("iframe#task")
    frame.get_by_label("Two").check()
    frame.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/worker/")
    assert answers() == {
        "tone.1": "<FreeText>false</FreeText>",
        "tone.2": "<FreeText>true</FreeText>",
    }


def test_a_crowd_element_that_is_not_here_says_so_and_nothing_is_sent(page, publish):
    publish(
        '<!doctype html><title>Task</title><script src="https://assets.crowd.aws/'
        'crowd-html-elements.js"></script><crowd-form><crowd-bounding-box name="box">'
        "</crowd-bounding-box></crowd-form>"
    )
    open_preview(page)
    accept(page)
    frame = page.frame_locator("iframe#task")
    expect(frame.get_by_role("alert")).to_be_visible()
    frame.get_by_role("button", name="Submit").click()
    assert not frame.locator("crowd-form").evaluate("form => form.isSent")
    assert Assignment.objects.get().status == "Accepted"


def test_a_page_with_externalhit_v1_posts_here_and_auto_accept_leads_on(page, publish):
    publish(PLAIN, times=2)
    open_preview(page)
    expect(page.frame_locator("iframe#task").locator("#submitButton")).to_be_disabled()
    height = page.locator("iframe#task").evaluate("frame => frame.offsetHeight")
    assert height == 450  # as its requester wished
    accept(page)
    expect(page.locator("#time-left")).to_contain_text(re.compile("[0-9]"))
    page.locator("details.more summary").press("Enter")
    auto_accept = page.locator("#auto-accept [name=auto_accept]")
    with page.expect_response("**/auto-accept/"):
        auto_accept.check()
    page.keyboard.press("Escape")
    expect(auto_accept).to_be_hidden()
    page.locator("details.more summary").press("Enter")
    page.frame_locator("iframe#task").locator("body").click()
    expect(auto_accept).to_be_hidden()
    first = page.url
    for _ in range(2):
        here = page.url
        rate(page)
        page.wait_for_url(lambda url, here=here: url != here and "/next/" not in url)
        if here == first:
            expect(auto_accept).to_be_checked()
    page.wait_for_url("**/worker/")
    submitted = Assignment.objects.filter(status="Submitted")
    assert ["<FreeText>4</FreeText>" in each.answer for each in submitted] == [True, True]


SIGN_UP = ("username", "password1", "password2")


# Adds up the layout shifts that no input caused.
SHIFT = """new Promise((resolve) => new PerformanceObserver((list) => resolve(
  list.getEntries().reduce((sum, each) => sum + (each.hadRecentInput ? 0 : each.value), 0)
)).observe({type: "layout-shift", buffered: true}) || setTimeout(() => resolve(0), 500))"""


@pytest.mark.parametrize("language", ["en", "ar"])
def test_on_a_telephone_nothing_moves_and_every_target_is_large(page, mturk, language):
    title = "Rate three responses of a travel assistant to complaints about late trains"
    html = PLAIN.replace("<title>", f"{conftest.ESTIMATE}<title>")
    asked = conftest.question_with(html.replace('lang="en"', f'lang="{language}"'))
    for _ in range(3):
        mturk.create_hit(**conftest.HIT | {"Question": asked, "Title": title})
    page.set_viewport_size({"width": 390, "height": 844})
    open_preview(page)
    accept(page)
    expect(page.frame_locator("iframe#task").get_by_label("Rating")).to_be_visible()
    page.wait_for_timeout(1200)  # the clock has started
    assert page.evaluate(SHIFT) < 0.05
    expect(page.locator("html")).to_have_attribute("lang", language)
    assert page.locator("header progress").get_attribute("max") == "3"
    assert page.locator("header").bounding_box()["height"] <= 60
    page.locator("details.more > summary").click()
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        targets = page.locator("header :is(a, button, summary, label.choice)")
        sizes = [each.bounding_box() for each in targets.all() if each.is_visible()]
        assert len(sizes) >= 4
        assert min(size["height"] for size in sizes) >= 44
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        conftest.check_accessible(page)
    page.locator("button[form=return]").press("Enter")
    page.wait_for_url("**/worker/")


def sign_up(page, *values):
    page.goto("/worker/signup/")
    for name, value in zip(SIGN_UP, values, strict=True):
        page.locator(f"[name={name}]").fill(value)
    page.keyboard.press("Enter")


def test_a_worker_signs_up_works_and_is_led_on(chromium, live_server, publish):
    publish(TASK, times=2)
    with conftest.watched_page(chromium, base_url=live_server.url) as page:
        sign_up(page, "ada", "123", "123")
        expect(page.locator("#complaints")).to_be_focused()
        sign_up(page, "ada", conftest.PASSWORD, conftest.PASSWORD)
        page.wait_for_url("**/worker/")
        conftest.check_accessible(page)
        open_preview(page)
        conftest.check_accessible(page)
        for _ in range(2):
            accept(page)
            frame = page.frame_locator("iframe#task")
            expect(frame.locator("#origin")).to_have_text("null SecurityError")
            conftest.check_accessible(page)
            here = page.url
            rate(page)
            page.wait_for_url(lambda url, here=here: url != here and "/next/" not in url)
            expect(message(page, "receipt")).to_be_visible()
        page.wait_for_url("**/worker/")
        expect(message(page, "none_left")).to_be_visible()
        page.goto("/worker/dashboard/")
        expect(page.get_by_text("$1.26")).to_be_visible()
        conftest.check_accessible(page)
    assert [each.status for each in Assignment.objects.all()] == ["Submitted", "Submitted"]


def test_returning_coming_back_and_messages_from_elsewhere(page, publish):
    publish(TASK, times=2)
    open_preview(page)
    accept(page)
    page.locator("form.return button").press("Enter")
    expect(message(page, "returned")).to_be_visible()
    assert Assignment.objects.get().status == "Returned"
    open_preview(page)
    accept(page)
    here = page.url
    # This listener comes after the page's own, which has seen the message when this one has.
    page.evaluate(
        """() => new Promise((done) => {
          window.addEventListener("message", done);
          window.postMessage({type: "assay:submitted"}, "*");
        })"""
    )
    assert page.evaluate("Object.keys(sessionStorage)") == []
    assert page.url == here
    rate(page)
    page.wait_for_url("**/worker/groups/**")
    page.go_back()
    page.wait_for_url(f"{here}submitted/")


def test_a_page_elsewhere_and_a_forms_pictures_are_loaded(page, mturk):
    study = {"content_type": "text/html", "body": "<h1>A study</h1>"}
    page.route("https://study.example/**", lambda route: route.fulfill(**study))
    picture = {"content_type": "image/gif", "body": PICTURE}
    page.route("https://pictures.example/**", lambda route: route.fulfill(**picture))
    external = mturk.create_hit(**conftest.HIT | {"Question": conftest.EXTERNAL_QUESTION})["HIT"][
        "HITId"
    ]
    form_hit = mturk.create_hit(**conftest.HIT | {"Question": forms.FULL_FORM})["HIT"]["HITId"]
    page.goto(f"/worker/hits/{external}/")
    heading = page.frame_locator("iframe#task").get_by_role("heading", name="A study")
    expect(heading).to_be_visible()
    accept(page)
    expect(heading).to_be_visible()
    with page.expect_response("https://pictures.example/**"):
        page.goto(f"/worker/hits/{form_hit}/")


def test_a_page_that_breaks_the_policy_is_noticed(chromium, live_server, db):
    """The browser does say so, else the policy would be tested by nothing."""
    with opened_page(chromium, base_url=live_server.url) as page:
        lines = []
        page.on("console", lambda line: lines.append(line.text))
        page.goto("/worker/login/")
        page.evaluate("document.body.setAttribute('style', 'color: red')")
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))"
        )
        page.evaluate("fetch('https://elsewhere.example/').catch(() => {})")
        page.wait_for_timeout(500)
        assert len([line for line in lines if conftest.POLICY_COMPLAINT.search(line)]) >= 3


# Storage for pages that have none of their own


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


def publish_notes(client):
    return client.create_hit(**conftest.HIT | {"Question": conftest.question_with(NOTES)})["HIT"][
        "HITId"
    ]


def accept_notes(page, hit_id):
    page.goto(f"/worker/hits/{hit_id}/")
    page.locator("form.accept button").click()
    page.wait_for_url("**/worker/assignments/**")
    return page.frame_locator("iframe#task").get_by_label("Notes")


def in_frame(page, script):
    return page.frame_locator("iframe#task").get_by_label("Notes").evaluate(script)


def enter(page, notes, text):
    notes.fill(text)
    wait_until(page, f"Object.values(sessionStorage).join().includes({text!r})")


def test_what_is_stored_outlives_a_reload_and_another_requesters_page_finds_nothing(
    page, mturk, other_lab
):
    notes = accept_notes(page, publish_notes(mturk))
    enter(page, notes, "half a thought")
    for _ in range(2):
        page.reload()
        expect(notes).to_have_value("half a thought")
    enter(page, notes, "a whole thought")
    page.reload()
    expect(notes).to_have_value("a whole thought")
    assert in_frame(page, "[sessionStorage.seen, document.title]") == ["yes", "CSS1Compat"]
    expect(accept_notes(page, publish_notes(other_lab))).to_have_value("")
    assert in_frame(page, "localStorage.length") == 0


def test_the_storage_behaves_as_browsers_do(page, mturk):
    accept_notes(page, publish_notes(mturk))
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
    accept_notes(page, publish_notes(mturk))
    script = """() => { try { localStorage.big = "x".repeat(200_001); } catch (error) {
        return [error.name, localStorage.length]; } }"""
    assert in_frame(page, script) == ["QuotaExceededError", 0]
    in_frame(page, 'localStorage.big = "x".repeat(199_000)')
    wait_until(page, "Object.values(sessionStorage).join().length > 199_000")
    page.reload()
    wait_until(page, "document.getElementById('task').name !== ''")
    assert in_frame(page, "localStorage.big.length") == 199_000


def test_a_message_that_is_too_large_or_no_text_is_not_kept(page, mturk):
    accept_notes(page, publish_notes(mturk))
    page.evaluate(
        "window.seen = 0; window.addEventListener('message', () => { window.seen += 1; })"
    )
    for items in ('"x".repeat(500_001)', "{}", "7"):
        in_frame(
            page, f'parent.postMessage({{type: "assay:stored", token: "", items: {items}}}, "*")'
        )
    wait_until(page, "window.seen === 3")
    assert page.evaluate("sessionStorage.length") == 0

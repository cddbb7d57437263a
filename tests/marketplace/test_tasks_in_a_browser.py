"""The three kinds of pages that requesters write, done by a worker in a real Chromium."""

import json
import re

import pytest
from playwright.sync_api import expect

from marketplace.models import Assignment
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in
from tests.marketplace.conftest import HIT, HTML_QUESTION, PASSWORD
from tests.marketplace.forms import (
    OTHER,
    TWO_OR_THREE,
    form,
    free_text,
    question,
    selection,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FORM = form(
    "<Overview><Title>Judge a lamp</Title><Text>Think of your own hall.</Text></Overview>",
    question("style", selection("plain", "ornate")),
    question("colours", selection("red", "green", "blue", counts=TWO_OR_THREE, style="checkbox")),
    question("room", selection("hall", "attic", style="dropdown", other=OTHER)),
    question("price", free_text("<IsNumeric minValue='1' maxValue='500'/>")),
    question("reason", free_text("", "<NumberOfLinesSuggestion>3</NumberOfLinesSuggestion>")),
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


@pytest.fixture
def page(chromium, live_server, worker):
    with opened_page(chromium, base_url=live_server.url) as page:
        sign_in(page, "/worker/login/", "ada", PASSWORD)
        yield page


@pytest.fixture
def publish(mturk):
    def publish(html):
        start, end = HTML_QUESTION.index("<!doctype"), HTML_QUESTION.index("]]>")
        mturk.create_hit(
            **HIT | {"Question": HTML_QUESTION[:start] + html + HTML_QUESTION[end:]},
        )

    return publish


def open_preview(page):
    page.goto("/worker/")
    page.get_by_role("link", name="Rate eight responses").press("Enter")
    page.wait_for_url("**/worker/groups/**")


def accept(page):
    page.get_by_role("button", name="Accept this HIT").press("Enter")
    page.wait_for_url("**/worker/assignments/**")


def check_accessible(page, *, frames=False):
    assert accessibility_problems(page, frames=frames) == []


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
    mturk.create_hit(**HIT | {"Question": FORM})
    open_preview(page)
    expect(page.get_by_role("radio", name="Choice plain")).to_be_disabled()
    check_accessible(page)
    accept(page)
    check_accessible(page)
    page.get_by_role("button", name="Submit").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("About style?: This question needs an answer")
    expect(page.get_by_role("alert")).to_be_focused()
    check_accessible(page)
    page.get_by_role("link", name="About style?").press("Enter")
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
    page.keyboard.type("Other")
    page.keyboard.press("Tab")
    page.keyboard.type("The cellar")
    page.keyboard.press("Tab")
    page.keyboard.type("20")
    page.keyboard.press("Tab")
    page.keyboard.type("It is small.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Submit")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/worker/")
    expect(page.get_by_text("was received")).to_be_visible()
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
    expect(frame.get_by_text("Please choose a category.")).to_be_visible()
    check_accessible(page, frames=True)
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
    expect(frame.get_by_role("alert")).to_contain_text("Please return the HIT.")
    frame.get_by_role("button", name="Submit").click()
    assert not frame.locator("crowd-form").evaluate("form => form.isSent")
    assert Assignment.objects.get().status == "Accepted"


def test_a_page_with_externalhit_v1_posts_here(page, publish):
    publish(PLAIN)
    open_preview(page)
    frame = page.frame_locator("iframe#task")
    expect(frame.get_by_role("button", name="You must accept the HIT")).to_be_disabled()
    accept(page)
    frame.get_by_label("Rating").fill("4")
    frame.get_by_role("button", name="Submit").press("Enter")
    page.wait_for_url("**/worker/")
    assert answers() == {"rating": "<FreeText>4</FreeText>"}


def test_auto_accept_leads_from_hit_to_hit(page, publish):
    publish(PLAIN)
    publish(PLAIN)
    open_preview(page)
    accept(page)
    page.get_by_text("More", exact=True).click()
    with page.expect_response("**/auto-accept/"):
        page.get_by_label("Accept the next HIT by itself").check()
    first = page.url
    for _ in range(2):
        here = page.url
        frame = page.frame_locator("iframe#task")
        frame.get_by_label("Rating").fill("4")
        frame.get_by_role("button", name="Submit").press("Enter")
        page.wait_for_url(lambda url, here=here: url != here and "/next/" not in url)
        if here == first:
            expect(page.get_by_label("Accept the next HIT by itself")).to_be_checked()
    page.wait_for_url("**/worker/")
    assert Assignment.objects.filter(status="Submitted").count() == 2

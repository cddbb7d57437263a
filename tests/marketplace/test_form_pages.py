"""QuestionForm HITs on the worker site, and what is checked of what was filled in."""

import re
import subprocess
import sys
import time
from datetime import timedelta
from html.parser import HTMLParser
from xml.sax.saxutils import quoteattr

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from marketplace import clock, exceptions, models
from marketplace.documents.answers import fill_in
from marketplace.documents.constraints import MOST_PATTERN_SECONDS
from marketplace.documents.questions import parse_question_form
from marketplace.hits.assignments import accept_hit
from tests.codes import codes_on, refused
from tests.marketplace import forms
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import HIT
from tests.marketplace.test_worker_site import text_of

# Of FULL_FORM: style, colours, room, shop, price, reason, code.
GOOD = {
    "question-1": "1",
    "question-2": ["0", "2"],
    "question-5": "49.50",
    "question-6": "Of brass",
    "question-7": "",
}


@pytest.fixture
def hit(mturk):
    created = mturk.create_hit(**HIT | {"Question": forms.FULL_FORM}, MaxAssignments=2)
    return models.Hit.objects.get(public_id=created["HIT"]["HITId"])


@pytest.fixture
def assignment(hit, worker):
    return accept_hit(worker=worker, hit=hit)


@pytest.fixture
def submit_path(assignment):
    return f"/worker/assignments/{assignment.public_id}/submit/"


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def named(page, name):
    return [(tag, tags) for tag, tags in Tags(page).tags if tags.get("name") == name]


def test_each_question_has_its_native_control_and_scripts_are_not_shown(ada, assignment):
    page = text_of(ada.get(f"/worker/assignments/{assignment.public_id}/"))
    kinds = [[tag for tag, _ in named(page, f"question-{number}")] for number in (3, 4, 6)]
    assert kinds == [["select"], ["select"], ["textarea"]]
    types = [tags["type"] for _, tags in named(page, "question-1") + named(page, "question-2")]
    assert types == ["radio"] * 2 + ["checkbox"] * 3
    assert named(page, "question-5")[0][1]["inputmode"] == "decimal"
    assert named(page, "question-7")[0][1]["value"] == "abc"
    assert "<iframe" not in page
    assert "<h2>Judge a lamp</h2>" in page
    [(_, picture)] = [each for each in Tags(page).tags if each[0] == "img"]
    assert (picture["src"], picture["alt"]) == ("https://pictures.example/lamp.png", "A brass lamp")
    assert "<p>Be <b>fair</b>.</p>" in page
    assert "alert(1)" not in page


def test_good_answers_are_collected_and_submitting_again_changes_nothing(
    mturk, ada, hit, submit_path, assignment
):
    response = ada.post(submit_path, GOOD)
    assert response.headers["Location"] == f"/worker/groups/{hit.hit_type.public_id}/"
    for again in (response, ada.post(submit_path, GOOD)):
        assert code_before_the_receipt(again) == "received"
    (tags,) = mturk.list_assignments_for_hit(HITId=hit.public_id)["Assignments"]
    assert tags["AssignmentStatus"] == "Submitted"
    for text in ("ornate", "red", "blue"):
        assert f"<SelectionIdentifier>{text}</SelectionIdentifier>" in tags["Answer"]
    assert "<FreeText>49.50</FreeText>" in tags["Answer"]
    before = models.Assignment.objects.values().get()
    response = ada.post(submit_path, GOOD | {"question-5": "1"})
    assert response.status_code == 302
    assert models.Assignment.objects.values().get() == before
    assert code_before_the_receipt(response) == "received_before"


def test_auto_accept_leads_from_a_form_to_the_next_hit(mturk, ada, hit, submit_path):
    mturk.create_hit(**HIT | {"Question": forms.FULL_FORM})
    ada.post(f"{submit_path.removesuffix('submit/')}auto-accept/", {"auto_accept": "on"})
    location = ada.post(submit_path, GOOD).headers["Location"]
    held = models.Assignment.objects.get(status="Accepted")
    assert location == f"/worker/assignments/{held.public_id}/"


def test_what_is_wrong_is_said_beside_the_question_and_nothing_is_lost(
    ada, assignment, submit_path
):
    response = ada.post(submit_path, GOOD | {"question-5": "999", "question-1": ""})
    page = text_of(response)
    assert response.status_code == 422
    assert 'href="#question-1"' in page
    assert 'id="question-5-complaint"' in page
    assert codes_on(page) == ["unanswered", "too_large"]
    assert "Of brass" in page
    boxes = [tags for _, tags in named(page, "question-2")]
    assert [tags["value"] for tags in boxes if "checked" in tags] == ["0", "2"]
    assignment.refresh_from_db()
    assert (assignment.status, assignment.answer) == ("Accepted", "")
    page = text_of(ada.post(submit_path, {"question-6": "</textarea><script>x()</script>"}))
    assert "<script>x()" not in page
    assert "&lt;script&gt;x()" in page


def code_before_the_receipt(response):
    codes = [message.extra_tags for message in get_messages(response.wsgi_request)]
    assert codes[-1] == "receipt"
    return codes[-2]


def test_what_comes_past_the_page_too_late_or_too_large_is_refused(
    assignment, ada, submit_path, settings
):
    answers = {"assignmentId": assignment.public_id, "style": "ornate"}
    response = Client().post("/mturk/externalSubmit", answers)
    assert (response.status_code, response.context["code"]) == (400, "form_not_checked")
    assignment.refresh_from_db()
    assert assignment.status == "Accepted"
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    body = f"question-6={'x' * 2000}"
    response = ada.post(submit_path, body, content_type="application/x-www-form-urlencoded")
    assert response.status_code == 400
    assignment.refresh_from_db()
    assert assignment.status == "Accepted"
    clock.advance(timedelta(hours=1))
    for answers in (GOOD, {}):
        response = ada.post(submit_path, answers)
        assert (response.status_code, response.context["code"]) == (410, "time_over")


ANSWERS = {
    "style": ["1"],
    "colours": ["0", "2"],
    "price": ["49.50"],
    "reason": ["Because:\r\n<brass> & form"],
}


def fill(xml, **answers):
    parsed = parse_question_form(xml)
    names = {each.identifier: each.name for each in parsed.questions}
    sent = {}
    for key, values in answers.items():
        identifier, _, suffix = key.partition("__")
        sent[names[identifier] + (f"-{suffix}" if suffix else "")] = values
    return fill_in(parsed, lambda name: sent.get(name, []))


def complaints(xml, **answers):
    wrong = fill(xml, **answers).complaints
    return {filled.question.identifier: filled.complaint.code for filled in wrong}


def answers_of(filled):
    return re.findall("<Answer>(.*?)</Answer>", filled.to_xml(), flags=re.DOTALL)


def test_answers_are_written_with_the_requesters_own_identifiers():
    filled = fill(forms.FULL_FORM, **ANSWERS, room=["1"], shop__other=["At a fair"])
    assert filled.is_valid
    identifier = "<QuestionIdentifier>{}</QuestionIdentifier>".format
    assert answers_of(filled) == [
        identifier("style") + "<SelectionIdentifier>ornate</SelectionIdentifier>",
        identifier("colours") + "<SelectionIdentifier>red</SelectionIdentifier>"
        "<SelectionIdentifier>blue</SelectionIdentifier>",
        identifier("room") + "<SelectionIdentifier>attic</SelectionIdentifier>",
        identifier("shop") + "<OtherSelectionText>At a fair</OtherSelectionText>",
        identifier("price") + "<FreeText>49.50</FreeText>",
        identifier("reason") + "<FreeText>Because:\n&lt;brass&gt; &amp; form</FreeText>",
        identifier("code") + "<FreeText></FreeText>",
    ]


@pytest.mark.parametrize(
    ("name", "answer", "code", "numbers"),
    [
        ("price", "0.99", "too_small", ["1"]),
        ("price", "501", "too_large", ["500"]),
        ("price", "a few", "not_a_number", []),
        ("price", "NaN", "not_a_number", []),
        ("reason", "  \n ", "unanswered", []),
        ("reason", "Bras", "too_short", ["5", "4"]),
        ("reason", "x" * 201, "too_long", ["200", "201"]),
        ("code", "abcd", "wrong_form", []),
    ],
)
def test_an_answer_outside_its_limits_is_named_with_its_numbers(name, answer, code, numbers):
    (wrong,) = fill(forms.FULL_FORM, **ANSWERS | {name: [answer]}).complaints
    assert (wrong.question.identifier, wrong.complaint.code) == (name, code)
    assert re.findall("[0-9]+", wrong.complaint) == numbers
    assert name != "code" or wrong.complaint in forms.LETTERS  # the requester's own words


@pytest.mark.parametrize(
    ("name", "answer"),
    [("price", "1"), ("price", "500"), ("price", " 7 "), ("reason", "Brass"), ("code", "aBc")],
)
def test_an_answer_at_its_limits_is_accepted(name, answer):
    assert fill(forms.FULL_FORM, **ANSWERS | {name: [answer]}).is_valid


def test_selections_are_counted():
    xml = forms.form(forms.question("q", forms.selection(*"abcd", counts=forms.TWO_OR_THREE)))
    for chosen, code, numbers in (
        (["0"], "too_few_choices", ["2", "1"]),
        (["0", "1", "2", "3"], "too_many_choices", ["3", "4"]),
    ):
        (wrong,) = fill(xml, q=chosen).complaints
        assert wrong.complaint.code == code
        assert re.findall("[0-9]+", wrong.complaint) == numbers
    assert fill(xml, q=["0", "3"]).is_valid
    xml = forms.form(
        forms.question("q", forms.selection(*"abc", counts=forms.TWO_OR_THREE), required=False)
    )
    assert fill(xml).is_valid
    assert answers_of(fill(xml)) == []
    assert complaints(xml, q=["0"])
    xml = forms.form(forms.question("q", forms.selection("a", "b", other=forms.OTHER)))
    assert complaints(xml, q=["other"]) == {"q": "unanswered"}
    assert complaints(xml, q=["0"], q__other=["and this"]) == {"q": "too_many_choices"}
    assert complaints(xml, q=["other"], q__other=["x" * 21]) == {"q": "too_long"}
    assert fill(xml, q=["other"], q__other=["this"]).is_valid


@pytest.mark.parametrize("value", ["9", "-1", "a", "other", "", "0x0"])
def test_choices_that_were_not_offered_are_none(value):
    assert complaints(forms.form(forms.question("q", forms.selection("a", "b"))), q=[value]) == {
        "q": "unanswered"
    }


# Regular expressions: what they may cost when they are read and searched for


def with_patterns(*expressions):
    return forms.question("q", forms.free_text("".join(map(pattern, expressions))))


def pattern(expression):
    return f"<AnswerFormatRegex regex={quoteattr(expression)}/>"


LARGE_PATTERNS = [
    "(?:a|b){1000000}", "(?:a|bc){1000000000}", "(ab){0000000000100000,}", "a{60000}",
    "(?:(?:a|bc){300}){300}", r"(?:\p{L}{300}){300}", "[ab]{300}" * 20, "((?:a+){200}b?){200}",
    "(?:a|b)(?#){100000}", "(?:(?:ab){99}?){99}+", "[)](?:[(]{300}){300}", "a{1,2}" * 9_000,
    "(?:a{,9}b){9000}",
]  # fmt: skip


@pytest.mark.parametrize("expression", LARGE_PATTERNS)
def test_a_pattern_that_would_be_large_once_compiled_is_refused_before(expression):
    other = f"<OtherSelection><Constraints>{pattern(expression)}</Constraints></OtherSelection>"
    for part in (with_patterns(expression), forms.question("q", forms.selection("a", other=other))):
        with refused(exceptions.InvalidQuestion, "patterns_too_large"):
            parse_question_form(forms.form(part))


COMMON_PATTERNS = [
    r"^\d{4}-\d{2}-\d{2}$", r"^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$", r"^[\s\S]{500,5000}$",
    "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", r"(?:\S+\s+){50}",
    r"^(?:\W*\w+\W*){100,300}$", r"^((\w{3,}\W+){5,}[.!?]){3,}$", r"^\p{Lu}\p{L}{2,30}$",
    r"^[A-Z]{2}\d{2}(?:[ ]?[0-9]{4}){4}(?:[ ]?[0-9]{1,2})?$", "^(?=.*[a-z])(?=.*[0-9]).{8,64}$",
]  # fmt: skip


PRINT_SIZE = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
COMPILE_LARGEST = """
from marketplace.documents.constraints import MOST_STATES, Pattern, count_states

for repeated in ("a", "(?:a|b)", "(a?){10}(?:(?:a|bc){100})", "(?:a[b-z]c)"):
    count = 1
    while count_states(repeated + "{%d}" % (2 * count)) <= MOST_STATES:
        count *= 2
    Pattern(repeated + "{%d}" % count, "", False).check()
Pattern("(a)?" * (MOST_STATES // 4), "", True).check()
"""


def measure(program):
    program = f"{program}\n{PRINT_SIZE}"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("(?V0V1)a", "invalid_regex"),
        (f"a{{1,{'9' * 5000}}}", "invalid_regex"),
        ("(?ix)a{1 0}", "verbose_pattern"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused(expression, code):
    with refused(exceptions.InvalidQuestion, code):
        parse_question_form(forms.form(with_patterns(expression)))


def test_a_form_has_a_limited_number_of_patterns_of_a_few_megabytes():
    parts = [forms.question(f"q{n}", forms.free_text(pattern("a") * 25)) for n in range(5)]
    parse_question_form(forms.form(*parts[:4]))
    with refused(exceptions.InvalidQuestion, "too_many_patterns"):
        parse_question_form(forms.form(*parts))
    parse_question_form(forms.form(with_patterns(*COMMON_PATTERNS)))
    before = measure("import marketplace.documents.constraints")
    assert measure(COMPILE_LARGEST) - before < 100


def test_wrong_forms_are_refused_when_they_are_made_and_a_hit_with_a_frame_has_none(
    mturk, ada, worker
):
    xml = forms.form(with_patterns("(?:a|b){1000000}"))
    assert turk_code(mturk.create_hit, **HIT | {"Question": xml}) == "XMLParseError"
    test = {"Name": "A test", "Description": "Of patterns", "QualificationTypeStatus": "Active"}
    code = turk_code(mturk.create_qualification_type, **test, Test=xml, TestDurationInSeconds=60)
    assert code == "XMLParseError"
    bad = forms.form(forms.question("q", forms.free_text("<Length minLength='x'/>")))
    assert turk_code(mturk.create_hit, **HIT | {"Question": bad}) == "XMLParseError"
    assert not models.Hit.objects.exists()
    mturk.create_hit(**HIT)
    held = accept_hit(worker=worker, hit=models.Hit.objects.get())
    assert ada.post(f"/worker/assignments/{held.public_id}/submit/", {}).status_code == 404


def test_a_pattern_that_never_ends_holds_nobody_up():
    xml = forms.form(forms.question("q", forms.free_text("<AnswerFormatRegex regex='^(a|a)*$'/>")))
    assert fill(xml, q=["a" * 60 + "b"]).is_valid
    slow = "<AnswerFormatRegex regex='(a|a)*$'/>" * 10
    questions = [forms.question(f"q{number}", forms.free_text(slow)) for number in range(9)]
    values = {f"q{number}": ["a" * 60 + "b"] for number in range(9)}
    began = time.thread_time()
    assert fill(forms.form(*questions), **values).is_valid
    assert time.thread_time() - began < 3 * MOST_PATTERN_SECONDS
    slow, other = (f"<AnswerFormatRegex regex='{each}'/>" for each in ("^(a|a)*$", "^b"))
    xml = forms.form(
        forms.question("q", forms.free_text(slow)), forms.question("r", forms.free_text(other))
    )
    (wrong,) = fill(xml, q=["a" * 60 + "b"], r=["c"]).complaints
    assert (wrong.question.identifier, wrong.complaint.code) == ("r", "wrong_form")


def test_a_form_of_before_the_limits_is_explained_to_workers(mturk, ada):
    mturk.create_hit(**HIT | {"Question": forms.form(with_patterns("a"))})
    models.Hit.objects.update(question=forms.form(with_patterns("(?:a|b){1000000}")))
    page = ada.get(f"/worker/hits/{models.Hit.objects.get().public_id}/")
    assert (page.status_code, page.context["code"]) == (409, "patterns_too_large")

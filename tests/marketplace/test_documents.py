"""Questions, answers, keys that grade tests, and cells of CSV files: read and written."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csv_cells import from_cell, to_cell
from marketplace.documents.answer_keys import NAMESPACE, parse_answer_key
from marketplace.documents.answers import ILLEGAL_IN_XML, render_answers
from marketplace.documents.answers import NAMESPACE as ANSWERS
from marketplace.documents.questions import is_form, parse_question
from marketplace.exceptions import InvalidQuestion
from tests.codes import refused
from tests.marketplace.conftest import EXTERNAL_QUESTION, HTML_QUESTION
from tests.marketplace.forms import FULL_FORM

ADDRESS = "https://study.example/task?item=7&amp;round=1"
ROOM = 65_535 - len(HTML_QUESTION.encode())
BOMB = '<!DOCTYPE q [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + EXTERNAL_QUESTION
NO_CDATA = HTML_QUESTION.replace("<![CDATA[<!doctype html>", "").replace("]]>", "")


def at(address):
    return EXTERNAL_QUESTION.replace(ADDRESS, address)


def of_height(height):
    return HTML_QUESTION.replace("450", height)


def test_an_html_question_is_its_html():
    question = parse_question(HTML_QUESTION, allow_http=False)
    assert (question.kind, question.frame_height) == ("html", 450)
    assert question.content.startswith("<!doctype html><title>Task</title>")
    assert parse_question(HTML_QUESTION.replace("Task", "Task" + "x" * ROOM), allow_http=False)


@pytest.mark.parametrize(
    ("xml", "parameters", "url"),
    [
        (
            EXTERNAL_QUESTION,
            {"assignmentId": "A1", "turkSubmitTo": "http://h:1"},
            "https://study.example/task?item=7&round=1&assignmentId=A1&turkSubmitTo=http%3A%2F%2Fh%3A1",
        ),
        (at("https://study.example/task#top"), {"a": "1"}, "https://study.example/task?a=1#top"),
        (at("http://study.example/"), {"a": "1"}, "http://study.example/?a=1"),
    ],
)
def test_an_external_question_keeps_its_own_query(xml, parameters, url):
    assert parse_question(xml, allow_http=True).url_with(parameters) == url


@pytest.mark.parametrize(
    ("xml", "allow_http", "code"),
    [
        (at("http://study.example/"), False, "invalid_address"),
        (at("javascript:alert(1)"), True, "invalid_address"),
        (at("data:text/html,x"), True, "invalid_address"),
        (at("//study.example"), True, "invalid_address"),
        (at("https://"), True, "invalid_address"),
        (at("http://[x"), True, "invalid_address"),
        (BOMB, False, "declares_entities"),
        (NO_CDATA, False, ""),
        (of_height(""), False, "empty_element"),
        *(
            (of_height(height), False, "invalid_frame_height")
            for height in ("-1", "1.5", "٣", "40000", "0000040000", "0" * 5000)
        ),
        (HTML_QUESTION.replace("Task", "Task" + "x" * (ROOM + 1)), False, "too_long"),
    ],
)
def test_a_question_that_cannot_be_shown_is_refused(xml, allow_http, code):
    with refused(InvalidQuestion, code):
        parse_question(xml, allow_http=allow_http)


@pytest.mark.parametrize("start", ["", '<?xml version="1.0"?>\n', "<!-- a <form> -->\n "])
def test_a_form_is_recognised_by_its_root(start):
    assert is_form(start + FULL_FORM)
    assert not is_form(HTML_QUESTION.replace("Task", FULL_FORM.replace("]]>", "")))
    assert not is_form(EXTERNAL_QUESTION)


def read(xml):
    answers = ElementTree.fromstring(xml.encode())
    assert answers.tag == f"{{{ANSWERS}}}QuestionFormAnswers"
    return [tuple(child.text or "" for child in answer) for answer in answers]


def test_fields_become_answers_in_their_order():
    """Several values of a name are joined; characters that XML cannot carry are marked."""
    fields = [
        ("rating", ["4"]),
        ("reason", ['<b> & "so"']),
        ("empty", [""]),
        ("chosen", ["a", "c"]),
    ]
    texts = [("rating", "4"), ("reason", '<b> & "so"'), ("empty", ""), ("chosen", "a|c")]
    assert read(render_answers(fields)) == texts
    xml = render_answers([("a\x00", ["x\x07y\ufffez\ud800"])])
    assert read(xml) == [("a\ufffd", "x\ufffdy\ufffdz\ufffd")]


@given(st.lists(st.tuples(st.text(), st.text())))
def test_every_other_text_comes_back_as_it_was(fields):
    expected = [tuple(ILLEGAL_IN_XML.sub("\ufffd", text) for text in field) for field in fields]
    assert read(render_answers([(name, [value]) for name, value in fields])) == expected


QUESTIONS = """<Question><QuestionIdentifier>nextmove</QuestionIdentifier>
<AnswerOption><SelectionIdentifier>D</SelectionIdentifier><AnswerScore>5</AnswerScore></AnswerOption>
</Question>
<Question><QuestionIdentifier>fruit</QuestionIdentifier>
<AnswerOption><SelectionIdentifier>apples</SelectionIdentifier>
<SelectionIdentifier>pears</SelectionIdentifier><AnswerScore>10</AnswerScore></AnswerOption>
<AnswerOption><SelectionIdentifier>stones</SelectionIdentifier><AnswerScore>-2</AnswerScore>
</AnswerOption><DefaultScore>1</DefaultScore></Question>"""
RANGES = """<RangeMapping>
<SummedScoreRange><InclusiveLowerBound>5</InclusiveLowerBound>
<InclusiveUpperBound>7</InclusiveUpperBound><QualificationValue>50</QualificationValue>
</SummedScoreRange><SummedScoreRange><InclusiveLowerBound>8</InclusiveLowerBound>
<InclusiveUpperBound>15</InclusiveUpperBound><QualificationValue>90</QualificationValue>
</SummedScoreRange><OutOfRangeQualificationValue>-1</OutOfRangeQualificationValue>
</RangeMapping>"""
RIGHT = {"nextmove": ("D",), "fruit": ("pears", "apples")}


def key(mapping="", questions=QUESTIONS):
    inside = f"<QualificationValueMapping>{mapping}</QualificationValueMapping>" if mapping else ""
    return f'<AnswerKey xmlns="{NAMESPACE}">{questions}{inside}</AnswerKey>'


@pytest.mark.parametrize(
    ("mapping", "answers", "value"),
    [
        ("", RIGHT, 15),
        ("", {"nextmove": ("D",), "fruit": ("apples",)}, 6),
        ("", {"nextmove": ("C",), "fruit": ("stones",)}, -2),
        ("", {}, 1),
        ("<PercentageMapping><MaximumSummedScore>15</MaximumSummedScore></PercentageMapping>",
         RIGHT, 100),
        ("<PercentageMapping><MaximumSummedScore>15</MaximumSummedScore></PercentageMapping>",
         {"nextmove": ("D",)}, 40),
        ("<PercentageMapping><MaximumSummedScore>8</MaximumSummedScore></PercentageMapping>",
         {}, 13),
        ("<ScaleMapping><SummedScoreMultiplier>3</SummedScoreMultiplier></ScaleMapping>",
         RIGHT, 45),
        ("<ScaleMapping><SummedScoreMultiplier>0.5</SummedScoreMultiplier></ScaleMapping>",
         RIGHT, 8),
        (RANGES, {"nextmove": ("D",)}, 50),
        (RANGES, RIGHT, 90),
        (RANGES, {}, -1),
    ],
)  # fmt: skip
def test_a_test_is_graded_as_its_key_says(mapping, answers, value):
    assert parse_answer_key(key(mapping)).grade(answers) == value


def test_a_key_that_binds_its_namespace_and_does_not_use_it_is_read():
    loose = f'<AnswerKey xmlns:tns="{NAMESPACE}">{QUESTIONS}</AnswerKey>'
    assert parse_answer_key(loose).grade(RIGHT) == 15


@pytest.mark.parametrize(
    "xml",
    [
        "",
        "not xml",
        f'<!DOCTYPE a [<!ENTITY b "c">]>{key()}',
        f'<Answers xmlns="{NAMESPACE}"/>',
        key(questions=""),
        key(questions=QUESTIONS + QUESTIONS),
        key(questions="<Question><QuestionIdentifier>a</QuestionIdentifier></Question>"),
        key().replace("<AnswerScore>5<", "<AnswerScore>five<"),
        key().replace("<AnswerScore>5<", "<AnswerScore>NaN<"),
        key("<GuessMapping/>"),
        key("<PercentageMapping><MaximumSummedScore>0</MaximumSummedScore></PercentageMapping>"),
        key("<RangeMapping/>"),
        key() + " " * 65_536,
    ],
)
def test_a_key_that_cannot_be_used_is_refused(xml):
    with pytest.raises(InvalidQuestion):
        parse_answer_key(xml)


FORMULAS = ["=x", " =x", "\u200b=x", "\ufeff+x", "\u00ad@x", "\0=x", "＝x", "\t"]
PLAIN = ["Good; but - well", "Nice ;-)", "Two:\n- one\n+ two", "x;y"]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *((text, f"'{text}") for text in FORMULAS),
        *((text, text) for text in PLAIN),
        ("x;=1+1", "x;'=1+1"),
        ("x; \u200b@y;-cmd|z", "x;' \u200b@y;'-cmd|z"),
        ("x\r\n=1", "x\r\n'=1"),
        ("=1;=1", "'=1;'=1"),
    ],
)
def test_what_a_spreadsheet_would_take_for_a_formula_begins_with_an_apostrophe(text, cell):
    """Also after a semicolon, where some spreadsheets begin the next cell."""
    assert to_cell(text) == cell


@pytest.mark.parametrize(
    "text",
    [
        *("=x", "'=x", "''=x", "'", "'x", "x", "", "' =x", "\n=x", "\r\n'=x", ";=x", ";'=x"),
        *("a;''@b;'=c", ";;=x", ";+;=x", "a;-)", "a;'-)", ";\n;-1", "'a;'=b", "\n;='"),
    ],
)
def test_what_is_written_reads_back_exactly(text):
    assert from_cell(to_cell(text)) == text

import pytest

from marketplace.documents.questions import is_form, parse_question
from marketplace.exceptions import InvalidQuestion
from tests.codes import refused
from tests.marketplace.conftest import EXTERNAL_QUESTION, HTML_QUESTION
from tests.marketplace.forms import FULL_FORM


def test_an_html_question_is_its_html():
    question = parse_question(HTML_QUESTION, allow_http=False)
    assert question.kind == "html"
    assert question.content.startswith("<!doctype html><title>Task</title>")
    assert question.frame_height == 450


def test_an_external_question_keeps_its_own_query():
    question = parse_question(EXTERNAL_QUESTION, allow_http=False)
    url = question.url_with({"assignmentId": "A1", "turkSubmitTo": "http://h:1"})
    assert url == (
        "https://study.example/task?item=7&round=1&assignmentId=A1&turkSubmitTo=http%3A%2F%2Fh%3A1"
    )


def test_an_address_without_a_query_gets_one():
    xml = EXTERNAL_QUESTION.replace("?item=7&amp;round=1", "#top")
    url = parse_question(xml, allow_http=False).url_with({"a": "1"})
    assert url == "https://study.example/task?a=1#top"


def test_http_is_for_marketplaces_without_tls():
    xml = EXTERNAL_QUESTION.replace("https:", "http:")
    assert parse_question(xml, allow_http=True).content.startswith("http:")
    with refused(InvalidQuestion, "invalid_address"):
        parse_question(xml, allow_http=False)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "//study.example", "https://", "http://[x"]
)
def test_only_web_addresses_are_external_pages(url):
    xml = EXTERNAL_QUESTION.replace("https://study.example/task?item=7&amp;round=1", url)
    with refused(InvalidQuestion, "invalid_address"):
        parse_question(xml, allow_http=True)


def test_entities_and_document_types_are_refused():
    bomb = '<!DOCTYPE q [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + EXTERNAL_QUESTION
    with refused(InvalidQuestion, "declares_entities"):
        parse_question(bomb, allow_http=False)


def test_markup_outside_a_cdata_section_is_refused():
    xml = HTML_QUESTION.replace("<![CDATA[<!doctype html>", "").replace("]]>", "")
    with pytest.raises(InvalidQuestion):
        parse_question(xml, allow_http=False)


@pytest.mark.parametrize("height", ["", "-1", "1.5", "٣", "40000", "0000040000", "0" * 5000])
def test_a_frame_height_is_a_number_of_pixels(height):
    with refused(InvalidQuestion):
        parse_question(HTML_QUESTION.replace("450", height), allow_http=False)


def test_the_limit_is_65535_bytes():
    room = 65_535 - len(HTML_QUESTION.encode())
    assert parse_question(HTML_QUESTION.replace("Task", "Task" + "x" * room), allow_http=False)
    with refused(InvalidQuestion, "too_long"):
        parse_question(HTML_QUESTION.replace("Task", "Task" + "x" * (room + 1)), allow_http=False)


@pytest.mark.parametrize("start", ["", '<?xml version="1.0"?>\n', "<!-- a <form> -->\n "])
def test_a_form_is_recognised_by_its_root(start):
    assert is_form(start + FULL_FORM)
    assert not is_form(HTML_QUESTION.replace("Task", FULL_FORM.replace("]]>", "")))
    assert not is_form(EXTERNAL_QUESTION)

"""Checking what a worker filled into a QuestionForm, and writing it down."""

import re

import pytest

from marketplace.documents.form_answers import blank, fill_in
from marketplace.documents.question_forms import parse_question_form
from tests.marketplace.forms import (
    FULL_FORM,
    LETTERS,
    OTHER,
    TWO_OR_THREE,
    form,
    free_text,
    question,
    selection,
)

GOOD = {
    "style": ["1"],
    "colours": ["0", "2"],
    "price": ["49.50"],
    "reason": ["Because:\r\n<brass> & form"],
}


def fill(xml, **answers):
    """Answers by the questions' identifiers, as a browser would send them."""
    parsed = parse_question_form(xml)
    names = {
        parsed_question.identifier: parsed_question.name for parsed_question in parsed.questions
    }
    sent = {}
    for key, values in answers.items():
        identifier, _, suffix = key.partition("__")
        sent[names[identifier] + (f"-{suffix}" if suffix else "")] = values
    return fill_in(parsed, lambda name: sent.get(name, []))


def complaints(xml, **answers):
    """The codes of the complaints, by the questions' identifiers."""
    wrong = fill(xml, **answers).complaints
    return {filled.question.identifier: filled.complaint.code for filled in wrong}


def answers_of(filled):
    return re.findall("<Answer>(.*?)</Answer>", filled.to_xml(), flags=re.DOTALL)


def test_answers_are_written_with_the_requesters_own_identifiers():
    filled = fill(FULL_FORM, **GOOD, room=["1"], shop__other=["At a fair"])
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


def test_what_must_be_answered_is_asked_for():
    needed = ["style", "colours", "price", "reason"]
    assert complaints(FULL_FORM) == dict.fromkeys(needed, "unanswered")


@pytest.mark.parametrize(
    ("name", "answer", "code", "numbers"),
    [
        ("price", "0.99", "too_small", ["1"]),
        ("price", "501", "too_large", ["500"]),
        ("price", "a few", "not_a_number", []),
        ("price", "NaN", "not_a_number", []),
        ("price", "inf", "not_a_number", []),
        ("reason", "  \n ", "unanswered", []),
        ("reason", "Bras", "too_short", ["5", "4"]),
        ("reason", "x" * 201, "too_long", ["200", "201"]),
        ("code", "abcd", "wrong_form", []),
    ],
)
def test_an_answer_outside_its_limits_is_named_with_its_numbers(name, answer, code, numbers):
    (wrong,) = fill(FULL_FORM, **GOOD | {name: [answer]}).complaints
    assert (wrong.question.identifier, wrong.complaint.code) == (name, code)
    assert re.findall("[0-9]+", wrong.complaint) == numbers
    assert name != "code" or wrong.complaint in LETTERS  # the requester's own words


@pytest.mark.parametrize(
    ("name", "answer"),
    [("price", "1"), ("price", "500"), ("price", " 7 "), ("reason", "Brass"), ("code", "aBc")],
)
def test_an_answer_at_its_limits_is_accepted(name, answer):
    assert fill(FULL_FORM, **GOOD | {name: [answer]}).is_valid


def test_a_line_break_is_one_character():
    xml = form(question("q", free_text("<Length maxLength='3'/>")))
    assert fill(xml, q=["a\r\nb"]).is_valid


def test_a_pattern_that_never_ends_holds_nobody_up():
    xml = form(question("q", free_text("<AnswerFormatRegex regex='^(a|a)*$'/>")))
    assert fill(xml, q=["a" * 60 + "b"]).is_valid


def test_selections_are_counted():
    xml = form(question("q", selection(*"abcd", counts=TWO_OR_THREE)))
    for chosen, code, numbers in (
        (["0"], "too_few_choices", ["2", "1"]),
        (["0", "1", "2", "3"], "too_many_choices", ["3", "4"]),
    ):
        (wrong,) = fill(xml, q=chosen).complaints
        assert wrong.complaint.code == code
        assert re.findall("[0-9]+", wrong.complaint) == numbers
    assert fill(xml, q=["0", "3"]).is_valid


def test_an_optional_selection_may_be_left_alone_but_not_half_made():
    xml = form(question("q", selection(*"abc", counts=TWO_OR_THREE), required=False))
    assert fill(xml).is_valid
    assert answers_of(fill(xml)) == []
    assert complaints(xml, q=["0"])


def test_other_takes_words_and_counts_as_a_choice():
    xml = form(question("q", selection("a", "b", other=OTHER)))
    assert complaints(xml, q=["other"]) == {"q": "unanswered"}
    assert complaints(xml, q=["0"], q__other=["and this"]) == {"q": "too_many_choices"}
    assert complaints(xml, q=["other"], q__other=["x" * 21]) == {"q": "too_long"}
    assert fill(xml, q=["other"], q__other=["this"]).is_valid


@pytest.mark.parametrize("value", ["9", "-1", "a", "other", "", "0x0"])
def test_choices_that_were_not_offered_are_none(value):
    xml = form(question("q", selection("a", "b")))
    assert complaints(xml, q=[value]) == {"q": "unanswered"}


def test_a_blank_form_has_the_default_texts():
    filled = blank(parse_question_form(FULL_FORM))
    assert {answer.text for answer in filled.answers.values()} == {"", "abc"}
    assert filled.is_valid


def test_characters_that_xml_cannot_carry_are_replaced():
    xml = form(question("q", free_text()))
    assert "<FreeText>a\ufffdb</FreeText>" in fill(xml, q=["a\0b"]).to_xml()

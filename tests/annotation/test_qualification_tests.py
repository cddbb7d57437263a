"""Qualification tests of a protocol: which answers are right, and what is wrong with one."""

import pytest

from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.practice import choosable_values, right_values
from annotation.protocols.templates import parse_yaml, write_yaml
from annotation.protocols.validation import document_faults

LINE = {"name": "fit", "kind": "line", "wording": "Fits?", "low_label": "no", "high_label": "yes"}
POINTS = {"name": "tone", "kind": "likert", "wording": "Kind?", "points": ["a", "b", "c", "d", "e"]}
WHY = {"name": "why", "kind": "long_text", "wording": "Why?"}


def protocol(*tests, questions=(LINE, POINTS, WHY)):
    about = {"assay_protocol": 1, "title": "Rate replies", "questions": list(questions)}
    return about | {"qualifications": {"tests": list(tests)}}


def case(**scores):
    return {"candidate": "I like trains.", "scores": scores}


def faults_of(*tests, **options):
    faults = document_faults(protocol(*tests, **options))
    return [(fault.place.removeprefix("qualifications.tests[1]."), fault.code) for fault in faults]


def test_a_line_is_asked_in_eleven_points_of_which_the_near_ones_are_right():
    line, points, _why = read_document(protocol()).questions
    assert choosable_values(line) == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert right_values(line, 75, 20) == [60, 70, 80, 90]
    assert right_values(line, 30, 10) == [20, 30, 40]
    assert choosable_values(points) == [1, 2, 3, 4, 5]
    assert right_values(points, 4, 20) == [4]
    assert right_values(points, 4, 25) == [3, 4, 5]


@pytest.mark.parametrize("kind", ["category", "yes_no"])
def test_of_what_has_no_order_one_answer_is_right(kind):
    labels = {"categories": ["on", "off"]} if kind == "category" else {}
    values = {"name": "kind", "kind": kind, "wording": "Which?"} | labels
    question = read_document(protocol(questions=[values])).questions[0]
    assert right_values(question, 1, 100) == [1]


POLITE = {"name": "polite", "kind": "yes_no", "wording": "Is it polite?"}
STYLE = {"name": "style", "kind": "category", "wording": "Which?", "categories": ["dry", "warm"]}


def test_a_right_value_may_be_the_label_of_an_answer():
    questions = [POLITE, STYLE, POINTS, LINE]
    written = case(polite="yes", style="warm", tone="d", fit=80)
    values = protocol({"cases": [written]}, questions=questions)
    values["examples"] = [{"verdict": "bad", "candidate": "No.", "scores": {"polite": "no"}}]
    gold = {"kind": "gold", "question": "polite", "cases": [{"candidate": "No.", "value": "no"}]}
    values["checks"] = [gold]
    assert document_faults(values) == []
    document = read_document(values)
    (read,) = document.qualifications.tests[0].cases
    assert read.scores == {"polite": 1, "style": 1, "tone": 4, "fit": 80}
    assert document.examples[0].scores == {"polite": 0}
    assert document.checks[0].cases[0].value == 0
    text = write_yaml(document)
    assert "polite: 'yes'" in text
    assert "style: warm" in text
    assert parse_yaml(text).faults == ()
    assert read_document(parse_yaml(text).values) == document


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("polite", "maybe", "unknown_answer"),
        ("fit", "good", "not_number"),
        ("polite", True, "wrong_type"),
    ],
)
def test_a_word_that_is_no_answer_is_refused(name, value, code):
    faults = faults_of({"cases": [case(**{name: value})]}, questions=[POLITE, LINE])
    assert faults == [(f"cases[1].scores.{name}", code)]


def test_a_wording_may_name_the_reference_that_its_case_has():
    question = LINE | {"wording": "How near is it to {reference}?"}
    faults = faults_of({"cases": [case(fit=80)]}, questions=[question])
    assert faults == [("cases[1].scores.fit", "names_reference")]
    assert faults_of({"cases": [case(fit=80) | {"reference": "A."}]}, questions=[question]) == []


def test_a_good_test_is_kept_whole():
    practice = {"title": "Practice", "retry_after_seconds": 0, "cases": [case(fit=80, tone=5)]}
    values = protocol(practice, {"cases": [case(fit=5)], "pass_percent": 100, "feedback": False})
    assert document_faults(values) == []
    assert plain_document(read_document(values)) == values


@pytest.mark.parametrize(
    ("test", "place", "code"),
    [
        ({"cases": []}, "cases", "too_few"),
        ({"pass_percent": 50}, "cases", "missing"),
        ({"cases": [case()]}, "cases[1].scores", "missing"),
        ({"cases": [case(fot=1)]}, "cases[1].scores.fot", "unknown_question"),
        ({"cases": [case(why=1)]}, "cases[1].scores.why", "not_tested"),
        ({"cases": [case(fit=120)]}, "cases[1].scores.fit", "off_scale"),
        (
            {"cases": [case(fit=35)], "tolerance_percent": 4},
            "cases[1].scores.fit",
            "near_no_answer",
        ),
        ({"cases": [case(fit=50)], "tolerance_percent": 50}, "cases[1].scores.fit", "only_right"),
        ({"cases": [case(fit=50)], "pass_percent": 0}, "pass_percent", "too_low"),
    ],
)
def test_a_test_that_cannot_be_taken_is_refused_where_it_is_wrong(test, place, code):
    assert faults_of(test) == [(place, code)]


def test_titles_are_used_once_and_practice_items_are_not_named_by_key():
    [(_place, code)] = faults_of({"cases": [case(fit=5)]}, {"cases": [case(fit=90)]})
    assert code == "repeated_title"
    values = protocol()
    values["qualifications"] = {"practice_items": ["dialogue-3"]}
    (fault,) = document_faults(values)
    assert fault.code == "unknown_name"
    assert "'practice'" in fault.message

import json

import pytest
from django.core.management import call_command

from annotation.exceptions import ProtocolInvalid
from annotation.protocols import validation, versions
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.practice import (
    choosable_values,
    practice_fingerprint,
    right_range,
    right_values,
)
from annotation.protocols.records import ProtocolQuestion
from annotation.protocols.templates import parse_yaml, write_yaml
from tests.annotation import importing, studies

WHOLE = """\
assay_protocol: 1
title: Rate replies
questions:
  - name: appropriateness
    kind: line
    wording: How well?
    low_label: badly
    high_label: well
  - name: polite
    kind: yes_no
    wording: Polite?
  - name: pace
    kind: likert
    about: item
    wording: How fast?
    points: [slow, fast]
qualifications:
  practice:
    reward_usd: 0.1
    attempts: 1
    items:
      - candidates:
          - text: The other one.
            scores:
              appropriateness: 80
              polite: yes
            feedback:
              polite: It says please.
        context: Which film?
        scores:
          pace: 2
      - item: d0
        candidates:
          - candidate: alpha
            scores:
              appropriateness: 100
"""
BROKEN = """\
assay_protocol: 1
title: Rate replies
questions:
  - {name: fit, kind: line, wording: "How?", low_label: a, high_label: b}
  - {name: pace, kind: likert, about: item, wording: "How fast?", points: [slow, fast]}
  - {name: why, kind: long_text, wording: "Why?"}
qualifications:
  practice:
    reward_usd: 0.125
    attempts: 9
    items:
      - candidates:
          - text: One.
            scores: {fit: 101, why: 1, pace: 1, fitt: 3}
          - text: ""
            feedback: {fit: Nobody reads it.}
        scores: {fit: 5}
      - item: d0
        context: Another.
        candidates:
          - text: Two.
            scores: {fit: 5}
          - candidate: alpha
          - candidate: alpha
      - candidates:
          - {text: Three., candidate: alpha}
"""
BROKEN_AT = {
    (9, "reward_usd", "not_cents"),
    (10, "attempts", "too_many_attempts"),
    (14, "items[1].candidates[1].scores.fit", "off_scale"),
    (14, "items[1].candidates[1].scores.fitt", "unknown_question"),
    (14, "items[1].candidates[1].scores.pace", "asked_of_item"),
    (14, "items[1].candidates[1].scores.why", "not_practiced"),
    (15, "items[1].candidates[2].text", "missing"),
    (16, "items[1].candidates[2].feedback.fit", "unread"),
    (17, "items[1].scores.fit", "asked_of_candidate"),
    (19, "items[2].context", "of_the_study"),
    (21, "items[2].candidates[1].candidate", "missing"),
    (21, "items[2].candidates[1].text", "of_the_study"),
    (23, "items[2].candidates[2].candidate", "repeated"),
    (24, "items[2].candidates[3].candidate", "repeated"),
    (25, "items[3].candidates", "no_right_value"),
    (26, "items[3].candidates[1].candidate", "needs_item"),
}


def test_a_whole_practice_is_read_and_written_without_loss():
    parsed = parse_yaml(WHOLE)
    assert parsed.faults == ()
    document = read_document(parsed.values)
    practice = document.qualifications.practice
    assert practice is not None
    assert practice.items[0].candidates[0].scores == {"appropriateness": 80, "polite": 1}
    assert read_document(plain_document(document)) == document
    written = write_yaml(document)
    assert "polite: 'yes'" in written  # with quotes, for readers to whom yes is no word
    assert read_document(parse_yaml(written).values) == document


def test_every_fault_is_said_at_its_line():
    start = "qualifications.practice."
    faults = parse_yaml(BROKEN).faults
    assert {(each.line, each.place.removeprefix(start), each.code) for each in faults} == BROKEN_AT


@pytest.mark.django_db
def test_what_the_study_does_not_have_is_said_at_its_line_with_all_else(tmp_path, capsys):
    studies.rating_study()
    text = WHOLE.replace("item: d0", "item: d9").replace("kind: yes_no", "kind: yes-no")
    path = importing.write_file(tmp_path / "protocol.yaml", text)
    line = 1 + text.splitlines().index("      - item: d9")
    place = "qualifications.practice.items[2].item"
    with pytest.raises(ProtocolInvalid) as refused:
        call_command("import_protocol", "ratings", str(path))
    faults = refused.value.faults
    assert (10, "questions[2].kind", "unknown_choice") in {
        (fault.line, fault.place, fault.code) for fault in faults
    }
    assert (line, place, "unknown_item") == (faults[-1].line, faults[-1].place, faults[-1].code)
    with pytest.raises(SystemExit):
        call_command("validate_protocol", str(path), "--json", study="ratings")
    assert json.loads(capsys.readouterr().out)["faults"] == [fault.record() for fault in faults]


def test_the_list_of_answers_is_named_as_this_kind_of_question_has_it():
    for kind, other, named, code in (
        *(("category", name, "categories", "unknown_name") for name in ("options", "choices")),
        *(("categories", name, "categories", "unknown_name") for name in ("options", "choices")),
        *(("likert", name, "points", "unknown_name") for name in ("options", "choices")),
        ("category", "points", "categories", "other_kinds_option"),
    ):
        text = WHOLE.replace("kind: yes_no", f"kind: {kind}\n    {other}: [a, b]")
        [fault] = [each for each in parse_yaml(text).faults if each.path[-1:] == (other,)]
        assert fault.code == code
        assert f"'{named}'" in fault.message


@pytest.mark.django_db
def test_what_the_study_does_not_have_is_a_fault():
    study = studies.rating_study()
    document = read_document(parse_yaml(WHOLE.replace("candidate: alpha", "candidate: x")).values)
    (fault,) = versions.freezing_faults(study, document)
    assert fault.code == "unknown_candidate"
    assert fault.place == "qualifications.practice.items[2].candidates[1].candidate"


def test_an_answer_within_the_tolerance_is_right_and_of_categories_only_itself():
    right = right_range(ProtocolQuestion("fit", "line", "How?", minimum=0, maximum=10), 9, 20)
    assert (right.least, right.most) == (7, 10)
    assert [right.holds(value) for value in (6.9, 7, 10)] == [False, True, True]
    polite = right_range(ProtocolQuestion("polite", "yes_no", "Polite?"), 1, 100)
    assert (polite.least, polite.most) == (1, 1)


def test_practice_is_the_same_in_another_version_unless_what_is_learnt_changed():
    before = practice_fingerprint(read_document(parse_yaml(WHOLE).values))
    for was, becomes, is_same in (
        ("reward_usd: 0.1", "reward_usd: 0.2", True),
        ("title: Rate replies", "title: Judge replies", True),
        ("attempts: 1", "attempts: 2", False),
        ("wording: How well?", "wording: How badly?", False),
        ("appropriateness: 80", "appropriateness: 70", False),
    ):
        after = read_document(parse_yaml(WHOLE.replace(was, becomes)).values)
        assert (practice_fingerprint(after) == before) is is_same


LINE = {"name": "fit", "kind": "line", "wording": "Fits?", "low_label": "no", "high_label": "yes"}
POINTS = {"name": "tone", "kind": "likert", "wording": "Kind?", "points": ["a", "b", "c", "d", "e"]}
WHY = {"name": "why", "kind": "long_text", "wording": "Why?"}


def protocol(*tests, questions=(LINE, POINTS, WHY)):
    about = {"assay_protocol": 1, "title": "Rate replies", "questions": list(questions)}
    return about | {"qualifications": {"tests": list(tests)}}


def case(**scores):
    return {"candidate": "I like trains.", "scores": scores}


def faults_of(*tests, **options):
    faults = validation.document_faults(protocol(*tests, **options))
    return [(fault.place.removeprefix("qualifications.tests[1]."), fault.code) for fault in faults]


POLITE = {"name": "polite", "kind": "yes_no", "wording": "Is it polite?"}
STYLE = {"name": "style", "kind": "category", "wording": "Which?", "categories": ["dry", "warm"]}


def test_near_points_are_right_and_of_what_has_no_order_one_answer():
    line, points, _why = read_document(protocol()).questions
    assert choosable_values(line) == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert right_values(line, 75, 20) == [60, 70, 80, 90]
    assert right_values(line, 30, 10) == [20, 30, 40]
    assert choosable_values(points) == [1, 2, 3, 4, 5]
    assert right_values(points, 4, 20) == [4]
    assert right_values(points, 4, 25) == [3, 4, 5]
    for question in read_document(protocol(questions=[POLITE, STYLE])).questions:
        assert right_values(question, 1, 100) == [1]


def test_a_right_value_may_be_the_label_of_an_answer():
    questions = [POLITE, STYLE, POINTS, LINE]
    written = case(polite="yes", style="warm", tone="d", fit=80)
    values = protocol({"cases": [written]}, questions=questions)
    values["examples"] = [{"verdict": "bad", "candidate": "No.", "scores": {"polite": "no"}}]
    gold = {"kind": "gold", "question": "polite", "cases": [{"candidate": "No.", "value": "no"}]}
    values["checks"] = [gold]
    assert validation.document_faults(values) == []
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
    assert validation.document_faults(values) == []
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
    (fault,) = validation.document_faults(values)
    assert fault.code == "unknown_name"
    assert "'practice'" in fault.message

import ast
import json
import re
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonschema import Draft202012Validator

from annotation import exceptions, models
from annotation.protocols import documents, markdown, records, templates, validation, versions
from tests.annotation import importing, studies
from tests.codes import refused

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "protocol.schema.json"

BROKEN = """\
assay_protocol: 1
title: Rate
language: english
display: {system: true, contxt: true}
questions:
  - name: a
    kind: line
    wording: How {system} {topic}?
    low_label: x
  - name: a
    kind: likrt
    points: [x]
  - name: b
    kind: yes_no
    wording: fine
    points: [a, b]
    when: {question: a, any_of: [z]}
  - name: c
    kind: category
    wording: [1]
    categories: [no, yes, no]
  - kind: number
    wording: ""
    name: n
    minimum: 5
    maximum: 1
reason: {rule: choice}
"""
BROKEN_AT = {
    (3, "language"),
    (4, "display.contxt"),
    (4, "display.system"),
    (6, "questions[1].high_label"),
    (8, "questions[1].wording"),
    (10, "questions[2].name"),
    (10, "questions[2].wording"),
    (11, "questions[2].kind"),
    (12, "questions[2].points"),
    (16, "questions[3].points"),
    (17, "questions[3].when.any_of[1]"),
    (20, "questions[4].wording"),
    (21, "questions[4].categories"),
    (23, "questions[5].wording"),
    (26, "questions[5].maximum"),
    (27, "reason.rule"),
}


def line(name: str = "a", **options: object) -> records.ProtocolQuestion:
    labels = {"low_label": "none", "high_label": "much"}
    return records.ProtocolQuestion(
        name=name, kind="line", wording="How much?", **(labels | options)
    )  # type: ignore[arg-type]


def document(*questions: records.ProtocolQuestion, **fields: object) -> records.ProtocolDocument:
    return records.ProtocolDocument(title="Rate", questions=questions or (line(),), **fields)  # type: ignore[arg-type]


def test_the_schema_is_one_and_the_committed_file_is_it():
    Draft202012Validator.check_schema(documents.protocol_schema())
    assert json.loads(SCHEMA_FILE.read_text()) == documents.protocol_schema()


@pytest.mark.parametrize(
    ("name", "sizes", "codes"),
    [
        ("preference", (2, 2), []),
        ("preference", (2, 3), ["not_two_responses"]),
        ("preference", (1, 2), ["too_few_responses"]),
        ("best_worst", (1, 4), ["best_worst_of_one"]),
        ("best_worst", (2, 2), ["best_worst_of_two"]),
        ("best_worst", (4, 4), []),
        ("switching", (3, 3), []),
        ("style_ratings", (1, 9), []),
    ],
)
def test_a_template_says_which_numbers_of_responses_do_not_fit_it(name, sizes, codes):
    template = templates.read_protocol(name)
    assert [each.code for each in templates.size_problems(template, *sizes)] == codes
    paired = replace(template, pairs=records.Pairs())
    assert "not_two_responses" not in [each.code for each in templates.size_problems(paired, 2, 9)]


def test_every_fault_of_a_file_is_given_at_once_with_its_line():
    faults = templates.parse_yaml(BROKEN).faults
    assert {(fault.line, fault.place) for fault in faults} == BROKEN_AT
    assert all(fault.message and fault.code != "invalid" for fault in faults)


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("title: x\nquestions: [1,", 2, "not_yaml"),
        ("- 1", 1, "not_settings"),
        ("title: &x 1\nlanguage: *x", 2, "alias"),
        ("title: !!python/object:os.system 1", 1, "has_tag"),
        ("title: a\ntitle: b", 2, "repeated"),
        ("title: !!int x", 1, "not_yaml"),
        ("", 1, "empty"),
        ("\0", 1, "not_yaml"),
        ("? [a, b]\n: c", 1, "not_word"),
        ("a: " + "[" * 21 + "]" * 21, 1, "too_deep"),
        ("a: " + "[" * 3000, 1, "too_deep"),
        ("title: x\na: [" + "1," * 20_000 + "1]", 2, "too_many_parts"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_at_its_line(text, line, code):
    fault = templates.parse_yaml(text).faults[0]
    assert (fault.line, fault.code) == (line, code)


@pytest.mark.parametrize(
    ("question", "line", "code"),
    [
        ("{name: a, wording: Is it?, kind: yes_no}", 4, "needs_quotes"),
        ("{name: a, wording: Is it: so, kind: yes_no}", 4, "needs_quotes"),
        # The rest of the line is a comment, so that YAML misses its end below.
        ("{name: a, wording: Is it #1?, kind: yes_no}", 4, "needs_quotes"),
        ("name: a\n    wording: Rank #1 of all", 5, "needs_quotes"),
        ("name: a\n    wording: 5 % or: more", 5, "needs_quotes"),
        ("name: a\n    wording: % right", 5, "needs_quotes"),
        ("name: a\n    wording: @you", 5, "needs_quotes"),
        ("name: a\n    wording: *bold*", 5, "needs_quotes"),
        ("name: a\n    wording: !important", 5, "has_tag"),
        ("name: a\n    wording: true", 5, "wrong_type"),
        ("name: a\n    wording: #1 of all", 5, "needs_quotes"),
    ],
)
def test_a_text_that_needs_quotes_is_named_with_its_line(question, line, code):
    text = f"assay_protocol: 1\ntitle: T # as shown\nquestions:\n  - {question}\n"
    fault = next(each for each in templates.parse_yaml(text).faults if each.code != "missing")
    assert (fault.line, fault.code) == (line, code)


def test_no_message_names_a_key_of_the_file_as_forms_show_them_too():
    # Except those about unknown keys and the format, which a form cannot cause.
    allowed = {"assay_protocol", "retry_after_seconds"}
    keys = {each.name for kind in documents.DEFINITIONS.values() for each in fields(kind)}
    modules = ("documents", "faults", "practice", "scales", "validation", "versions")
    for name in modules:
        source = Path(import_module(f"annotation.protocols.{name}").__file__).read_text()
        calls = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Call)]
        texts = [each.args[0] for each in calls if getattr(each.func, "id", "") == "_"]
        for text in (each.value for each in texts if isinstance(each, ast.Constant)):
            words = set(re.findall(r"[a-z]+(?:_[a-z]+)+", re.sub(r"%\(\w+\)\w", "", text)))
            assert not words & keys - allowed, text
            assert not re.search(r"\ba [aeio]|\ban [^aeiou\W]", text), text


def test_words_that_older_yaml_takes_for_values_stay_words():
    text = templates.write_yaml(document(line(low_label="no", high_label="12:30")))
    read = documents.read_document(templates.parse_yaml(text).values)
    assert (read.questions[0].low_label, read.questions[0].high_label) == ("no", "12:30")
    bare = "assay_protocol: 1\ntitle: Off\nquestions:\n  - {name: a, kind: category, wording: W, "
    parsed = templates.parse_yaml(bare + "categories: [no, yes, on]}\n")
    assert parsed.faults == ()
    assert parsed.values["questions"][0]["categories"] == ["no", "yes", "on"]


@pytest.mark.parametrize("name", templates.template_names())
def test_every_template_is_valid_and_comes_back_from_yaml_as_it_was(name):
    shipped = templates.read_protocol(name)
    again = templates.parse_yaml(templates.write_yaml(shipped))
    assert again.faults == ()
    assert documents.read_document(again.values) == shipped
    assert documents.read_document(documents.plain_document(shipped)) == shipped
    # No template limits who can work or how often an item is judged.
    assert replace(shipped.qualifications, practice=None) == records.Qualifications()
    assert shipped.completion == records.Completion()


TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), max_size=80
)
NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    instructions=TEXT,
    wording=TEXT.filter(str.strip),
    name=NAMES,
    labels=st.lists(TEXT.filter(str.strip), min_size=2, max_size=4, unique=True),
    low=st.integers(-1000, 0),
    high=st.floats(0.5, 1000, allow_nan=False),
)
def test_any_protocol_comes_back_from_yaml_without_loss(
    instructions, wording, name, labels, low, high
):
    questions = (
        line(name, minimum=low, maximum=high),
        records.ProtocolQuestion(
            name=f"{name}2", kind="category", wording=wording, categories=(*labels,)
        ),
    )
    before = document(*questions, instructions=instructions)
    read = documents.read_document(templates.parse_yaml(templates.write_yaml(before)).values)
    assert read == documents.read_document(documents.plain_document(before))
    assert read.instructions == instructions
    assert read.questions[1].categories == tuple(labels)


def test_what_parts_of_a_protocol_say_of_each_other_is_checked():
    values = documents.plain_document(document())
    values["examples"] = [{"verdict": "good", "candidate": "x", "scores": {"a": 101, "b": 1}}]
    values |= {"qualifications": {"countries": ["US", "UK"]}}
    why = {"name": "why", "kind": "long_text", "wording": "Why?", "about": "item"}
    values["questions"].append(why | {"when": {"question": "a", "below": 20}})
    assert [(fault.place, fault.code) for fault in validation.document_faults(values)] == [
        ("examples[1].scores.a", "off_scale"),
        ("examples[1].scores.b", "unknown_question"),
        ("qualifications.countries[2]", "unknown_country"),
        ("questions[2].when.question", "asked_once"),
    ]
    values = documents.plain_document(document())
    condition = {"when": {"question": "a", "below": 20}}
    values["questions"].append(why | condition | {"about": "candidate"})
    assert validation.document_faults(values) == []
    values["questions"][-1]["kind"] = "long"
    assert [fault.code for fault in validation.document_faults(values)] == ["unknown_choice"]


def test_markdown_makes_no_html_of_html_and_runs_no_script():
    html = markdown.markdown_html(
        "# Rules\n\n<script>x</script> [a](javascript:x) ![p](http://x/p.png) **b**"
    )
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert "<h3>Rules</h3>" in html
    assert "<strong>b</strong>" in html


def test_a_file_that_is_not_there_names_the_templates(tmp_path):
    with refused(exceptions.FileRefused, "unknown_template", naming=templates.template_names()):
        templates.protocol_source(str(tmp_path / "none.yaml"))
    latin = importing.write_file(tmp_path / "latin.yaml", "title: caf\xe9".encode("latin-1"))
    with refused(exceptions.FileRefused, "wrong_encoding"):
        templates.read_protocol(str(latin))


# Versions


@pytest.fixture
def study(db: None) -> models.Study:
    return models.Study.objects.create(slug="s", title="S", kind=models.Study.Kind.RATING)


def freezing_codes(study: models.Study) -> set[tuple[object, str]]:
    """The field and code of each fault that keeps the draft from being frozen."""
    with pytest.raises(exceptions.ProtocolInvalid) as caught:
        versions.freeze(study=study)
    return {(fault.path[-1], fault.code) for fault in caught.value.faults}


def test_a_study_without_a_protocol_amounts_to_what_its_questions_say(study):
    models.Question.objects.create(study=study, name="q", wording="W", scale_max=5, level="ordinal")
    question = versions.current_document(study).questions[0]
    assert (question.kind, question.maximum, question.level) == ("line", 5, "ordinal")
    assert question.low_label == ""
    assert freezing_codes(study) == {("low_label", "missing"), ("high_label", "missing")}
    study.questions.update(low_label="bad", high_label="good")
    version = versions.freeze(study=study)
    assert version.number == 1
    assert versions.current_document(study) == documents.read_document(version.document)


def test_a_draft_changes_until_it_is_frozen_and_a_new_one_follows(study):
    first = versions.save_draft(study=study, document=document())
    assert versions.save_draft(study=study, document=document(line("b"))).pk == first.pk
    frozen = versions.freeze(study=study)
    assert (frozen.number, frozen.fingerprint) == (1, documents.fingerprint(frozen.document))
    assert [question.name for question in study.questions.all()] == ["b"]
    assert versions.freeze(study=study).pk == frozen.pk
    second = versions.save_draft(study=study, document=document(line("c", high_label="")))
    assert (second.number, second.frozen_at) == (2, None)
    assert freezing_codes(study) == {("high_label", "missing")}
    assert versions.newest_version(study).frozen_at is None  # type: ignore[union-attr]
    assert versions.discard_draft(study=study)
    assert versions.newest_version(study) == frozen
    # A draft that is what is frozen makes no version.
    versions.save_draft(study=study, document=document(line("c")))
    versions.save_draft(study=study, document=document(line("b")))
    assert versions.freeze(study=study).pk == frozen.pk
    assert study.protocols.count() == 1


def test_a_frozen_version_cannot_be_changed_by_any_way_the_code_has(study):
    versions.save_draft(study=study, document=document())
    frozen = versions.freeze(study=study)
    frozen.document = {}
    with pytest.raises(exceptions.ProtocolFrozen):
        frozen.save()
    with pytest.raises(exceptions.ProtocolFrozen):
        models.Protocol.objects.filter(pk=frozen.pk).update(document={})
    with pytest.raises(exceptions.ProtocolFrozen), transaction.atomic():
        models.Protocol.objects.bulk_update([frozen], ["document"])
    frozen.refresh_from_db()
    assert documents.fingerprint(frozen.document) == frozen.fingerprint
    # The database keeps one draft, and no frozen version without its number.
    versions.save_draft(study=study, document=document(line("b")))
    for number, values in ((3, {}), (1, {"fingerprint": "x"})):
        with pytest.raises(IntegrityError), transaction.atomic():
            models.Protocol.objects.create(study=study, number=number, document={}, **values)


def test_a_judged_question_keeps_its_scale_and_may_change_its_words(db):
    study = studies.rated_study()
    name = study.questions.get().name
    versions.save_draft(study=study, document=document(line(name, low_label="other")))
    assert versions.freeze(study=study).number == 1
    assert study.questions.get(name=name).low_label == "other"
    versions.save_draft(study=study, document=document(line(name, maximum=7)))
    assert freezing_codes(study) == {("name", "judged_otherwise")}
    # Each of several categories is a column.
    several = {"name": "tone", "kind": "categories", "categories": ("kind", "rude")}
    question = records.ProtocolQuestion(wording="Which?", **several)  # type: ignore[arg-type]
    other = models.Study.objects.create(slug="s", title="S", kind=models.Study.Kind.RATING)
    versions.save_draft(study=other, document=document(question))
    versions.freeze(study=other)
    rows = list(other.questions.values_list("name", "level", "categories"))
    assert rows == [(name, "nominal", ["no", "yes"]) for name in ("tone:kind", "tone:rude")]


LISTED = "[low, '', '', null, 4, low]"
WRONG = [((3,), "wrong_type"), ((4,), "wrong_type")]


@pytest.mark.parametrize(
    ("kind", "answers", "wrong"),
    [
        ("category", LISTED, [((), "repeated"), ((1,), "empty"), ((2,), "empty"), *WRONG]),
        ("category", "['', '']", [((0,), "empty"), ((1,), "empty")]),
        # Points between the ends need no label, and are not dropped.
        ("likert", LISTED, [((), "repeated"), *WRONG]),
        ("likert", "['', '']", [((), "empty")]),
        ("likert", "[low, '', '']", [((2,), "empty")]),
        ("likert", "[low, '', '2']", [((), "repeated")]),
        ("likert", "[low, '', '', '', high]", []),
    ],
)
def test_answers_that_are_empty_or_repeated_are_faults_and_none_is_dropped(kind, answers, wrong):
    field = {"likert": "points", "category": "categories"}[kind]
    question = f"- {{name: q, kind: {kind}, wording: W, {field}: {answers}}}"
    parsed = templates.parse_yaml(f"assay_protocol: 1\ntitle: T\nquestions:\n{question}\n")
    faults = [(f.path[3:], f.code) for f in parsed.faults if f.path[2:3] == (field,)]
    assert faults == wrong


@pytest.mark.parametrize("name", ["validation", "practice", "scales", "versions"])
def test_messages_name_no_key_of_the_file_that_the_form_does_not_have(name):
    """Where a fault is, the form says by its labels, and a file by its path."""
    source = import_module(f"annotation.protocols.{name}").__file__
    texts = [
        node.args[0].value
        for node in ast.walk(ast.parse(Path(source).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_"
    ]
    assert texts
    assert [text for text in texts if re.search(r"'[a-z_]+'", text)] == []

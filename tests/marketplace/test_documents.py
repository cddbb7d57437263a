"""Questions, forms, answers and their schemas, keys that grade tests, and cells of CSV files."""

import json
import time
from xml.etree import ElementTree

import jsonschema
import pytest
from django.test import Client
from hypothesis import given, settings, strategies as st

from csv_cells import from_cell, to_cell
from marketplace import exceptions, models
from marketplace.documents import answer_schemas as json_schema
from marketplace.documents.answer_schemas import (
    Budget,
    TooManySteps,
    answer_errors,
    answer_schemas,
    check_schema,
    errors_of,
)
from marketplace.documents.answers import (
    ILLEGAL_IN_XML,
    KEY_NAMESPACE,
    NAMESPACE as ANSWERS,
    parse_answer_key,
    render_answers,
)
from marketplace.documents.questions import parse_question, parse_question_form
from marketplace.hits.assignments import accept_hit
from tests.codes import refused
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import EXTERNAL_QUESTION, HIT, HTML_QUESTION
from tests.marketplace.forms import form, free_text, question, selection

ADDRESS = "https://study.example/task?item=7&amp;round=1"
ROOM = 65_535 - len(HTML_QUESTION.encode())
BOMB = '<!DOCTYPE q [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + EXTERNAL_QUESTION
NO_CDATA = HTML_QUESTION.replace("<![CDATA[<!doctype html>", "").replace("]]>", "")


def at(address):
    return EXTERNAL_QUESTION.replace(ADDRESS, address)


def of_height(height):
    return HTML_QUESTION.replace("450", height)


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
    with refused(exceptions.InvalidQuestion, code):
        parse_question(xml, allow_http=allow_http)


def read(xml):
    answers = ElementTree.fromstring(xml.encode())
    assert answers.tag == f"{{{ANSWERS}}}QuestionFormAnswers"
    return [tuple(child.text or "" for child in answer) for answer in answers]


def test_fields_become_answers_in_their_order():
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
    return f'<AnswerKey xmlns="{KEY_NAMESPACE}">{questions}{inside}</AnswerKey>'


@pytest.mark.parametrize(
    ("mapping", "answers", "value"),
    [
        ("", RIGHT, 15),
        ("", {"nextmove": ("C",), "fruit": ("stones",)}, -2),
        ("", {}, 1),
        ("<PercentageMapping><MaximumSummedScore>15</MaximumSummedScore></PercentageMapping>",
         {"nextmove": ("D",)}, 40),
        ("<PercentageMapping><MaximumSummedScore>8</MaximumSummedScore></PercentageMapping>",
         {}, 13),
        ("<ScaleMapping><SummedScoreMultiplier>0.5</SummedScoreMultiplier></ScaleMapping>",
         RIGHT, 8),
        (RANGES, {"nextmove": ("D",)}, 50),
        (RANGES, RIGHT, 90),
        (RANGES, {}, -1),
    ],
)  # fmt: skip
def test_a_test_is_graded_as_its_key_says(mapping, answers, value):
    assert parse_answer_key(key(mapping)).grade(answers) == value


@pytest.mark.parametrize(
    "xml",
    [
        "not xml",
        f'<Answers xmlns="{KEY_NAMESPACE}"/>',
        key(questions=""),
        key(questions=QUESTIONS + QUESTIONS),
        key(questions="<Question><QuestionIdentifier>a</QuestionIdentifier></Question>"),
        key().replace("<AnswerScore>5<", "<AnswerScore>five<"),
        key().replace("<AnswerScore>5<", "<AnswerScore>NaN<"),
        key("<GuessMapping/>"),
        key("<PercentageMapping><MaximumSummedScore>0</MaximumSummedScore></PercentageMapping>"),
        key("<RangeMapping/>"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused(xml):
    with pytest.raises(exceptions.InvalidQuestion):
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


QUESTION = question("q", free_text())


def with_content(content):
    return question("q", free_text(), content=content)


def binary(kind, url):
    mime = f"<MimeType><Type>{kind}</Type></MimeType>"
    return with_content(f"<Binary>{mime}<DataURL>{url}</DataURL></Binary>")


MOST_TWO = "<MaxSelectionCount>2</MaxSelectionCount>"
LEAST_TWO = "<MinSelectionCount>2</MinSelectionCount>"


def test_another_schema_entities_and_too_long_a_form_are_refused():
    for xml in (
        form(QUESTION).replace("2017-11-06", "2099-01-01"),
        form(QUESTION.replace("<Question>", '<Question xmlns="urn:x">')),
    ):
        with refused(exceptions.InvalidQuestion, "wrong_namespace"):
            parse_question_form(xml)
    bomb = '<!DOCTYPE q [<!ENTITY a "aaaa">]>' + form(with_content("<Text>&a;</Text>"))
    with refused(exceptions.InvalidQuestion, "declares_entities"):
        parse_question_form(bomb)
    with refused(exceptions.InvalidQuestion, "too_long"):
        parse_question_form(form(QUESTION, f"<Overview><Text>{'x' * 65_535}</Text></Overview>"))


@pytest.mark.parametrize(
    ("dangerous", "left"),
    [
        ("<p onclick='x()'>a</p>", "<p>a</p>"),
        ("a<script>alert(1)</script>b", "ab"),
        ("<style>p{}</style>", ""),
        ("<form action='/'><input name='csrf'></form>", ""),
        ("<p style='position:fixed' class='primary' id='main'>a</p>", "<p>a</p>"),
    ],
)
def test_formatted_content_is_made_safe(dangerous, left):
    xml = form(with_content(f"<FormattedContent><![CDATA[{dangerous}]]></FormattedContent>"))
    assert parse_question_form(xml).questions[0].content[0].html == left


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "/worker/logout/"])
def test_links_and_pictures_lead_elsewhere_or_nowhere(url):
    content = (
        f'<FormattedContent><![CDATA[<a href="{url}">x</a><img src="{url}">]]></FormattedContent>'
    )
    html = parse_question_form(form(with_content(content))).questions[0].content[0].html
    assert "href" not in html
    assert "src" not in html
    link = content.replace(url, "https://x.example")
    html = parse_question_form(form(with_content(link))).questions[0].content
    assert 'rel="noopener noreferrer"' in html[0].html


@pytest.mark.parametrize(
    ("style", "counts", "control"),
    [
        ("", "", "radio"),
        ("dropdown", "", "dropdown"),
        ("list", "", "list"),
        ("checkbox", "", "checkbox"),
        ("multichooser", "", "checkbox"),
        ("list", MOST_TWO, "checkbox"),
        ("checkbox", "<MaxSelectionCount>1</MaxSelectionCount>", "radio"),
    ],
)
def test_a_suggested_style_becomes_a_control_that_everybody_can_use(style, counts, control):
    xml = form(question("q", selection("a", "b", style=style, counts=counts)))
    assert parse_question_form(xml).questions[0].selection.control == control


WRONG = [
    ("", "no_question", ""),
    ("<Surprise/>", "unexpected_element", "Surprise"),
    (QUESTION + QUESTION, "repeated_identifier", "QuestionIdentifier"),
    (QUESTION.replace("true", "maybe"), "not_a_boolean", "maybe"),
    (
        QUESTION.replace("<FreeTextAnswer></FreeTextAnswer>", ""),
        "missing_element",
        "FreeTextAnswer",
    ),
    (QUESTION.replace("<Question>", "<Question><Hint>x</Hint>"), "unexpected_element", "Hint"),
    (question("q", free_text("<Length minLength='9' maxLength='3'/>")), "impossible_length", ""),
    (question("q", free_text("<Length maxLength='x'/>")), "not_a_whole_number", "maxLength"),
    (question("q", free_text("<IsNumeric minValue='low'/>")), "not_a_number", "minValue"),
    (question("q", free_text("<AnswerFormatRegex regex='('/>")), "invalid_regex", ""),
    (question("q", free_text("<AnswerFormatRegex/>")), "missing_regex", ""),
    (question("q", selection()), "invalid_selection", ""),
    (question("q", selection("a", "a")), "repeated_identifier", "SelectionIdentifier"),
    (question("q", selection("a", style="wheel")), "invalid_selection", "StyleSuggestion"),
    (question("q", selection("a", counts=MOST_TWO)), "impossible_count", "2"),
    (question("q", selection("a", counts=LEAST_TWO)), "impossible_count", "2"),
    (with_content("<Blink>x</Blink>"), "unexpected_element", "Blink"),
    (with_content("<Text>a<b/></Text>"), "markup_in_text", "Text"),
    (binary("model", "https://h/x"), "unknown_media_type", "model"),
    (binary("image", "javascript:x"), "invalid_address", "DataURL"),
    (question("q", free_text(f"<AnswerFormatRegex regex='{'(' * 5000}'/>")), "invalid_regex", ""),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "code", "named"), WRONG)
def test_what_is_no_form_is_refused_with_a_reason(parts, code, named):
    with refused(exceptions.InvalidQuestion, code) as caught:
        parse_question_form(form(parts))
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "part",
    [question("q", "<FileUploadAnswer/>"), with_content("<Application><Flash/></Application>")],
)
def test_files_and_applets_are_refused_when_the_hit_is_made(part):
    with pytest.raises(exceptions.NotOffered):
        parse_question_form(form(part))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.5, "", "a", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
numbers, sizes = st.integers(-3, 3), st.integers(0, 3)
leaves = st.booleans() | st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(list(json_schema.TYPES))
        | st.lists(st.sampled_from(list(json_schema.TYPES)), min_size=1, max_size=2, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minimum": numbers, "maximum": numbers, "exclusiveMinimum": numbers,
        "exclusiveMaximum": numbers, "minLength": sizes, "maxLength": sizes, "minItems": sizes,
        "maxItems": sizes, "minProperties": sizes, "maxProperties": sizes,
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    },
)  # fmt: skip
schemas = st.recursive(
    leaves,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("items", "contains", "not", "additionalProperties"), inner),
            **dict.fromkeys(("if", "then", "else"), inner),
            **dict.fromkeys(
                sorted(json_schema.SUBSCHEMAS), st.lists(inner, min_size=1, max_size=2)
            ),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "minContains": sizes, "maxContains": sizes,
        },
    ),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.slow
@given(schemas, values)
@settings(max_examples=500)
def test_schemas_are_read_as_the_reference_library_reads_them(schema, value):
    check_schema(schema)
    right = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (errors_of(value, schema) == []) is right


NAMES = [f"n{number}" for number in range(2_500)]


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"required": NAMES}, {}),
        ({"type": ["string"] * len(NAMES)}, {}),
        ({"properties": dict.fromkeys(NAMES, True)}, {}),
        ({"properties": {"n0": True}, "additionalProperties": True}, dict.fromkeys(NAMES)),
        ({"prefixItems": [True] * len(NAMES)}, NAMES),
        ({"uniqueItems": True}, NAMES),
        ({"enum": NAMES}, {}),
        ({"const": NAMES}, {}),
        ({"const": {}}, NAMES),
    ],
)
def test_each_loop_over_a_schema_or_an_answer_counts_its_steps(schema, part):
    schema = {"contains": schema}
    check_schema(schema)
    budget = Budget()
    with pytest.raises(TooManySteps):
        errors_of([part] * 1_000, schema, budget)
    assert -len(NAMES) - 1 <= budget.steps_left < 0


def test_many_records_are_checked_and_costly_steps_end_with_their_time_and_budget():
    record = {"at": 1.5, "kind": "key", "n": 2, "is_last": False, "path": [1]}
    parts = {"at": "number", "kind": "string", "n": "integer", "is_last": "boolean"}
    schema = {
        "type": "object", "required": [*record], "additionalProperties": False,
        "properties": {name: {"type": kind} for name, kind in parts.items()}
        | {"path": {"type": "array", "items": {"type": "integer"}}},
    }  # fmt: skip
    assert errors_of([record] * 5_000, {"items": schema}) == []
    # Multiples of this prime have the same hash, so that a set compares each with all others.
    colliding = [(2**61 - 1) * number for number in range(20_000)]
    began = time.thread_time()
    with pytest.raises(TooManySteps):
        errors_of(colliding, {"uniqueItems": True})
    assert time.thread_time() - began < 3 * json_schema.MOST_SECONDS
    unique = json.dumps({"uniqueItems": True})
    fields = [f"field{number}" for number in range(5)]
    html = "".join(SCRIPT.format(unique).replace('"answer"', f'"{field}"') for field in fields)
    answer = json.dumps(list(range(json_schema.MOST_STEPS // 4)))
    assert answer_errors(html, [(field, ["[]"]) for field in fields]) == []
    assert len(answer_errors(html, [(field, [answer]) for field in fields])) == 2


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "(a+)+$"}, {"$ref": "#"}, {"format": "email"}, {"type": "text"}, {"type": 7},
        {"minLength": "3"}, {"minItems": True}, {"properties": []}, {"allOf": {}}, {"items": [{}]},
        {"enum": "abc"}, [], 7, {"if": "x"}, {"patternProperties": {}},
    ],
)  # fmt: skip
def test_a_schema_that_would_not_be_checked_whole_is_refused(schema):
    with pytest.raises(exceptions.InvalidQuestion):
        check_schema(schema)


def test_a_schema_is_bounded_in_size_and_depth_and_its_check_in_steps():
    with refused(exceptions.InvalidQuestion, "schema_too_large"):
        check_schema({"allOf": [True] * json_schema.MOST_NODES})
    deep = True
    for _ in range(json_schema.DEEPEST + 1):
        deep = {"not": deep}
    with refused(exceptions.InvalidQuestion, "schema_too_deep"):
        check_schema(deep)
    costly = {"items": {"allOf": [True] * 1000}}
    check_schema(costly)
    with pytest.raises(TooManySteps):
        errors_of([0] * 1000, costly)


SCHEMA = {
    "type": "object", "required": ["value"],
    "properties": {"value": {"type": "integer", "minimum": 0, "maximum": 100}},
}  # fmt: skip
SCRIPT = '<script type="application/schema+json" data-field="answer">{}</script>'


def with_schema(text):
    return HTML_QUESTION.replace("<form", SCRIPT.format(text) + "<form")


def test_only_scripts_that_name_a_field_are_schemas():
    other = '<script type="application/schema+json">{"pattern": 1}</script><script>1</script>'
    assert answer_schemas(other + SCRIPT.format('{"type": "null"}')) == {"answer": {"type": "null"}}
    assert answer_errors(other, [("answer", ["x"])]) == []
    began = time.process_time()
    for html in ("<script>" * 8_000, "<script " * 8_000, "<script x>y" * 6_000 + "</script>"):
        assert answer_schemas(html) == {}
    assert time.process_time() - began < 1


@pytest.mark.parametrize("text", ["{", '{"pattern": "x"}', '{"a": ' + "9" * 40_000 + "}"])
def test_a_hit_whose_schema_cannot_be_checked_is_refused_when_it_is_made(mturk, text):
    code = turk_code(mturk.create_hit, **HIT | {"Question": with_schema(text)})
    assert code == "XMLParseError"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("{}", "value"), ('{"value": 101}', "100"), ('{"value": NaN}', "JSON"),
        ("[" * 100_000, "JSON"), ("", "JSON"), ('{"value": true}', "integer"), ("[]", "object"),
    ],
)  # fmt: skip
def test_an_answer_that_the_page_forbids_is_refused_and_can_be_mended(
    mturk, worker, answer, problem
):
    mturk.create_hit(**HIT | {"Question": with_schema(json.dumps(SCHEMA))})
    assignment = accept_hit(worker=worker, hit=models.Hit.objects.get())
    fields = {"assignmentId": assignment.public_id, "answer": answer}
    accept = {"Accept": "application/json"}
    answered = Client().post("/mturk/externalSubmit", fields, headers=accept)
    assert (answered.status_code, answered.json()["code"]) == (422, "answer_refused")
    assert problem in answered.json()["error"]
    page = Client().post("/mturk/externalSubmit", {"assignmentId": assignment.public_id, "x": "1"})
    assert (page.status_code, page.context["code"]) == (422, "answer_refused")
    assert models.Assignment.objects.get().status == "Accepted"
    right = fields | {"answer": '{"value": 7}'}
    assert Client().post("/mturk/externalSubmit", right).status_code == 200
    # Once it is in, anything sent again gets the same receipt.
    assert Client().post("/mturk/externalSubmit", fields).status_code == 200

import contextlib
import json
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.models import Item
from hits.answers import Answer, read_answer, read_answers_xml
from hits.exceptions import AnswerUnreadable
from tests.hits.samples import alternatives_item, rating_item

pytestmark = pytest.mark.django_db
NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd"
ONE_ITEM_FOR_ALL = settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def xml_of(fields: dict[str, str]) -> str:
    answers = "".join(
        f"<Answer><QuestionIdentifier>{escape(name)}</QuestionIdentifier>"
        f"<FreeText>{escape(text)}</FreeText></Answer>"
        for name, text in fields.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
        f'<QuestionFormAnswers xmlns="{NAMESPACE}">{answers}</QuestionFormAnswers>'
    )


def answer_for(item: Item) -> dict:
    """A good answer: the values count up from 0, or every other alternative is ticked."""
    keys = [candidate.blind_key for candidate in item.candidates.all()][::-1]
    names = [question.name for question in item.study.questions.all()]
    pairs = [(key, name) for key in keys for name in names]
    top = 2 if item.study.kind == "alternatives" else 101
    return {
        "version": 1,
        "item": str(item.pk),
        "order": keys,
        "judgments": [
            {"candidate": key, "question": name, "value": at % top, "seconds": 1.5 * at}
            for at, (key, name) in enumerate(pairs)
        ],
        "justification": "They are all of one kind.",
        "comment": "",
        "active_seconds": 61.5,
        "pasted": False,
    }


def answer_of(item: Item, answer: object) -> Answer:
    return read_answer(xml_of({"answer": json.dumps(answer)}), item)


def problem_with(item: Item, answer: object) -> str:
    with pytest.raises(AnswerUnreadable) as problem:
        answer_of(item, answer)
    return str(problem.value)


def test_a_rating_is_read_with_its_candidates_questions_and_places():
    item = rating_item()
    answer = answer_of(item, answer_for(item))
    candidates = list(item.candidates.all())
    assert answer.order == tuple(candidate.key for candidate in candidates[::-1])
    rows = [(j.candidate.key, j.question.name, j.value, j.position) for j in answer.judgments]
    assert rows[:3] == [
        (candidates[3].key, "appropriateness", 0.0, 0),
        (candidates[3].key, "style_strength", 1.0, 0),
        (candidates[2].key, "appropriateness", 2.0, 1),
    ]
    assert len(rows) == 8
    assert [judgment.seconds for judgment in answer.judgments][:2] == [0.0, 1.5]
    assert (answer.active_seconds, answer.pasted, answer.comment) == (61.5, False, "")


def test_an_unticked_alternative_is_a_judgment_of_zero():
    item = alternatives_item()
    answer = answer_of(item, answer_for(item))
    assert [judgment.value for judgment in answer.judgments] == [0.0, 1.0] * 7
    assert answer.justification == "They are all of one kind."


def test_judgments_may_come_in_any_order():
    item = rating_item()
    answer = answer_for(item)
    in_order = answer_of(item, answer)
    answer["judgments"].reverse()
    assert answer_of(item, answer) == in_order


def test_what_was_never_touched_has_no_time():
    item = alternatives_item()
    answer = answer_for(item)
    answer["judgments"][0]["seconds"] = None
    del answer["judgments"][1]["seconds"], answer["active_seconds"]
    answer = answer_of(item, answer)
    assert answer.judgments[0].seconds is answer.judgments[1].seconds is None
    assert answer.active_seconds is None


def test_a_prefetched_item_needs_no_query(django_assert_num_queries):
    pk = rating_item().pk
    items = Item.objects.select_related("study").prefetch_related(*PREFETCHED)
    item = items.get(pk=pk)
    xml = xml_of({"answer": json.dumps(answer_for(item))})
    with django_assert_num_queries(0):
        read_answer(xml, item)


def test_a_bare_item_needs_five_queries(django_assert_num_queries):
    item = rating_item()
    xml = xml_of({"answer": json.dumps(answer_for(item))})
    bare = Item.objects.get(pk=item.pk)
    with django_assert_num_queries(5):
        read_answer(xml, bare)


def test_text_that_no_database_keeps_is_mended():
    item = alternatives_item()
    answer = answer_for(item)
    answer["justification"] = "Half a smile \ud83d, a zero \0, a whole one 🙂."
    answer = answer_of(item, answer)
    assert answer.justification == "Half a smile \ufffd, a zero \ufffd, a whole one 🙂."
    answer.justification.encode()


HOSTILE_CHANGES = {
    "version 2": ({"version": 2}, "version is 2"),
    "version true": ({"version": True}, "version is True"),
    "no version": ({"version": None}, "version is None"),
    "another item": ({"item": "0"}, "about item '0'"),
    "an item as number": ({"item": 1}, "about item 1"),
    "no order": ({"order": None}, "order is None"),
    "an order of numbers": ({"order": [1, 2, 3, 4]}, "not a list of candidates"),
    "an order of lists": ({"order": [[], [], [], []]}, "not a list of candidates"),
    "an empty order": ({"order": []}, "each of the item's 4 candidates once"),
    "judgments as text": ({"judgments": "all fine"}, "not a list of objects"),
    "judgments of junk": ({"judgments": [[[[]]]]}, "not a list of objects"),
    "no judgments": ({"judgments": []}, "'appropriateness' of candidate"),
    "justification as list": ({"justification": ["x"]}, "justification is ['x'], not a text"),
    "comment as null": ({"comment": None}, "comment is None, not a text"),
    "active as text": ({"active_seconds": "9"}, "active_seconds is '9', not a number"),
    "active before the start": ({"active_seconds": -1}, "no time anybody worked"),
    "active for ever": ({"active_seconds": 10**300}, "no time anybody worked"),
    "pasted as text": ({"pasted": "no"}, "neither true nor false"),
}


@pytest.mark.parametrize(
    ("change", "problem"), HOSTILE_CHANGES.values(), ids=HOSTILE_CHANGES.keys()
)
def test_an_answer_with_a_wrong_part_is_refused_with_what_is_wrong(change, problem):
    item = rating_item()
    assert problem in problem_with(item, answer_for(item) | change)


PREFETCHED = ("candidates", "study__questions", "study__protocols")
HOSTILE_VALUES = {
    "above": (101, "outside its scale from 0 to 100"),
    "just above": (100.0000001, "outside its scale"),
    "below": (-1, "outside its scale"),
    "huge": (10**400, "outside its scale"),
    "huge float": (1e308, "outside its scale"),
    "text": ("50", "is '50', not a number"),
    "true": (True, "is True, not a number"),
    "null": (None, "is not judged"),
    "list": ([50], "is [50], not a number"),
    "object": ({"value": 50}, "not a number"),
}


@pytest.mark.parametrize(("value", "problem"), HOSTILE_VALUES.values(), ids=HOSTILE_VALUES.keys())
def test_a_value_off_its_scale_is_refused(value, problem):
    item = rating_item()
    answer = answer_for(item)
    answer["judgments"][5]["value"] = value
    assert problem in problem_with(item, answer)


@pytest.mark.parametrize("value", [2, -1, 0.5, 100])
def test_an_alternative_is_ticked_or_not(value):
    item = alternatives_item()
    answer = answer_for(item)
    answer["judgments"][0]["value"] = value
    problem_with(item, answer)


def test_a_category_is_a_whole_index():
    item = rating_item()
    item.study.questions.filter(position=1).update(categories=["no", "some", "much"])
    answer = answer_for(item)
    for row in answer["judgments"]:
        row["value"] = 2
    assert answer_of(item, answer).judgments[1].value == 2.0
    answer["judgments"][1]["value"] = 3
    assert "outside its scale from 0 to 2" in problem_with(item, answer)
    answer["judgments"][1]["value"] = 1.5
    assert "between two choices" in problem_with(item, answer)


def test_a_judgment_missing_doubled_or_made_up_is_refused():
    item = rating_item()
    answer = answer_for(item)
    rows = answer["judgments"]
    row = rows[3]
    problem = problem_with(item, answer | {"judgments": rows[:3] + rows[4:]})
    assert f"'style_strength' of candidate '{row['candidate']}' is not judged" in problem
    assert "is judged twice" in problem_with(item, answer | {"judgments": [*rows, rows[0]]})
    extra = {**rows[0], "question": "beauty"}
    assert "was not asked for" in problem_with(item, answer | {"judgments": [*rows, extra]})
    stranger = {**rows[0], "candidate": "0123456789ab"}
    assert "was not asked for" in problem_with(item, answer | {"judgments": [*rows, stranger]})
    assert "lacks its candidate" in problem_with(item, answer | {"judgments": [{"value": 1}]})
    nested = {**rows[0], "candidate": {"$ne": 1}}
    assert "lacks its candidate" in problem_with(item, answer | {"judgments": [nested]})


def test_an_order_with_a_doubled_or_unknown_candidate_is_refused():
    item = rating_item()
    answer = answer_for(item)
    twice = [answer["order"][0], *answer["order"][:3]]
    assert "must name each" in problem_with(item, answer | {"order": twice})
    assert "must name each" in problem_with(
        item, answer | {"order": [*answer["order"][:3], "llama"]}
    )
    keys = [candidate.key for candidate in item.candidates.all()]
    assert "must name each" in problem_with(item, answer | {"order": keys})


def test_a_justification_too_short_is_refused_and_blanks_do_not_count():
    item = alternatives_item(justification=20)
    answer = answer_for(item)
    problem = problem_with(item, answer | {"justification": "   short" + " " * 40})
    assert "has 5 characters; the study asks for 20" in problem


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "null",
        "[]",
        '"text"',
        "12",
        "NaN",
        "{",
        '{"version": 1',
        '{"version": NaN}',
        '{"version": Infinity}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 10_000,
        '{"version": 1, "item": ' + "9" * 4_000 + "}",
        '{"version": 1e999}',
        "\ufeff{}",
    ],
)
def test_json_that_is_no_answer_is_refused(text):
    with pytest.raises(AnswerUnreadable):
        read_answer(xml_of({"answer": text}), rating_item())


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_value_that_is_no_finite_number_is_refused(literal):
    item = rating_item()
    answer = answer_for(item)
    answer["judgments"][2]["value"] = "HERE"
    text = json.dumps(answer).replace('"HERE"', literal)
    with pytest.raises(AnswerUnreadable):
        read_answer(xml_of({"answer": text}), item)


LAUGHS = "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 10))
BILLION_LAUGHS = (
    f'<?xml version="1.0"?><!DOCTYPE q [<!ENTITY l0 "lol">{LAUGHS}]>'
    "<QuestionFormAnswers><Answer><QuestionIdentifier>answer</QuestionIdentifier>"
    "<FreeText>&l9;</FreeText></Answer></QuestionFormAnswers>"
)
OUTSIDE = (
    '<!DOCTYPE q [<!ENTITY file SYSTEM "file:///etc/passwd">]>'
    "<QuestionFormAnswers><Answer><QuestionIdentifier>answer</QuestionIdentifier>"
    "<FreeText>&file;</FreeText></Answer></QuestionFormAnswers>"
)


@pytest.mark.parametrize(
    "xml",
    [
        "",
        "plain",
        "<QuestionFormAnswers>",
        "<Other/>",
        "<QuestionFormAnswers><Answer/></QuestionFormAnswers>",
        "<QuestionFormAnswers><Junk><QuestionIdentifier>a</QuestionIdentifier></Junk></QuestionFormAnswers>",
        "<QuestionFormAnswers>\0</QuestionFormAnswers>",
        "<QuestionFormAnswers>\ud800</QuestionFormAnswers>",
        "<QuestionFormAnswers/>",
        "<a>" * 100_000,
        "<a>" * 50_000 + "</a>" * 50_000,
        '<?xml version="1.0" encoding="klingon"?><QuestionFormAnswers/>',
        '<?xml version="1.0" encoding="UTF-16"?><QuestionFormAnswers/>',
        BILLION_LAUGHS,
        OUTSIDE,
    ],
    ids=range(15),
)
def test_xml_that_is_no_answer_is_refused(xml):
    with pytest.raises(AnswerUnreadable):
        read_answer(xml, rating_item())


def test_a_name_answered_twice_is_refused():
    once = xml_of({"answer": "{}"})
    inner = once[once.index("<Answer>") : once.index("</QuestionFormAnswers>")]
    with pytest.raises(AnswerUnreadable, match="answers 'answer' twice"):
        read_answers_xml(once.replace(inner, inner * 2))


def test_answers_are_read_by_name_and_a_missing_text_is_empty():
    xml = (
        f'<QuestionFormAnswers xmlns="{NAMESPACE}">'
        "<Answer><QuestionIdentifier>colour</QuestionIdentifier>"
        "<FreeText>red &amp; blue</FreeText></Answer>"
        "<Answer><QuestionIdentifier>size</QuestionIdentifier><FreeText/></Answer>"
        "<Answer><QuestionIdentifier>choice</QuestionIdentifier>"
        "<SelectionIdentifier>b</SelectionIdentifier></Answer>"
        "</QuestionFormAnswers>"
    )
    assert read_answers_xml(xml) == {"colour": "red & blue", "size": "", "choice": ""}


def test_a_problem_never_repeats_a_long_answer_in_full():
    item = rating_item()
    problem = problem_with(item, answer_for(item) | {"item": "x" * 100_000})
    assert len(problem) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def either_reads_or_refuses(text: str, item: Item) -> None:
    with contextlib.suppress(AnswerUnreadable):
        assert len(read_answer(text, item).judgments) == 8


@pytest.fixture
def item():
    pk = rating_item().pk
    items = Item.objects.select_related("study").prefetch_related(*PREFETCHED)
    return items.get(pk=pk)


@given(text=st.text())
@ONE_ITEM_FOR_ALL
def test_any_text_is_read_or_refused(item, text):
    either_reads_or_refuses(text, item)


@given(junk=JSON)
@ONE_ITEM_FOR_ALL
def test_any_json_is_read_or_refused(item, junk):
    either_reads_or_refuses(xml_of({"answer": json.dumps(junk)}), item)


PARTS = ["version", "item", "order", "judgments", "justification", "comment", "active_seconds"]


@given(part=st.sampled_from([*PARTS, "pasted"]), junk=JSON)
@ONE_ITEM_FOR_ALL
def test_a_good_answer_with_any_junk_in_a_part_is_read_or_refused(item, part, junk):
    either_reads_or_refuses(xml_of({"answer": json.dumps(answer_for(item) | {part: junk})}), item)


@given(part=st.sampled_from(["candidate", "question", "value", "seconds"]), junk=JSON)
@ONE_ITEM_FOR_ALL
def test_a_good_answer_with_any_junk_in_a_judgment_is_read_or_refused(item, part, junk):
    answer = answer_for(item)
    answer["judgments"][3][part] = junk
    either_reads_or_refuses(xml_of({"answer": json.dumps(answer)}), item)

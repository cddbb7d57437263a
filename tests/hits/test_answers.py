import contextlib
import json
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.models import Item
from hits.answers import Answer, read_answer, read_answers_xml
from hits.exceptions import AnswerUnreadable
from tests.codes import refused
from tests.hits.samples import alternatives_item, rating_item

pytestmark = pytest.mark.django_db
NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd"
ONE_ITEM_FOR_ALL = settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


HOSTILE_PARTS = [
    ("unknown_version", "version", [2, True, None]),
    ("other_item", "item", ["0", 1]),
    ("not_an_order", "order", [None, [1, 2, 3, 4], [[], [], [], []]]),
    ("incomplete_order", "order", [[]]),
    ("not_objects", "judgments", ["all fine", [[[[]]]]]),
    ("not_judged", "judgments", [[]]),
    ("not_a_text", "justification", [["x"]]),
    ("not_a_text", "comment", [None]),
    ("not_a_number", "active_seconds", ["9"]),
    ("impossible_time", "active_seconds", [-1, 10**300]),
    ("not_a_boolean", "pasted", ["no"]),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def assert_refused(item: Item, code: str, /, **changes: object) -> None:
    """A good answer with these changes is refused."""
    with refused(AnswerUnreadable, code):
        answer_of(item, answer_for(item) | changes)


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


def prefetched(item: Item) -> Item:
    names = ("candidates", "study__questions", "study__protocols")
    return Item.objects.select_related("study").prefetch_related(*names).get(pk=item.pk)


def test_what_was_never_touched_has_no_time_and_no_tick_and_odd_text_is_mended():
    item = alternatives_item()
    answer = answer_for(item)
    answer["judgments"][0]["seconds"] = None
    del answer["judgments"][1]["seconds"], answer["active_seconds"]
    answer["justification"] = "Half a smile \ud83d, a zero \0, a whole one 🙂."
    answer = answer_of(item, answer)
    assert [judgment.value for judgment in answer.judgments] == [0.0, 1.0] * 7
    assert answer.judgments[0].seconds is answer.judgments[1].seconds is None
    assert answer.active_seconds is None
    assert answer.justification == "Half a smile \ufffd, a zero \ufffd, a whole one 🙂."
    answer.justification.encode()


@pytest.mark.parametrize(
    ("code", "part", "value"),
    [(code, part, value) for code, part, values in HOSTILE_PARTS for value in values],
)
def test_an_answer_with_a_wrong_part_is_refused(code, part, value):
    assert_refused(rating_item(), code, **{part: value})


def test_a_value_off_its_scale_is_refused():
    item = prefetched(rating_item())
    for code, values in HOSTILE_VALUES.items():
        for value in values:
            rows = answer_for(item)["judgments"]
            rows[5]["value"] = value
            assert_refused(item, code, judgments=rows)
    for literal in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999"):
        answer = answer_for(item)
        answer["judgments"][2]["value"] = "HERE"
        text = json.dumps(answer).replace('"HERE"', literal)
        with pytest.raises(AnswerUnreadable):
            read_answer(xml_of({"answer": text}), item)
    item = prefetched(alternatives_item())
    for value in (2, -1, 0.5, 100):
        rows = answer_for(item)["judgments"]
        rows[0]["value"] = value
        assert_refused(item, "", judgments=rows)


def answer_of(item: Item, answer: object) -> Answer:
    return read_answer(xml_of({"answer": json.dumps(answer)}), item)


def test_a_rating_is_read_with_its_candidates_questions_and_places(django_assert_num_queries):
    item = rating_item()
    given = answer_for(item)
    xml = xml_of({"answer": json.dumps(given)})
    bare = Item.objects.get(pk=item.pk)
    with django_assert_num_queries(5):
        read_answer(xml, bare)
    item = prefetched(item)
    with django_assert_num_queries(0):
        answer = read_answer(xml, item)
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
    # Judgments may come in any order.
    given["judgments"].reverse()
    assert answer_of(item, given) == answer


HOSTILE_VALUES = {
    "off_scale": [101, 100.0000001, -1, 10**400, 1e308],
    "not_a_number": ["50", True, [50], {"value": 50}],
    "not_judged": [None],
}


def test_a_category_is_a_whole_index():
    item = rating_item()
    item.study.questions.filter(position=1).update(categories=["no", "some", "much"])
    answer = answer_for(item)
    for row in answer["judgments"]:
        row["value"] = 2
    assert answer_of(item, answer).judgments[1].value == 2.0
    for value, code in ((3, "off_scale"), (1.5, "not_whole")):
        answer["judgments"][1]["value"] = value
        assert_refused(item, code, judgments=answer["judgments"])


def test_a_judgment_missing_doubled_or_made_up_is_refused():
    item = prefetched(rating_item())
    rows = answer_for(item)["judgments"]
    first = rows[0]
    assert_refused(item, "not_judged", judgments=rows[:3] + rows[4:])
    assert_refused(item, "judged_twice", judgments=[*rows, first])
    for code, extra in (
        ("unasked", first | {"question": "beauty"}),
        ("unasked", first | {"candidate": "0123456789ab"}),
        ("incomplete_judgment", {"value": 1}),
        ("incomplete_judgment", first | {"candidate": {"$ne": 1}}),
    ):
        assert_refused(item, code, judgments=[*rows, extra])


def test_an_order_that_is_not_the_items_and_a_short_reason_are_refused():
    item = prefetched(rating_item())
    order = answer_for(item)["order"]
    keys = [candidate.key for candidate in item.candidates.all()]
    for wrong in ([order[0], *order[:3]], [*order[:3], "llama"], keys):
        assert_refused(item, "incomplete_order", order=wrong)
    # Blanks do not count.
    item = alternatives_item(justification=20)
    assert_refused(item, "short_reason", justification="   short" + " " * 40)


HOSTILE_JSON = [
    "", "not json", "null", "[]", '"text"', "12", "NaN", "{", '{"version": 1',
    '{"version": NaN}', '{"version": Infinity}', "[" * 100_000, '{"a":' * 100_000, "9" * 10_000,
    '{"version": 1, "item": ' + "9" * 4_000 + "}", '{"version": 1e999}', "\ufeff{}",
]  # fmt: skip


def test_json_that_is_no_answer_is_refused():
    item = rating_item()
    for text in HOSTILE_JSON:
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


HOSTILE_XML = [
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
]


def test_xml_that_is_no_answer_is_refused():
    item = rating_item()
    for xml in HOSTILE_XML:
        with pytest.raises(AnswerUnreadable):
            read_answer(xml, item)
    once = xml_of({"answer": "{}"})
    inner = once[once.index("<Answer>") : once.index("</QuestionFormAnswers>")]
    with refused(AnswerUnreadable, "answered_twice"):
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
    with refused(AnswerUnreadable, "other_item") as problem:
        answer_of(item, answer_for(item) | {"item": "x" * 100_000})
    assert len(str(problem.value)) < 300


@given(text=st.text(), junk=JSON)
@ONE_ITEM_FOR_ALL
def test_any_text_or_json_is_read_or_refused(item, text, junk):
    either_reads_or_refuses(text, item)
    either_reads_or_refuses(xml_of({"answer": json.dumps(junk)}), item)


def either_reads_or_refuses(text: str, item: Item) -> None:
    with contextlib.suppress(AnswerUnreadable):
        assert len(read_answer(text, item).judgments) == 8


@pytest.fixture
def item():
    return prefetched(rating_item())


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

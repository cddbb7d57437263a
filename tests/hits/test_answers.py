import contextlib
import copy
import json
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from annotation.models import Item, Study
from annotation.protocols import records, templates, versions
from annotation.protocols.documents import read_document
from hits.answers import Answer, read_answer, read_answers_xml
from hits.exceptions import AnswerUnreadable
from hits.questions import consent_fingerprint, task_of
from tests.annotation.studies import alternatives_study, rating_study
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
    with refused(AnswerUnreadable, code):
        answer_of(item, answer_for(item) | changes)


def xml_of(fields: dict[str, str]) -> str:
    row = "<Answer><QuestionIdentifier>{}</QuestionIdentifier><FreeText>{}</FreeText></Answer>"
    answers = "".join(row.format(escape(name), escape(text)) for name, text in fields.items())
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
        f'<QuestionFormAnswers xmlns="{NAMESPACE}">{answers}</QuestionFormAnswers>'
    )


def answer_for(item: Item) -> dict:
    keys = [candidate.blind_key for candidate in item.candidates.all()][::-1]
    names = [question.name for question in item.study.questions.all()]
    top = 2 if item.study.kind == "alternatives" else 101
    rows = [{"candidate": key, "question": name} for key in keys for name in names]
    for at, row in enumerate(rows):
        row |= {"value": at % top, "seconds": 1.5 * at}
    answer = {"version": 1, "item": str(item.pk), "order": keys, "judgments": rows, "comment": ""}
    reason = "They are all of one kind."
    return answer | {"justification": reason, "active_seconds": 61.5, "pasted": False}


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


def test_an_answer_with_a_wrong_part_is_refused():
    item = rating_item()
    for code, part, values in HOSTILE_PARTS:
        for value in values:
            assert_refused(item, code, **{part: value})
    # A problem never repeats a long answer in full.
    with refused(AnswerUnreadable, "other_item") as problem:
        answer_of(item, answer_for(item) | {"item": "x" * 100_000})
    assert len(str(problem.value)) < 300


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
    last, third = candidates[3].key, candidates[2].key
    first_two = [(last, "appropriateness", 0.0, 0), (last, "style_strength", 1.0, 0)]
    assert rows[:3] == [*first_two, (third, "appropriateness", 2.0, 1)]
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
    *("", "plain", "<QuestionFormAnswers>", "<QuestionFormAnswers/>", "<Other/>"),
    "<QuestionFormAnswers><Answer/></QuestionFormAnswers>",
    "<QuestionFormAnswers><Junk><QuestionIdentifier>a</QuestionIdentifier></Junk></QuestionFormAnswers>",
    *(f"<QuestionFormAnswers>{text}</QuestionFormAnswers>" for text in ("\0", "\ud800")),
    *("<a>" * 100_000, "<a>" * 50_000 + "</a>" * 50_000),
    '<?xml version="1.0" encoding="klingon"?><QuestionFormAnswers/>',
    '<?xml version="1.0" encoding="UTF-16"?><QuestionFormAnswers/>',
    *(BILLION_LAUGHS, OUTSIDE),
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
    assert read_answers_xml(
        f'<QuestionFormAnswers xmlns="{NAMESPACE}">'
        "<Answer><QuestionIdentifier>colour</QuestionIdentifier>"
        "<FreeText>red &amp; blue</FreeText></Answer>"
        "<Answer><QuestionIdentifier>size</QuestionIdentifier><FreeText/></Answer>"
        "<Answer><QuestionIdentifier>choice</QuestionIdentifier>"
        "<SelectionIdentifier>b</SelectionIdentifier></Answer>"
        "</QuestionFormAnswers>"
    ) == {"colour": "red & blue", "size": "", "choice": ""}


@given(text=st.text(), junk=JSON)
@ONE_ITEM_FOR_ALL
def test_any_text_or_json_is_read_or_refused(rated_item, text, junk):
    either_reads_or_refuses(text, rated_item)
    either_reads_or_refuses(xml_of({"answer": json.dumps(junk)}), rated_item)


def either_reads_or_refuses(text: str, item: Item) -> None:
    with contextlib.suppress(AnswerUnreadable):
        assert len(read_answer(text, item).judgments) == 8


@pytest.fixture
def rated_item():
    return prefetched(rating_item())


PARTS = ["version", "item", "order", "judgments", "justification", "comment", "active_seconds"]


@given(part=st.sampled_from([*PARTS, "pasted"]), junk=JSON)
@ONE_ITEM_FOR_ALL
def test_a_good_answer_with_any_junk_in_a_part_is_read_or_refused(rated_item, part, junk):
    answer = answer_for(rated_item) | {part: junk}
    either_reads_or_refuses(xml_of({"answer": json.dumps(answer)}), rated_item)


W = {"wording": "W"}
IN_ALL = W | {"about": "item"}
ERRORS = {"minimum": 0, "maximum": 9, "whole": True, "required": False}
EVERY_KIND = {
    "assay_protocol": 1,
    "title": "All kinds",
    "questions": [
        {"name": "fit", "kind": "line", **W, "low_label": "l", "high_label": "h"},
        {"name": "why", "kind": "long_text", **W, "least_length": 5,
         "when": {"question": "fit", "below": 20}},
        {"name": "agree", "kind": "likert", **W, "points": ["no", "so", "yes"]},
        {"name": "kind", "kind": "category", **W, "categories": ["x", "y", "z"]},
        {"name": "tone", "kind": "categories", **W, "categories": ["kind", "rude", "odd"],
         "least": 1, "most": 2},
        {"name": "safe", "kind": "yes_no", **IN_ALL},
        {"name": "danger", "kind": "short_text", **IN_ALL,
         "when": {"question": "safe", "any_of": ["no"]}},
        {"name": "errors", "kind": "number", **W, **ERRORS},
        {"name": "best", "kind": "preference", **W, "ties": True},
        {"name": "ends", "kind": "best_worst", **W},
        {"name": "order", "kind": "ranking", **W, "ties": True},
    ],
}  # fmt: skip


def item_of(study: Study, document: records.ProtocolDocument) -> Item:
    versions.save_draft(study=study, document=document)
    versions.freeze(study=study)
    return study.items.order_by("position")[0]


@pytest.fixture
def item(db: None) -> Item:
    study = rating_study(n_items=1, systems=("a", "b", "c"), questions=())
    return item_of(study, read_document(EVERY_KIND))


def keys_of(item: Item) -> list[str]:
    return [candidate.blind_key for candidate in item.candidates.order_by("key")]


def answer_to(item: Item) -> dict[str, Any]:
    a, b, c = keys_of(item)
    rows: list[dict[str, Any]] = []
    for key, fit in ((a, 10), (b, 20), (c, 90)):
        row = {"fit": fit, "agree": 2, "kind": 1, "tone": [0, 2]}
        rows += [{"candidate": key, "question": n, "value": v} for n, v in row.items()]
    rows.append({"candidate": a, "question": "why", "value": " It is rude. "})
    whole = {"safe": 0, "danger": "knives", "best": b, "order": [[b], [a, c]]}
    whole["ends"] = {"best": b, "worst": a}
    rows += [{"candidate": None, "question": n, "value": v} for n, v in whole.items()]
    return {"version": 1, "item": str(item.pk), "order": [c, a, b], "judgments": rows}


def read(item: Item, answer: dict[str, Any]) -> Answer:
    return read_answer(xml_of({"answer": json.dumps(answer)}), item)


def values_of(answer: Answer, question: str) -> dict[str, float]:
    judged = [each for each in answer.judgments if each.question.name == question]
    return {each.candidate.key if each.candidate else "": each.value for each in judged}


def test_every_kind_lands_as_its_values(item: Item) -> None:
    answer = read(item, answer_to(item))
    named = {candidate.key: candidate.system for candidate in item.candidates.all()}
    by_system = {
        question: {named.get(key, ""): value for key, value in values_of(answer, question).items()}
        for question in {each.question.name for each in answer.judgments}
    }
    every = dict.fromkeys("abc", 0.0)
    assert by_system == {
        "fit": {"a": 10, "b": 20, "c": 90},
        "agree": every | dict.fromkeys("abc", 2.0),
        "kind": dict.fromkeys("abc", 1.0),
        "tone:kind": dict.fromkeys("abc", 1.0),
        "tone:rude": every,
        "tone:odd": dict.fromkeys("abc", 1.0),
        "safe": {"": 0.0},
        "best": {"a": 0, "b": 1, "c": 0},
        "ends": {"a": 0, "b": 1, "c": 0.5},
        "order": {"a": 0.25, "b": 1, "c": 0.25},
    }
    words = [(each.question, each.candidate and each.candidate.system) for each in answer.written]
    assert (words, answer.written[0].text) == ([("why", "a"), ("danger", None)], "It is rude.")


def test_the_page_is_told_all_that_it_needs_to_ask(item: Item) -> None:
    questions = {one["name"]: one for one in task_of(read_document(EVERY_KIND))["questions"]}
    assert questions["agree"] == {"name": "agree", "kind": "likert", "min": 1, "max": 3}
    assert questions["why"]["when"] == {"question": "fit", "below": 20}
    assert questions["danger"]["when"] == {"question": "safe", "any_of": [0]}
    assert questions["danger"]["about"] == "item"
    assert questions["best"] == {"name": "best", "kind": "preference", "ties": True, "about": "all"}
    assert questions["errors"]["required"] is False


def _set(question: str, value: Any, system: str = "") -> Any:
    def change(item: Item, answer: dict[str, Any]) -> None:
        keys = dict(zip("abc", keys_of(item), strict=True))
        about = keys.get(system)
        text = json.dumps(value)
        for name, key in keys.items():
            text = text.replace(f'"@{name}"', f'"{key}"')
        rows = answer["judgments"]
        rows = [row for row in rows if (row["candidate"], row["question"]) != (about, question)]
        rows.append({"candidate": about, "question": question, "value": json.loads(text)})
        answer["judgments"] = rows

    return change


REFUSED = {
    "a point off the scale": (_set("agree", 4, "a"), "off_scale"),
    "half a point": (_set("agree", 1.5, "a"), "not_whole"),
    "a category that is none": (_set("kind", 3, "a"), "off_scale"),
    "no category where one is needed": (_set("tone", [], "a"), "number_of_categories"),
    "too many categories": (_set("tone", [0, 1, 2], "a"), "number_of_categories"),
    "one category twice": (_set("tone", [0, 0], "a"), "not_categories"),
    "true for a category": (_set("tone", [True], "a"), "not_categories"),
    "words where none were asked for": (_set("why", "because", "b"), "unasked"),
    "too few words": (_set("why", "  no  ", "a"), "text_length"),
    "no words where they are needed": (_set("why", "", "a"), "not_judged"),
    "a condition that does not hold": (_set("safe", 1), "unasked"),
    "half an error": (_set("errors", 1.5, "a"), "not_whole"),
    "a preference for nobody": (_set("best", "x"), "unknown_candidate"),
    "a number for a preference": (_set("best", 1), "unknown_candidate"),
    "the best is the worst": (_set("ends", {"best": "@a", "worst": "@a"}), "best_is_worst"),
    "only a best": (_set("ends", {"best": "@a"}), "not_best_and_worst"),
    "a ranking without one": (_set("order", [["@a"], ["@b"]]), "incomplete_ranking"),
    "a ranking with one twice": (_set("order", [["@a"], ["@a"], ["@b"]]), "incomplete_ranking"),
    "a flat ranking": (_set("order", ["@a", "@b", "@c"]), "not_a_ranking"),
    "an empty rank": (_set("order", [[], ["@a", "@b", "@c"]]), "not_a_ranking"),
    "a list where a text belongs": (_set("danger", ["knives"]), "not_a_text"),
}


def test_what_the_page_would_not_send_is_refused(item):
    for change, code in REFUSED.values():
        answer = answer_to(item)
        read(item, copy.deepcopy(answer))
        change(item, answer)
        with refused(AnswerUnreadable, code):
            read(item, answer)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"reasons": []}, "short_reason"),
        ({"consent": None}, "no_consent"),
        ({"consent": {"text": "other", "at": "2026-11-22T10:00:00Z"}}, "no_consent"),
        ({"judgments": "not chosen"}, "unasked"),
    ],
)
def test_a_choice_without_its_reason_or_work_without_consent_is_refused(target, change, code):
    key = target.candidates.all()[0].key
    if "judgments" in change:
        change = {"judgments": ticks_of(target, set())["judgments"]}
    with refused(AnswerUnreadable, code):
        read(target, ticks_of(target, {key}) | change)


def test_an_optional_question_may_be_left_open(item: Item) -> None:
    answer = answer_to(item)
    _set("errors", 3, "a")(item, answer)
    assert len(values_of(read(item, answer), "errors")) == 1
    _set("errors", None, "a")(item, answer)
    assert values_of(read(item, answer), "errors") == {}


def test_ranks_without_ties_are_refused_where_none_are_allowed(db: None) -> None:
    values = {**EVERY_KIND, "questions": [{"name": "order", "kind": "ranking", "wording": "W"}]}
    study = rating_study(n_items=1, systems=("a", "b", "c"), questions=())
    item = item_of(study, read_document(values))
    a, b, c = keys_of(item)
    rows = [{"question": "order", "value": [[a, b], [c]]}]
    answer = {"version": 1, "item": str(item.pk), "order": [a, b, c], "judgments": rows}
    with refused(AnswerUnreadable, "equal_ranks"):
        read(item, answer)
    rows[0]["value"] = [[a], [b], [c]]
    assert sorted(each.value for each in read(item, answer).judgments) == [0, 0.5, 1]


# AlterEval's protocol


@pytest.fixture
def target(db: None) -> Item:
    return item_of(alternatives_study(), templates.read_protocol("alternatives"))


def ticks_of(item: Item, chosen: set[str]) -> dict[str, Any]:
    rows, reasons = [], []
    for one in item.candidates.all():
        row = {"candidate": one.blind_key, "question": "acceptable"}
        rows.append(row | {"value": int(one.key in chosen)})
        if one.key in chosen:
            text = f"I like {one.key} just as much."
            reasons.append({"candidate": one.blind_key, "text": text})
    text = consent_fingerprint(templates.read_protocol("alternatives"))
    answer = {"version": 1, "item": str(item.pk), "order": [row["candidate"] for row in rows]}
    answer |= {"consent": {"text": text, "at": "2026-11-22T10:00:00Z"}}
    return answer | {"judgments": rows, "reasons": reasons}


def test_each_choice_has_its_reason_and_consent_its_time(target: Item) -> None:
    key = target.candidates.all()[0].key
    answer = read(target, ticks_of(target, {key}))
    assert [(each.question, each.candidate and each.candidate.key) for each in answer.written] == [
        ("acceptable", key)
    ]
    assert answer.consented_at is not None
    assert answer.consented_at.isoformat() == "2026-11-22T10:00:00+00:00"
    assert read(target, ticks_of(target, set())).written == ()

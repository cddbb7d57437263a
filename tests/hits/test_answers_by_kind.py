"""Every kind of question: what the page is given, what an answer becomes, what is refused."""

import copy
import json
from typing import Any

import pytest

from annotation.models import Item, Study
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import freeze, save_draft
from hits.answers import Answer, read_answer
from hits.exceptions import AnswerUnreadable
from hits.page_contexts import consent_fingerprint, task_of
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import refused
from tests.hits.test_answers import xml_of

pytestmark = pytest.mark.django_db

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


def item_of(study: Study, document: ProtocolDocument) -> Item:
    save_draft(study=study, document=document)
    freeze(study=study)
    return study.items.order_by("position")[0]


@pytest.fixture
def item(db: None) -> Item:
    study = rating_study(n_items=1, systems=("a", "b", "c"), questions=())
    return item_of(study, read_document(EVERY_KIND))


def keys_of(item: Item) -> list[str]:
    """Blind keys of a, b and c."""
    return [candidate.blind_key for candidate in item.candidates.order_by("key")]


def answer_to(item: Item) -> dict[str, Any]:
    a, b, c = keys_of(item)
    rows: list[dict[str, Any]] = []
    for key, fit in ((a, 10), (b, 20), (c, 90)):
        row = {"fit": fit, "agree": 2, "kind": 1, "tone": [0, 2]}
        rows += [{"candidate": key, "question": n, "value": v} for n, v in row.items()]
    rows.append({"candidate": a, "question": "why", "value": " It is rude. "})
    whole = {
        "safe": 0,
        "danger": "knives",
        "best": b,
        "ends": {"best": b, "worst": a},
        "order": [[b], [a, c]],
    }
    rows += [{"candidate": None, "question": n, "value": v} for n, v in whole.items()]
    return {"version": 1, "item": str(item.pk), "order": [c, a, b], "judgments": rows}


def read(item: Item, answer: dict[str, Any]) -> Answer:
    return read_answer(xml_of({"answer": json.dumps(answer)}), item)


def values_of(answer: Answer, question: str) -> dict[str, float]:
    return {
        each.candidate.key if each.candidate else "": each.value
        for each in answer.judgments
        if each.question.name == question
    }


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
    assert words == [("why", "a"), ("danger", None)]
    assert answer.written[0].text == "It is rude."


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
        rows = [
            row
            for row in answer["judgments"]
            if (row["candidate"], row["question"]) != (about, question)
        ]
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


@pytest.mark.parametrize(("change", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_page_would_not_send_is_refused(item: Item, change: Any, code: str) -> None:
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
def test_a_choice_without_its_reason_or_a_reason_or_work_without_consent_is_refused(
    target: Item, change: dict[str, Any], code: str
) -> None:
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
    return item_of(alternatives_study(), read_protocol("alternatives"))


def ticks_of(item: Item, chosen: set[str]) -> dict[str, Any]:
    candidates = list(item.candidates.all())
    return {
        "version": 1,
        "item": str(item.pk),
        "order": [each.blind_key for each in candidates],
        "judgments": [
            {"candidate": one.blind_key, "question": "acceptable", "value": int(one.key in chosen)}
            for one in candidates
        ],
        "reasons": [
            {"candidate": one.blind_key, "text": f"I like {one.key} just as much."}
            for one in candidates
            if one.key in chosen
        ],
        "consent": {
            "text": consent_fingerprint(read_protocol("alternatives")),
            "at": "2026-11-22T10:00:00Z",
        },
    }


def test_each_choice_has_its_reason_and_consent_its_time(target: Item) -> None:
    key = target.candidates.all()[0].key
    answer = read(target, ticks_of(target, {key}))
    assert [(each.question, each.candidate and each.candidate.key) for each in answer.written] == [
        ("acceptable", key)
    ]
    assert answer.consented_at is not None
    assert answer.consented_at.isoformat() == "2026-11-22T10:00:00+00:00"
    assert read(target, ticks_of(target, set())).written == ()


def test_the_documents_of_this_file_are_valid() -> None:
    assert plain_document(read_document(EVERY_KIND)) == EVERY_KIND

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Model

from accounts.models import User
from annotation.bulk import insert_rows
from annotation.models import Candidate, Item, Question, Study
from tests.annotation.importing import (
    assert_refused,
    command_output,
    everything,
    numbers_in,
    queries_of,
)
from tests.annotation.studies import ticked_study
from tests.codes import refused_naming

pytestmark = pytest.mark.django_db

HEADER = "item,system,context,response,reference,condition\n"
FILE = (
    HEADER
    + 'd1,beta,"Hi,\n""you""!",Hello,Hey,formal\n'
    + 'd0,alpha,Bye, ,"",casual\n'
    + 'd1,alpha,"Hi,\n""you""!",Ciao ☃,Hey,formal\n'
)


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    path = tmp_path / "responses.csv"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_file_of_responses_becomes_a_rating_study(responses: Path) -> None:
    owner = User.objects.create_user("owner")
    output = command_output(
        "import_responses", responses, study="styles", title="Styles", owner="owner"
    )
    # Items, and rows read and used.
    assert numbers_in(output) == [2, 3, 3]
    study = Study.objects.named("styles")
    assert (study.kind, study.title, study.owner) == ("rating", "Styles", owner)
    items = list(study.items.values_list("key", "condition", "context", "reference", "position"))
    assert items == [("d1", "formal", 'Hi,\n"you"!', "Hey", 0), ("d0", "casual", "Bye", "", 1)]
    candidates = Candidate.objects.filter(item__study=study).order_by("item__position", "position")
    assert list(candidates.values_list("item__key", "key", "system", "text", "position")) == [
        ("d1", "beta", "beta", "Hello", 0),
        ("d1", "alpha", "alpha", "Ciao ☃", 1),
        ("d0", "alpha", "alpha", " ", 0),
    ]
    before = everything()
    output = command_output("import_responses", responses, study="styles", title="Another title")
    assert numbers_in(output) == [0, 2, 3, 3]
    assert everything() == before
    # A longer file adds what is new.
    responses.write_text(FILE + "d2,alpha,Later,See you,,\n", encoding="utf-8")
    output = command_output("import_responses", responses, study="styles")
    assert numbers_in(output) == [1, 2, 4, 4]
    assert list(Item.objects.values_list("key", "position")) == [("d1", 0), ("d0", 1), ("d2", 2)]


def test_json_lines_say_the_same_as_csv(responses: Path, tmp_path: Path) -> None:
    shared = {"item": "d1", "context": 'Hi,\n"you"!', "reference": "Hey", "condition": "formal"}
    rows: list[dict[str, Any]] = [
        {"system": "beta", "response": "Hello", **shared},
        {"item": "d0", "system": "alpha", "context": "Bye", "response": " ", "reference": None},
        {"system": "alpha", "response": "Ciao ☃", **shared},
    ]
    rows[1]["condition"] = "casual"
    lines = tmp_path / "responses.JSONL"
    lines.write_text("\n".join(json.dumps(row) for row in rows))
    columns = ("item__key", "item__context", "item__reference", "item__condition", "key", "text")
    found = []
    for path in (responses, lines):
        command_output("import_responses", path, study=path.suffix[1:])
        candidates = Candidate.objects.filter(item__study__slug=path.suffix[1:]).order_by("pk")
        found.append(list(candidates.values_list(*columns)))
    assert found[0] == found[1]


def test_questions_can_be_named(responses: Path) -> None:
    command_output("import_responses", responses, study="one")
    one = Study.objects.get()
    assert (one.title, one.owner) == ("one", None)
    asked = ["style=Is it formal?", " wit = Is it = funny? "]
    command_output("import_responses", responses, study="two", question=asked)
    questions = Question.objects.order_by("study__slug", "position")
    assert list(
        questions.values_list("study__slug", "name", "scale_min", "scale_max", "level")
    ) == [
        ("one", "appropriateness", 0, 100, "interval"),
        ("two", "style", 0, 100, "interval"),
        ("two", "wit", 0, 100, "interval"),
    ]
    assert questions.get(name="wit").wording == "Is it = funny?"


TWICE = "d0,alpha,hi,a,,\nd1,alpha,hi,a,,\nd0,alpha,hi,b,,\n"
REFUSALS = [
    ("a pair twice", TWICE, 4, "system", "repeated_response"),
    ("another context", "d0,a,hi,r,,\nd0,b,ho,r,,\n", 3, "context", "differs"),
    ("another reference", "d0,a,hi,r,x,\nd0,b,hi,r,y,\n", 3, "reference", "differs"),
    ("another condition", "d0,a,hi,r,,x\nd0,b,hi,r,,y\n", 3, "condition", "differs"),
    ("a long condition", f"d0,a,hi,r,,{'c' * 65}\n", 2, "condition", "too_long"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case[0])
def test_responses_that_contradict_are_refused(tmp_path: Path, case: Any) -> None:
    _name, rows, line, field, code = case
    path = tmp_path / "responses.csv"
    path.write_text(HEADER + rows)
    assert_refused("import_responses", path, code, line=line, field=field)


def test_what_differs_from_the_study_is_refused(responses: Path) -> None:
    command_output("import_responses", responses, study="styles")
    for old, new, line, field, code, value in (
        ("Hello", "Hullo", 2, None, "other_candidate", "beta"),
        ("d1,beta", "d1,gamma", 2, None, "other_candidate", "gamma"),
        ("Bye", "Good bye", 4, "context", "differs", "d0"),
        ("Hey", "Hoy", 2, "reference", "differs", "d1"),
        ("casual", "formal", 4, "condition", "differs", "d0"),
    ):
        assert old in FILE
        fresh = "d9,alpha,Fresh,new,,\n"
        responses.write_text(FILE.replace(old, new) + fresh, encoding="utf-8")
        options = {"field": field, "value": value, "study": "styles"}
        assert_refused("import_responses", responses, code, line=line, **options)


def test_a_failed_import_leaves_nothing(responses: Path, monkeypatch: Any) -> None:
    def insert(model: type[Model], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        insert_rows(model, names, rows)
        if model is Candidate:
            raise RuntimeError("full")

    monkeypatch.setattr("annotation.imports.insert_rows", insert)
    before = everything()
    with refused_naming(RuntimeError, "full"):
        command_output("import_responses", responses, study="styles")
    assert everything() == before


def test_a_name_that_is_no_slug_is_refused(responses: Path) -> None:
    for slug in ("", "two words", "é", "a/b", "x" * 81):
        assert_refused("import_responses", responses, "invalid_slug", study=slug)
    command_output("import_responses", responses, study="x" * 80, title="t" * 300)
    assert Study.objects.get().title == "t" * 128
    ticked_study("ticked")
    assert_refused("import_responses", responses, "other_kind", study="ticked")


def test_the_number_of_queries_does_not_grow_with_the_items(tmp_path: Path) -> None:
    path, counts = tmp_path / "responses.csv", []
    for slug, n_items in (("few", 2), ("many", 60)):
        rows = (f"d{n},{s},hi {n},ok {s},,\n" for n in range(n_items) for s in ("alpha", "beta"))
        path.write_text(HEADER + "".join(rows))
        counts.append([queries_of("import_responses", path, study=slug) for _ in range(2)])
    assert counts[0] == counts[1]
    assert counts[0] <= [13, 12]

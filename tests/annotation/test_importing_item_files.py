import base64
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Model

from accounts.models import User
from annotation import exceptions, frames
from annotation.bulk import insert_rows
from annotation.models import Candidate, Item, Picture, Question, Study, Submission
from annotation.protocols import templates, versions
from tests.annotation.importing import (
    assert_imported_once,
    assert_refused,
    command_output,
    everything,
    numbers_in,
    queries_of,
    write_file,
)
from tests.annotation.studies import rated_study, ticked_study
from tests.codes import refused, refused_naming, refused_with_faults

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
    return write_file(tmp_path / "responses.csv", FILE)


def test_a_file_of_responses_becomes_a_rating_study(responses):
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


def test_questions_can_be_named(responses):
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
def test_responses_that_contradict_are_refused(tmp_path, case):
    _name, rows, line, field, code = case
    path = write_file(tmp_path / "responses.csv", HEADER + rows)
    assert_refused("import_responses", path, code, line=line, field=field)


def test_what_differs_from_the_study_is_refused(responses):
    command_output("import_responses", responses, study="styles")
    for old, new, line, field, code, value in (
        ("Hello", "Hullo", 2, None, "other_candidate", "beta"),
        ("d1,beta", "d1,gamma", 2, None, "other_candidate", "gamma"),
        ("Bye", "Good bye", 4, "context", "differs", "d0"),
        ("Hey", "Hoy", 2, "reference", "differs", "d1"),
        ("casual", "formal", 4, "condition", "differs", "d0"),
    ):
        assert old in FILE
        responses.write_text(FILE.replace(old, new) + "d9,alpha,Fresh,new,,\n", encoding="utf-8")
        options = {"field": field, "value": value, "study": "styles"}
        assert_refused("import_responses", responses, code, line=line, **options)


def test_a_failed_import_leaves_nothing(responses, monkeypatch):
    def insert(model: type[Model], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        insert_rows(model, names, rows)
        if model is Candidate:
            raise RuntimeError("full")

    monkeypatch.setattr("annotation.imports.insert_rows", insert)
    before = everything()
    with refused_naming(RuntimeError, "full"):
        command_output("import_responses", responses, study="styles")
    assert everything() == before


def test_a_name_that_is_no_slug_is_refused(responses):
    for slug in ("", "two words", "é", "a/b", "x" * 81):
        assert_refused("import_responses", responses, "invalid_slug", study=slug)
    command_output("import_responses", responses, study="x" * 80, title="t" * 300)
    assert Study.objects.get().title == "t" * 128
    ticked_study("ticked")
    assert_refused("import_responses", responses, "other_kind", study="ticked")


def test_the_number_of_queries_does_not_grow_with_the_items(tmp_path):
    path, counts = tmp_path / "responses.csv", []
    for slug, n_items in (("few", 2), ("many", 60)):
        rows = (f"d{n},{s},hi {n},ok {s},,\n" for n in range(n_items) for s in ("alpha", "beta"))
        path.write_text(HEADER + "".join(rows))
        counts.append([queries_of("import_responses", path, study=slug) for _ in range(2)])
    assert counts[0] == counts[1]
    assert counts[0] <= [15, 13]


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
PICTURES = {
    "a.png": (PNG, "image/png"),
    "b.jpg": (b"\xff\xd8\xff\xe0" + b"jpeg", "image/jpeg"),
    "c.gif": (b"GIF89a" + b"gif", "image/gif"),
    "d.webp": (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    "e.svg": (b'\n<svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml"),
    "f.svg": (b'<?xml version="1.0"?>\n<svg/>', "image/svg+xml"),
}
BOOT = {
    "item": "boot",
    "condition": "shoes",
    "target": {"title": "A boot", "image": "a.png"},
    "candidates": [
        {"key": "clog", "title": "A clog", "image": "b.jpg", "system": "nearest"},
        {"key": "pump", "title": "A pump"},
    ],
}
GOWN = {
    "item": "gown",
    "target": {"title": "A gown"},
    "candidates": [{"key": "skirt", "title": "A skirt", "image": "a.png"}],
}

Writer = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Write objects as a JSON Lines file beside the pictures they name."""
    for name, (content, _) in PICTURES.items():
        (tmp_path / name).write_bytes(content)

    def write(*objects: Any) -> Path:
        return write_file(
            tmp_path / "pools.jsonl", "".join(json.dumps(thing) + "\n" for thing in objects)
        )

    return write


def test_targets_and_pools_become_an_alternatives_study(write):
    assert_imported_once("import_alternatives", write(BOOT, GOWN), [2], study="shoes")
    # A picture is kept once, by its content.
    assert Picture.objects.count() == 2
    target = Item.objects.get(key="boot").picture
    assert target is not None
    assert bytes(target.content) == PNG
    assert Candidate.objects.get(key="skirt").picture == target
    study = Study.objects.named("shoes")
    question = study.questions.get()
    assert (study.kind, question.name, question.level) == ("alternatives", "acceptable", "nominal")
    assert (question.scale_min, question.scale_max, question.categories) == (0, 1, ["no", "yes"])
    items = study.items.values_list("key", "context", "condition", "picture__media_type")
    assert list(items) == [("boot", "A boot", "shoes", "image/png"), ("gown", "A gown", "", None)]
    candidates = Candidate.objects.order_by("item__position", "position")
    assert list(candidates.values_list("key", "text", "system", "picture__media_type")) == [
        ("clog", "A clog", "nearest", "image/jpeg"),
        ("pump", "A pump", "", None),
        ("skirt", "A skirt", "", "image/png"),
    ]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_known_by_its_first_bytes(write, name):
    pool = [{"key": "pump", "title": "A pump"}]
    path = write({**BOOT, "target": {"title": "t", "image": name}, "candidates": pool})
    command_output("import_alternatives", path, study="s")
    picture = Item.objects.get().picture
    assert picture is not None
    assert (bytes(picture.content), picture.media_type) == PICTURES[name]


K = {"key": "k", "title": "t"}
NO_PICTURE = {**K, "key": "l", "image": "no.png"}
# name, change, field, code and, if it matters, data in the message
REFUSED_POOLS: list[tuple[Any, ...]] = [
    ("an item of nothing", {"item": ""}, "item", "empty"),
    ("an item of a list", {"item": ["boot"]}, "item", "not_text", "list"),
    ("a target of text", {"target": "A boot"}, "target", "not_object"),
    ("a target without title", {"target": {}}, "target.title", "empty"),
    ("a long title", {"target": {"title": "t" * 1001}}, "target.title", "too_long", "1001"),
    ("a pool of nothing", {"candidates": []}, "candidates", "not_pool", "100"),
    ("a pool of an object", {"candidates": {}}, "candidates", "not_pool"),
    ("a pool too large", {"candidates": [K] * 101}, "candidates", "not_pool"),
    ("a candidate of text", {"candidates": ["clog"]}, "candidates[0]", "not_object"),
    ("a candidate without key", {"candidates": [{"title": "t"}]}, "candidates[0].key", "empty"),
    ("a candidate without title", {"candidates": [{"key": "k"}]}, "candidates[0].title", "empty"),
    ("a candidate twice", {"candidates": [K, K]}, "candidates[1].key", "repeated_candidate", "k"),
    (
        "a long system",
        {"candidates": [{**K, "system": "s" * 101}]},
        "candidates[0].system",
        "too_long",
    ),
    ("no picture", {"candidates": [K, NO_PICTURE]}, "candidates[1].image", "no_picture", "no.png"),
]


@pytest.mark.parametrize("case", REFUSED_POOLS, ids=lambda case: case[0])
def test_a_pool_that_is_not_whole_is_refused(write, case):
    _name, change, field, code, *values = case
    path = write(GOWN, {**BOOT, **change})
    options = {"field": field, "value": "".join(values)}
    assert_refused("import_alternatives", path, code, line=2, **options)


def test_a_field_that_is_missing_and_a_target_twice_are_refused(write):
    for missing in ("item", "target", "candidates"):
        path = write(GOWN, {name: value for name, value in BOOT.items() if name != missing})
        assert_refused("import_alternatives", path, "missing_field", line=2, field=missing)
    path = write(BOOT, GOWN, BOOT)
    assert_refused("import_alternatives", path, "repeated_item", line=3, field="item")


@pytest.mark.slow
def test_what_is_no_picture_is_refused(write, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "large.png").write_bytes(PNG + bytes(2 * 1024 * 1024))
    (tmp_path / "text.png").write_text("a picture of a boot")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "page.xml").write_text("<?xml version='1.0'?><secrets/>")
    cases: list[tuple[Any, str]] = [
        *((name, "no_picture") for name in ("nothing.png", "folder", ".", "a.png/b.png")),
        *((name, "not_picture") for name in ("text.png", "empty.png", "page.xml")),
        *(("large.png", "too_large"), ("x" * 300, "unreadable"), ({"path": "a.png"}, "not_text")),
    ]
    (tmp_path / "largest.png").write_bytes(PNG.ljust(2 * 1024 * 1024, b"\x00"))
    path = write({**BOOT, "target": {"title": "t", "image": "largest.png"}})
    command_output("import_alternatives", path, study="largest")
    for image, code in cases:
        path = write({**BOOT, "target": {"title": "t", "image": image}})
        options = {"field": "target.image", "value": (image[:40] if isinstance(image, str) else "")}
        assert_refused("import_alternatives", path, code, line=1, **options)


def test_another_picture_of_the_same_target_is_refused(write, tmp_path):
    path = write(GOWN, BOOT)
    command_output("import_alternatives", path, study="s")
    (tmp_path / "a.png").write_bytes(PNG + b"another")
    assert_refused("import_alternatives", path, "other_candidate", line=1, value="skirt")
    write(BOOT)
    assert_refused("import_alternatives", path, "other_picture", line=1, value="boot")


def test_the_number_of_queries_does_not_grow_with_the_pools(write):
    counts = []
    for slug, n_items in (("few", 2), ("many", 50)):
        path = write(*({**BOOT, "item": f"{slug}-{n}"} for n in range(n_items)))
        counts.append(queries_of("import_alternatives", path, study=slug))
    assert counts[0] == counts[1] <= 17
    assert Question.objects.count() == 2


def test_a_target_in_its_own_pool_is_refused_unless_it_is_allowed(write):
    same = {"key": "same", "title": "The boot again", "image": "a.png"}
    path = write({**BOOT, "candidates": [same]})
    field = "candidates[0].image"
    assert_refused("import_alternatives", path, "target_in_pool", line=1, field=field)
    command_output("import_alternatives", path, study="s", allow_target_in_pool=True)
    assert Candidate.objects.get().key == "same"
    # Nor is a picture twice in a pool.
    first = {"key": "clog", "title": "A clog", "image": "b.jpg"}
    path = write({**BOOT, "candidates": [first, first | {"key": "mule", "title": "A mule"}]})
    field = "candidates[1].image"
    assert_refused("import_alternatives", path, "same_picture", line=1, field=field, value="clog")
    command_output("import_alternatives", path, study="two", allow_same_pictures=True)
    assert Candidate.objects.filter(item__study__slug="two").count() == 2


def test_a_template_says_what_a_new_study_asks(write):
    command_output("import_alternatives", write(BOOT), study="s", protocol="alternatives")
    study = Study.objects.get()
    assert versions.current_document(study) == templates.read_protocol("alternatives")
    assert [question.kind for question in study.questions.all()] == ["selection"]


def test_a_protocol_for_another_kind_of_study_imports_nothing(write):
    with refused_with_faults(exceptions.ProtocolInvalid, "not_one_selection"):
        command_output("import_alternatives", write(BOOT), study="s", protocol="preference")
    assert not Study.objects.exists()
    rated_study("rated")
    assert_refused("import_alternatives", write(BOOT), "other_kind", study="rated")


def turn(index: int, utterance: str, **labels: int) -> dict[str, Any]:
    """The user speaks first; turns of the assistant have labels."""
    said = {"turn_ind": index, "role": ("ASST" if index % 2 else "USER"), "utterance": utterance}
    return said | ({"turn_level_aggregated": labels} if index % 2 else {})


def overall(understanding: int, interest: int, efficiency: int, whole: int) -> dict[str, int]:
    return {
        **{"understanding": understanding, "task_completion": 0, "interest_arousal": interest},
        **{"efficiency": efficiency, "dialogue_overall": whole},
    }


DIALOGUES: list[dict[str, Any]] = [
    {
        "conv_id": "kbrd_redial_0a1b-22",
        "dialogue": [
            turn(0, "A film?"),
            turn(1, "Airplane!", relevance=3, interestingness=1),
            turn(2, "Seen."),
            turn(3, "Hello.", interestingness=0),
        ],
        "dial_level_aggregated": overall(1, 2, 1, 4) | {"explanation": 2},
    },
    {
        "conv_id": "chatgpt_opendialkg_3c4d-55",
        "dialogue": [turn(0, "Hi"), turn(1, "Hello?", relevance=2, interestingness=2)],
        "dial_level_aggregated": overall(2, 0, 0, 3),
    },
]


def written(path: Path, dialogues: Any = DIALOGUES) -> Path:
    return write_file(path / "crs_arena_eval.json", json.dumps(dialogues, indent=1))


def test_turns_become_items_with_what_was_said_before(tmp_path):
    said = command_output("import_crsarena_eval", written(tmp_path), study="turns")
    first, reading, *_rest = said.splitlines()
    assert numbers_in(first) == [3, 3]
    assert len(numbers_in(reading)) == 2
    study = Study.objects.get()
    [_, second, _] = study.items.order_by("position")
    assert second.key == "kbrd_redial_0a1b-22 3"
    assert second.context == "User: A film?\nAssistant: Airplane!\nUser: Seen."
    frame = frames.judgment_frame(study)
    rows = {
        (row.item, row.system, row.question): row.value for row in frame.itertuples(index=False)
    }
    assert rows == {
        ("kbrd_redial_0a1b-22 1", "kbrd_redial", "relevance"): 3,
        ("kbrd_redial_0a1b-22 1", "kbrd_redial", "interestingness"): 1,
        ("kbrd_redial_0a1b-22 3", "kbrd_redial", "interestingness"): 0,
        ("chatgpt_opendialkg_3c4d-55 1", "chatgpt_opendialkg", "relevance"): 2,
        ("chatgpt_opendialkg_3c4d-55 1", "chatgpt_opendialkg", "interestingness"): 2,
    }
    scales = {one.name: (one.level, one.scale_max) for one in study.questions.all()}
    assert scales == {"relevance": ("ordinal", 3), "interestingness": ("ordinal", 2)}
    assert json.loads(Submission.objects.get(item=second).raw) == {"interestingness": 0}


def test_dialogues_become_items_of_their_own(tmp_path):
    file = written(tmp_path)
    said = command_output("import_crsarena_eval", file, study="dialogues", level="dialogues")
    assert "explanation" in said
    frame = frames.judgment_frame(Study.objects.get())
    assert len(frame) == 10
    overall = frame[frame["question"] == "dialogue_overall"]
    expected = {"kbrd_redial": 4, "chatgpt_opendialkg": 3}
    assert dict(zip(overall["system"], overall["value"], strict=True)) == expected
    candidate = Study.objects.get().items.order_by("position")[1].candidates.get()
    assert candidate.text == "User: Hi\nAssistant: Hello?"
    again = command_output("import_crsarena_eval", file, study="dialogues", level="dialogues")
    assert numbers_in(again.splitlines()[0]) == [0, 2, 0, 2]


def _changed(path: str, value: Any) -> list[dict[str, Any]]:
    dialogues = json.loads(json.dumps(DIALOGUES))
    *way, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
    place = dialogues
    for part in way:
        place = place[part]
    place[last] = value
    return dialogues


LABELS = "0/dialogue/1/turn_level_aggregated"
REFUSED_DIALOGUES: list[tuple[Any, str, str | None]] = [
    ([], "no_rows", None),
    ([{"conv_id": "a_b"}], "missing_field", "dialogue"),
    (_changed("0/dialogue/1/role", "BOT"), "unknown_role", "dialogue[1].role"),
    (_changed(f"{LABELS}/relevance", 4), "off_scale", "relevance"),
    (_changed(f"{LABELS}/relevance", "good"), "not_number", "relevance"),
    (_changed(LABELS, None), "not_object", "turn_level_aggregated"),
    (_changed("0/dialogue", "Hello"), "not_turns", "dialogue"),
    (_changed("0/conv_id", "nothing"), "no_system", "conv_id"),
    (_changed("1/conv_id", "kbrd_redial_0a1b-22"), "repeated_item", "conv_id"),
]


@pytest.mark.parametrize(("dialogues", "code", "field"), REFUSED_DIALOGUES)
def test_another_layout_is_refused(tmp_path, dialogues, code, field):
    with refused(exceptions.ImportRefused, code) as caught:
        command_output("import_crsarena_eval", written(tmp_path, dialogues), study="other")
    assert (caught.value.field or "").endswith(field or "")
    assert not Study.objects.exists()

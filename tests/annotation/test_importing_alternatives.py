import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation.exceptions import ProtocolInvalid
from annotation.models import Candidate, Item, Picture, Question, Study
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import current_document
from tests.annotation.importing import (
    assert_imported_once,
    assert_refused,
    command_output,
    queries_of,
)
from tests.annotation.studies import rated_study

pytestmark = pytest.mark.django_db

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
        path = tmp_path / "pools.jsonl"
        path.write_text("".join(json.dumps(thing) + "\n" for thing in objects))
        return path

    return write


def test_targets_and_pools_become_an_alternatives_study(write: Writer) -> None:
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
def test_a_picture_is_known_by_its_first_bytes(write: Writer, name: str) -> None:
    pool = [{"key": "pump", "title": "A pump"}]
    target = {"title": "t", "image": name}
    path = write({**BOOT, "target": target, "candidates": pool})
    command_output("import_alternatives", path, study="s")
    picture = Item.objects.get().picture
    assert picture is not None
    assert (bytes(picture.content), picture.media_type) == PICTURES[name]


K = {"key": "k", "title": "t"}
NO_PICTURE = {**K, "key": "l", "image": "no.png"}
# name, change, field, code and, if it matters, data in the message
REFUSALS: list[tuple[Any, ...]] = [
    ("an item of nothing", {"item": ""}, "item", "empty"),
    ("an item of a list", {"item": ["boot"]}, "item", "not_text", "list"),
    ("a target of text", {"target": "A boot"}, "target", "not_object"),
    ("a target without title", {"target": {}}, "target.title", "empty"),
    ("a long title", {"target": {"title": "t" * 1001}}, "target.title", "too_long", "1001"),
    ("a pool of nothing", {"candidates": []}, "candidates", "not_pool", "100"),
    ("a pool of an object", {"candidates": {}}, "candidates", "not_pool"),
    ("a pool of null", {"candidates": None}, "candidates", "not_pool"),
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
    ("a condition of a list", {"condition": []}, "condition", "not_text"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case[0])
def test_a_pool_that_is_not_whole_is_refused(write: Writer, case: Any) -> None:
    _name, change, field, code, *values = case
    path = write(GOWN, {**BOOT, **change})
    options = {"field": field, "value": "".join(values)}
    assert_refused("import_alternatives", path, code, line=2, **options)


def test_a_field_that_is_missing_and_a_target_twice_are_refused(write: Writer) -> None:
    for missing in ("item", "target", "candidates"):
        path = write(GOWN, {name: value for name, value in BOOT.items() if name != missing})
        assert_refused("import_alternatives", path, "missing_field", line=2, field=missing)
    path = write(BOOT, GOWN, BOOT)
    assert_refused("import_alternatives", path, "repeated_item", line=3, field="item")


@pytest.mark.slow
def test_what_is_no_picture_is_refused(write: Writer, tmp_path: Path) -> None:
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
        value = image[:40] if isinstance(image, str) else ""
        options = {"field": "target.image", "value": value}
        assert_refused("import_alternatives", path, code, line=1, **options)


def test_another_picture_of_the_same_target_is_refused(write: Writer, tmp_path: Path) -> None:
    path = write(GOWN, BOOT)
    command_output("import_alternatives", path, study="s")
    (tmp_path / "a.png").write_bytes(PNG + b"another")
    assert_refused("import_alternatives", path, "other_candidate", line=1, value="skirt")
    write(BOOT)
    assert_refused("import_alternatives", path, "other_picture", line=1, value="boot")


def test_the_number_of_queries_does_not_grow_with_the_pools(write: Writer) -> None:
    counts = []
    for slug, n_items in (("few", 2), ("many", 50)):
        path = write(*({**BOOT, "item": f"{slug}-{n}"} for n in range(n_items)))
        counts.append(queries_of("import_alternatives", path, study=slug))
    assert counts[0] == counts[1] <= 15
    assert Question.objects.count() == 2


def _with_pool(*candidates: dict[str, str]) -> dict[str, Any]:
    return {**BOOT, "candidates": list(candidates)}


def test_a_target_in_its_own_pool_is_refused_unless_it_is_allowed(write: Writer) -> None:
    path = write(_with_pool({"key": "same", "title": "The boot again", "image": "a.png"}))
    field = "candidates[0].image"
    assert_refused("import_alternatives", path, "target_in_pool", line=1, field=field)
    command_output("import_alternatives", path, study="s", allow_target_in_pool=True)
    assert Candidate.objects.get().key == "same"
    # Nor is a picture twice in a pool.
    first = {"key": "clog", "title": "A clog", "image": "b.jpg"}
    path = write(_with_pool(first, {"key": "mule", "title": "A mule", "image": "b.jpg"}))
    field = "candidates[1].image"
    assert_refused("import_alternatives", path, "same_picture", line=1, field=field, value="clog")
    command_output("import_alternatives", path, study="two", allow_same_pictures=True)
    assert Candidate.objects.filter(item__study__slug="two").count() == 2


def test_a_template_says_what_a_new_study_asks(write: Writer) -> None:
    command_output("import_alternatives", write(BOOT), study="s", protocol="alternatives")
    study = Study.objects.get()
    assert current_document(study) == read_protocol("alternatives")
    assert [question.kind for question in study.questions.all()] == ["selection"]


def test_a_protocol_for_another_kind_of_study_imports_nothing(write: Writer) -> None:
    with pytest.raises(ProtocolInvalid) as caught:
        command_output("import_alternatives", write(BOOT), study="s", protocol="preference")
    assert [fault.code for fault in caught.value.faults] == ["not_one_selection"]
    assert not Study.objects.exists()
    rated_study("rated")
    assert_refused("import_alternatives", write(BOOT), "other_kind", study="rated")

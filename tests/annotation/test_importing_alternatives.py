import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.exceptions import ProtocolInvalid
from annotation.models import Candidate, Item, Picture, Question, Study
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import current_document
from tests.annotation.importing import assert_refused, command_output, everything
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
    output = command_output("import_alternatives", write(BOOT, GOWN), study="shoes")
    assert output == "Study 'shoes': 2 items imported.\n"
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


def test_a_picture_is_kept_once_by_its_content(write: Writer) -> None:
    command_output("import_alternatives", write(BOOT, GOWN), study="one")
    command_output("import_alternatives", write(BOOT, GOWN), study="two")
    assert Picture.objects.count() == 2
    target = Item.objects.get(study__slug="one", key="boot").picture
    assert target is not None
    assert bytes(target.content) == PNG
    assert Candidate.objects.get(item__study__slug="two", key="skirt").picture == target


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_known_by_its_first_bytes(write: Writer, name: str) -> None:
    pool = [{"key": "pump", "title": "A pump"}]
    target = {"title": "t", "image": name}
    path = write({**BOOT, "target": target, "candidates": pool})
    command_output("import_alternatives", path, study="s")
    picture = Item.objects.get().picture
    assert picture is not None
    assert (bytes(picture.content), picture.media_type) == PICTURES[name]


REFUSALS: list[tuple[str, dict[str, Any], str, str]] = [
    ("an item of nothing", {"item": ""}, "item", "must not be empty"),
    ("an item of a list", {"item": ["boot"]}, "item", "expected text, not list"),
    ("a target of text", {"target": "A boot"}, "target", "expected a JSON object"),
    ("a target without title", {"target": {}}, "target.title", "must not be empty"),
    ("a long title", {"target": {"title": "t" * 1001}}, "target.title", "1001 characters"),
    ("a pool of nothing", {"candidates": []}, "candidates", "a list of 1 to 100"),
    ("a pool of an object", {"candidates": {}}, "candidates", "a list of 1 to 100"),
    ("a pool of null", {"candidates": None}, "candidates", "a list of 1 to 100"),
    ("a pool too large", {"candidates": [{"key": "k", "title": "t"}] * 101}, "candidates", "100"),
    ("a candidate of text", {"candidates": ["clog"]}, "candidates[0]", "expected a JSON object"),
    ("a candidate without key", {"candidates": [{"title": "t"}]}, "candidates[0].key", "empty"),
    ("a candidate without title", {"candidates": [{"key": "k"}]}, "candidates[0].title", "empty"),
    (
        "a candidate twice",
        {"candidates": [{"key": "k", "title": "t"}, {"key": "k", "title": "u"}]},
        "candidates[1].key",
        "'k' is listed twice",
    ),
    (
        "a long system",
        {"candidates": [{"key": "k", "title": "t", "system": "s" * 101}]},
        "candidates[0].system",
        "101 characters, where 100 fit",
    ),
    (
        "a candidate's picture missing",
        {"candidates": [{"key": "k", "title": "t"}, {"key": "l", "title": "t", "image": "no.png"}]},
        "candidates[1].image",
        "there is no picture at no.png",
    ),
    ("a condition of a list", {"condition": []}, "condition", "expected text, not list"),
]


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [case[1:] for case in REFUSALS],
    ids=[case[0] for case in REFUSALS],
)
def test_a_pool_that_is_not_whole_is_refused(
    write: Writer, change: dict[str, Any], field: str, problem: str
) -> None:
    path = write(GOWN, {**BOOT, **change})
    assert_refused("import_alternatives", path, problem, line=2, field=field)


@pytest.mark.parametrize("missing", ["item", "target", "candidates"])
def test_a_field_that_is_missing_is_named(write: Writer, missing: str) -> None:
    path = write(GOWN, {name: value for name, value in BOOT.items() if name != missing})
    assert_refused("import_alternatives", path, "is missing", line=2, field=missing)


def test_a_target_twice_is_refused(write: Writer) -> None:
    path = write(BOOT, GOWN, BOOT)
    assert_refused("import_alternatives", path, "'boot' is on line 1 already", line=3, field="item")


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("nothing.png", "there is no picture at nothing.png"),
        ("folder", "there is no picture at folder"),
        (".", "there is no picture at ."),
        ("large.png", "large.png is over 2 MiB"),
        ("text.png", "text.png is not a PNG, JPEG, GIF, WebP or SVG picture"),
        ("empty.png", "empty.png is not a PNG"),
        ("page.xml", "page.xml is not a PNG"),
        ("x" * 300, "cannot be read: File name too long"),
        ("a.png/b.png", "there is no picture at a.png/b.png"),
        ({"path": "a.png"}, "expected text, not dict"),
    ],
)
def test_what_is_no_picture_is_refused(
    write: Writer, tmp_path: Path, image: Any, problem: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "large.png").write_bytes(PNG + bytes(2 * 1024 * 1024))
    (tmp_path / "text.png").write_text("a picture of a boot")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "page.xml").write_text("<?xml version='1.0'?><secrets/>")
    path = write({**BOOT, "target": {"title": "t", "image": image}})
    assert_refused("import_alternatives", path, problem, line=1, field="target.image")


def test_the_largest_picture_fits(write: Writer, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG.ljust(2 * 1024 * 1024, b"\x00"))
    command_output("import_alternatives", write(BOOT), study="s")
    assert Picture.objects.count() == 2


def test_the_same_pools_again_change_nothing(write: Writer) -> None:
    command_output("import_alternatives", write(BOOT, GOWN), study="s")
    before = everything()
    output = command_output("import_alternatives", write(BOOT, GOWN), study="s")
    assert output == "Study 's': 0 items (2 more were there already) imported.\n"
    assert everything() == before


def test_another_picture_of_the_same_target_is_refused(write: Writer, tmp_path: Path) -> None:
    path = write(GOWN, BOOT)
    command_output("import_alternatives", path, study="s")
    (tmp_path / "a.png").write_bytes(PNG + b"another")
    assert_refused("import_alternatives", path, "candidate 'skirt' .* is another there", line=1)
    write(BOOT)
    assert_refused("import_alternatives", path, "'boot' is in the study with another pict", line=1)


def test_pools_do_not_join_a_study_of_ratings(write: Writer) -> None:
    rated_study("rated")
    before = everything()
    with pytest.raises(Exception, match="'rated' is a study of rating; this file holds alternativ"):
        command_output("import_alternatives", write(BOOT), study="rated")
    assert everything() == before


def test_the_number_of_queries_does_not_grow_with_the_pools(write: Writer) -> None:
    counts = []
    for slug, n_items in (("few", 2), ("many", 50)):
        path = write(*({**BOOT, "item": f"{slug}-{n}"} for n in range(n_items)))
        with CaptureQueriesContext(connection) as queries:
            command_output("import_alternatives", path, study=slug)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 15
    assert Question.objects.count() == 2


def _with_pool(*candidates: dict[str, str]) -> dict[str, Any]:
    return {**BOOT, "candidates": list(candidates)}


def test_a_target_in_its_own_pool_is_refused_unless_it_is_allowed(write: Writer) -> None:
    path = write(_with_pool({"key": "same", "title": "The boot again", "image": "a.png"}))
    field = "candidates[0].image"
    assert_refused("import_alternatives", path, "--allow-target-in-pool", line=1, field=field)
    command_output("import_alternatives", path, study="s", allow_target_in_pool=True)
    assert Candidate.objects.get().key == "same"


def test_one_picture_twice_in_a_pool_is_refused_unless_it_is_allowed(write: Writer) -> None:
    first = {"key": "clog", "title": "A clog", "image": "b.jpg"}
    path = write(_with_pool(first, {"key": "mule", "title": "A mule", "image": "b.jpg"}))
    problem, field = "the same picture as 'clog'", "candidates[1].image"
    assert_refused("import_alternatives", path, problem, line=1, field=field)
    command_output("import_alternatives", path, study="s", allow_same_pictures=True)
    assert Candidate.objects.count() == 2


def test_a_template_says_what_a_new_study_asks(write: Writer) -> None:
    command_output("import_alternatives", write(BOOT), study="s", protocol="alternatives")
    study = Study.objects.get()
    assert current_document(study) == read_protocol("alternatives")
    assert [question.kind for question in study.questions.all()] == ["selection"]


def test_a_protocol_for_another_kind_of_study_imports_nothing(write: Writer) -> None:
    with pytest.raises(ProtocolInvalid, match="exactly one question of the kind 'selection'"):
        command_output("import_alternatives", write(BOOT), study="s", protocol="preference")
    assert not Study.objects.exists()

"""Labelled dialogues in the layout of CRSArena-Eval, made up by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.exceptions import ImportRefused
from annotation.frames import judgment_frame
from annotation.models import Study, Submission
from tests.annotation.importing import command_output, numbers_in
from tests.codes import refused


def turn(index: int, utterance: str, **labels: int) -> dict[str, Any]:
    """The user speaks first; turns of the assistant have labels."""
    role = "ASST" if index % 2 else "USER"
    said = {"turn_ind": index, "role": role, "utterance": utterance}
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
    file = path / "crs_arena_eval.json"
    file.write_text(json.dumps(dialogues, indent=1), encoding="utf-8")
    return file


@pytest.mark.django_db
def test_turns_become_items_with_what_was_said_before(tmp_path: Path) -> None:
    said = command_output("import_crsarena_eval", written(tmp_path), study="turns")
    first, reading, *_rest = said.splitlines()
    assert numbers_in(first) == [3, 3]
    assert len(numbers_in(reading)) == 2
    study = Study.objects.get()
    [_, second, _] = study.items.order_by("position")
    assert second.key == "kbrd_redial_0a1b-22 3"
    assert second.context == "User: A film?\nAssistant: Airplane!\nUser: Seen."
    frame = judgment_frame(study)
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
    raw = json.loads(Submission.objects.get(item=second).raw)
    assert raw == {"interestingness": 0}


@pytest.mark.django_db
def test_dialogues_become_items_of_their_own(tmp_path: Path) -> None:
    file = written(tmp_path)
    said = command_output("import_crsarena_eval", file, study="dialogues", level="dialogues")
    assert "explanation" in said
    frame = judgment_frame(Study.objects.get())
    assert len(frame) == 10
    overall = frame[frame["question"] == "dialogue_overall"]
    assert dict(zip(overall["system"], overall["value"], strict=True)) == {
        "kbrd_redial": 4,
        "chatgpt_opendialkg": 3,
    }
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
REFUSALS: list[tuple[Any, str, str | None]] = [
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


@pytest.mark.django_db
@pytest.mark.parametrize(("dialogues", "code", "field"), REFUSALS)
def test_another_layout_is_refused(
    tmp_path: Path, dialogues: Any, code: str, field: str | None
) -> None:
    with refused(ImportRefused, code) as caught:
        command_output("import_crsarena_eval", written(tmp_path, dialogues), study="other")
    assert (caught.value.field or "").endswith(field or "")
    assert not Study.objects.exists()

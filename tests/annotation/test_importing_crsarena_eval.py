"""Labelled dialogues in the layout of CRSArena-Eval, made up by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.exceptions import ImportRefused
from annotation.frames import judgment_frame
from annotation.models import Study, Submission
from tests.annotation.importing import command_output

DIALOGUES: list[dict[str, Any]] = [
    {
        "conv_id": "kbrd_redial_0a1b-22",
        "dialogue": [
            {"turn_ind": 0, "role": "USER", "utterance": "A film to laugh about?"},
            {
                "turn_ind": 1,
                "role": "ASST",
                "utterance": "Try Airplane! (1980).",
                "turn_level_aggregated": {"relevance": 3, "interestingness": 1},
            },
            {"turn_ind": 2, "role": "USER", "utterance": "Seen it."},
            {
                "turn_ind": 3,
                "role": "ASST",
                "utterance": "Hello.",
                "turn_level_aggregated": {"interestingness": 0},
            },
        ],
        "dial_level_aggregated": {
            "understanding": 1,
            "task_completion": 0,
            "interest_arousal": 2,
            "efficiency": 1,
            "dialogue_overall": 4,
            "explanation": 2,
        },
    },
    {
        "conv_id": "chatgpt_opendialkg_3c4d-55",
        "dialogue": [
            {"turn_ind": 0, "role": "USER", "utterance": "Hi"},
            {
                "turn_ind": 1,
                "role": "ASST",
                "utterance": "What do you like?",
                "turn_level_aggregated": {"relevance": 2, "interestingness": 2},
            },
        ],
        "dial_level_aggregated": {
            "understanding": 2,
            "task_completion": 0,
            "interest_arousal": 0,
            "efficiency": 0,
            "dialogue_overall": 3,
        },
    },
]


def written(path: Path, dialogues: Any = DIALOGUES) -> Path:
    file = path / "crs_arena_eval.json"
    file.write_text(json.dumps(dialogues, indent=1), encoding="utf-8")
    return file


@pytest.mark.django_db
def test_turns_become_items_with_what_was_said_before(tmp_path: Path) -> None:
    said = command_output("import_crsarena_eval", written(tmp_path), study="turns")
    assert "3 items and 3 submissions imported" in said
    assert "aggregate of several annotators" in said
    assert "labels that the file lacks, of which there is no judgment: 1" in said
    study = Study.objects.get()
    [_, second, _] = study.items.order_by("position")
    assert second.key == "kbrd_redial_0a1b-22 3"
    assert second.context == (
        "User: A film to laugh about?\nAssistant: Try Airplane! (1980).\nUser: Seen it."
    )
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
    assert "the layout does not document were left out: explanation" in said
    frame = judgment_frame(Study.objects.get())
    assert len(frame) == 10
    overall = frame[frame["question"] == "dialogue_overall"]
    assert dict(zip(overall["system"], overall["value"], strict=True)) == {
        "kbrd_redial": 4,
        "chatgpt_opendialkg": 3,
    }
    candidate = Study.objects.get().items.order_by("position")[1].candidates.get()
    assert candidate.text == "User: Hi\nAssistant: What do you like?"
    again = command_output("import_crsarena_eval", file, study="dialogues", level="dialogues")
    assert "0 items (2 more were there already)" in again


def _changed(path: str, value: Any) -> list[dict[str, Any]]:
    dialogues = json.loads(json.dumps(DIALOGUES))
    *way, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
    place = dialogues
    for part in way:
        place = place[part]
    place[last] = value
    return dialogues


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("dialogues", "problem"),
    [
        ([], "it holds no rows"),
        ([{"conv_id": "a_b"}], "field dialogue: this field is missing"),
        (_changed("0/dialogue/1/role", "BOT"), "'BOT' is neither USER nor ASST"),
        (
            _changed("0/dialogue/1/turn_level_aggregated/relevance", 4),
            "relevance: 4 is outside the scale, 0 to 3",
        ),
        (_changed("0/dialogue/1/turn_level_aggregated/relevance", "good"), "is not a number"),
        (_changed("0/dialogue/1/turn_level_aggregated", None), "expected a JSON object"),
        (_changed("0/dialogue", "Hello"), "expected an array of turns"),
        (_changed("0/conv_id", "nothing"), "does not begin with a recommender's name"),
        (_changed("1/conv_id", "kbrd_redial_0a1b-22"), "is on line 2 already"),
    ],
)
def test_another_layout_is_refused_with_its_field(
    tmp_path: Path, dialogues: Any, problem: str
) -> None:
    with pytest.raises(ImportRefused, match=problem):
        command_output("import_crsarena_eval", written(tmp_path, dialogues), study="other")
    assert not Study.objects.exists()

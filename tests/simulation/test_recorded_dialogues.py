import json
from typing import Any

import pytest

from simulation import exceptions, recorded_dialogues
from tests.codes import refused, refused_naming

ROW: dict[str, Any] = {"recommender": "random", "user": "SimBase", "seed": 0, "target": "p1"}
ROW |= {"turn": 2, "shown": "p2", "delta": -0.25, "found": False}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("user", "a\ud800"), ("recommender", "a\0b"), ("target", ""), ("shown", "x" * 256)),
        *(("delta", 10**400), ("delta", float("nan")), ("delta", float("-inf")), ("delta", True)),
        ("seed", 2**63),
    ],
)
def test_a_field_that_cannot_be_used_is_refused(tmp_path, field, value):
    path = tmp_path / "log.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{json.dumps(ROW | {field: value})}\n")
    with refused_naming(exceptions.DialoguesUnfit, "log.jsonl", "line 2", field):
        list(recorded_dialogues.log_rows(path, tuple(ROW)))


def test_a_number_that_python_does_not_read_is_no_json(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(ROW).replace("-0.25", "1" * 5000) + "\n")
    with refused_naming(exceptions.DialoguesUnfit, "line 1"):
        list(recorded_dialogues.log_rows(path, tuple(ROW)))
    path.write_text(json.dumps(ROW | {"delta": 0}) + "\n")
    [(number, row)] = recorded_dialogues.log_rows(path, tuple(ROW))
    assert (number, row["delta"]) == (1, 0)


def test_dialogues_may_alternate_but_turns_come_in_their_order(tmp_path):
    path = tmp_path / "log.jsonl"
    rows = [
        json.dumps(ROW | {"user": user, "turn": turn, "shown": f"p{turn + 2}", "delta": delta})
        for turn, delta in enumerate((None, -0.25, 0.5))
        for user in ("SimBase", "MetaSimTol")
    ]
    path.write_text("\n".join(rows))
    turns = recorded_dialogues.losses_and_gains(path)
    assert [(one.previous, one.shown, one.turn) for one in turns] == [
        ("p2", "p3", 2),
        ("p3", "p4", 3),
    ]
    for order in ((2, 0), (0, 4, 2), (2,)):
        path.write_text("\n".join(rows[at] for at in order))
        with refused(exceptions.DialoguesUnfit, "turn_order"):
            recorded_dialogues.losses_and_gains(path)
    path.write_text(json.dumps(ROW | {"turn": 0}))
    with refused(exceptions.DialoguesUnfit, "turn_order"):
        recorded_dialogues.losses_and_gains(path)

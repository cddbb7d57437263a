"""Labels through the command line: made, exported, and turned into qrels."""

import json
from pathlib import Path

import pytest

from annotation.models import LabelSet
from tests.annotation.studies import rated_study, ticked_study
from tests.annotation.test_commands import exit_code

# Commands close their connections when they end, which a test's transaction would not survive.
pytestmark = pytest.mark.django_db(transaction=True)

Captured = pytest.CaptureFixture[str]


def test_labels_are_made_and_counted(capsys: Captured) -> None:
    ticked_study("ticked")
    command = ("label_study", "ticked", "--method", "majority")
    assert exit_code(*command) == 0
    line = "Labels 1 of 'ticked', question 'acceptable', by majority, {}: 5 labels, 0 adjudicated."
    assert capsys.readouterr().out.strip() == line.format("made")
    assert exit_code(*command) == 0
    again = line.format("was there already: nothing has changed since")
    assert capsys.readouterr().out.strip() == again


def test_labels_are_reported_as_json(capsys: Captured) -> None:
    rated_study("rated")
    assert exit_code("label_study", "rated", "--method", "mean", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    label_set = LabelSet.objects.get()
    assert record == record | {"version": 1, "n_labels": 6, "n_adjudicated": 0, "is_new": True}
    assert record["signature"] == label_set.signature
    assert label_set.fingerprint[:16] in record["signature"]


def test_labels_are_exported(tmp_path: Path, capsys: Captured) -> None:
    ticked_study("ticked")
    exit_code("label_study", "ticked", "--method", "majority")
    path = tmp_path / "labels.csv"
    assert exit_code("export_labels", "ticked", "--labels", 1, "--output", path) == 0
    line = f"{path}: 5 labels of 'acceptable', version 1, by majority."
    assert line in capsys.readouterr().out
    assert len(path.read_text().splitlines()) == 6


def test_qrels_are_made_of_a_label_set(tmp_path: Path, capsys: Captured) -> None:
    ticked_study("ticked")
    exit_code("label_study", "ticked", "--method", "majority")
    path = tmp_path / "qrels.txt"
    assert exit_code("export_qrels", "ticked", "--labels", 1, "--output", path) == 0
    assert "2 topics, 5 lines, 2 relevant (labels 1, majority, round 1)" in capsys.readouterr().out
    assert path.read_text().splitlines()[0] == "boot 0 clog 1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("label_study", "none", "--method", "majority"), "There is no study 'none'."),
        (("label_study", "ticked", "--method", "mean"), "mean cannot label it"),
        (("label_study", "ticked", "--method", "most"), "invalid choice: 'most'"),
        (
            ("label_study", "ticked", "--method", "majority", "--question", "wit"),
            "asks no question 'wit'. Questions: acceptable.",
        ),
        (("label_study", "ticked", "--method", "majority", "--round", "2"), "in round 2"),
        (("export_labels", "ticked", "--labels", "1", "--output", "l"), "Versions: none yet"),
        (("export_qrels", "ticked", "--labels", "1", "--output", "q"), "Versions: none yet"),
        (
            ("export_qrels", "ticked", "--labels", "1", "--rule", "any", "--output", "q"),
            "not allowed with argument",
        ),
    ],
)
def test_what_cannot_be_labelled_ends_with_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    ticked_study("ticked")
    monkeypatch.chdir(tmp_path)
    assert exit_code(*arguments) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert not LabelSet.objects.exists()

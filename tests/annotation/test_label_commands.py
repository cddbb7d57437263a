import json

import pytest

from annotation.models import LabelSet
from tests.annotation import importing, studies
from tests.annotation.test_commands import exit_code

# Commands close their connections when they end, which a test's transaction would not survive.
pytestmark = pytest.mark.django_db(transaction=True)


def test_labels_are_made_and_counted(capsys):
    studies.ticked_study("ticked")
    command = ("label_study", "ticked", "--method", "majority")
    for _ in range(2):
        assert exit_code(*command) == 0
        assert importing.numbers_in(capsys.readouterr().out) == [1, 5, 0]
    assert LabelSet.objects.count() == 1
    studies.rated_study("rated")
    assert exit_code("label_study", "rated", "--method", "mean", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record == record | {"version": 1, "n_labels": 6, "n_adjudicated": 0, "is_new": True}
    label_set = LabelSet.objects.latest("pk")
    assert record["signature"] == label_set.signature
    assert label_set.fingerprint[:16] in record["signature"]


def test_labels_are_exported_and_made_qrels(tmp_path, capsys):
    studies.ticked_study("ticked")
    exit_code("label_study", "ticked", "--method", "majority")
    for command, counts in (("export_labels", [5, 1]), ("export_qrels", [2, 5, 2, 1, 1])):
        path = tmp_path / command
        capsys.readouterr()
        assert exit_code(command, "ticked", "--labels", 1, "--output", path) == 0
        assert importing.numbers_in(capsys.readouterr().out.removeprefix(str(path))) == counts
    assert len((tmp_path / "export_labels").read_text().splitlines()) == 6
    assert path.read_text().splitlines()[0] == "boot 0 clog 1"


LABEL = ("label_study", "ticked", "--method")
WITH_LABELS = ("ticked", "--labels", "1", "--output", "o")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("label_study", "none", "--method", "majority"), "'none'"),
        ((*LABEL, "most"), "'most'"),
        (("export_labels", *WITH_LABELS), "1"),
        (("export_qrels", *WITH_LABELS), "1"),
        (("export_qrels", *WITH_LABELS, "--rule", "any"), "--rule"),
    ],
)
def test_what_cannot_be_labelled_ends_with_2(tmp_path, monkeypatch, capsys, arguments, named):
    studies.ticked_study("ticked")
    monkeypatch.chdir(tmp_path)
    assert exit_code(*arguments) == 2
    assert named in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert not LabelSet.objects.exists()

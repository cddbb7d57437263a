import os
import subprocess
from pathlib import Path

import pytest

from config.commandline import main
from tests.annotation import importing, studies
from tests.processes import ROOT as ROOT, run_python

Captured = pytest.CaptureFixture[str]


def exit_code(*arguments: object) -> int:
    """What the command line ends with; argparse and CommandError leave by SystemExit."""
    try:
        return main(["manage.py", *map(str, arguments)])
    except SystemExit as leaving:
        return int(leaving.code or 0)


def manage(*arguments: str, database: Path) -> subprocess.CompletedProcess[str]:
    return run_python("manage.py", *arguments, DATABASE_URL=f"sqlite:///{database}")


def test_an_argument_that_is_no_text_ends_a_command_with_2(tmp_path):
    ended = manage("import_responses", "--title", os.fsdecode(b"a\xff"), database=tmp_path / "db")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "b'a\\xff'" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_bad_file_or_a_database_without_tables_ends_a_command_with_2(tmp_path):
    database = tmp_path / "db.sqlite3"
    path = importing.write_file(tmp_path / "bad.csv", "item,system\n")
    ended = manage("import_responses", str(path), "--study", "s", database=database)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert all(part in ended.stderr for part in ("Line 1 of bad.csv", "context, response"))
    ended = manage("export_qrels", "s", "--output", str(tmp_path / "q"), database=database)
    assert ended.returncode == 2
    assert "`python manage.py migrate`" in ended.stderr
    assert "Traceback" not in ended.stderr


# Commands close their connections when they end, which a test's transaction would not survive.
@pytest.mark.django_db(transaction=True)
class TestInProcess:
    @pytest.fixture
    def responses(self, tmp_path: Path) -> Path:
        return importing.write_file(
            tmp_path / "responses.csv", "item,system,context,response\nd0,alpha,hi,ho\n"
        )

    def test_a_good_file_ends_with_0_and_a_bad_one_with_2(self, responses, tmp_path, capsys):
        assert exit_code("import_responses", responses, "--study", "s") == 0
        assert importing.numbers_in(capsys.readouterr().out)[0] == 1
        for command in ("responses", "alternatives", "altereval", "judgments", "mturk_batch"):
            path = tmp_path / ("a.jsonl" if command == "alternatives" else "a.csv")
            for content in (b"\xff", b"a,b\n1,2\n"):
                path.write_bytes(content)
                assert exit_code(f"import_{command}", path, "--study", "s") == 2
                message = capsys.readouterr().err
                assert message.startswith((f"Line 1 of {path.name}", f"{path.name}: "))
                assert message.count("\n") == 1

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            (("--study", "two words"), "'two words'"),
            (("--study", "s", "--owner", "nobody"), "'nobody'"),
            (("--study", "s", "--question", "wit"), "'wit'"),
            (("--study", "s", "--question", "=wit"), "'=wit'"),
            (("--study", "s", "--question", f"{'q' * 65}=?"), "64"),
            (("--study", "s", "--question", "wit=?", "--question", " wit =!"), "'wit'"),
            (("--title", "s"), "--study"),
        ],
    )
    def test_bad_options_are_refused(self, responses, capsys, options, named):
        assert exit_code("import_responses", responses, *options) == 2
        errors = capsys.readouterr().err
        assert named in errors
        assert "Traceback" not in errors

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            (("none", "--output", "q"), ("'none'", "rated, ticked")),
            (("ticked", "--output", "no/q"), ("no/q",)),
            (("ticked", "--output", "q", "--rule", "most"), ("'most'",)),
            (("ticked",), ("--output",)),
        ],
    )
    def test_qrels_that_cannot_be_exported_end_with_2(
        self, tmp_path, monkeypatch, capsys, arguments, named
    ):
        studies.ticked_study("ticked")
        studies.rated_study("rated")
        monkeypatch.chdir(tmp_path)
        assert exit_code("export_qrels", *arguments) == 2
        errors = capsys.readouterr().err
        assert all(each in errors for each in named)
        assert list(tmp_path.iterdir()) == []

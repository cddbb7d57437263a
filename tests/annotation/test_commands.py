import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.commandline import main
from tests.annotation.studies import rated_study, ticked_study

ROOT = Path(__file__).resolve().parent.parent.parent


def exit_code(*arguments: object) -> int:
    """What the command line ends with; argparse and CommandError leave by SystemExit."""
    try:
        return main(["manage.py", *map(str, arguments)])
    except SystemExit as leaving:
        return int(leaving.code or 0)


def manage(*arguments: str, database: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": f"sqlite:///{database}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_bad_file_ends_a_command_with_2_and_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("item,system\n")
    ended = manage("import_responses", str(path), "--study", "s", database=tmp_path / "db.sqlite3")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "Line 1 of bad.csv: columns are missing: context, response (found: item, system). "
        "Fix the file and import again; nothing was imported.\n"
    )


def test_an_argument_that_is_no_text_ends_a_command_with_2(tmp_path: Path) -> None:
    ended = manage("import_responses", "--title", os.fsdecode(b"a\xff"), database=tmp_path / "db")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "The argument b'a\\xff' is not UTF-8.\n"


def test_a_database_without_tables_ends_a_command_with_2(tmp_path: Path) -> None:
    ended = manage(
        "export_qrels", "s", "--output", str(tmp_path / "q"), database=tmp_path / "db.sqlite3"
    )
    assert ended.returncode == 2
    assert "Run `python manage.py migrate` first" in ended.stderr
    assert "Traceback" not in ended.stderr


# Commands close their connections when they end, which a test's transaction would not survive.
@pytest.mark.django_db(transaction=True)
class TestInProcess:
    @pytest.fixture
    def responses(self, tmp_path: Path) -> Path:
        path = tmp_path / "responses.csv"
        path.write_text("item,system,context,response\nd0,alpha,hi,ho\n")
        return path

    def test_a_good_file_ends_with_0(
        self, responses: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert exit_code("import_responses", responses, "--study", "s") == 0
        assert capsys.readouterr().out == "Study 's': 1 item imported.\n"

    @pytest.mark.parametrize(
        ("command", "name"),
        [
            ("import_responses", "a.csv"),
            ("import_alternatives", "a.jsonl"),
            ("import_altereval", "a.csv"),
            ("import_judgments", "a.csv"),
            ("import_mturk_batch", "a.csv"),
        ],
    )
    @pytest.mark.parametrize("content", [b"\xff", b"a,b\n1,2\n"])
    def test_a_bad_file_ends_with_2(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        command: str,
        name: str,
        content: bytes,
    ) -> None:
        path = tmp_path / name
        path.write_bytes(content)
        assert exit_code(command, path, "--study", "s") == 2
        message = capsys.readouterr().err
        assert message.startswith(f"Line 1 of {name}")
        assert message.count("\n") == 1

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--study", "two words"), "'two words' is not a valid study name"),
            (("--study", "s", "--owner", "nobody"), "There is no user 'nobody'."),
            (("--study", "s", "--question", "wit"), "'wit' is not of the form NAME=WORDING."),
            (("--study", "s", "--question", "=wit"), "'=wit' is not of the form NAME=WORDING."),
            (("--study", "s", "--question", f"{'q' * 65}=?"), "a name has 64 characters at most"),
            (
                ("--study", "s", "--question", "wit=Funny?", "--question", " wit =Clever?"),
                "--question names 'wit' twice.",
            ),
            (("--title", "s"), "the following arguments are required: --study"),
        ],
    )
    def test_bad_options_end_with_2(
        self,
        responses: Path,
        capsys: pytest.CaptureFixture[str],
        options: tuple[str, ...],
        message: str,
    ) -> None:
        assert exit_code("import_responses", responses, *options) == 2
        errors = capsys.readouterr().err
        assert message in errors
        assert "Traceback" not in errors

    def test_qrels_are_exported_and_counted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ticked_study("ticked")
        path = tmp_path / "qrels.txt"
        assert exit_code("export_qrels", "ticked", "--output", path, "--rule", "any") == 0
        output = capsys.readouterr().out
        assert output == f"{path}: 2 topics, 5 lines, 2 relevant (any, round 1).\n"
        assert path.read_text().splitlines()[0] == "boot 0 clog 1"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("none", "--output", "q"), "There is no study 'none'. Studies: rated, ticked."),
            (("rated", "--output", "q"), "'rated' is asked at the interval level"),
            (("ticked", "--output", "no/q"), "no/q cannot be written: No such file or directory"),
            (("ticked", "--output", "."), ". cannot be written"),
            (("ticked", "--output", "q", "--rule", "most"), "invalid choice: 'most'"),
            (("ticked",), "the following arguments are required: --output"),
        ],
    )
    def test_qrels_that_cannot_be_exported_end_with_2(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        arguments: tuple[str, ...],
        message: str,
    ) -> None:
        ticked_study("ticked")
        rated_study("rated")
        monkeypatch.chdir(tmp_path)
        assert exit_code("export_qrels", *arguments) == 2
        assert message in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

import errno
import sqlite3
from importlib.util import find_spec

import pytest
from django.db.utils import OperationalError

from config import commandline


def test_a_full_disk_is_reported_in_a_sentence(monkeypatch, capsys, tmp_path):
    database = sqlite3.connect(tmp_path / "small.sqlite3")
    database.execute("PRAGMA max_page_count = 2")
    database.execute("CREATE TABLE lines (line TEXT)")
    with pytest.raises(sqlite3.OperationalError) as full:
        database.execute("INSERT INTO lines VALUES (?)", ["x" * 100_000])
    database.close()

    def run(_arguments):
        raise OperationalError(*full.value.args) from full.value

    monkeypatch.setattr(commandline, "execute_from_command_line", run)
    assert commandline.main(["manage.py", "import_responses"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("The disk of the database cannot be written to: database or disk is")
    assert "Make room on it" in message


def test_a_full_disk_for_files_is_reported_in_a_sentence(monkeypatch, capsys):
    def run(_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(commandline, "execute_from_command_line", run)
    assert commandline.main(["manage.py", "freeze_judgments"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("A disk is full: [Errno 28] No space left on device. Make room")


def test_a_command_that_has_moved_names_its_replacement(capsys):
    for name, replacement in commandline.MOVED.items():
        assert commandline.main(["manage.py", name]) == commandline.BAD_INPUT
        assert replacement in capsys.readouterr().err
        assert find_spec(replacement.split()[-1])

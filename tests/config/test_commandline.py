import errno
import sqlite3
from importlib.util import find_spec
from unittest.mock import Mock

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
    for error, beginning in (
        (
            OperationalError(*full.value.args),
            "The disk of the database cannot be written to: database or disk is",
        ),
        (OSError(errno.ENOSPC, "No space left"), "A disk is full: [Errno 28] No space left. Make"),
    ):
        monkeypatch.setattr(commandline, "execute_from_command_line", Mock(side_effect=error))
        assert commandline.main(["manage.py", "import_responses"]) == 2
        message = capsys.readouterr().err
        assert message.startswith(beginning)
        assert "Make room" in message


def test_a_command_that_has_moved_names_its_replacement(capsys):
    for name, replacement in commandline.MOVED.items():
        assert commandline.main(["manage.py", name]) == commandline.BAD_INPUT
        assert replacement in capsys.readouterr().err
        assert find_spec(replacement.split()[-1])

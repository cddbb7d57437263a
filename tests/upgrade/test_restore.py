"""The restore drill of docs/operations.md, by the commands, into a database without tables.

The site is one of the last release, migrated; on PostgreSQL it was on SQLite before. What a
restore refuses and verifies, tests/marketplace/test_backup.py says in seconds.
"""

import json
from pathlib import Path

import pytest

from tests.upgrade.databases import DUMPS, empty_database, manage, sqlite_database
from tests.upgrade.dump import COMMAND
from tests.upgrade.test_dumps import VERSIONS

pytestmark = pytest.mark.long


def test_a_backup_is_restored_into_an_empty_database(tmp_path: Path) -> None:
    version = VERSIONS[-1]
    expected = json.loads((DUMPS / f"{version}.json").read_text())
    source = sqlite_database(DUMPS / f"{version}.sqlite.sql.gz", tmp_path)
    manage(source, "migrate", "--verbosity", "0")
    manage(source, "backup", f"{tmp_path}/site.backup.zip")
    with empty_database(tmp_path) as target:
        printed = manage(target, "restore", f"{tmp_path}/site.backup.zip")
        assert "restored and read back" in printed
        manage(target, "migrate", "--check")
        manage(target, "check_audit_log")
        assert json.loads(manage(target, "shell", "--no-imports", "-c", COMMAND)) == expected

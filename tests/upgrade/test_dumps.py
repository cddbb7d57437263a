"""Every populated database that was ever released is brought to the present without a loss.

A dump is a gzipped SQL script, `VERSION.sqlite.sql.gz` or `VERSION.postgresql.sql.gz`, with the
numbers it must give in `VERSION.json`; `python -m tests.upgrade.dump VERSION` makes both.
"""

import json

import pytest
from django.db import connection

from tests.upgrade.databases import DUMPS, empty_database, manage, restored, sqlite_database
from tests.upgrade.dump import COMMAND

# In one process: starting Django for each command would take as long as the migration.
MIGRATE = "; ".join(
    [
        "from django.core.management import call_command as call",
        "call('migrate', verbosity=0)",
        "call('migrate', check_unapplied=True)",
        "call('audit_ledger')",
    ]
)
VERSIONS = sorted(path.stem for path in DUMPS.glob("*.json"))


@pytest.mark.each_database
@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_populated_database_is_migrated_to_the_present(version, tmp_path):
    expected = json.loads((DUMPS / f"{version}.json").read_text())
    dump = DUMPS / f"{version}.{connection.vendor}.sql.gz"
    with restored(dump, tmp_path) as database_url:
        printed = manage(database_url, "shell", "--no-imports", "-c", f"{MIGRATE}; {COMMAND}")
    assert json.loads(printed.splitlines()[-1]) == expected


@pytest.mark.slow
def test_there_is_a_dump_of_both_databases_for_each_version():
    assert VERSIONS
    for version in VERSIONS:
        assert (DUMPS / f"{version}.sqlite.sql.gz").exists()
        assert (DUMPS / f"{version}.postgresql.sql.gz").exists()


@pytest.mark.each_database
@pytest.mark.long
def test_a_backup_is_restored_into_an_empty_database(tmp_path):
    """The restore drill of docs/operations.md; on PostgreSQL the site was on SQLite before.

    What a restore refuses and verifies, tests/marketplace/test_backup.py says in seconds.
    """
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

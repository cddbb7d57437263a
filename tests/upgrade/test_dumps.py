"""Every populated database that was ever released is brought to the present without a loss.

A dump is a gzipped SQL script, `VERSION.sqlite.sql.gz` or `VERSION.postgresql.sql.gz`, with the
numbers it must give in `VERSION.json`; `python -m tests.upgrade.dump VERSION` makes both.
"""

import json
from pathlib import Path

import pytest
from django.db import connection

from tests.upgrade.databases import DUMPS, manage, restored
from tests.upgrade.dump import COMMAND

pytestmark = pytest.mark.slow
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
@pytest.mark.parametrize("version", VERSIONS)
def test_a_populated_database_is_migrated_to_the_present(version: str, tmp_path: Path) -> None:
    expected = json.loads((DUMPS / f"{version}.json").read_text())
    dump = DUMPS / f"{version}.{connection.vendor}.sql.gz"
    with restored(dump, tmp_path) as database_url:
        printed = manage(database_url, "shell", "--no-imports", "-c", f"{MIGRATE}; {COMMAND}")
    assert json.loads(printed.splitlines()[-1]) == expected


def test_there_is_a_dump_of_both_databases_for_each_version() -> None:
    assert VERSIONS
    for version in VERSIONS:
        assert (DUMPS / f"{version}.sqlite.sql.gz").exists()
        assert (DUMPS / f"{version}.postgresql.sql.gz").exists()

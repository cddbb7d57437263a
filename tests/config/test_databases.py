"""How the site connects to PostgreSQL: settings tried on a server in a process of their own."""

import os
import subprocess
import sys

import pytest
from django.conf import settings as site
from django.db import connection

PROGRAM = """
import django; django.setup()
from django.conf import settings
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.utils import OperationalError
options = settings.DATABASES["default"]
print(options["CONN_MAX_AGE"], options["DISABLE_SERVER_SIDE_CURSORS"], options["OPTIONS"])
with connection.cursor() as cursor:
    cursor.execute("SHOW statement_timeout")
    print(cursor.fetchone()[0])
    try:
        cursor.execute("SELECT pg_sleep(0.6)")
        print("slept")
    except OperationalError as error:
        print(str(error).strip())
"""
DIRECT = "postgres://a:b@127.0.0.1/c"


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=site.BASE_DIR,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL's connections")
def test_a_statement_that_takes_too_long_is_broken_off_and_others_are_not():
    server = site.DATABASES["default"]
    account = server["USER"] + (f":{server['PASSWORD']}" if server["PASSWORD"] else "")
    url = f"postgres://{account}@{server['HOST']}:{server['PORT'] or 5432}/postgres"
    done = run(PROGRAM, DATABASE_URL=url, DATABASE_STATEMENT_SECONDS="0.3")
    settings, timeout, outcome = done.stdout.splitlines()
    assert settings.startswith("60 False")
    assert timeout == "300ms"
    assert "canceling statement due to statement timeout" in outcome
    done = run(PROGRAM, DATABASE_URL=url)
    assert done.stdout.splitlines()[1:] == ["0", "slept"]
    # By way of a pooler, which takes no options of a session.
    done = run(PROGRAM, DATABASE_URL=f"{url}?application_name=x", DATABASE_POOLER="true")
    assert done.stdout.splitlines()[0] == "0 True {'application_name': 'x'}"


def test_a_pooler_takes_no_time_limit_of_a_session():
    values = {"DATABASE_POOLER": "true", "DATABASE_STATEMENT_SECONDS": "30"}
    done = run("import config.settings", DATABASE_URL=DIRECT, **values)
    assert done.returncode != 0
    assert "set it in the database: ALTER ROLE" in done.stderr


@pytest.mark.parametrize("cache", ["locmemcache://", "dummycache://"])
def test_a_cache_that_each_process_has_to_itself_is_warned_of(cache):
    program = (
        "import django; django.setup()\n"
        "from django.core.checks import run_checks\n"
        "print([each.id for each in run_checks(include_deployment_checks=True)])"
    )
    database = {"DATABASE_URL": "sqlite:///:memory:"}
    assert "accounts.W001" in run(program, CACHE_URL=cache, **database).stdout
    assert "accounts.W001" not in run(program, **database).stdout

import pytest
from django.conf import settings as site
from django.db import connection

from tests.processes import run_python

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
    statement_timeout = cursor.fetchone()[0]
    cursor.execute("SHOW lock_timeout")
    print(statement_timeout, cursor.fetchone()[0])
    try:
        cursor.execute("SELECT pg_sleep(0.6)")
        print("slept")
    except OperationalError as error:
        print(str(error).strip())
"""
THREADS = """
import django; django.setup()
from concurrent.futures import ThreadPoolExecutor
from django.db import close_old_connections, connection
def request(number):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid(), pg_sleep(0.05)")
        pid = cursor.fetchone()[0]
    close_old_connections()
    return pid
with ThreadPoolExecutor(8) as threads:
    pids = list(threads.map(request, range(24)))
print(len(pids), len(set(pids)))
connection.close_pool()
"""
DIRECT = "postgres://a:b@127.0.0.1/c"


def run(program, **environment):
    return run_python("-c", program, **environment)


def address():
    server = site.DATABASES["default"]
    account = server["USER"] + (f":{server['PASSWORD']}" if server["PASSWORD"] else "")
    return f"postgres://{account}@{server['HOST']}:{server['PORT'] or 5432}/postgres"


on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="of PostgreSQL's connections"
)


@pytest.mark.slow
@pytest.mark.each_database
@on_postgresql
def test_a_statement_that_takes_too_long_is_broken_off_and_others_are_not():
    url = address()
    done = run(PROGRAM, DATABASE_URL=url, DATABASE_STATEMENT_SECONDS="0.3")
    settings, timeout, outcome = done.stdout.splitlines()
    assert settings.startswith("60 False")
    assert timeout == "300ms 240ms"
    assert "canceling statement due to statement timeout" in outcome
    done = run(PROGRAM, DATABASE_URL=url)
    assert done.stdout.splitlines()[1:] == ["0 0", "slept"]
    # By way of a pooler, which takes no options of a session.
    done = run(PROGRAM, DATABASE_URL=f"{url}?application_name=x", DATABASE_POOLER="true")
    assert done.stdout.splitlines()[0] == "0 True {'application_name': 'x'}"


@pytest.mark.slow
@pytest.mark.each_database
@on_postgresql
def test_threads_share_the_connections_of_a_pool():
    assert run(THREADS, DATABASE_URL=address(), DATABASE_POOL_SIZE="3").stdout == "24 3\n"
    # Without it each thread has one of its own.
    n_requests, n_connections = run(
        THREADS.replace("connection.close_pool()", ""), DATABASE_URL=address()
    ).stdout.split()
    assert n_requests == "24"
    assert int(n_connections) > 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"DATABASE_POOL_SIZE": "1"}, "it must be 2 or more"),
        ({"DATABASE_POOL_SIZE": "4", "DATABASE_POOLER": "true"}, "set one of them"),
        ({"DATABASE_POOL_SIZE": "-1"}, "DATABASE_POOL_SIZE"),
        (
            {"DATABASE_POOLER": "true", "DATABASE_STATEMENT_SECONDS": "30"},
            "set it in the database: ALTER ROLE",
        ),
    ],
)
def test_a_pool_that_makes_no_sense_is_refused(values, words):
    done = run("import config.settings", DATABASE_URL=DIRECT, **values)
    assert done.returncode != 0
    assert words in done.stderr


@pytest.mark.slow
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

import json
import logging
from logging.config import DictConfigurator

import pytest
from django.test import RequestFactory

from config.logs import logging_settings, shorten_refusals
from tests.processes import run_python

PROGRAM = """
import logging, django
from django.conf import settings
settings.ALLOWED_HOSTS.append("testserver")
settings.ALLAUTH_TRUSTED_PROXY_COUNT = {proxies}
django.setup()
from django.test import Client
for address in {addresses}:
    answer = Client().get(address, headers={headers})
logging.getLogger("annotation").warning("so many %s", "judgments")
secret = "a secret in a variable"
try:
    raise OSError("no room")
except OSError:
    logging.getLogger("hits").exception("collecting failed")
print(answer.headers["X-Request-Id"])
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    database = {"DATABASE_URL": f"sqlite:///{tmp_path_factory.mktemp('site')}/site.sqlite3"}
    assert run_python("manage.py", "migrate", "--verbosity", "0", **database).returncode == 0

    def ask(*addresses, proxies=0, headers=None, **variables):
        addresses = addresses or ("/studies/vision-study/",)
        program = PROGRAM.format(addresses=addresses, proxies=proxies, headers=headers)
        done = run_python("-c", program, **(database | {"LOG_LEVEL": "INFO"} | variables))
        return done.stdout.strip(), done.stderr

    return ask


@pytest.mark.slow
def test_json_lines_name_the_request_and_the_study_and_plain_ones_are_for_people(run):
    request_id, printed = run(LOG_FORMAT="json")
    request, later, failure = [json.loads(line) for line in printed.splitlines()]
    assert len(request_id) == 32
    assert request["duration_seconds"] >= 0
    assert {
        "event": "request",
        "level": "info",
        "logger": "assay.request",
        "request_id": request_id,
        "study": "vision-study",
        "method": "GET",
        "path": "/studies/vision-study/",
        "status": 302,
    }.items() <= request.items()
    assert (later["event"], later["request_id"]) == ("so many judgments", request_id)
    assert "OSError: no room" in failure["exception"]
    request_id, printed = run()
    assert f"request_id={request_id}" in printed
    assert "so many judgments" in printed
    assert "OSError: no room" in printed
    assert "a secret in" not in printed


@pytest.mark.slow
def test_an_id_is_taken_from_ones_own_proxy_only(run):
    headers = {"x-request-id": "from-the-proxy-7"}
    assert run(proxies=1, headers=headers)[0] == "from-the-proxy-7"
    assert run(proxies=0, headers=headers)[0] != "from-the-proxy-7"
    assert run(proxies=1, headers={"x-request-id": "a b"})[0] != "a b"


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["json", "plain"])
def test_no_line_holds_what_an_address_opens(run, log_format):
    printed = run(
        "/invited/Opens-a-team-1/",
        "/account/password/reset/1-Opens-an-account/",
        LOG_FORMAT=log_format,
    )[1]
    assert "/invited/[hidden]/" in printed
    assert "/account/password/reset/1-[hidden]/" in printed
    assert "Opens" not in printed


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["json", "plain"])
def test_a_host_that_is_not_the_sites_is_one_short_warning(run, log_format):
    host = f"{'stranger.' * 100}example.org"
    printed = run(headers={"host": host}, LOG_FORMAT=log_format, LOG_LEVEL="WARNING")[1]
    [refusal] = [line for line in printed.splitlines() if "stranger" in line]
    assert "warning" in refusal
    assert "Invalid HTTP_HOST header" in refusal
    assert len(refusal) < 600
    assert "get_host" not in printed  # of the traceback


@pytest.mark.parametrize("log_format", ["json", "plain"])
def test_no_line_displays_a_request_whose_address_says_who_comes(log_format):
    settled = logging_settings(log_format=log_format, level="INFO")
    formatter = DictConfigurator(settled).configure_formatter(settled["formatters"]["all"])
    record = logging.LogRecord("django.request", 40, "", 1, "Internal Server Error", (), None)
    record.request = RequestFactory().get("/join/Opens-a-study/?PROLIFIC_PID=5f0000")
    assert shorten_refusals(record)
    line = formatter.format(record)
    assert "Internal Server Error" in line
    assert "5f0000" not in line
    assert "Opens-a-study" not in line


def test_a_log_format_there_is_not_is_refused_in_words(run):
    assert "LOG_FORMAT is 'xml'; it must be one of plain, json." in run(LOG_FORMAT="xml")[1]


@pytest.mark.slow
def test_importing_settings_writes_nothing_and_warns_of_nothing(tmp_path):
    """As in a container whose file system is read-only."""
    program = (
        "import pathlib, os, sys\n"
        "def refuse(*a, **k): raise OSError('read-only')\n"
        "os.mkdir = pathlib.Path.mkdir = refuse\n"
        "import config.settings, config.wsgi\n"
    )
    done = run_python("-W", "default", "-c", program)
    assert done.returncode == 0, done.stderr
    assert "No directory" not in done.stderr

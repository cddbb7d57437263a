import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from config import variables
from tests.processes import manage_in_each, run_python

OWN_KEY = "k8sJ2vQ0-a key of one's own, long enough and nowhere in this repository"
OWN_ENCRYPTION_KEY = Fernet.generate_key().decode()
# Empty stands for missing, and keeps a .env of the checkout out of the test.
SERVER = {
    "SITE_URL": "https://assay.example.org",
    "DEBUG": "false",
    "SECRET_KEY": OWN_KEY,
    "SECRET_KEY_FALLBACKS": "",
    "ENCRYPTION_KEYS": OWN_ENCRYPTION_KEY,
    "TRUSTED_PROXY_COUNT": "1",
}
CHECK = ("manage.py", "check", "--deploy", "--fail-level", "WARNING")


def start(*arguments, **environment):
    return run_python(*arguments, **(SERVER | environment))


@pytest.mark.slow
def test_keys_of_ones_own_pass_the_deployment_check_and_published_ones_only_start():
    ended = start(*CHECK)
    assert ended.returncode == 0, ended.stderr
    environment = {"SITE_URL": "http://127.0.0.1:8000", "SECRET_KEY": "", "ENCRYPTION_KEYS": ""}
    assert start("manage.py", "check", **environment).returncode == 0
    ended = start(*CHECK, **environment)
    assert ended.returncode != 0
    assert "security.W009" in ended.stderr


PRINT_SIGN_UP = "from config import settings; print(settings.MARKETPLACE_REQUESTER_SIGN_UP)"


@pytest.mark.parametrize(
    ("environment", "is_open"),
    [
        ({}, False),
        ({"SITE_URL": "http://127.0.0.1:8000"}, True),
        ({"SITE_URL": "http://127.0.0.1:8000", "ALLOWED_HOSTS": "assay.example.org"}, False),
        ({"MARKETPLACE_REQUESTER_SIGN_UP": "true"}, True),
    ],
)
def test_only_a_site_of_ones_own_lets_everyone_become_a_requester(environment, is_open):
    ended = start("-c", PRINT_SIGN_UP, **environment)
    assert ended.stdout.strip() == str(is_open), ended.stderr


WITHOUT_KEYS = [
    ({"SECRET_KEY": ""}, "SECRET_KEY is not set"),
    ({"SECRET_KEY": variables.FORMER_DEVELOPMENT_KEY}, "published key"),
    ({"SECRET_KEY": " "}, "SECRET_KEY is not set"),
    ({"ENCRYPTION_KEYS": ""}, "ENCRYPTION_KEYS is not set"),
]


@pytest.mark.slow
def test_a_server_without_keys_of_its_own_runs_no_command():
    environments = [environment for environment, _message in WITHOUT_KEYS]
    ended = manage_in_each("migrate", "--plan", environments=environments, **SERVER)
    for (_environment, message), (code, text) in zip(WITHOUT_KEYS, ended, strict=True):
        assert code == 2
        assert message in text
        assert "Make a key with python -c" in text
        assert "Traceback" not in text


def test_a_server_without_a_secret_key_serves_nothing():
    ended = start("-c", "import config.wsgi", SECRET_KEY="")
    assert ended.returncode != 0
    assert "ImproperlyConfigured: SECRET_KEY is not set" in ended.stderr


@pytest.mark.parametrize(
    ("site_url", "hosts", "debug", "expected"),
    [
        ("http://127.0.0.1:8000", ["127.0.0.1", "localhost", "[::1]"], False, True),
        ("http://[::1]:8000", ["assay.localhost"], False, True),
        ("http://localhost", ["*"], False, False),
        ("http://localhost", [".example.org"], False, False),
        ("http://0.0.0.0:8000", ["localhost"], False, False),
        ("http://10.0.0.7:8000", ["localhost"], False, False),
        ("https://localhost.example.org", [], False, False),
        ("https://assay.example.org", ["*"], True, True),
    ],
)
def test_what_is_a_machine_of_ones_own(site_url, hosts, debug, expected):
    assert variables.is_own_machine(debug=debug, site_url=site_url, allowed_hosts=hosts) is expected


@pytest.mark.parametrize(
    ("key", "former"),
    [
        ("", ""),
        (variables.DEVELOPMENT_KEY, ""),
        ("django-insecure-abc", ""),
        ("guessable", ""),
        (f" {variables.FORMER_DEVELOPMENT_KEY}", ""),
        (OWN_KEY, f"other, {variables.DEVELOPMENT_KEY}"),
    ],
)
def test_signing_keys_that_a_server_refuses(key, former):
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY"):
        variables.signing_keys(key, former, own_machine=False)


@pytest.mark.parametrize(
    "keys",
    [
        "",
        " , ",
        "short",
        variables.DEVELOPMENT_ENCRYPTION_KEY,
        # The same bytes, since the last letter has two bits that say nothing.
        variables.DEVELOPMENT_ENCRYPTION_KEY[:-2] + "F=",
        f"{OWN_ENCRYPTION_KEY},{'é' * 44}",
    ],
    ids=["none", "blank", "short", "published", "published and respelt", "not ASCII"],
)
def test_encryption_keys_that_a_server_refuses(keys):
    with pytest.raises(ImproperlyConfigured, match="ENCRYPTION_KEYS"):
        variables.encryption_keys(keys, own_machine=False)


def test_former_keys_are_listed_after_the_present_one():
    other = Fernet.generate_key().decode()
    assert variables.signing_keys(OWN_KEY, "a, b", own_machine=False) == (OWN_KEY, ["a", "b"])
    listed = variables.encryption_keys(f"{OWN_ENCRYPTION_KEY}, {other}", own_machine=False)
    assert listed == [OWN_ENCRYPTION_KEY, other]
    assert variables.encryption_keys(other, own_machine=True)[0] == other


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"SECRET_KEY": ""},
        {"SECRET_KEY": variables.FORMER_DEVELOPMENT_KEY},
        {"SECRET_KEY_FALLBACKS": variables.FORMER_DEVELOPMENT_KEY},
        {"ENCRYPTION_KEYS": ""},
    ],
    ids=lambda environment: "=".join(*environment.items()),
)
def test_a_site_for_its_own_machine_knows_that_its_keys_are_published(environment):
    program = "import config.settings as s; print(s.USES_PUBLISHED_KEYS)"
    own_machine = {"SITE_URL": "http://127.0.0.1:8000"}
    assert start("-c", program, **own_machine | environment).stdout == "True\n"
    assert start("-c", program, **own_machine).stdout == "False\n"

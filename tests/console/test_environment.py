import stat

import environ
import pytest
from cryptography.fernet import Fernet

from config.environment import add_setting, remember_settings, write_environment


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".env"


def settings_in(path):
    values = {}

    class Env(environ.Env):
        ENVIRON = values

    Env.read_env(path)
    return values


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_checkout_gets_secrets_of_its_own_and_what_is_there_is_left_alone(path, tmp_path):
    other = tmp_path / "other.env"
    assert write_environment(path)
    assert write_environment(other)
    here, there = settings_in(path), settings_in(other)
    assert here.keys() == {
        *("SECRET_KEY", "ENCRYPTION_KEYS", "MARKETPLACE_OPERATOR_SECRET", "SAMPLE_PASSWORD")
    }
    assert all(here[name] != there[name] for name in here)
    assert len(here["SECRET_KEY"]) >= 50
    assert mode(path) == 0o600
    assert Fernet(here["ENCRYPTION_KEYS"])
    path.write_text("SECRET_KEY=mine\nENCRYPTION_KEYS=mine\n")
    assert not write_environment(path)
    assert path.read_text() == "SECRET_KEY=mine\nENCRYPTION_KEYS=mine\n"


@pytest.mark.parametrize("there", ["SECRET_KEY=mine", "SECRET_KEY=mine\nENCRYPTION_KEYS=\n"])
def test_an_older_environment_is_given_the_encryption_key_it_lacks(path, there):
    path.write_text(there)
    write_environment(path)
    once = path.read_text()
    write_environment(path)
    assert path.read_text() == once
    assert settings_in(path)["SECRET_KEY"] == "mine"
    assert Fernet(settings_in(path)["ENCRYPTION_KEYS"])


@pytest.mark.parametrize(
    ("there", "added", "stored"),
    [
        ("DEBUG=1\n", "a+b/c=d", {"DEBUG": "1", "KEY": "a+b/c=d"}),
        ("DEBUG=1", "value", {"DEBUG": "1", "KEY": "value"}),
        ("KEY=\n", "value", {"KEY": "value"}),
        (None, "value", {"KEY": "value"}),
    ],
)
def test_a_setting_is_added_to_what_is_there(path, there, added, stored):
    if there is not None:
        path.write_text(there)
    add_setting("KEY", added, path)
    assert settings_in(path) == stored
    assert there is not None or mode(path) == 0o600


def test_where_the_site_and_its_queues_are_is_remembered_and_the_latest_counts(path):
    """A command would else leave its jobs in a queue that no worker of the site reads."""
    remember_settings({"REDIS_URL": "redis://127.0.0.1:6379/3", "RQ_PREFIX": "lab-"}, path)
    lines = path.read_text().splitlines()
    assert lines[-2:] == ["REDIS_URL=redis://127.0.0.1:6379/3", "RQ_PREFIX=lab-"]
    path.write_text("SECRET_KEY=mine\nSITE_URL=http://127.0.0.1:8000\n")
    remember_settings({"SITE_URL": "http://127.0.0.1:9000", "SECRET_KEY": "other"}, path)
    assert settings_in(path) == {"SECRET_KEY": "mine", "SITE_URL": "http://127.0.0.1:9000"}
    once = path.read_text()
    remember_settings({"SITE_URL": "http://127.0.0.1:9000", "DATABASE_URL": ""}, path)
    remember_settings({}, path)
    assert path.read_text() == once
    database = "postgres://assay:p%23w@127.0.0.1:5432/assay"
    remember_settings({"DATABASE_URL": database}, path)
    assert settings_in(path)["DATABASE_URL"] == database

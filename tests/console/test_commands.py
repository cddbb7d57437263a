"""What commands and settings say of bad input: exit code 2 and a sentence."""

import os
import socket
import subprocess
import sys

import pytest
from django.conf import settings as site
from django.core.management import call_command
from django.core.management.base import CommandError

from annotation.models import Study
from console.demonstration import demonstrate
from console.exceptions import FolderUnusable
from console.samples import Crowd


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=site.BASE_DIR,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SITE_URL", "nonsense"),
        ("SITE_URL", "http://localhost:port"),
        ("DATABASE_URL", "secret"),
        ("DATABASE_URL", "postgres://ann:secret@host:port/site"),
        ("DATABASE_URL", "sqlite:////no/such/folder/x"),
        ("DATABASE_URL", "postgres://127.0.0.1:1/x"),
        ("DATABASE_URL", f"sqlite:///{sys.executable}"),
        ("REDIS_URL", "http://:secret@host"),
        ("WORK_LEASE_SECONDS", "0"),
        ("WORK_LEASE_SECONDS", "nan"),
        ("WORK_KEEP_DAYS", "1.5"),
        ("TRUSTED_PROXY_COUNT", "one"),
        ("TRUSTED_PROXY_COUNT", "-1"),
        ("MARKETPLACE_FEE_SCHEDULE", "amazon"),
        ("LOG_LEVEL", "LOUD"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told_in_a_sentence(name, value):
    process = run("manage.py", "migrate", **{name: value})
    assert process.returncode == 2
    assert name in process.stderr
    assert "Traceback" not in process.stderr
    assert "secret" not in process.stderr


@pytest.mark.slow
def test_a_redis_that_is_away_is_reported_in_a_sentence():
    away = {"REDIS_URL": "redis://:secret@127.0.0.1:1/0"}
    process = run("manage.py", "run_worker", "--until-empty", **away)
    assert process.returncode == 2
    assert "REDIS_URL" in process.stderr
    assert "Traceback" not in process.stderr
    assert "secret" not in process.stderr


@pytest.mark.parametrize("secret", ["$ecret", "-secret", "s'e\"c#r e$t\\", "'quoted'"])
def test_secrets_are_taken_as_they_stand(secret):
    program = "import config.settings as s; print(s.SECRET_KEY); print(s.SAMPLE_PASSWORD)"
    process = run("-c", program, SECRET_KEY=secret, SAMPLE_PASSWORD=secret)
    assert process.stdout.splitlines() == [secret, secret], process.stderr


def refused_serving(*arguments, **options):
    """The text of the refusal to serve, with exit code 2."""
    with pytest.raises(CommandError) as refusal:
        call_command("serve", *arguments, **options)
    assert refusal.value.returncode == 2
    return str(refusal.value)


@pytest.mark.parametrize(
    "bind", ["8000", ":8000", "localhost", "localhost:0", "localhost:99999", "localhost:80\u0663"]
)
def test_serving_takes_a_host_and_a_port(bind):
    assert "--bind" in refused_serving(bind=bind)


def test_serving_others_takes_keys_of_ones_own(settings):
    settings.USES_PUBLISHED_KEYS = True
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert "SECRET_KEY" in refused_serving(bind=f"0.0.0.0:{port}")


@pytest.mark.parametrize("threads", ["0", "-1", "many"])
def test_serving_takes_a_number_of_threads(threads):
    with pytest.raises(CommandError) as refusal:
        call_command("serve", f"--threads={threads}")
    assert "--threads" in str(refusal.value)


def test_serving_where_something_else_listens_is_refused_before_anything_starts():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bind = f"127.0.0.1:{listener.getsockname()[1]}"
        assert bind in refused_serving(bind=bind)


@pytest.mark.django_db
def test_a_demonstration_finds_out_before_it_begins_that_it_cannot_write(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(FolderUnusable):
        demonstrate(folder=file, crowd=Crowd())
    assert not Study.objects.exists()

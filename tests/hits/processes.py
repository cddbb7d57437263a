"""Commands in processes of their own, on the test's database and against its live server."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from django.db import connection

PROJECT = Path(__file__).resolve().parents[2]


def database_url() -> str:
    """Where other processes find the test's data."""
    there = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{there['NAME']}"
    host, port = there["HOST"] or "127.0.0.1", there["PORT"] or 5432
    return f"postgres://{there['USER']}:{there['PASSWORD']}@{host}:{port}/{there['NAME']}"


def environment(site_url: str, keys: Mapping[str, str]) -> dict[str, str]:
    return os.environ | {
        "DATABASE_URL": database_url(),
        "AWS_ENDPOINT_URL_MTURK": f"{site_url}/requester",
        "MARKETPLACE_ACCESS_KEY_ID": keys["access_key_id"],
        "MARKETPLACE_SECRET_ACCESS_KEY": keys["secret_access_key"],
    }


def run_at_once(commands: list[list[str]], env: Mapping[str, str]) -> list[tuple[int, str, str]]:
    """Start the commands at the same moment; exit code, output and errors of each."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.hits.command_process", *command],
            cwd=PROJECT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=200) for process in processes]
    codes = [process.returncode for process in processes]
    return [(code, *texts) for code, texts in zip(codes, outputs, strict=True)]

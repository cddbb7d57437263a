"""Writes the .env of a checkout: secrets of its own, and nothing else."""

import base64
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

PATH = Path(os.environ.get("ENVIRONMENT_FILE") or Path(__file__).resolve().parent.parent / ".env")
ENCRYPTION_KEY_BYTES = 32
# What `make run` was started with that every command after it needs as well.
REMEMBERED = ("SITE_URL", "DATABASE_URL", "TASKS_BACKEND", "REDIS_URL", "RQ_PREFIX")


def write_environment(path: Path = PATH) -> bool:
    """Write the file where there is none, and true is returned; one that is there is given the
    key that it may lack."""
    if path.exists():
        if not _set_variable("ENCRYPTION_KEYS", path):
            add_setting("ENCRYPTION_KEYS", _encryption_key(), path)
        return False
    lines = [
        "# Made by `make run` for this checkout. .env.example explains every setting.",
        f"SECRET_KEY={secrets.token_urlsafe(48)}",
        f"ENCRYPTION_KEYS={_encryption_key()}",
        f"MARKETPLACE_OPERATOR_SECRET={secrets.token_urlsafe(32)}",
        f"SAMPLE_PASSWORD={secrets.token_urlsafe(9)}",
    ]
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return True


def add_setting(name: str, value: str, path: Path = PATH) -> None:
    """Append one setting; where a file names one twice, the last counts."""
    path.touch(mode=0o600)
    there = path.read_text(encoding="utf-8")
    gap = "" if not there or there.endswith("\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{gap}{name}={value}\n")


def remember_settings(environment: Mapping[str, str], path: Path = PATH) -> None:
    for name in REMEMBERED:
        value = environment.get(name, "").strip()
        if value and value != _set_variable(name, path):
            add_setting(name, value, path)


def _set_variable(name: str, path: Path) -> str:
    text = path.read_text("utf-8") if path.exists() else ""
    lines = (line.strip().removeprefix("export ").partition("=") for line in text.splitlines())
    values = [value.strip("'\" ") for key, _, value in lines if key.strip() == name]
    return values[-1] if values else ""


def _encryption_key() -> str:
    # A Fernet key, made without the library: it may not be installed yet.
    return base64.urlsafe_b64encode(secrets.token_bytes(ENCRYPTION_KEY_BYTES)).decode("ascii")


if __name__ == "__main__":
    if sys.argv[1:] == ["remember"]:
        remember_settings(os.environ)
    else:
        write_environment()

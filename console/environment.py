"""Writes the .env of a new checkout: secrets of its own, and nothing else."""

import secrets
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / ".env"


def write_environment(path: Path = PATH) -> bool:
    """Write the file where there is none; True if it was written."""
    if path.exists():
        return False
    lines = [
        "# Made by `make run` for this checkout. .env.example explains every setting.",
        f"SECRET_KEY={secrets.token_urlsafe(48)}",
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


if __name__ == "__main__":
    write_environment()

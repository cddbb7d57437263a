"""What programs of benchmarks share: options with defaults, and lines that are printed at once."""

import argparse
import sys
from typing import Any

DATABASE = {"database_url": (None, "a PostgreSQL database to make; else an SQLite file")}
SERVER = {"processes": (2, "of the server"), "threads": (8, "of each process of the server")}


def parse_options(text: str | None, **options: tuple[Any, str]) -> argparse.Namespace:
    """Options by name, each with its default, whose type it has, and what it is; False is a flag.

    The first line of the text says what the program does.
    """
    parser = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    for name, (default, meaning) in options.items():
        rules: dict[str, Any] = {"action": "store_true"}
        if default is not False:
            rules = {"default": default, "type": str if default is None else type(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", help=meaning, **rules)
    return parser.parse_args()


def say(line: object = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say_row(*cells: object) -> None:
    """A line of a Markdown table."""
    say(f"| {' | '.join(map(str, cells))} |")

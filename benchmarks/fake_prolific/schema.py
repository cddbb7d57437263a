"""The operations and shapes of `schema.yaml`."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

FILE = Path(__file__).with_name("schema.yaml")


@dataclass(frozen=True)
class Operation:
    name: str
    method: str
    path: str
    status: int
    request: str | None = None
    answer: str | None = None

    def ids(self, method: str, path: str) -> tuple[str, ...] | None:
        """Return the ids in the path, or None where the path is another operation's."""
        pattern = re.escape(self.path).replace(r"\{id\}", "([0-9A-Za-z_-]+)")
        found = re.fullmatch(pattern, path) if method == self.method else None
        return found and found.groups()


@cache
def document() -> dict[str, Any]:
    """Return the whole file."""
    content: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return content


@cache
def operations() -> tuple[Operation, ...]:
    """Return all operations, in the file's order."""
    return tuple(Operation(name=name, **facts) for name, facts in document()["operations"].items())


@cache
def foreign_operations() -> tuple[Operation, ...]:
    """Return what only other programs ask."""
    return tuple(Operation(name=name, **facts) for name, facts in document()["foreign"].items())


def problems(shape: str | None, value: Any) -> list[str]:
    """Return what is wrong with a body: a field and what it must be, a line each."""
    if shape is None:
        return []
    validator = Draft202012Validator({"shapes": document()["shapes"], "$ref": f"#/shapes/{shape}"})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]

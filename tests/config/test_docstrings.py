"""Public functions of `stats` and `metrics.scorers` describe the arguments that they have."""

import ast
import re
from collections.abc import Iterator

import pytest
from django.conf import settings

pytestmark = pytest.mark.once
SECTION = re.compile(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z][\w ]+\n-+|\Z)", re.DOTALL)


def described(docstring: str) -> set[str]:
    """The names before the colons of the section on parameters."""
    section = SECTION.search(docstring)
    lines = section.group(1).splitlines() if section else []
    heads = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def arguments(function: ast.FunctionDef) -> set[str]:
    of = function.args
    named = [*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg]
    return {one.arg for one in named if one is not None} - {"self", "cls"}


def described_functions() -> Iterator[tuple[str, ast.FunctionDef, set[str]]]:
    for room in ("stats", "metrics/scorers"):
        for path in sorted((settings.BASE_DIR / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef):
                    names = described(ast.get_docstring(node) or "")
                    if names:
                        yield f"{path.name}: {node.name}", node, names


def test_docstrings_name_the_arguments_that_functions_have():
    functions = list(described_functions())
    assert len(functions) > 200
    wrong = {where: names ^ arguments(node) for where, node, names in functions}
    assert {where: names for where, names in wrong.items() if names} == {}

"""That the mutants of `benchmarks` can still be applied, and their tests still be found."""

import ast
from pathlib import Path

import pytest

from benchmarks.mutants import CHECKOUT, MUTANTS, apply
from benchmarks.repairs import REPAIRS

ALL = (*MUTANTS, *REPAIRS)


@pytest.fixture
def copy(tmp_path):
    for mutant in ALL:
        path = tmp_path / mutant.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((CHECKOUT / mutant.file).read_text("utf-8"), "utf-8")
    return tmp_path


def names_in(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse((CHECKOUT / path).read_text("utf-8")))
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_line_of_code_that_still_compiles(copy, mutant):
    before = apply(mutant, copy)
    after = (copy / mutant.file).read_text("utf-8")
    assert after != before
    if mutant.file.endswith(".py"):
        compile(after, mutant.file, "exec")
    assert [name for name in names_in(mutant.tests) if mutant.keyword in name]

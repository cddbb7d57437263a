"""What linters cannot see: what the client, which is no package, imports, what both sides of HTTP
must have alike, dictionaries' methods in templates, arguments that docstrings describe, and files
that ARCHITECTURE.md and the apps' READMEs name."""

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
from django.conf import settings

from annotation.models import judgments
from config.catalogues import template_folders
from marketplace.hits import wages as marketplace_wages

BASE = Path(settings.BASE_DIR)


def test_the_client_imports_httpx_and_pandas_alone_and_both_sides_count_the_same_work():
    tree = ast.parse((BASE / "assay_client.py").read_text(encoding="utf-8"))
    modules = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outside = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    assert outside == {"httpx2", "pandas"}
    # With two constants, researchers and workers would read two wages of the same HITs.
    assert marketplace_wages.LEAST_SECONDS_OF_A_PERSON == judgments.LEAST_SECONDS_OF_A_PERSON


# `items` and `keys` of a dictionary are looked up as keys first; `pairs` is there instead.
METHOD = re.compile(r"\b[\w.]+\.(?:items|keys|values)\b(?=[^{}]*[%}]\})")
# Attributes of objects: of a form's list, a participant, a practice row, and a row of a table.
ATTRIBUTES = {
    "content.items",
    "participant.items",
    "row.keys",
    "row.values",
    "view.form.keys",
    "one.items",
}


def test_no_template_calls_a_method_of_a_dictionary_but_pairs():
    calls = {
        (path.relative_to(BASE).as_posix(), found[0])
        for folder in template_folders()
        for path in folder.rglob("*.*")
        if path.suffix != ".js"
        for found in METHOD.finditer(path.read_text(encoding="utf-8"))
    }
    assert {call for _path, call in calls} == ATTRIBUTES, calls


SECTION = re.compile(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z][\w ]+\n-+|\Z)", re.DOTALL)


def described(docstring):
    section = SECTION.search(docstring)
    lines = section.group(1).splitlines() if section else []
    heads = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def arguments(function):
    of = function.args
    named = [*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg]
    return {one.arg for one in named if one is not None} - {"self", "cls"}


def described_functions():
    for room in ("stats", "metrics/scorers"):
        for path in sorted((BASE / room).rglob("*.py")):
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


MAPS = [BASE / "ARCHITECTURE.md", *BASE.glob("*/README.md")]
LINES = [line for page in MAPS for line in page.read_text("utf-8").splitlines()]
NAME = re.compile(r"`([\w./-]+(?:\.py|\.js|\.md|\.json|\.html|/))`|\((docs/[\w./-]+)")


def test_every_file_that_is_named_is_there_and_no_modules_import_each_other():
    contracts = tomllib.loads((BASE / "pyproject.toml").read_text("utf-8"))
    roots = contracts["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(*roots, exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 500
    # CycleError names the modules of a circle.
    tuple(TopologicalSorter(imports).static_order())
    listed = subprocess.run(["git", "ls-files"], cwd=BASE, capture_output=True, check=True)
    files = listed.stdout.decode().split("\n")
    paths = {*files, *(f"{folder}/" for file in files for folder in Path(file).parents)}
    names = [one or other for line in LINES for one, other in NAME.findall(line)]
    assert len(names) > 200
    assert [
        name for name in names if not any(f"/{path}".endswith(f"/{name}") for path in paths)
    ] == []

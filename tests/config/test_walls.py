"""What import-linter cannot see: commands of the marketplace's that other apps would call, what the
client, which is no package, imports, and what both sides of HTTP must have alike."""

import ast
import sys
from pathlib import Path

import pytest
from django.conf import settings

from annotation.models import judgments
from marketplace.hits import wages as marketplace_wages

BASE = Path(settings.BASE_DIR)
COMMANDS = {
    path.stem
    for path in (BASE / "marketplace/management/commands").glob("*.py")
    if path.stem != "__init__"
}
OUTSIDE = [
    path
    for path in BASE.glob("*/**/*.py")
    if path.relative_to(BASE).parts[0] not in ("marketplace", "tests", ".venv")
    and ".venv" not in path.parts
    # These measure the marketplace, and act as its operator.
    and not str(path.relative_to(BASE)).startswith("benchmarks/marketplace_")
]


def texts_of(path):
    """Every string in a module's code that could name a command; docstrings are sentences."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.slow
def test_no_app_calls_the_marketplaces_commands():
    assert {"create_requester", "create_worker", "deposit", "sweep_marketplace"} <= COMMANDS
    assert len(OUTSIDE) > 200
    calls = {str(path.relative_to(BASE)): texts_of(path) & COMMANDS for path in OUTSIDE}
    assert not {path: names for path, names in calls.items() if names}


def test_the_client_imports_httpx_and_pandas_alone():
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


def test_both_sides_of_http_count_the_same_work_as_a_persons():
    """Each has the constant of its own; with two, researchers and workers would read two wages of
    the same HITs."""
    assert marketplace_wages.LEAST_SECONDS_OF_A_PERSON == judgments.LEAST_SECONDS_OF_A_PERSON

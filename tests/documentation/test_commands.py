"""Every command of the documentation is one that there is, with options that it has.

Those of tutorials, how-tos, the README and the tutorial in a browser are run (test_pages_run.py,
tests/console/test_readme.py, test_tutorial_in_a_browser.py); others by a test of their own.
"""

import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from subprocess import run

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from tests.documentation.pages import ROOT, Printed, all_pages, commands, walked_pages

PAGES = [page for page in all_pages() if any(commands(page))]
# A reader's own name or number, an option that may be left out, a choice, "and so on".
PLACEHOLDER = re.compile(r"^([A-Z][A-Z_]*(\.\w+)?|.*…|\.\.\.|\[.*|.*\]|\|)$")
QUOTED = re.compile(r'"([a-z_]+)"')
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
RUN_ELSEWHERE = ("README.md", "tutorial.md")
# No test names them in quotes: they are tested by their functions, or run until they are stopped.
NOT_RUN = {"clear_workers", "password_link"}


def is_concrete(words):
    return not any(PLACEHOLDER.match(word) for word in words)


@cache
def parser_of(name):
    app = get_commands()[name]
    return load_command_class(app, name).create_parser("manage.py", name)


def fault(command):
    """Why a command cannot be what the page says; None where it can."""
    words = command.words
    if words[0] == "make":
        return _make_fault(words[1])
    if words[1] == "-m":
        return _module_fault(words[2], command.text)
    name = words[2]
    if name not in get_commands():
        return f"there is no command {name!r}"
    known = {option for each in parser_of(name)._actions for option in each.option_strings}
    if unknown := [option for option in OPTION.findall(command.text) if option not in known]:
        return f"{name} has no {', '.join(unknown)}"
    return _parse_fault(name, words[3:]) if is_concrete(words[3:]) and len(words) > 3 else None


def _make_fault(target):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return None if re.search(rf"(?m)^{target}:", makefile) else f"there is no make {target}"


def _module_fault(module, text):
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return f"there is no module {module}"
    origin = Path(spec.origin)
    files = origin.parent.glob("*.py") if origin.name == "__init__.py" else [origin]
    source = "".join(path.read_text("utf-8") for path in files)
    if "parse_options(" in source:
        source += (ROOT / "benchmarks/commands.py").read_text("utf-8")
    unknown = [option for option in OPTION.findall(text) if not _declares(source, option)]
    return f"{module} has no {', '.join(unknown)}" if unknown else None


def _declares(source, option):
    name = option.removeprefix("--").replace("-", "_")
    return f'"{option}"' in source or re.search(rf'\b{name}(": |=)\(', source) is not None


def _parse_fault(name, words):
    parser = parser_of(name)
    parser.called_from_command_line = False
    try:
        parser.parse_args(words)
    except CommandError as error:
        return str(error)
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_there_with_its_options(page):
    faults = [f"{each}\n  {why}" for each in commands(page) if (why := fault(each))]
    assert not faults, "\n".join(faults)


def management_commands(page):
    for command in commands(page):
        if command.words[1] == "manage.py":
            yield command.words[2]


def run_pages():
    elsewhere = [page for page in all_pages() if page.name in RUN_ELSEWHERE]
    return [*elsewhere, *walked_pages()]


def names_in_tests():
    files = (path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
    return {name for path in files for name in QUOTED.findall(path.read_text("utf-8"))}


def test_every_command_is_run_by_a_test_or_said_not_to_be():
    run = {name for page in run_pages() for name in management_commands(page)}
    named = {name for page in PAGES for name in management_commands(page)}
    assert named - run - names_in_tests() == NOT_RUN


def test_a_wrong_command_is_a_fault():
    def why(text):
        return fault(Printed(ROOT / "README.md", 1, text))

    assert why("python manage.py agreemnt FILE")
    assert why("python manage.py agreement FILE --levl nominal")
    assert why("python manage.py agreement a.csv --item i --annotator a --value v --level metric")
    assert why("python manage.py agreement a.csv --item i --annotator a --value v")
    assert why("python -m benchmarks.nothing")
    assert why("python -m benchmarks.coverage --parts alpha")
    assert why("make everything")
    assert not why("python manage.py agreement FILE --item C [--item C ...] --level LEVEL")
    assert not why("python -m benchmarks.coverage --part alpha")


# Those that take options print help; others begin with what they measure.
PROGRAM = re.compile(r"(ArgumentParser|parse_options)\((?s:.*)__name__ == .__main__")
# Each in a process of its own, as a reader starts it; what all of them import is imported once.
START = """
import os, runpy, sys
import numpy, pandas, scipy.stats

for module in sys.argv[1:]:
    child = os.fork()
    if not child:
        sys.argv[:] = [module, "--help"]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif os.waitpid(child, 0)[1]:
        raise SystemExit(f"{module} does not start")
"""


@pytest.mark.slow
def test_every_benchmark_starts():
    sources = {path: path.read_text("utf-8") for path in (ROOT / "benchmarks").rglob("*.py")}
    programs = [path for path, source in sources.items() if PROGRAM.search(source)]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in programs]
    started = run([sys.executable, "-c", START, *names], cwd=ROOT, capture_output=True, check=False)
    assert names
    assert started.returncode == 0, started.stderr.decode()

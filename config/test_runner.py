"""`manage.py test` and `make test`: pytest over the rooms, each in a process of its own.

A room's tests start from a fresh interpreter and database, so none leans on what another
room left behind. What failed is told again at the end, and the last line says how many ran.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOMS = (
    ("tests/stats", "stats"),
    ("tests/annotation",),
    ("tests/metrics", "metrics/scorers"),
    ("tests/validation", "tests/replications"),
    ("tests/hits",),
    ("tests/marketplace",),
    ("tests/console", "tests/config"),
)
OUTCOMES = ("passed", "failed", "skipped")
STORY_LINES = 25


class PytestRunner:
    """Django's test runner interface over pytest."""

    def __init__(self, verbosity: int = 1, failfast: bool = False, **kwargs: Any) -> None:
        self.options = ["-x"] if failfast else []
        self.options += ["-v"] if verbosity > 1 else []

    def run_tests(self, test_labels: list[str], **kwargs: Any) -> int:
        """Run the tests named (all of them where none is) and return how many runs failed."""
        return run_rooms([tuple(test_labels)] if test_labels else ROOMS, self.options)


def run_rooms(rooms: Iterable[tuple[str, ...]], options: list[str]) -> int:
    """Run pytest once for each group of paths; return how many of the runs failed."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    failed_runs = 0
    for paths in rooms:
        code, report = _run_room(paths, options)
        failed_runs += code != 0
        told = [_story(case) for case in report if _outcome(case) == "failed"]
        if code and not told:
            told = [f"pytest {' '.join(paths)} ended with {code} outside of any test; see above"]
            counts["failed"] += 1
        counts.update(map(_outcome, report))
        failures += told
    sys.stdout.write("".join(f"\nFAILED {story}\n" for story in failures))
    sys.stdout.write(", ".join(f"{counts[name]} {name}" for name in OUTCOMES) + "\n")
    return failed_runs


def _run_room(paths: tuple[str, ...], options: list[str]) -> tuple[int, list[ElementTree.Element]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *options, *paths]
        code = subprocess.run(command, check=False).returncode
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    return code, cases


def _outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def _story(case: ElementTree.Element) -> str:
    """A failed test's name and the end of what pytest said of it."""
    told = [part.text or "" for part in case if part.tag in ("failure", "error")]
    lines = "\n".join(told).splitlines()[-STORY_LINES:]
    return "\n    ".join([f"{case.get('classname')}::{case.get('name')}", *lines])


if __name__ == "__main__":
    named = tuple(sys.argv[1:])
    sys.exit(1 if run_rooms([named] if named else ROOMS, []) else 0)

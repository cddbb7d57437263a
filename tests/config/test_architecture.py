"""That ARCHITECTURE.md leads to files that are there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINES = (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()
NAME = re.compile(r"`([\w./-]+(?:\.py|\.js|\.md|\.json|\.html|/))`|\((docs/[\w./-]+)")
APP = re.compile(r"`(\w+)[/`]")

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def paths():
    """Every file that git knows, and every folder that holds one."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True)
    files = listed.stdout.decode().split("\n")
    return {*files, *(f"{folder}/" for file in files for folder in Path(file).parents)}


def is_there(name, apps, paths):
    """Whether it is a path, or the name of a file in one of the apps that the line is about."""
    below = [path for path in paths if path.endswith(f"/{name}")]
    return name in paths or any(not apps or path.split("/")[0] in apps for path in below)


def test_every_file_that_is_named_is_there(paths):
    wrong = []
    for line in LINES:
        apps = set(APP.findall(line)) & {path.split("/")[0] for path in paths}
        names = [one or other for one, other in NAME.findall(line)]
        wrong += [name for name in names if not is_there(name, apps, paths)]
    assert not wrong

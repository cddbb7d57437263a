"""Rows of measured coverage name a source that anybody can run again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.coverage import ROOT, ROWS, is_in_history, require_published, stored_rows


def git(root: Path, *words: str) -> None:
    named = ["-c", "user.name=Rosa", "-c", "user.email=rosa@example.org"]
    subprocess.run(["git", *named, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "source.py").write_text("one = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "One")
    return tmp_path


def test_a_commit_of_main_may_be_measured_and_nothing_else(checkout: Path) -> None:
    require_published(checkout)
    (checkout / "source.py").write_text("one = 2\n")
    with pytest.raises(SystemExit):
        require_published(checkout)
    git(checkout, "checkout", "--quiet", "-b", "draft")
    git(checkout, "commit", "--quiet", "--all", "--message", "Two")
    with pytest.raises(SystemExit):
        require_published(checkout)


def test_rows_name_commits_of_this_history() -> None:
    sources = {row.source for row in stored_rows(ROWS).values()}
    missing = sorted(one for one in sources if not is_in_history(one, root=ROOT))
    command = ["git", "rev-parse", "--is-shallow-repository"]
    shallow = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if len(missing) == len(sources) or shallow.stdout.strip() != "false":
        pytest.skip("this copy of the source has no history, or not all of it")
    assert missing == []

"""docs/faults.md by sections, and what a table was made from."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

DOCUMENT = Path("docs/faults.md")


def replace_section(heading: str, lines: Sequence[str]) -> None:
    """Write a section with this heading in place of what it was, or after all others."""
    first, *sections = DOCUMENT.read_text().split("\n## ")
    texts = {text.partition("\n")[0]: text.partition("\n")[2].strip() for text in sections}
    texts[heading] = "\n".join(lines)
    parts = [first.strip(), *(f"## {name}\n\n{text}" for name, text in texts.items())]
    DOCUMENT.write_text("\n\n".join(parts) + "\n")


def source() -> str:
    """The commit, and the tree of `work/` in it, which names its content whatever the commit is
    called: `git rev-parse COMMIT:work` finds it again."""
    commit = _git("describe", "--always", "--dirty")
    return f"commit {commit} (work/ is tree {_git('rev-parse', '--short', 'HEAD:work')})"


def _git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], text=True).strip()

"""The list of the records of decisions in docs/adr."""

from __future__ import annotations

from pathlib import Path

INTRODUCTION = """# Decisions

What took thought, a page each: context, decision, consequences.

"""


def decisions_page(root: Path) -> str:
    lines = []
    for path in sorted((root / "docs" / "adr").glob("[0-9]*.md")):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        number, _, name = title.partition(". ")
        lines.append(f"- {number}: [{name}]({path.name})")
    return INTRODUCTION + "\n".join(lines) + "\n"

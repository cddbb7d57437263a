"""docs/faults.md, of which each benchmark here writes its own section."""

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

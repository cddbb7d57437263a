"""The tutorial as a program: its Markdown says what to do, and a browser does it.

Every name in bold is a control that an instruction works, or a form's field; every sentence that
begins with a verb of `INSTRUCTIONS` is done. A picture is taken where the text has it.
"""

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
FOLDER = PAGE.parent / "tutorial"
MANIFEST = FOLDER / "pictures.json"
BOLD, CODE, QUOTED = r"\*\*(.+?)\*\*", r"`(.+?)`", "“(.+?)”"
INSTRUCTIONS = {
    "press": rf"\b[Pp]ress {BOLD}",
    "write": rf"\b[Ww]rite {CODE} into {BOLD}",
    "choose": rf"\b[Cc]hoose {BOLD} under {BOLD}",
    "tick": rf"\b[Tt]ick {BOLD}",
    "upload": rf"\b[Cc]hoose the file {CODE} under {BOLD}",
    "log_in": rf"\b[Ss]ign in as {CODE}",
    "open_new": rf"\bIn a private window, open {CODE}",
    "open": rf"\bOpen {CODE}",
    "go_back": r"\bBack in your first window",
    "answer": r"\bAnswer every question",
    "run": r"(?m)^    (python .+|make .+)$",
    "read": rf"\b[Yy]ou read {QUOTED}",
    "download": rf"\b[Dd]ownload {BOLD}",
    "picture": r"!\[([^\]]+)\]\(tutorial/([\w-]+\.webp)\)",
}


@dataclass(frozen=True)
class Instruction:
    """One thing to do, and where in the text of its step it stands."""

    verb: str
    words: tuple[str, ...]
    position: int


@dataclass(frozen=True)
class Step:
    title: str
    text: str

    @property
    def instructions(self):
        """In the order of the text; lines of a paragraph are one."""
        text = joined(self.text)
        found = [
            Instruction(verb, match.groups(), match.start())
            for verb, pattern in INSTRUCTIONS.items()
            for match in re.finditer(pattern, text)
        ]
        return sorted(found, key=lambda one: one.position)

    @property
    def pictures(self):
        return [one.words[1] for one in self.instructions if one.verb == "picture"]

    @property
    def digest(self):
        done = [(one.verb, one.words) for one in self.instructions]
        return sha256(json.dumps(done, ensure_ascii=False).encode()).hexdigest()[:16]


def joined(text):
    """The text with the lines of each paragraph joined; code stays as it is."""
    return re.sub(r"(?<=\S)\n(?=[^\s!])", " ", text)


def steps():
    parts = re.split(r"(?m)^## (\d+\. .+)$", PAGE.read_text())
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        yield Step(title, re.split(r"(?m)^## ", text)[0])


def names_in_bold(step):
    return re.findall(BOLD, joined(step.text))


def do(step, reader):
    for instruction in step.instructions:
        action = getattr(reader, instruction.verb)
        action(*instruction.words)


def write_manifest(digests):
    content = {
        name: {"step": digest, "picture": picture_digest(name)} for name, digest in digests.items()
    }
    MANIFEST.write_text(json.dumps(content, indent=1) + "\n")


def picture_digest(name):
    return sha256((FOLDER / name).read_bytes()).hexdigest()[:16]

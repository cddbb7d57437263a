import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
IN_ROOT = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
# Pages that are run from top to bottom, on a site as `make run` leaves it.
WALKED = ("studies/*.md", "how-to/*.md")
# Not run from top to bottom: it needs the benchmark's files, which are not ours to ship, and
# tests/replications runs its commands where they are.
NEEDS_DATA = ("lmstyle-again.md",)
CONTINUED = re.compile(r"\\\n[ \t]*")
# A synopsis goes on, indented further, with more options.
GOING_ON = re.compile(r"(?<!\\)\n {8,}(?=--|\[--)")
FENCED = re.compile(r"(?m)^( *)```(\w*)[^\n]*\n(.*?)^\1```\s*$", re.DOTALL)
INDENTED = re.compile(r"(?m)^ {4,}\S.*$")
INLINE = re.compile(r"`((?:python (?:manage\.py|-m) |make )[^`]*)`")
BEGINS = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?(python (?:manage\.py|-m) .+|make \w.*)$")
IN_A_CONTAINER = re.compile(r"^(docker compose .* exec (?:--no-TTY )?\w+ )(python manage\.py .*)$")


def all_pages():
    return [*(ROOT / name for name in IN_ROOT), *sorted(DOCS.glob("**/*.md"))]


def walked_pages():
    found = (path for pattern in WALKED for path in sorted(DOCS.glob(pattern)))
    return [path for path in found if path.name not in ("index.md", *NEEDS_DATA)]


@dataclass(frozen=True)
class Printed:
    """A command where it stands: on which page, at which line."""

    page: Path
    line: int
    text: str

    @property
    def words(self):
        """As a shell splits it, without what is said after it."""
        return shlex.split(self.text, comments=True)

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}: {self.text}"


def commands(page):
    text = page.read_text("utf-8")
    for number, line in _lines(text):
        stripped = line.strip()
        if inside := IN_A_CONTAINER.match(stripped):
            stripped = inside[2]
        if match := BEGINS.match(stripped):
            yield Printed(page, number, match[1])
    for match in INLINE.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        yield Printed(page, number, " ".join(match[1].split()))


def _lines(text):
    """Lines of code with their numbers; what goes on after a backslash is one."""
    fenced = {
        text.count("\n", 0, match.start(3)) + 1 + offset: line
        for match in FENCED.finditer(text)
        if match[2] in ("", "sh", "bash", "console")
        for offset, line in _joined(match[3])
    }
    indented = {1 + offset: line for offset, line in _joined(GOING_ON.sub(" ", text))
                if INDENTED.match(line)}  # fmt: skip
    yield from sorted((indented | fenced).items())


def _joined(text):
    """Lines from 0; the first of several that a backslash joins stands for all of them."""
    number = 0
    for line in CONTINUED.sub("\0", text).split("\n"):
        yield number, line.replace("\0", " ")
        number += 1 + line.count("\0")


@dataclass
class Block:
    line: int
    commands: list[str] = field(default_factory=list)
    printed: str | None = None
    span: tuple[int, int] | None = None
    """Where in the page that stands."""


def blocks(page):
    """The page's blocks of commands, in order; a `text` block after one is what it prints."""
    text = page.read_text("utf-8")
    found = []
    end = -1
    for match in FENCED.finditer(text):
        if match[2] == "sh":
            lines = (line.strip() for _, line in _joined(match[3]))
            number = text.count("\n", 0, match.start()) + 1
            found.append(Block(number, [line for line in lines if line and line[0] != "#"]))
            end = match.end()
        elif match[2] == "text" and found and not text[end : match.start()].strip():
            found[-1].printed, found[-1].span = match[3], match.span(3)
    return found

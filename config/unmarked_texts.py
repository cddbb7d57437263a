"""Finds words in templates that a translator would never see, since they are not marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

# A marked text, or a tag or variable of Django's; what stands in its place has no letters.
TAGS = re.compile(
    r"\{%\s*blocktranslate\b.*?\{%\s*endblocktranslate\s*%\}"
    r"|\{%\s*comment\b.*?\{%\s*endcomment\s*%\}|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}",
    re.DOTALL,
)
# A plain text as a filter's argument: `{{ name|default:"nobody" }}`.
ARGUMENT = re.compile(
    r"\{\{[^{}]*\|(?:default|default_if_none|yesno|pluralize):[\"'][^\"']*[A-Za-z]"
)
READ_ALOUD = {
    "title", "alt", "placeholder", "label", "data-label", "aria-label", "aria-description",
    "aria-valuetext", "aria-roledescription",
}  # fmt: skip
# Not words of a language: names, formats, units.
NAMES = re.compile(r"\b(Assay|UTC|USD|CSV|SVG|PNG|PDF|JSON|JSONL|Parquet|qrels)\b")
SILENT = {"script", "style", "code"}
VOID = {"meta", "link", "img", "input", "br", "hr", "source", "track", "wbr", "col"}


@dataclass(frozen=True)
class UnmarkedText:
    """Words in a template that are in no tag for translation."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.text}" is not marked for translation.'


def unmarked_texts(directory: Path) -> Iterator[UnmarkedText]:
    """All of them in the HTML templates of a directory."""
    for path in sorted(directory.rglob("*.html")):
        for line, text in unmarked_in(path.read_text(encoding="utf-8")):
            yield UnmarkedText(path.relative_to(directory.parent), line, text)


def unmarked_in(source: str) -> list[tuple[int, str]]:
    """Lines and words of one template."""
    arguments = [(source.count("\n", 0, m.start()) + 1, m[0]) for m in ARGUMENT.finditer(source)]
    if "<" not in source:  # attributes of a tag that is elsewhere
        return arguments
    parser = _Words()
    parser.feed(TAGS.sub(lambda tag: "\n" * tag[0].count("\n") + "\N{MIDDLE DOT}", source))
    parser.close()
    return sorted(arguments + parser.texts)


class _Words(HTMLParser):
    """Reads the texts of a page that are seen or heard."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[tuple[int, str]] = []
        self.silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_silent = tag in SILENT or ("translate", "no") in attrs
        if (self.silent or is_silent) and tag not in VOID:
            self.silent.append(tag)
        for name, value in attrs:
            if name in READ_ALOUD:
                self._read(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in READ_ALOUD:
                self._read(value or "")

    def handle_endtag(self, tag: str) -> None:
        if self.silent and tag not in VOID:
            self.silent.pop()

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self._read(data)

    def _read(self, text: str) -> None:
        words = " ".join(text.split()).strip("\N{MIDDLE DOT} ")
        if re.search("[A-Za-z]{2}|[A-Za-z] ", NAMES.sub("", words)):
            self.texts.append((self.getpos()[0], words[:80]))

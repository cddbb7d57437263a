"""Collects the texts of templates and code into locale/ for translators (`make messages`).

docs/translation.md says how texts are marked. Babel reads the code, and the templates as Django
turns them into code; no program outside Python is needed.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from io import BytesIO, StringIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

BASE_DIR = Path(__file__).resolve().parent.parent
CODE_DIRS = (
    "accounts", "annotation", "config", "console", "hits", "marketplace", "metrics",
    "presentation", "replications", "results", "retrieval", "simulation", "validation", "work",
)  # fmt: skip
# What a call of each name holds: the positions of its message, plural and context.
KEYWORDS: dict[str, tuple[int | tuple[int, str], ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
# Scorers know no Django, so that what a page says of them is not marked: the second and third
# values of an entry in their registry.
SCORERS = BASE_DIR / "metrics" / "scorers" / "registry.py"
ENTRY_TEXTS = (2, 3)
HEADER = """\
# Texts of Assay. `make messages` keeps this file; docs/translation.md says how.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Language: {language}\\n"
"Plural-Forms: {plural_forms}\\n"

"""


def main() -> int:
    paths = sorted((BASE_DIR / "locale").glob("*/LC_MESSAGES"))
    if not paths:
        print("No language yet. Make a folder such as locale/de/LC_MESSAGES.", file=sys.stderr)  # noqa: T201
        return 1
    messages = collected_messages()
    for path in paths:
        write_catalogue(path / "django.po", messages)
    return 0


def collected_messages() -> Catalog:
    catalogue = Catalog(locale="en", charset="utf-8", fuzzy=False)
    for path in sources():
        name = path.relative_to(BASE_DIR).as_posix()
        for text, comments, context in _messages_of(path):
            catalogue.add(text, locations=[(name, 0)], auto_comments=comments, context=context)
    return catalogue


def write_catalogue(path: Path, messages: Catalog) -> None:
    catalogue = _updated(path, messages)
    path.write_text(_as_text(catalogue), encoding="utf-8")
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    path.with_suffix(".mo").write_bytes(compiled.getvalue())


def template_folders() -> list[Path]:
    return [BASE_DIR / "templates", *sorted(BASE_DIR.glob("*/templates"))]


def sources() -> Iterator[Path]:
    for folder in template_folders():
        yield from sorted(folder.rglob("*.html"))
        yield from sorted(folder.rglob("*.txt"))
    for name in CODE_DIRS:
        yield from sorted(p for p in (BASE_DIR / name).rglob("*.py") if "migrations" not in p.parts)


def _messages_of(path: Path) -> Iterator[tuple[str | tuple[str, ...], list[str], str | None]]:
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        # In brackets, since the text around its tags is indented as no code is.
        source = f"({templatize(source)}\n)"
    code = BytesIO(source.encode())
    options = {"encoding": "utf-8"}
    for match in extract("python", code, KEYWORDS, ["Translators:"], options):
        yield match[1:]
    if path == SCORERS:
        for position in ENTRY_TEXTS:
            code.seek(0)
            for match in extract("python", code, {"Entry": (position,)}, (), options):
                yield match[1:]


def _updated(path: Path, messages: Catalog) -> Catalog:
    language = path.parent.parent.name
    if path.exists():
        with path.open("rb") as file:
            catalogue = read_po(file, locale=language)
    else:
        catalogue = Catalog(locale=language, charset="utf-8", fuzzy=False)
    catalogue.update(messages, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    return catalogue


def _as_text(catalogue: Catalog) -> str:
    written = BytesIO()
    write_po(written, catalogue, width=100, omit_header=True, include_lineno=False)
    header = StringIO(HEADER.format(language=catalogue.locale, plural_forms=catalogue.plural_forms))
    return header.getvalue() + written.getvalue().decode().strip() + "\n"


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
SILENT = {"script", "style", "code", "kbd"}
VOID = {"meta", "link", "img", "input", "br", "hr", "source", "track", "wbr", "col"}


def unmarked_texts(directory: Path) -> Iterator[str]:
    for path in sorted(directory.rglob("*.html")):
        for line, text in unmarked_in(path.read_text(encoding="utf-8")):
            place = f"{path.relative_to(directory.parent)}:{line}"
            yield f'{place}: "{text}" is not marked for translation.'


def unmarked_in(source: str) -> list[tuple[int, str]]:
    arguments = [(source.count("\n", 0, m.start()) + 1, m[0]) for m in ARGUMENT.finditer(source)]
    if "<" not in source:  # attributes of a tag that is elsewhere
        return arguments
    parser = _Words()
    parser.feed(TAGS.sub(lambda tag: "\n" * tag[0].count("\n") + "\N{MIDDLE DOT}", source))
    parser.close()
    return sorted(arguments + parser.texts)


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[tuple[int, str]] = []
        self.silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (self.silent or tag in SILENT or ("translate", "no") in attrs) and tag not in VOID:
            self.silent.append(tag)
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


if __name__ == "__main__":
    raise SystemExit(main())

"""Collects the texts of templates and code into locale/ for translators (`make messages`).

docs/translation.md says how texts are marked. Babel reads the code, and the templates as Django
turns them into code; no program outside Python is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

BASE_DIR = Path(__file__).resolve().parent.parent
LOCALE_DIR = BASE_DIR / "locale"
SOURCE_LANGUAGE = "en"
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
    """Bring the catalogue of each language up to date."""
    paths = sorted(LOCALE_DIR.glob("*/LC_MESSAGES"))
    if not paths:
        print("No language yet. Make a folder such as locale/de/LC_MESSAGES.", file=sys.stderr)  # noqa: T201
        return 1
    messages = collected_messages()
    for path in paths:
        write_catalogue(path / "django.po", messages)
    return 0


def collected_messages() -> Catalog:
    """Every marked text of templates and code, with the files it is in."""
    catalogue = Catalog(locale=SOURCE_LANGUAGE, charset="utf-8", fuzzy=False)
    for path in sources():
        name = path.relative_to(BASE_DIR).as_posix()
        for text, comments, context in _messages_of(path):
            catalogue.add(text, locations=[(name, 0)], auto_comments=comments, context=context)
    return catalogue


def write_catalogue(path: Path, messages: Catalog) -> None:
    """Bring a language's catalogue up to date and compile it for Django."""
    catalogue = _updated(path, messages)
    path.write_text(_as_text(catalogue), encoding="utf-8")
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    path.with_suffix(".mo").write_bytes(compiled.getvalue())


def _language(path: Path) -> str:
    return path.parent.parent.name


def template_folders() -> list[Path]:
    """The folders of templates that all apps share, and of each app."""
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
    """A language's catalogue with the present messages and the translations it has of them."""
    language = _language(path)
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


if __name__ == "__main__":
    raise SystemExit(main())

"""Collects the texts of templates and code into locale/, and checks that nothing is missing.

    python -m config.catalogues           write the catalogues (`make messages`)
    python -m config.catalogues --check   say what is missing (`make check`)

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

from config.unmarked_texts import unmarked_texts

BASE_DIR = Path(__file__).resolve().parent.parent
LOCALE_DIR = BASE_DIR / "locale"
SOURCE_LANGUAGE = "en"
CODE_DIRS = (
    "accounts", "annotation", "config", "console", "hits", "marketplace", "metrics",
    "presentation", "replications", "retrieval", "simulation", "validation", "work",
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


def main(arguments: list[str]) -> int:
    """Write the catalogues, or say what is missing in them."""
    messages = collected_messages()
    if "--check" not in arguments:
        for path in _catalogue_paths():
            write_catalogue(path, messages)
        return 0
    problems = [problem for path in _catalogue_paths() for problem in _problems_of(path, messages)]
    problems += [str(text) for text in unmarked_texts(BASE_DIR / "templates")]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")  # noqa: T201
    return 1 if problems else 0


def collected_messages() -> Catalog:
    """Every marked text of templates and code, with the files it is in."""
    catalogue = Catalog(locale=SOURCE_LANGUAGE, charset="utf-8", fuzzy=False)
    for path in sources():
        name = path.relative_to(BASE_DIR).as_posix()
        for text, comments, context in _messages_of(path):
            catalogue.add(text, locations=[(name, 0)], auto_comments=comments, context=context)
    return catalogue


def write_catalogue(path: Path, messages: Catalog) -> None:
    """Bring a language's catalogue up to date; a translation is compiled for Django, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    catalogue = _updated(path, messages)
    path.write_text(_as_text(catalogue), encoding="utf-8")
    if _language(path) != SOURCE_LANGUAGE:
        compiled = BytesIO()
        write_mo(compiled, catalogue)
        path.with_suffix(".mo").write_bytes(compiled.getvalue())


def _problems_of(path: Path, messages: Catalog) -> Iterator[str]:
    name = path.relative_to(BASE_DIR)
    catalogue = _updated(path, messages)
    if not path.exists() or path.read_text(encoding="utf-8") != _as_text(catalogue):
        yield f"{name} is not up to date: run `make messages` and commit it."
    if _language(path) == SOURCE_LANGUAGE:
        return
    for message in catalogue:
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        if message.id and (message.fuzzy or not all(texts)):
            yield f"{name}: no translation of {message.id!r}."
        for error in message.check(catalogue):
            yield f"{name}: {message.id!r}: {error}"


def _catalogue_paths() -> list[Path]:
    languages = {SOURCE_LANGUAGE, *(path.name for path in LOCALE_DIR.iterdir() if path.is_dir())}
    return [LOCALE_DIR / name / "LC_MESSAGES" / "django.po" for name in sorted(languages)]


def _language(path: Path) -> str:
    return path.parent.parent.name


def sources() -> Iterator[Path]:
    yield from sorted((BASE_DIR / "templates").rglob("*.html"))
    yield from sorted((BASE_DIR / "templates").rglob("*.txt"))
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
    if path.exists() and language != SOURCE_LANGUAGE:
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
    raise SystemExit(main(sys.argv[1:]))

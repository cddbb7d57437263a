"""The documentation as a running site has it: docs/ of its own version, without a build and without
the Internet. Formulas and what was measured are in prepared.json (`prepared.py`)."""

import json
import mimetypes
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from config.documentation.markdown import (
    CODE_IN_TABLE,
    REPOSITORY_FILES,
    as_rendered,
    repository_files,
)
from config.documentation.reference import reference_pages

SITE = Path(__file__).resolve().parents[2]
DOCS = SITE / "docs"
INDEX = "index.md"
PREPARED = Path(__file__).with_name("prepared.json")
MOST_PAGES = 512
# Pages' marks for their tests, and for sentences that a build writes.
COMMENT = re.compile(r"^<!-- .*? -->$", re.MULTILINE)
# Neither a space inside, nor a digit behind, as sums of money have.
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(?! )([^$\n]*[^$\s])\$(?!\d)", re.DOTALL)
ROW = re.compile(r"^\|.*$", re.MULTILINE)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
# The id that a generated page gives a heading, as MkDocs reads it.
NAMED = re.compile(r"\s*\{ *#([\w-]+) *\}$")
ELSEWHERE = ("http:", "https:", "mailto:")


@dataclass(frozen=True)
class DocumentationPage:
    title: str
    html: SafeString


@lru_cache(maxsize=MOST_PAGES)  # an address may be anything
def documentation_page(path: str) -> DocumentationPage | None:
    name = path.strip("/")
    for source in (f"{name}.md", posixpath.join(name, INDEX)):
        text = _source(source)
        if text is not None:
            return _page(text, source)
    return None


def documentation_file(path: str) -> Path | None:
    return _files().get(path)


def contents() -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (group, [(title, page_address(source)) for title, source in _titled(entries)])
        for each in _configuration()["nav"]
        for group, entries in each.items()
    ]


def page_address(source: str) -> str:
    name = source.removesuffix(".md")
    name = "" if name == "index" else name.removesuffix("/index")
    if not name:
        return reverse("documentation")
    return reverse("documentation-page", args=[f"{name}/"])


@cache
def _files() -> Mapping[str, Path]:
    # By path, so that an address is looked up and never opened.
    files = (path for path in DOCS.rglob("*") if path.is_file())
    beside = {path: SITE / name for name, path in REPOSITORY_FILES.items()}
    return beside | {path.relative_to(DOCS).as_posix(): path for path in files}


def _source(name: str) -> str | None:
    if (path := _files().get(name)) is not None:
        return path.read_text("utf-8")
    if not _may_be_generated(name):
        return None
    copied = repository_files(SITE).get(name)
    return _reference_pages().get(name) if copied is None else copied


def _may_be_generated(name: str) -> bool:
    return name.startswith("reference/") or name in _NOT_IN_DOCS


@cache
def _reference_pages() -> Mapping[str, str]:
    # Making them takes ten seconds where little of the site is loaded yet.
    return reference_pages(SITE)


_NOT_IN_DOCS = {
    "adr/index.md",
    "apps.md",
    "architecture.md",
    "changelog.md",
    "contributing.md",
    "security.md",
}


def _page(text: str, source: str) -> DocumentationPage:
    text = COMMENT.sub(_measured, as_rendered(text, source))
    # Here, as on forges, a bar ends a cell in code, too; for mkdocs it is written without its sign.
    text = ROW.sub(
        lambda row: CODE_IN_TABLE.sub(lambda code: code[0].replace("|", "\\|"), row[0]), text
    )
    tokens = _markdown().parse(text)
    titles = (one.content for before, one in pairwise(tokens) if before.tag == "h1")
    html = _markdown().renderer.render(tokens, _markdown().options, {"source": source})
    return DocumentationPage(next(titles, source), SafeString(html))  # HTML in the text is escaped


@cache
def _prepared() -> dict[str, dict[str, str]]:
    prepared: dict[str, dict[str, str]] = json.loads(PREPARED.read_text("utf-8"))
    return prepared


def _measured(mark: re.Match[str]) -> str:
    return _prepared()["measured"].get(mark[0], "")


def formulas_of(text: str) -> Iterator[str]:
    for token in _markdown().parse(text):
        yield from (one.content for one in token.children or () if one.type == "formula")


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.inline.ruler.before("escape", "formula", _formula)
    markdown.add_render_rule("formula", _drawn_formula)
    markdown.add_render_rule("heading_open", _open_heading)
    markdown.add_render_rule("link_open", _open_link)
    markdown.add_render_rule("image", _picture)
    for name in ("th_open", "td_open"):
        markdown.add_render_rule(name, _open_cell)
    markdown.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>\n')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return markdown


def _formula(state: StateInline, silent: bool) -> bool:
    # LaTeX as it is written: its underscores are no emphasis.
    match = FORMULA.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("formula", "math", 0).content = match[0]
    state.pos = match.end()
    return True


def _drawn_formula(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    formula = tokens[index].content
    drawn = _prepared()["formulas"].get(
        formula, f"<code>{escape(formula.strip('$'), quote=False)}</code>"
    )
    # One of its own line may be wider than a telephone, and is scrolled by itself.
    return (
        f'<span class="formula" tabindex="0">{drawn}</span>' if formula.startswith("$$") else drawn
    )


def _open_heading(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    heading = tokens[index + 1]
    named = NAMED.search(heading.content)
    tokens[index].attrSet("id", named[1] if named else slug(heading.content))
    if named and heading.children:
        heading.children[-1].content = NAMED.sub("", heading.children[-1].content)
    return str(renderer.renderToken(tokens, index, options, environment))


def slug(heading: str) -> str:
    """What a link to the heading names, as forges and the built site have it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def _open_link(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    token = tokens[index]
    target = _address(str(token.attrGet("href") or ""), environment["source"])
    if target is None:
        del token.attrs["href"]
    else:
        token.attrSet("href", target)
    return str(renderer.renderToken(tokens, index, options, environment))


def _picture(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    token = tokens[index]
    token.attrSet("src", _address(str(token.attrGet("src") or ""), environment["source"]) or "")
    return str(renderer.image(tokens, index, options, environment))


def _open_cell(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    # Without a style of its own, which the content security policy refuses.
    if "right" in str(tokens[index].attrs.pop("style", "")):
        tokens[index].attrSet("class", "number")
    return str(renderer.renderToken(tokens, index, options, environment))


def _address(link: str, source: str) -> str | None:
    if link.startswith((*ELSEWHERE, "#")):
        return link
    name, sign, anchor = link.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
    if path in _files() and not path.endswith(".md"):
        return reverse("documentation-page", args=[path])
    if path in _files() or _may_be_generated(path):
        return f"{page_address(path)}{sign}{anchor}"
    return None


class _Configuration(yaml.SafeLoader):
    """mkdocs.yml, whose tags for Python and for the environment say nothing here."""


_Configuration.add_multi_constructor("", lambda *_: None)


@cache
def _configuration() -> dict[str, Any]:
    configuration: dict[str, Any] = yaml.load(
        (SITE / "mkdocs.yml").read_text("utf-8"), Loader=_Configuration
    )  # a safe one
    return configuration


def _titled(entries: Sequence[str | dict[str, str]]) -> list[tuple[str, str]]:
    # Titles and sources; one without a title has that of its page, which is not rendered for it:
    # rendering them all takes seconds, and the first page lists them.
    pairs = (next(iter(e.items())) if isinstance(e, dict) else ("", e) for e in entries)
    return [(title or _title_of(source), source) for title, source in pairs]


@cache
def _title_of(source: str) -> str:
    title = TITLE.search(_source(source) or "")
    return title[1].strip() if title else source


PICTURES = ("image/png", "image/svg+xml", "image/webp")


@require_safe
def documentation(request: HttpRequest) -> HttpResponse:
    """Access: signed in."""
    return render(
        request, "documentation/page.html", {"page": documentation_page(""), "contents": contents()}
    )


@require_safe
def page_or_file(request: HttpRequest, path: str) -> HttpResponse:
    """Access: signed in. Files of the documentation's folder alone, which are looked up by name."""
    if page := documentation_page(path):
        return render(request, "documentation/page.html", {"page": page})
    file = documentation_file(path)
    if file is None:
        raise Http404(_("There is no such page of the documentation."))
    kind = mimetypes.guess_type(file.name)[0]
    is_picture = kind in PICTURES
    response = HttpResponse(
        file.read_bytes(), content_type=kind if is_picture else "application/octet-stream"
    )
    if not is_picture:
        response.headers["Content-Disposition"] = (
            content_disposition_header(as_attachment=True, filename=file.name) or "attachment"
        )
    return response

"""Links of pages lead to files and headings that are there, as a forge shows them.

The site's own are followed by `make docs`, which is strict.
"""

import re
from functools import cache

import pytest

from config.documentation.site_pages import slug
from tests.documentation.pages import ROOT, all_pages
from tests.notebooks import FOLDER, MOST_BYTES, code_cells, notebooks

PAGES = all_pages()
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
CODE = re.compile(r"(?ms)^```.*?^```|`[^`\n]*`|^ {4,}\S[^\n]*$")
HEADING = re.compile(r"(?m)^#{1,6} (.+?)(?: \{ ?#([\w-]+) ?\})?$")
ELSEWHERE = ("http:", "https:", "mailto:")
# Made when the site is built.
MADE = ("demo.md", "demo/report.html")


@cache
def anchors(page):
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
    return {identifier or slug(heading) for heading, identifier in HEADING.findall(text)}


def links(page):
    text = CODE.sub(lambda match: match[0] if match[0][:1] == " " else "", page.read_text("utf-8"))
    return [link for link in LINK.findall(text) if not link.startswith(ELSEWHERE)]


def problem(page, link):
    address, _, anchor = link.partition("#")
    target = (page.parent / address).resolve() if address else page
    if (page.name, address) == MADE:
        return None
    if not target.exists():
        return f"{link}: there is no {address}"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{link}: {target.name} has no heading #{anchor}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert [why for link in links(page) if (why := problem(page, link))] == []


def test_a_link_to_nothing_is_noticed():
    page = ROOT / "README.md"
    assert problem(page, "docs/nothing.md")
    assert problem(page, "docs/operations.md#nothing")
    assert not problem(page, "docs/operations.md#keys")
    assert len([link for each in PAGES for link in links(each)]) > 300


@pytest.mark.parametrize("name", [path.name for path in notebooks()])
def test_a_notebook_shows_what_its_cells_did_in_order(name):
    """As `make notebooks` ran them."""
    cells = code_cells(FOLDER / name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds <= {"execute_result", "display_data", "stream"}
    assert (FOLDER / name).stat().st_size < MOST_BYTES

import json
import re
from pathlib import PurePosixPath
from urllib.parse import urldefrag

import pytest
from django.test import Client
from django.urls import reverse

from config.documentation import site_pages
from config.documentation.prepared import prepared
from config.documentation.site_pages import DOCS, contents, documentation_page
from console.templatetags.documentation import PAGES, help_address
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.documentation.test_links import links

pytestmark = pytest.mark.django_db
SOURCES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def anchors(html):
    return set(re.findall(r' id="([^"]+)"', html))


def test_documentation_is_of_the_version_that_runs_for_who_is_signed_in(rosa):
    page = rosa.get("/docs/launch/")
    assert page.status_code == 200
    assert '<h1 id="launching">Launching</h1>' in page.content.decode()
    assert "<title>Launching · " in page.content.decode()
    first = rosa.get("/docs/").content.decode()
    assert 'href="/docs/launch/"' in first
    assert 'href="/docs/glossary/"' in first
    for path in ("/docs/", "/docs/launch/", "/docs/tutorial/11-metrics.webp"):
        answer = Client().get(path)
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("console:login"))


def test_opening_a_page_renders_that_page_alone_and_makes_no_reference(rosa, monkeypatch):
    rendered, render = [], site_pages._page

    def counted(text, source):
        rendered.append(source)
        return render(text, source)

    monkeypatch.setattr(site_pages, "_page", counted)
    documentation_page.cache_clear()
    for path, all_rendered in (("", ["index.md"]), ("launch/", ["index.md", "launch.md"])):
        for _twice in range(2):
            assert rosa.get(f"/docs/{path}").status_code == 200
            assert rendered == all_rendered
    documentation_page.cache_clear()
    monkeypatch.setattr(site_pages, "reference_pages", lambda _: pytest.fail("made"))
    site_pages._reference_pages.cache_clear()
    assert documentation_page("changelog/").title == "Changelog"


def test_every_page_is_in_the_contents_by_its_title_without_forbidden_styles():
    listed = {
        title: address.removeprefix("/docs/") for _, pages in contents() for title, address in pages
    }
    for title in ("Assay", "How-tos", "The statistics", "The metrics"):
        assert documentation_page(listed[title]).title == title
    listed = {address for _group, pages in contents() for _title, address in pages}
    assert {"/docs/", "/docs/launch/", "/docs/reference/commands/", "/docs/security/"} <= listed
    unlisted = {site_pages.page_address(source) for source in SOURCES} - listed
    assert all(address.startswith("/docs/adr/") for address in unlisted)
    assert " style=" not in "".join(map(html_of, SOURCES))


def test_what_was_prepared_for_pages_is_what_would_be_prepared_now():
    """Where this fails, `python -m config.documentation.prepared` does it."""
    assert json.loads(site_pages.PREPARED.read_text("utf-8")) == prepared()


def html_of(source):
    return documentation_page(source.removesuffix(".md").removesuffix("index")).html


def faults_of(source):
    """Addresses that lead nowhere, and links of the source that are lost."""
    addresses = re.findall(r'<(?:a href|img src)="([^"]+)"', html_of(source))
    for address in addresses:
        target, anchor = urldefrag(address)
        path = target.removeprefix("/docs/")
        if target.startswith("/docs/") and PurePosixPath(path).suffix in ("", ".md"):
            page = documentation_page(path)
            if page is None or (anchor and anchor not in anchors(page.html)):
                yield f"{source}: {address}"
        elif target.startswith("/docs/") and site_pages.documentation_file(path) is None:
            yield f"{source}: {address}"
    n = len([link for link in links(DOCS / source) if "demo/" not in link])
    if len(addresses) < n:
        yield f"{source}: {len(addresses)} of {n} links"


@pytest.mark.slow
def test_links_of_pages_lead_to_pages_headings_and_files_that_are_there():
    assert len(SOURCES) > 50
    assert [fault for source in SOURCES for fault in faults_of(source)] == []


def test_headings_have_the_ids_that_links_name_and_formulas_are_drawn():
    for path, heading, anchor in (
        ("reference/commands/annotation/", "import_items", "import_items"),
        ("reference/api/records/", "JobStateEnum", "jobstateenum"),
    ):
        html = documentation_page(path).html
        assert f'<h2 id="{anchor}">{heading}</h2>' in html
        assert "{ #" not in html
    # A bar in code ends no cell of a table.
    html = documentation_page("reference/commands/annotation/").html
    assert "<td><code>--protocol FILE|TEMPLATE</code></td>" in html
    for page in ("commands", "api", "api/studies"):
        html = documentation_page(f"reference/{page}/").html
        addresses = re.findall(r'href="(/docs/reference/[^"]+)"', html)
        named = [urldefrag(address) for address in addresses if "#" in address]
        assert named
        for target, anchor in named:
            assert anchor in anchors(documentation_page(target.removeprefix("/docs/")).html)
    statistics = html_of("statistics.md")
    assert re.search(
        r'<math [^>]*display="block"><mrow><mi>&#x003BA;</mi><mo>&#x0003D;</mo>', statistics
    )
    assert "<msub><mi>m</mi><mi>u</mi></msub></mrow></math>" in statistics
    assert "$" not in statistics
    assert "\\frac" not in statistics
    assert {"$0.63", "$0.13"} <= set(re.findall(r"\$\d\.\d\d", html_of("launch.md")))


def test_files_beside_pages_are_handed_out_and_nothing_else(rosa):
    outside = ("../README.md", "%2e%2e/README.md", "..%2f.env", "/etc/passwd")
    for path in (*outside, "nothing/", "launch.md.md"):
        assert rosa.get(f"/docs/{path}").status_code == 404, path
    example = next(path for path in DOCS.rglob("*.csv"))
    answer = rosa.get(f"/docs/{example.relative_to(DOCS).as_posix()}")
    assert answer["Content-Disposition"] == f'attachment; filename="{example.name}"'
    assert answer["Content-Type"] == "application/octet-stream"
    assert rosa.get("/docs/tutorial/11-metrics.webp")["Content-Type"] == "image/webp"


def test_what_explains_a_page_of_a_study_is_there_and_linked(rosa, researcher, settings):
    for stage in PAGES:
        target, anchor = urldefrag(help_address(stage))
        page = documentation_page(target.removeprefix("/docs/"))
        assert page is not None
        assert not anchor or anchor in anchors(page.html), stage
    study = rating_study(owner=researcher)
    for base in ("", "https://docs.example.org/assay"):
        settings.DOCS_URL = base
        for name, target in (
            ("launch", "/launch/"),
            ("results", "/console/#results"),
            ("validation", "/console/#metrics-and-human-ratings"),
        ):
            page = rosa.get(reverse(f"console:{name}", args=[study.slug])).content.decode()
            assert f'href="{base or "/docs"}{target}"' in page
            assert f'href="{base or "/docs"}/"' in page
            assert not base or "/docs/launch" not in page


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_formulas_and_the_gallery_fit_the_window(chromium, live_server, researcher, width):
    fits = "document.documentElement.scrollWidth <= window.innerWidth"
    viewport = {"width": width, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto("/docs/statistics/")
        fraction = page.locator("math[display=block] mfrac").first.bounding_box()
        assert fraction["height"] > page.locator("article p").first.evaluate(
            "node => parseFloat(getComputedStyle(node).lineHeight)"
        )
        assert page.evaluate(fits)
        # What lies under a sign of a formula is not always known.
        problems = accessibility_problems(page)
        assert [one for one in problems if not one.startswith("incomplete color-contrast")] == []
        page.goto("/docs/gallery/")
        tables = "all => Math.max(...all.map((one) => one.scrollWidth - one.clientWidth))"
        assert width < 1280 or page.locator(".scroll").evaluate_all(tables) == 0
        assert page.evaluate(fits)

"""What mkdocs calls while it builds the site of docs/ (`make docs`).

Reference pages are made from the code they describe, the repository's own pages (ARCHITECTURE.md
and others) are taken in, and formulas become MathML, which browsers draw without a script.
"""

import os
from pathlib import Path

import django
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from config.documentation.markdown import as_rendered, repository_files
from config.documentation.prepared import with_coverage
from config.documentation.rendered import external_assets, with_mathml, with_row_heads

# Their tables need the room of the contents at the right.
WIDE = ("why.md", "gallery.md", "coverage.md")
SITE = Path(__file__).resolve().parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    # Needs the settings.
    from config.documentation.reference import reference_pages

    made = {**repository_files(SITE), **reference_pages(SITE)}
    demo = SITE / "output" / "demo" / "sample-rating-report.html"
    if not demo.is_file():
        raise PluginError(f"There is no {demo.relative_to(SITE)}: run `make demo` first.")
    made["demo/report.html"] = report = demo.read_text("utf-8")
    if found := external_assets(report):
        raise PluginError(f"The report fetches {', '.join(found)} from elsewhere.")
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri in WIDE:
        page.meta["hide"] = ["toc"]
    return as_rendered(with_coverage(markdown), page.file.src_uri)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return with_row_heads(with_mathml(html))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    # Refuse a page that would fetch something of another site's when it is read.
    if found := external_assets(output):
        raise PluginError(f"{page.file.src_uri} fetches {', '.join(found)} from elsewhere.")
    return output

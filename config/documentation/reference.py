"""The pages of the site that are made of the code they describe."""

from __future__ import annotations

from pathlib import Path

from config.documentation import metrics_page, protocol_page
from config.documentation.api_pages import api_pages
from config.documentation.command_pages import command_pages
from config.documentation.decisions_page import decisions_page


def reference_pages(root: Path) -> dict[str, str]:
    """Each page's Markdown by where the site has it."""
    return {
        **command_pages(root),
        **api_pages(root),
        protocol_page.PATH: protocol_page.protocol_page(root),
        metrics_page.PATH: metrics_page.metrics_page(),
        "adr/index.md": decisions_page(root),
    }

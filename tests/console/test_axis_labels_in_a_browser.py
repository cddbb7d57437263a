"""What stands at the ticks of an axis is read in full, however narrow the column."""

from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import render_to_string

from console.spans import Axis
from tests.browsers import opened_page

pytestmark = pytest.mark.browser
WIDTHS = (160, 260, 600)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_label_leaves_its_column(chromium, width):
    style = Path(settings.BASE_DIR, "static", "console.css").read_text()
    ticks = render_to_string("console/_ticks.html", {"axis": Axis(0.0, 1.0, is_share=True)})
    with opened_page(chromium, viewport={"width": 1280, "height": 400}) as page:
        page.set_content(f"<style>{style}</style><div style='width: {width}px'>{ticks}</div>")
        box = page.locator(".ticks").evaluate("one => one.scrollWidth - one.clientWidth")
    assert box == 0

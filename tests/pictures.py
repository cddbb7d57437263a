"""Pictures of every state of a page that a browser test looks at: `make pictures`."""

import os
import re
from collections import Counter
from html import escape
from pathlib import Path

FOLDER = os.environ.get("PICTURES", "")
_numbers = Counter()


def keep_picture(page):
    if not FOLDER:
        return
    test = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0].removeprefix("tests/")
    name = re.sub(r"[^\w.-]+", "-", test.replace(".py::", "/", 1).replace("/", "--")).strip("-")
    _numbers[test] += 1
    width = page.viewport_size["width"] if page.viewport_size else 0
    page.screenshot(path=Path(FOLDER) / f"{name}-{_numbers[test]:02}-{width}.png", full_page=True)


def write_index():
    if not FOLDER:
        return
    names = sorted(path.name for path in Path(FOLDER).glob("*.png"))
    figures = "\n".join(
        f'<figure><a href="{escape(name)}"><img loading="lazy" src="{escape(name)}" alt=""></a>'
        f"<figcaption>{escape(name.removesuffix('.png'))}</figcaption></figure>"
        for name in names
    )
    style = (
        "figure { display: inline-block; margin: .5rem; width: 20rem; vertical-align: top }"
        " img { width: 100%; border: 1px solid #999 }"
    )
    page = f'<!doctype html><meta charset="utf-8"><title>Pages</title><style>{style}</style>\n'
    (Path(FOLDER) / "index.html").write_text(page + figures)

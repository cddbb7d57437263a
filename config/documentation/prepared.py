"""Writes prepared.json: what pages of a running site have that only tools of development can make.

    python -m config.documentation.prepared

Formulas become MathML, and marks of what was measured a sentence of the benchmark's rows. Neither
the library for the one nor the rows are at a site; a test says when the file is due.
"""

from __future__ import annotations

import json
import os

import django

from config.documentation.coverage_notes import MARKER, with_coverage
from config.documentation.formulas import mathml


def prepared() -> dict[str, dict[str, str]]:
    """By how each stands on a page: formulas, and marks of what was measured."""
    # Needs the settings.
    from config.documentation.site_pages import DOCS, formulas_of

    texts = [path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))]
    formulas = sorted({one for text in texts for one in formulas_of(text)})
    marks = sorted({match[0] for text in texts for match in MARKER.finditer(text)})
    return {
        "formulas": {one: mathml(one) for one in formulas},
        "measured": {one: with_coverage(one) for one in marks},
    }


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    # Needs the settings.
    from config.documentation.site_pages import PREPARED

    content = json.dumps(prepared(), indent=1, ensure_ascii=False)
    PREPARED.write_text(f"{content}\n", "utf-8")


if __name__ == "__main__":
    main()

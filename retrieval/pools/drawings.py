"""Drawings (SVG) that somebody sent, before they are drawn: they can name files and addresses."""

from __future__ import annotations

import re
from base64 import b64decode
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from annotation.readers.pictures import MOST_PIXELS, n_pixels

MOST_SIDE = 8000
"""In pixels; what draws takes four bytes for each pixel, or ends the process."""
MOST_DRAWN = 16_000_000
MOST_ELEMENTS, MOST_USES = 50_000, 20
"""What one drawn thing repeats can itself repeat others: twenty of them come to a thousand."""
LENGTH = re.compile(r"\s*(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*(px|pt|pc|mm|cm|in|)\s*", re.I)
PIXELS = {"": 1, "px": 1, "pt": 96 / 72, "pc": 16, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96}
EMBEDDED = re.compile(r"\s*data:image/(?:png|jpeg|jpg|gif|webp);base64,(.*)", re.I | re.S)
REFERENCE = re.compile(r"url\(\s*['\"]?\s*(?!#)|@import|\\", re.I)
"""To anything but what the drawing itself holds; an escape could spell either."""


def require_harmless(content: bytes) -> None:
    """ValueError where a drawing refers to what is not in it, or is too large to be drawn."""
    try:
        root = fromstring(content, forbid_dtd=True)
    except ParseError as error:
        raise ValueError(f"it is not XML: {error}") from None
    elements = list(root.iter())
    n_uses = sum(_plain(one.tag) == "use" for one in elements)
    if len(elements) > MOST_ELEMENTS or n_uses > MOST_USES:
        raise ValueError(
            f"it has {len(elements):,} elements and repeats {n_uses:,}, where {MOST_ELEMENTS:,} "
            f"and {MOST_USES} are the most"
        )
    for element in elements:
        _require_alone(element)
    width, height = _size(root)
    if max(width, height) > MOST_SIDE or width * height > MOST_DRAWN:
        raise ValueError(f"it is drawn {width:,.0f} pixels wide and {height:,.0f} high")


def _require_alone(element: Element) -> None:
    for name, value in element.attrib.items():
        is_reference = _plain(name) in ("href", "src")
        if (is_reference and not _is_inside(value)) or REFERENCE.search(value):
            raise ValueError(f"it refers to {value[:40]}, which is not in it")
    if _plain(element.tag) == "style" and REFERENCE.search("".join(element.itertext())):
        raise ValueError("its style refers to what is not in it")


def _is_inside(value: str) -> bool:
    if value.strip().startswith("#") or not value.strip():
        return True
    embedded = EMBEDDED.fullmatch(value)
    return embedded is not None and 0 < n_pixels(b64decode(embedded[1])) <= MOST_PIXELS


def _plain(name: object) -> str:
    """A name without its namespace; comments have a function for one."""
    return name.rpartition("}")[2].lower() if isinstance(name, str) else ""


def _size(root: Element) -> tuple[float, float]:
    """As it is drawn: by its width and height, or those of what is shown of it."""
    shown = [float(part) for part in re.split(r"[\s,]+", root.get("viewBox", "").strip()) if part]
    of_view = shown[2:] if len(shown) == 4 else [100.0, 100.0]
    width, height = (
        default if (text := root.get(name)) is None or text.strip().endswith("%") else _pixels(text)
        for name, default in zip(("width", "height"), of_view, strict=True)
    )
    return width, height


def _pixels(text: str) -> float:
    length = LENGTH.fullmatch(text)
    if length is None:
        raise ValueError(f"its size is {text[:40]}")
    return float(length[1] + (length[2] or "")) * PIXELS[length[3].lower()]

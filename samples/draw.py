"""Draws the products of the sample study of alternatives, and writes its JSON Lines file.

    python samples/draw.py

A product is its attributes: a shape, a colour and a pattern. The pool of a target holds
products that share two of them, one, and none, so that some are plainly alternatives.
"""

import json
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLOURS = {"red": "#c0392b", "blue": "#2874a6", "green": "#1e8449", "black": "#2c3e50"}
PATTERNS = ("plain", "striped")
SHAPES = {
    "sneaker": "M14 74 Q16 56 34 58 L52 44 Q60 40 66 46 L84 60 Q108 64 112 78 L112 86 L14 86 Z",
    "ankle boot": "M40 24 L70 24 L70 58 Q98 60 108 76 L108 86 L96 86 L40 86 L40 76 Z",
    "knee boot": "M46 8 L72 8 L70 60 Q96 62 106 76 L106 86 L46 86 L48 60 Z",
    "dress": "M48 10 L56 18 L64 18 L72 10 L78 30 L72 44 L92 100 L28 100 L48 44 L42 30 Z",
}
SOLE = '<path d="M12 86 H114 V94 H12 Z" fill="#bfc5cb"/>'
STRIPES = (
    '<pattern id="s" width="10" height="10" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(35)"><rect width="10" height="10" fill="{colour}"/>'
    '<rect width="3" height="10" fill="#fff" fill-opacity=".75"/></pattern>'
)


def drawing(shape: str, colour: str, pattern: str) -> str:
    """The product as a small SVG."""
    fill = "url(#s)" if pattern == "striped" else COLOURS[colour]
    stripes = STRIPES.format(colour=COLOURS[colour]) if pattern == "striped" else ""
    sole = "" if shape == "dress" else SOLE
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 126 110" role="img">'
        f"<title>{title(shape, colour, pattern)}</title><defs>{stripes}</defs>"
        f'<rect width="126" height="110" fill="#f6f7f9"/>{sole}'
        f'<path d="{SHAPES[shape]}" fill="{fill}" stroke="#1d2329" stroke-width="1.5" '
        'stroke-linejoin="round"/></svg>\n'
    )


def title(shape: str, colour: str, pattern: str) -> str:
    return f"{pattern} {colour} {shape}"


def key(shape: str, colour: str, pattern: str) -> str:
    return f"{shape.replace(' ', '-')}-{colour}-{pattern}"


def pool(target: tuple[str, str, str], products: list[tuple[str, str, str]]) -> list[int]:
    """Eight candidates: those that share most with the target, and two that share nothing."""
    shared = [sum(a == b for a, b in zip(target, other, strict=True)) for other in products]
    ranked = sorted(range(len(products)), key=lambda n: -shared[n])
    near = [n for n in ranked if shared[n] < 3][:6]
    far = [n for n in ranked if shared[n] == 0][:2]
    return sorted({*near, *far})


def main() -> None:
    products = list(product(SHAPES, COLOURS, PATTERNS))
    for attributes in products:
        path = HERE / "pictures" / f"{key(*attributes)}.svg"
        path.write_text(drawing(*attributes), encoding="utf-8")
    targets = [attributes for n, attributes in enumerate(products) if n % 4 == 1]
    lines = [json.dumps(_line(target, products)) for target in targets]
    (HERE / "alternatives.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(target: tuple[str, str, str], products: list[tuple[str, str, str]]) -> dict[str, object]:
    candidates = [
        {"key": key(*products[n]), **_record(products[n])} for n in pool(target, products)
    ]
    return {"item": key(*target), "target": _record(target), "candidates": candidates}


def _record(attributes: tuple[str, str, str]) -> dict[str, str]:
    return {"title": title(*attributes), "image": f"pictures/{key(*attributes)}.svg"}


if __name__ == "__main__":
    main()

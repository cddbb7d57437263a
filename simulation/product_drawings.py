"""Shoes drawn from their attributes as small SVGs."""

from collections.abc import Mapping

FILLS = {
    "black": "#2c3e50", "white": "#f4f1ea", "red": "#c0392b", "blue": "#2874a6",
    "green": "#1e8449", "brown": "#7b4b2a", "grey": "#8d99a6", "pink": "#e58fb1",
    "yellow": "#d9a514", "purple": "#6c3483",
}  # fmt: skip
UPPERS = {
    "sneaker": "M14 {b} Q16 56 34 58 L52 44 Q60 40 66 46 L84 60 {toe} L112 {b} Z",
    "ankle boot": "M36 24 L70 24 L70 56 Q84 60 92 62 {toe} L112 {b} L36 {b} Z",
    "knee boot": "M40 4 L72 4 L70 54 Q84 60 92 62 {toe} L112 {b} L40 {b} Z",
    "pump": "M16 {b} L16 52 Q30 66 50 66 Q70 66 86 62 {toe} L112 {b} Z",
    "sandal": "M14 {b} L14 62 L30 62 L34 {b} L74 {b} L78 62 L90 60 {toe} L112 {b} Z",
    "flat": "M14 {b} L16 62 Q36 72 58 70 Q78 68 88 64 {toe} L112 {b} Z",
    "clog": "M14 {b} L16 74 L48 74 Q54 50 76 50 L90 56 {toe} L112 {b} Z",
    "loafer": "M14 {b} L16 56 Q34 60 44 58 L62 52 Q78 54 90 60 {toe} L112 {b} Z",
}
LEFT = {"ankle boot": 36, "knee boot": 40}
TOES = {"round": "Q108 64 112 76", "pointed": "L120 80", "open": "L96 72 L104 78"}
HEELS = {"none": 0, "low": 5, "middle": 10, "high": 16, "very high": 22}
SOLES = {"thin": 3, "ordinary": 6, "thick": 10, "platform": 15}
PATTERNS = {
    "striped": '<rect width="3" height="8" fill="#fff" fill-opacity=".7"/>',
    "dotted": '<circle cx="4" cy="4" r="1.8" fill="#fff" fill-opacity=".8"/>',
    "checked": '<rect width="4" height="4" fill="#fff" fill-opacity=".55"/>'
    '<rect x="4" y="4" width="4" height="4" fill="#fff" fill-opacity=".55"/>',
}
STRAPS = {
    "without a strap": "",
    "strapped": '<path d="M30 60 L72 56" stroke="#1d2329" stroke-width="4"/>',
    "buckled": '<path d="M30 60 L72 56" stroke="#1d2329" stroke-width="4"/>'
    '<rect x="48" y="53" width="9" height="9" fill="none" stroke="#d4b106" stroke-width="2"/>',
    "laced": '<path d="M56 48 L68 56 M54 56 L70 52 M60 62 L74 58" stroke="#fdfdfd" '
    'stroke-width="2" fill="none"/>',
}
MATERIALS = {
    "leather": 'stroke-width="1.5"',
    "suede": 'stroke-width="1.5" stroke-dasharray="1 1.5"',
    "canvas": 'stroke-width="2.5" stroke-dasharray="4 2"',
    "patent": 'stroke-width="3"',
}


def title(attributes: Mapping[str, str]) -> str:
    """The product in words."""
    kept = ("colour", "pattern", "material", "category")
    heel = "" if attributes["heel"] == "none" else f", {attributes['heel']} heel"
    return " ".join(attributes[name] for name in kept) + f", {attributes['toe']} toe{heel}"


def drawing(attributes: Mapping[str, str]) -> str:
    """The product as an SVG of 130 by 120."""
    sole, heel = SOLES[attributes["sole"]], HEELS[attributes["heel"]]
    outline = UPPERS[attributes["category"]].format(b=84, toe=TOES[attributes["toe"]])
    left = LEFT.get(attributes["category"], 14)
    fill, name = FILLS[attributes["colour"]], title(attributes)
    pattern = PATTERNS.get(attributes["pattern"], "")
    overlay = f'<path d="{outline}" fill="url(#p)"/>' if pattern else ""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 130 120" role="img">'
        f"<title>{name}</title><defs>"
        f'<pattern id="p" width="8" height="8" patternUnits="userSpaceOnUse">{pattern}</pattern>'
        '</defs><rect width="130" height="120" fill="#f6f7f9"/>'
        f'<path d="{outline}" fill="{fill}" stroke="#1d2329" stroke-linejoin="round" '
        f"{MATERIALS[attributes['material']]}/>{overlay}"
        f'<path d="M{left} 84 H114 V{84 + sole} H{left} Z" fill="#bfc5cb" stroke="#1d2329"/>'
        f'<path d="M{left} {84 + sole} h14 l-4 {heel} h-8 Z" fill="#1d2329"/>'
        f'<g transform="translate({(left - 14) // 2} 0)">{STRAPS[attributes["strap"]]}</g></svg>\n'
    )

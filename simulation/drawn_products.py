"""A catalogue of drawn shoes with known attributes: any size, no licence, the same for a seed."""

from collections.abc import Mapping

import numpy as np

from simulation.catalogue import Attribute, Attributes, Catalogue
from stats.arguments import Floats, Integers

KINDS = (
    Attribute(
        "category",
        ("sneaker", "ankle boot", "knee boot", "pump", "sandal", "flat", "clog", "loafer"),
    ),
    Attribute(
        "colour",
        ("black", "white", "red", "blue", "green", "brown", "grey", "pink", "yellow", "purple"),
    ),
    Attribute("pattern", ("plain", "striped", "dotted", "checked")),
    Attribute("toe", ("round", "pointed", "open")),
    Attribute("strap", ("without a strap", "strapped", "buckled", "laced")),
    Attribute("material", ("leather", "suede", "canvas", "patent")),
    Attribute(
        "heel",
        ("none", "low", "middle", "high", "very high"),
        is_ordered=True,
        more="has a higher heel",
        less="has a lower heel",
    ),
    Attribute(
        "sole",
        ("thin", "ordinary", "thick", "platform"),
        is_ordered=True,
        more="has a thicker sole",
        less="has a thinner sole",
    ),
)
# How visible each attribute is.
WEIGHTS = (1.6, 1.1, 0.7, 0.6, 0.7, 0.6, 1.0, 0.6)
WIDTH = 64
# What attributes do not explain of an item, in the units of the weights.
NOISE = 0.25


def drawn_catalogue(n_items: int, *, seed: int = 0, noise: float = NOISE) -> Catalogue:
    """Shoes whose attributes go together as a shop's do, in a space that shows them.

    An embedding is the sum of its values' directions and of noise of its own. The first n items
    of a larger catalogue are those of a smaller one.
    """
    if n_items < 2:
        raise ValueError(f"n_items must be at least 2, not {n_items}")
    codes = _codes(n_items, seed)
    attributes = Attributes(KINDS, codes)
    return Catalogue(
        ids=tuple(f"shoe-{number:06d}" for number in range(n_items)),
        embeddings=attribute_embeddings(codes, seed=seed, noise=noise),
        source=f"{n_items:,} drawn shoes, seed {seed}",
        attributes=attributes,
        picture=lambda item: drawing(attributes.describe(item)).encode(),
    )


def attribute_embeddings(codes: Integers, *, seed: int, noise: float = NOISE) -> Floats:
    rng = np.random.default_rng([seed, 1])
    embeddings = noise * np.random.default_rng([seed, 2]).normal(size=(len(codes), WIDTH))
    embeddings /= np.sqrt(WIDTH)
    for column, (kind, weight) in enumerate(zip(KINDS, WEIGHTS, strict=True)):
        directions = rng.normal(size=(len(kind.values), WIDTH)) / np.sqrt(WIDTH)
        if kind.is_ordered:
            directions = np.linspace(-1.0, 1.0, len(kind.values))[:, None] * directions[0]
        embeddings += weight * directions[codes[:, column]]
    return embeddings


def _codes(n_items: int, seed: int) -> Integers:
    """(n_items, n_attributes); how common a value is depends on the category."""
    sizes = [len(kind.values) for kind in KINDS]
    tables = np.random.default_rng([seed, 3])
    likely = [tables.dirichlet(np.full(size, 0.8), size=sizes[0]) * 0.8 + 0.2 / size
              for size in sizes[1:]]  # fmt: skip
    draw = np.random.default_rng([seed, 4]).random((n_items, len(sizes)))
    codes = np.empty((n_items, len(sizes)), dtype=np.intp)
    codes[:, 0] = (draw[:, 0] * sizes[0]).astype(np.intp)
    for column, table in enumerate(likely, 1):
        bounds = np.cumsum(table, axis=1)[codes[:, 0]]
        reached = (draw[:, column, None] >= bounds).sum(axis=1)
        codes[:, column] = np.minimum(reached, sizes[column] - 1)
    return codes


def stand_in_catalogue(
    ids: list[str], categories: list[str] | None = None, *, seed: int = 0
) -> Catalogue:
    """Items whose own embeddings are not at hand, with attributes drawn for them by id.

    `categories` are what the ids say of their items; the category is then theirs, each with one of
    the drawn ones. The result is marked: it shows how programs behave, nothing about the items.
    """
    from simulation.catalogue import ORDER, uniform

    bare = Catalogue(tuple(ids), np.zeros((len(ids), 1)), "ids")
    codes = np.empty((len(ids), len(KINDS)), dtype=np.intp)
    for column, kind in enumerate(KINDS):
        draw = uniform(ORDER, seed, column, bare.keys)
        codes[:, column] = (draw * len(kind.values)).astype(np.intp)
    if categories is not None:
        number = {name: at for at, name in enumerate(sorted(set(categories)))}
        codes[:, 0] = [number[name] % len(KINDS[0].values) for name in categories]
    return Catalogue(
        ids=tuple(ids),
        embeddings=attribute_embeddings(codes, seed=seed),
        source=f"{len(ids):,} ids with stand-in embeddings, seed {seed}",
        attributes=Attributes(KINDS, codes),
        is_stand_in=True,
    )


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
# Over each kind of shoe, and the position of its buckle.
STRAPS = {
    "sneaker": ("M58 74 L78 56", (68, 65)),
    "ankle boot": ("M36 52 L70 52", (58, 52)),
    "knee boot": ("M40 50 L70 50", (58, 50)),
    "pump": ("M19 58 Q40 42 72 65", (43, 52)),
    "sandal": ("M22 63 Q50 36 85 61", (52, 49)),
    "flat": ("M18 63 Q42 46 74 67", (44, 56)),
    "clog": ("M17 76 Q16 56 54 62", (30, 63)),
    "loafer": ("M58 74 L76 55", (67, 65)),
}
LACES = {
    "sneaker": "M58 52 L70 48 M64 58 L77 53 M70 64 L84 59",
    "ankle boot": "M58 36 L71 32 M58 45 L71 41 M60 54 L72 50",
    "knee boot": "M58 22 L72 18 M58 34 L72 30 M58 46 L71 42",
    "pump": "M62 71 L72 65 M70 73 L81 64 M78 75 L90 64",
    "sandal": "M32 66 L78 72 M32 74 L79 64 M34 81 L76 79",
    "flat": "M60 76 L68 68 M68 77 L78 66 M76 78 L88 66",
    "clog": "M54 60 L68 52 M62 66 L78 53 M70 71 L87 57",
    "loafer": "M54 62 L66 54 M60 68 L74 56 M67 73 L82 59",
}
MATERIALS = {
    "leather": 'stroke-width="1.5"',
    "suede": 'stroke-width="1.5" stroke-dasharray="1 1.5"',
    "canvas": 'stroke-width="2.5" stroke-dasharray="4 2"',
    "patent": 'stroke-width="3"',
}


def title(attributes: Mapping[str, str]) -> str:
    heel = "no" if attributes["heel"] == "none" else attributes["heel"]
    return (
        " ".join(attributes[name] for name in (("colour", "pattern", "material", "category")))
        + f", {attributes['toe']} toe, {heel} heel, {attributes['sole']} sole, "
        + attributes["strap"]
    )


def drawing(attributes: Mapping[str, str]) -> str:
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
        f"{_strap(attributes)}</svg>\n"
    )


def _strap(attributes: Mapping[str, str]) -> str:
    if attributes["strap"] == "without a strap":
        return ""
    if attributes["strap"] == "laced":
        # Dark below white: they are seen on shoes of any colour.
        laces = LACES[attributes["category"]]
        return "".join(
            f'<path d="{laces}" stroke="{colour}" stroke-width="{width}" stroke-linecap="round"/>'
            for colour, width in (("#1d2329", 4), ("#fdfdfd", 2))
        )
    path, (x, y) = STRAPS[attributes["category"]]
    strap = f'<path d="{path}" fill="none" stroke="#1d2329" stroke-width="5"/>'
    # A strap on black is told from it by a light edge.
    edge = f'<path d="{path}" fill="none" stroke="#f6f7f9" stroke-width="7"/>'
    if attributes["strap"] == "strapped":
        return edge + strap
    return (
        edge + strap + f'<rect x="{x - 5}" y="{y - 5}" width="10" height="10" fill="#1d2329" '
        'stroke="#f0c419" stroke-width="2.5"/>'
    )

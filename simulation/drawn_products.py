"""A catalogue of drawn shoes with known attributes: any size, no licence, the same for a seed."""

from __future__ import annotations

import numpy as np

from simulation.catalogue import Attribute, Attributes, Catalogue
from simulation.product_drawings import drawing
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
WEIGHTS = (1.6, 1.1, 0.7, 0.6, 0.7, 0.6, 1.0, 0.6)
"""How much of what is seen each attribute makes up."""
WIDTH = 64
NOISE = 0.25
"""What no attribute says of an item, in the units of the weights."""


def drawn_catalogue(n_items: int, *, seed: int = 0, noise: float = NOISE) -> Catalogue:
    """Shoes whose attributes go together as a shop's do, in a space that shows them.

    An embedding is the sum of its values' directions and of noise of its own. The first n items
    of a larger catalogue are those of a smaller one.
    """
    if n_items < 2:
        raise ValueError(f"n_items must be at least 2, not {n_items}")
    codes = _codes(n_items, seed)
    attributes = Attributes(KINDS, codes)
    ids = tuple(f"shoe-{number:06d}" for number in range(n_items))
    return Catalogue(
        ids=ids,
        embeddings=attribute_embeddings(codes, seed=seed, noise=noise),
        source=f"{n_items:,} drawn shoes, seed {seed}",
        attributes=attributes,
        picture=lambda item: drawing(attributes.describe(item)).encode(),
    )


def attribute_embeddings(codes: Integers, *, seed: int, noise: float = NOISE) -> Floats:
    """The sum of values' directions and noise, (n_items, 64)."""
    rng = np.random.default_rng([seed, 1])
    embeddings = noise * np.random.default_rng([seed, 2]).normal(size=(len(codes), WIDTH))
    embeddings /= np.sqrt(WIDTH)
    for column, (kind, weight) in enumerate(zip(KINDS, WEIGHTS, strict=True)):
        directions = rng.normal(size=(len(kind.values), WIDTH)) / np.sqrt(WIDTH)
        if kind.is_ordered:
            steps = np.linspace(-1.0, 1.0, len(kind.values))
            directions = steps[:, None] * directions[0]
        embeddings += weight * directions[codes[:, column]]
    return embeddings


def _codes(n_items: int, seed: int) -> Integers:
    """(n_items, n_attributes); each attribute's values are commoner in some categories."""
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
    from simulation.draws import ORDER, uniform

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

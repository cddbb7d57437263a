"""Drawn products: pictures, systems that weigh attributes, vectors, and who accepts what."""

from io import BytesIO
from itertools import product
from random import Random
from zipfile import ZipFile

import numpy as np

from samples.draw import COLOURS, PATTERNS, SHAPES, drawing, key, title

PRODUCTS = {key(*one): one for one in product(SHAPES, COLOURS, PATTERNS)}
# How much each system cares for the same shape, colour and pattern, and how noisy it is.
SYSTEMS = {
    "shape": (3.0, 1.0, 0.5, 0.3),
    "colour": (1.0, 3.0, 0.5, 0.3),
    "pattern": (0.5, 0.5, 3.0, 0.3),
    "late": (2.0, 2.0, 1.0, 1.5),
}


def shared(first: str, second: str) -> tuple[bool, ...]:
    """Which attributes two products share: shape, colour, pattern."""
    return tuple(a == b for a, b in zip(PRODUCTS[first], PRODUCTS[second], strict=True))


def is_acceptable(target: str, candidate: str) -> bool:
    """The truth: another of the same shape, in its colour or its pattern."""
    shape, colour, pattern = shared(target, candidate)
    return target != candidate and shape and (colour or pattern)


def targets(n: int) -> list[str]:
    """The first so many products as targets."""
    return list(PRODUCTS)[:n]


def run_text(system: str, topics: list[str], *, seed: int = 0) -> str:
    """The system's ranking of all products for each target, the target itself too."""
    *weights, noise = SYSTEMS[system]
    rng = Random(f"{system} {seed}")
    lines = []
    for topic in topics:
        scores = {
            other: sum(w * same for w, same in zip(weights, shared(topic, other), strict=True))
            + rng.gauss(0, noise)
            for other in PRODUCTS
        }
        ranked = sorted(scores, key=lambda other: -scores[other])
        lines += [
            f"{topic} Q0 {other} {rank} {scores[other]:.6f} {system}"
            for rank, other in enumerate(ranked, 1)
        ]
    return "\n".join(lines) + "\n"


def catalogue_zip() -> bytes:
    """A table of all products, and a picture of each."""
    content = BytesIO()
    with ZipFile(content, "w") as archive:
        rows = [f"{name},{title(*one)},pictures/{name}.svg" for name, one in PRODUCTS.items()]
        archive.writestr("catalogue.csv", "\n".join(["docno,title,image", *rows]) + "\n")
        for name, one in PRODUCTS.items():
            archive.writestr(f"pictures/{name}.svg", drawing(*one))
    return content.getvalue()


def vectors_zip() -> bytes:
    """A vector of attributes for each product, as an array and its names."""
    values = [list(SHAPES), list(COLOURS), list(PATTERNS)]
    rows = [
        [float(own == value) for own, known in zip(one, values, strict=True) for value in known]
        for one in PRODUCTS.values()
    ]
    rng = np.random.default_rng(0)
    array = np.array(rows, dtype=np.float32) + rng.normal(0, 0.05, (len(rows), 10))
    content, buffer = BytesIO(), BytesIO()
    np.save(buffer, array.astype(np.float32))
    with ZipFile(content, "w") as archive:
        archive.writestr("products.npy", buffer.getvalue())
        archive.writestr("products.ids", "\n".join(PRODUCTS) + "\n")
    return content.getvalue()

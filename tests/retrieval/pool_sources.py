from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import product
from pathlib import Path
from random import Random
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from retrieval.pools import records, vectors
from retrieval.pools.sources import EmbeddingSource, RunSource
from retrieval.trec_files import Run
from samples.draw import COLOURS, PATTERNS, SHAPES, drawing, key, title


def run_source(name: str, lists: Mapping[str, Sequence[str]]) -> RunSource:
    topics = sorted(lists)
    documents = sorted({docno for listed in lists.values() for docno in listed})
    number = {docno: at for at, docno in enumerate(documents)}
    topic = [at for at, each in enumerate(topics) for _ in lists[each]]
    document = [number[docno] for each in topics for docno in lists[each]]
    score = [-float(rank) for each in topics for rank, _ in enumerate(lists[each])]
    arrays = (np.array(topic, dtype=np.intp), np.array(document, dtype=np.intp), np.array(score))
    return RunSource(name, Run(Path(f"{name}.run"), name, topics, documents, *arrays))


def embedding_source(
    name: str, names: Sequence[str], array: NDArray[np.float32]
) -> EmbeddingSource:
    return EmbeddingSource(name, vectors.Vectors(list(names), array))


def synthetic_sources(
    *, n_topics: int = 200, n_documents: int = 5000, seed: int = 0
) -> tuple[list[records.Target], list[RunSource | EmbeddingSource]]:
    """Four runs that share documents, hold targets and differ in length, and two embeddings."""
    rng = np.random.default_rng(seed)
    names = [f"d{number:04d}" for number in range(n_documents)]
    targets = [records.Target(f"q{number:03d}", names[number]) for number in range(n_topics)]
    sources: list[RunSource | EmbeddingSource] = []
    for number, (name, length) in enumerate(
        {"bm25": 100, "dense": 100, "hybrid": 60, "short": 6}.items()
    ):
        popular = rng.permutation(n_documents)[: 150 * (number + 1)]
        lists = {}
        for at, target in enumerate(targets):
            near = rng.integers(at, at + 40, size=12) % n_documents
            others = rng.choice(popular, length, replace=False)
            listed = dict.fromkeys([*near.tolist(), *others.tolist()])
            lists[target.topic] = [names[each] for each in listed][:length]
        sources.append(run_source(name, lists))
    for name, dimensions in (("pixels", 16), ("words", 64)):
        array = rng.normal(size=(n_documents, dimensions)).astype(np.float32)
        sources.append(embedding_source(name, names, array))
    return targets, sources


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
    content = BytesIO()
    with ZipFile(content, "w") as archive:
        rows = [f"{name},{title(*one)},pictures/{name}.svg" for name, one in PRODUCTS.items()]
        archive.writestr("catalogue.csv", "\n".join(["docno,title,image", *rows]) + "\n")
        for name, one in PRODUCTS.items():
            archive.writestr(f"pictures/{name}.svg", drawing(*one))
    return content.getvalue()


def vectors_zip() -> bytes:
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

"""Runs, embeddings and targets that tests make pools of."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval.pools.records import Target
from retrieval.pools.sources import EmbeddingSource, RunSource
from retrieval.pools.vectors import Vectors
from retrieval.trec_files import Run


def run_source(name: str, lists: Mapping[str, Sequence[str]]) -> RunSource:
    """A run with these lists, the best document first."""
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
    return EmbeddingSource(name, Vectors(list(names), array))


def synthetic_sources(
    *, n_topics: int = 200, n_documents: int = 5000, seed: int = 0
) -> tuple[list[Target], list[RunSource | EmbeddingSource]]:
    """Four runs that share documents, hold targets and differ in length, and two embeddings."""
    rng = np.random.default_rng(seed)
    names = [f"d{number:04d}" for number in range(n_documents)]
    targets = [Target(f"q{number:03d}", names[number]) for number in range(n_topics)]
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

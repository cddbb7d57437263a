"""Where candidates come from: runs, and neighbours in embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from presentation.progress import Progress, silently
from retrieval.pools.neighbours import Similarity, nearest
from retrieval.pools.records import SourceFacts, Target
from retrieval.pools.vectors import Vectors, file_digest
from retrieval.trec_files import Run
from stats.arguments import Floats, Integers
from stats.ranking.judged_lists import in_single_precision


@dataclass(frozen=True)
class RankedLists:
    """Documents by target, the best first.

    Attributes
    ----------
    documents : list of str
        What `document` counts in.
    document : ndarray of int, shape (n_listed,)
    score : ndarray of float, shape (n_listed,)
    start : ndarray of int, shape (n_targets + 1,)
        Where each target's list begins, and the last one's ends.
    is_cut : ndarray of bool, shape (n_targets,)
        Whether the source could list more.
    """

    documents: Sequence[str]
    document: Integers
    score: Floats
    start: Integers
    is_cut: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def of(self, target: int) -> list[str]:
        """The names of a target's documents."""
        names = self.documents
        listed = self.document[self.start[target] : self.start[target + 1]]
        return [names[each] for each in listed.tolist()]


class Source(Protocol):
    """A list of documents for each target, as long as it goes or to a depth."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> SourceFacts: ...

    @property
    def documents(self) -> Sequence[str]:
        """All that it may list."""

    def lists(
        self, targets: Sequence[Target], depth: int, *, progress: Progress = silently
    ) -> RankedLists:
        """The first documents of each target's list."""


@dataclass(frozen=True)
class RunSource:
    """A run: by falling score, ties by falling name, as trec_eval orders them.

    A topic of the run is a target's topic.
    """

    name: str
    run: Run
    signature: str = ""

    @property
    def facts(self) -> SourceFacts:
        path = self.run.path
        digest = f"|sha256:{file_digest(path)}" if path.is_file() else ""
        signature = self.signature or f"run|file:{path.name}|tag:{self.run.tag}{digest}"
        return SourceFacts(self.name, "run", signature)

    @property
    def documents(self) -> Sequence[str]:
        return self.run.documents

    def lists(
        self, targets: Sequence[Target], depth: int, *, progress: Progress = silently
    ) -> RankedLists:
        run = self.run
        # Scores as pytrec_eval compares them; documents are numbered by the order of their bytes.
        order = np.lexsort((-run.document, -in_single_precision(run.score), run.topic))
        begin = np.searchsorted(run.topic[order], np.arange(len(run.topics) + 1))
        number = dict(zip(run.topics, range(len(run.topics)), strict=True))
        topic = np.array([number.get(target.topic, -1) for target in targets], dtype=np.intp)
        length = np.where(topic >= 0, begin[topic + 1] - begin[topic], 0)
        listed = np.minimum(length, depth)
        rows = order[_ranges(np.where(topic >= 0, begin[topic], 0), listed)]
        start = np.concatenate([[0], np.cumsum(listed)])
        return RankedLists(
            run.documents, run.document[rows], run.score[rows], start, length > listed
        )


@dataclass(frozen=True)
class EmbeddingSource:
    """The nearest neighbours of each target's vector, itself left out.

    `queries` are vectors by topic, for targets that are no documents.
    """

    name: str
    vectors: Vectors
    similarity: Similarity = "cosine"
    queries: Vectors | None = None
    kind: str = field(default="embeddings", init=False)

    @property
    def facts(self) -> SourceFacts:
        signature = f"{self.vectors.signature}|similarity:{self.similarity}"
        if self.queries is not None:
            signature += f"|queries:{self.queries.signature}"
        return SourceFacts(self.name, self.kind, signature)

    @property
    def documents(self) -> Sequence[str]:
        return self.vectors.names

    def lists(
        self, targets: Sequence[Target], depth: int, *, progress: Progress = silently
    ) -> RankedLists:
        own = self.vectors.positions([target.docno for target in targets])
        asked, known = self.query_vectors(targets)
        found = nearest(
            asked,
            self.vectors,
            depth,
            similarity=self.similarity,
            own=own[known],
            progress=progress,
        )
        n_found = np.zeros(len(targets), dtype=np.intp)
        n_found[known] = (found.position >= 0).sum(axis=1)
        listed = found.position >= 0
        start = np.concatenate([[0], np.cumsum(n_found)])
        n_others = len(self.vectors.names) - (own >= 0)
        is_cut = (n_found > 0) & (n_found < n_others) & (n_found >= depth)
        return RankedLists(
            self.vectors.names, found.position[listed], found.score[listed], start, is_cut
        )

    def query_vectors(self, targets: Sequence[Target]) -> tuple[Floats, Integers]:
        """The vectors to search with, and the numbers of the targets that have one."""
        vectors, names = (
            (self.vectors, [target.docno for target in targets])
            if self.queries is None
            else (self.queries, [target.topic for target in targets])
        )
        rows = vectors.positions(names)
        known = np.flatnonzero(rows >= 0)
        return np.asarray(vectors.array[rows[known]], dtype=np.float64), known


def _ranges(begin: Integers, length: Integers) -> Integers:
    """Numbers from each beginning on, so many of each."""
    end = np.cumsum(length)
    numbers: Integers = np.arange(end[-1] if len(end) else 0)
    numbers += np.repeat(begin - (end - length), length)
    return numbers

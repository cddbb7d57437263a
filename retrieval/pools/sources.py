from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from presentation.progress import Progress, silently
from retrieval.pools.records import SourceFacts, Target
from retrieval.pools.vectors import BLOCK_ROWS, Vectors, file_digest
from retrieval.trec_files import Run
from stats.arguments import Floats, Integers, require_one_of
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
        names = self.documents
        listed = self.document[self.start[target] : self.start[target + 1]]
        return [names[each] for each in listed.tolist()]


class Source(Protocol):
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


Similarity = Literal["cosine", "inner", "l2"]


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
    end = np.cumsum(length)
    numbers: Integers = np.arange(end[-1] if len(end) else 0)
    numbers += np.repeat(begin - (end - length), length)
    return numbers


# Neighbours beyond those asked for: single precision may swap near ones.
SPARE = 8
# How many numbers of vectors are compared in double precision at once.
REFINED_AT_ONCE = 1 << 22
# Vectors are centered on the mean of this many first ones.
CENTRED_ON = 10_000
# The least divisor: zeros divided by it stay zeros.
TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Neighbours:
    """The nearest vectors of each query, the nearest first; rows end with -1 where there are fewer.

    Attributes
    ----------
    position : ndarray of int, shape (n_queries, k)
    score : ndarray of float, shape (n_queries, k)
        Cosine, inner product, or the squared distance's negative: more is nearer.
    """

    position: Integers
    score: Floats


def nearest(
    queries: NDArray[np.floating],
    vectors: Vectors,
    k: int,
    *,
    similarity: Similarity = "cosine",
    own: Integers | None = None,
    block_rows: int = BLOCK_ROWS,
    progress: Progress = silently,
) -> Neighbours:
    """The k nearest vectors of each query, found exactly.

    Blocks of `block_rows` vectors are searched by faiss in single precision; what comes first is
    compared again in double precision, the same distances by position. `own` is each query's own
    row, which is no neighbour of it (-1 for none). A vector of zeros has no direction: under
    cosine it is nobody's neighbour.
    """
    require_one_of(similarity=(similarity, get_args(Similarity)))
    if k < 1:
        raise ValueError(f"k must be positive, got {k}")
    if queries.ndim != 2 or queries.shape[1] != vectors.array.shape[1]:
        raise ValueError(
            f"queries must have {vectors.array.shape[1]} columns, not the shape {queries.shape}"
        )
    if not np.isfinite(queries).all():
        raise ValueError("queries must be finite")
    own = np.full(len(queries), -1) if own is None else own
    width = min(k + 1 + SPARE, len(vectors.array))
    position = _search(queries, vectors, width, similarity, block_rows, progress)
    return _refined(queries, vectors, position, k, similarity, own)


def _search(
    queries: NDArray[np.floating],
    vectors: Vectors,
    width: int,
    similarity: Similarity,
    block_rows: int,
    progress: Progress,
) -> Integers:
    """The rows that are nearest in single precision, in no sure order; -1 where there are fewer."""
    import faiss  # a third of a second and 60 MB, which only searches pay

    # Distances of directions order as cosines do. Distances are the same from any centre, and so is
    # the order of products; from the middle of the vectors single precision loses fewer digits.
    middle, has_length = _directed(vectors.array[:CENTRED_ON], similarity)
    centre = middle[has_length].mean(axis=0) if has_length.any() else middle[0]
    ready, _ = _directed(queries, similarity)
    ready = _single(ready if similarity == "inner" else ready - centre)
    metric = faiss.METRIC_INNER_PRODUCT if similarity == "inner" else faiss.METRIC_L2
    best = np.full((len(ready), width), -np.inf, dtype=np.float32)
    position = np.full((len(ready), width), -1, dtype=np.intp)
    for start, block in progress(vectors.blocks(block_rows), -(-len(vectors.array) // block_rows)):
        rows = np.arange(start, start + len(block))
        directed, is_listed = _directed(block, similarity)
        block = _single(directed - centre)
        if not is_listed.all():
            block, rows = block[is_listed], rows[is_listed]
        if not len(block) or not len(ready):
            continue
        score, found = faiss.knn(ready, block, min(width, len(block)), metric=metric)
        score = score if similarity == "inner" else -score
        score[found < 0] = -np.inf
        found = np.where(found < 0, -1, rows[found])
        together = np.hstack([best, score])
        keep = np.argpartition(-together, width - 1, axis=1)[:, :width]
        best = np.take_along_axis(together, keep, axis=1)
        position = np.take_along_axis(np.hstack([position, found]), keep, axis=1)
    return position


def _directed(
    rows: NDArray[np.floating], similarity: Similarity
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """The rows, under cosine at length 1, and which can be neighbours: of zeros, none can."""
    if similarity != "cosine":
        return np.asarray(rows), np.ones(len(rows), dtype=bool)
    lengths = np.linalg.norm(rows, axis=1)
    return rows / np.maximum(lengths, TINY)[:, None].astype(rows.dtype), lengths > 0


def _single(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.ascontiguousarray(rows, dtype=np.float32)


def _refined(
    queries: NDArray[np.floating],
    vectors: Vectors,
    position: Integers,
    k: int,
    similarity: Similarity,
    own: Integers,
) -> Neighbours:
    n_queries, width = position.shape
    at_once = max(1, REFINED_AT_ONCE // max(1, width * queries.shape[1]))
    k = min(k, width)
    nearest_rows = np.full((n_queries, k), -1, dtype=np.intp)
    scores = np.full((n_queries, k), np.nan)
    for start in range(0, n_queries, at_once):
        part = slice(start, start + at_once)
        score = _scores(queries[part], vectors.array, position[part], similarity)
        score[position[part] == own[part][:, None]] = -np.inf
        score[position[part] < 0] = -np.inf
        order = np.lexsort((position[part], -score), axis=1)[:, :k]
        score = np.take_along_axis(score, order, axis=1)
        rows = np.take_along_axis(position[part], order, axis=1)
        is_neighbour = score > -np.inf
        nearest_rows[part] = np.where(is_neighbour, rows, -1)
        scores[part] = np.where(is_neighbour, score, np.nan)
    return Neighbours(nearest_rows, scores)


def _scores(
    queries: NDArray[np.floating],
    array: NDArray[np.floating],
    position: Integers,
    similarity: Similarity,
) -> Floats:
    listed: Floats = np.asarray(array[position.ravel()], dtype=np.float64)
    listed = listed.reshape(*position.shape, -1)
    query: Floats = np.asarray(queries, dtype=np.float64)[:, None, :]
    scores: Floats
    if similarity == "l2":
        scores = -np.square(listed - query).sum(axis=2)
        return scores
    scores = np.einsum("qij,qkj->qi", listed, query)
    if similarity == "inner":
        return scores
    lengths = np.linalg.norm(listed, axis=2) * np.linalg.norm(query, axis=2)
    cosines: Floats = np.full_like(scores, -np.inf)
    np.divide(scores, lengths, out=cosines, where=lengths > 0)
    return cosines

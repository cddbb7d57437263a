"""How difficult each target will be, predicted from a source's scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from presentation.files import reason_of
from presentation.progress import Progress, silently
from retrieval.exceptions import PoolUnfit
from retrieval.pools.neighbours import Similarity
from retrieval.pools.records import Target
from retrieval.pools.sources import EmbeddingSource, RankedLists, RunSource
from retrieval.pools.vectors import Vectors
from stats.arguments import Floats
from stats.ranking.query_difficulty import NEEDS_CORPUS_SCORE, Predictor, query_difficulty

SCORES: dict[Similarity, str] = {"cosine": "1+cosine", "inner": "inner", "l2": "1/(1+distance)"}
"""What becomes of similarities, so that more is nearer, and positive where it can be."""
DEPTH = 1000
"""Of the lists of neighbours that predictors look at, where they set no cutoff."""
NUMBERS_AT_ONCE = 1 << 24


def difficulty(
    targets: Sequence[Target],
    source: RunSource | EmbeddingSource,
    predictor: Predictor,
    *,
    cutoff: int | None = None,
    share: float = 0.5,
    progress: Progress = silently,
) -> tuple[Floats, str]:
    """A value for each target, NaN where the source has no list of it, and what it is made by.

    The corpus score of embeddings is the mean over all of them, that of a run the mean of the
    topic's list, since a run has no other scores.
    """
    depth = np.iinfo(np.int32).max if isinstance(source, RunSource) else cutoff or DEPTH
    lists = source.lists(targets, depth, progress=progress)
    scores = _padded(lists)
    corpus, of_corpus = None, ""
    if isinstance(source, EmbeddingSource):
        scores = _transformed(scores, source.similarity)
    if predictor in NEEDS_CORPUS_SCORE:
        corpus, of_corpus = _corpus_scores(targets, source, scores)
    try:
        values = query_difficulty(
            predictor, scores, corpus_score=corpus, cutoff=cutoff, share=share
        )
    except ValueError as error:
        raise PoolUnfit(f"{predictor} of {source.name}: {reason_of(error)}.") from None
    settings = f"{predictor}|cutoff:{cutoff or 'default'}"
    settings += f"|share:{share}" if predictor == "n_sigma" else ""
    settings += f"|corpus:{of_corpus}" if of_corpus else ""
    if isinstance(source, EmbeddingSource):
        settings += f"|scores:{SCORES[source.similarity]}|depth:{depth}"
    return values, f"{settings}|{source.facts.signature}"


def _padded(lists: RankedLists) -> Floats:
    """The scores of each list in a row, NaN behind its end."""
    length = np.diff(lists.start)
    table = np.full((len(length), max(int(length.max(initial=0)), 1)), np.nan)
    row = np.repeat(np.arange(len(length)), length)
    table[row, np.arange(len(lists.score)) - np.repeat(lists.start[:-1], length)] = lists.score
    return table


def _transformed(scores: Floats, similarity: Similarity) -> Floats:
    """Similarities as SCORES says; those of `l2` are squared distances' negatives."""
    if similarity == "cosine":
        return scores + 1
    return 1 / (1 + np.sqrt(-scores)) if similarity == "l2" else scores


def _corpus_scores(
    targets: Sequence[Target], source: RunSource | EmbeddingSource, scores: Floats
) -> tuple[Floats, str]:
    if isinstance(source, EmbeddingSource):
        queries, known = source.query_vectors(targets)
        means = np.full(len(targets), np.nan)
        means[known] = mean_scores(queries, source.vectors, source.similarity)
        return means, "mean of all vectors"
    listed = ~np.isnan(scores)
    with np.errstate(invalid="ignore"):  # infinite scores are refused by the predictor
        sums = np.nansum(scores, axis=1)
    means = np.full(len(scores), np.nan)
    np.divide(sums, listed.sum(axis=1), out=means, where=listed.any(axis=1))
    return means, "mean of the list"


def mean_scores(queries: Floats, vectors: Vectors, similarity: Similarity) -> Floats:
    """The mean of each query's scores over all vectors, as SCORES says; zeros have cosine 0."""
    sums = np.zeros(len(queries))
    queries = _unit(queries) if similarity == "cosine" else queries
    rows_at_once = max(1, NUMBERS_AT_ONCE // max(len(queries), vectors.array.shape[1]))
    for _, block in vectors.blocks(rows_at_once):
        rows = block.astype(np.float64)
        if similarity == "l2":
            squares = np.square(rows).sum(axis=1) + np.square(queries).sum(axis=1)[:, None]
            distances = np.sqrt(np.maximum(squares - 2 * (queries @ rows.T), 0))
            sums += (1 / (1 + distances)).sum(axis=1)
        else:
            sums += queries @ (_unit(rows) if similarity == "cosine" else rows).sum(axis=0)
    means: Floats = sums / len(vectors.array)
    return means + 1 if similarity == "cosine" else means


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1)[:, None]
    unit: Floats = np.zeros_like(rows)
    np.divide(rows, lengths, out=unit, where=lengths > 0)
    return unit

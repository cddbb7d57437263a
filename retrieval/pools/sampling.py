from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from presentation.files import reason_of
from presentation.numbers import count_of, plain_values
from presentation.progress import Progress, silently
from presentation.row_files import csv_parts
from retrieval.exceptions import PoolUnfit, SampleUnfit
from retrieval.pools.catalogue import targets_of_runs
from retrieval.pools.records import Target
from retrieval.pools.sources import EmbeddingSource, RankedLists, RunSource, Similarity
from retrieval.pools.vectors import Vectors
from stats.arguments import Floats, Integers
from stats.ranking.query_difficulty import NEEDS_CORPUS_SCORE, Predictor, query_difficulty

Allocation = Literal["equal", "proportional"]
COLUMNS = ("topic", "target", "stratum", "value", "probability")

# A smaller ratio of probabilities comes from rounding proportional shares.
UNEQUAL = 1.1


@dataclass(frozen=True)
class Stratum:
    stratum: int
    low: float
    high: float
    n_targets: int
    n_drawn: int

    @property
    def probability(self) -> float:
        return self.n_drawn / self.n_targets


@dataclass(frozen=True, slots=True)
class DrawnTarget:
    target: Target
    stratum: int
    value: float
    probability: float


@dataclass(frozen=True)
class TargetSample:
    targets: tuple[DrawnTarget, ...]
    strata: tuple[Stratum, ...]
    column: str
    signature: str
    allocation: Allocation
    seed: int
    n_undefined: int

    def notes(self) -> Iterator[str]:
        if self.n_undefined:
            targets = count_of(self.n_undefined, "target")
            yield f"{targets} without a value of {self.column} could not be drawn"
        shares = [each.probability for each in self.strata]
        if max(shares) > UNEQUAL * min(shares):
            yield (
                "strata were drawn with different probabilities: means for all targets weigh each "
                "drawn one by 1 / probability (evaluate_runs --weights reads this file)"
            )
        for each in self.strata:
            if not each.n_drawn:
                yield f"no target of stratum {each.stratum} was drawn: it stands for nothing"

    def record(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "signature": self.signature,
            "allocation": self.allocation,
            "seed": self.seed,
            "n": len(self.targets),
            "n_undefined": self.n_undefined,
            "strata": [
                plain_values(asdict(each) | {"probability": each.probability})
                for each in self.strata
            ],
            "targets": [dict(zip(COLUMNS, row, strict=True)) for row in map(_row, self.targets)],
            "notes": list(self.notes()),
        }

    def csv(self) -> Iterator[str]:
        return csv_parts(COLUMNS, map(_row, self.targets))


def _row(drawn: DrawnTarget) -> tuple[Any, ...]:
    target = drawn.target
    return target.topic, target.docno, drawn.stratum, drawn.value, drawn.probability


def sample_targets(
    targets: Sequence[Target],
    values: Floats,
    n: int,
    *,
    n_strata: int = 4,
    allocation: Allocation = "equal",
    seed: int = 0,
    column: str = "value",
    signature: str = "",
) -> TargetSample:
    """Draw n targets without replacement from strata between quantiles of their values.

    As many from each stratum (`equal`), or shares that are those of the strata (`proportional`).
    What does not divide goes to strata that are drawn. Equal values are never in two strata, so
    that there may be fewer strata than asked for. A target without a value cannot be drawn.
    """
    if len(targets) != len(values):
        raise ValueError(f"targets and values differ in length: {len(targets)} and {len(values)}")
    if n < 1 or n_strata < 1:
        raise ValueError(f"n and n_strata must be positive, got {n} and {n_strata}")
    defined = np.flatnonzero(~np.isnan(values))
    if n > len(defined):
        raise _too_many(n, len(defined), column)
    rng = np.random.default_rng(seed)
    stratum = _strata_of(values[defined], n_strata)
    sizes = np.bincount(stratum)
    shares = _allocated(n, sizes, allocation, rng)
    drawn: list[DrawnTarget] = []
    strata: list[Stratum] = []
    for number, (size, n_drawn) in enumerate(zip(sizes.tolist(), shares.tolist(), strict=True)):
        members = defined[stratum == number]
        low, high = float(values[members].min()), float(values[members].max())
        strata.append(Stratum(number + 1, low, high, size, n_drawn))
        drawn += [
            DrawnTarget(targets[each], number + 1, float(values[each]), n_drawn / size)
            for each in rng.choice(members, n_drawn, replace=False).tolist()
        ]
    order = {target.topic: at for at, target in enumerate(targets)}
    drawn.sort(key=lambda each: order[each.target.topic])
    n_undefined = len(targets) - len(defined)
    return TargetSample(
        tuple(drawn), tuple(strata), column, signature, allocation, seed, n_undefined
    )


def draw_targets(
    targets: Sequence[Target],
    values: Floats,
    n: int,
    *,
    n_strata: int,
    allocation: Allocation,
    seed: int,
    column: str,
    signature: str,
) -> TargetSample:
    """The same, or SampleUnfit if a stratum would be empty or not drawn from."""
    require_possible(n, n_strata, values[~np.isnan(values)], allocation=allocation, column=column)
    return sample_targets(
        targets,
        values,
        n,
        n_strata=n_strata,
        allocation=allocation,
        seed=seed,
        column=column,
        signature=signature,
    )


def targets_of_source(source: RunSource | EmbeddingSource) -> list[Target]:
    """The topics of a run, or all documents with vectors."""
    if isinstance(source, RunSource):
        return targets_of_runs([source.run], source.documents)
    return [Target(name, name) for name in source.documents]


def _too_many(n: int, n_available: int, column: str) -> SampleUnfit:
    available = count_of(n_available, "target")
    return SampleUnfit("n", f"{n:,} are to be drawn, where {available} have a value of {column}.")


def require_possible(
    n: int,
    n_strata: int,
    values: Floats,
    *,
    allocation: Allocation = "equal",
    column: str = "value",
) -> None:
    if n > len(values):
        raise _too_many(n, len(values), column)
    if n_strata > n:
        text = (
            f"{n_strata:,} strata need {n_strata:,} targets or more, and {count_of(n, 'target')} "
            f"{'is' if n == 1 else 'are'} to be drawn: some strata would stand for nothing."
        )
        raise SampleUnfit("strata", text)
    sizes = np.bincount(_strata_of(values, n_strata))
    if len(sizes) < n_strata:
        most = _most_strata(values, n_strata)
        text = (
            f"the values of {column} fill {len(sizes):,} of {n_strata:,} strata: equal values are "
            f"never in two. Take {most:,}."
        )
        raise SampleUnfit("strata", text[0].upper() + text[1:], number=most)
    if allocation == "proportional" and not _draws_from_all(n, sizes):
        smallest, n_there = int(sizes.min()), int(sizes.sum())
        least = -(-n_there // smallest)
        text = (
            f"In proportion nothing is drawn of a stratum of {count_of(smallest, 'target')} "
            f"among {n_there:,}. Draw {least:,} or more, or as many from each stratum, or "
            "take fewer strata."
        )
        raise SampleUnfit("n", text, number=least)


def _draws_from_all(n: int, sizes: Integers) -> bool:
    """Whether shares in proportion leave no stratum out, whatever lots decide."""
    exact: Floats = n * sizes / sizes.sum()
    whole = np.floor(exact)
    rest, left = exact - whole, n - int(whole.sum())
    return all(int((rest >= rest[at]).sum()) <= left for at in np.flatnonzero(whole == 0))


def _most_strata(values: Floats, below: int) -> int:
    for n_strata in range(below - 1, 1, -1):
        if int(_strata_of(values, n_strata).max()) + 1 == n_strata:
            return n_strata
    return 1


def _strata_of(values: Floats, n_strata: int) -> Integers:
    """The stratum of each value by quantiles, from 0 on, none of them empty."""
    edges = np.quantile(values, np.arange(1, n_strata) / n_strata)
    codes: Integers = np.unique(np.searchsorted(edges, values, side="left"), return_inverse=True)[1]
    return codes


def _allocated(
    n: int, sizes: Integers, allocation: Allocation, rng: np.random.Generator
) -> Integers:
    shares = np.zeros(len(sizes), dtype=np.intp)
    if allocation == "proportional":
        exact: Floats = n * sizes / sizes.sum()
        shares += np.floor(exact).astype(np.intp)
        lots = rng.permutation(len(sizes))
        # The largest remainders; equal ones by lot.
        order = np.lexsort((lots, shares - exact))
        shares[order[: n - int(shares.sum())]] += 1
        return shares
    while (left := n - int(shares.sum())) > 0:
        open_strata = np.flatnonzero(shares < sizes)
        each = left // len(open_strata)
        if each:
            shares[open_strata] += np.minimum(each, (sizes - shares)[open_strata])
        else:
            shares[rng.permutation(open_strata)[:left]] += 1
    return shares


# How similarities become scores: higher is nearer, and positive if possible.
SCORES: dict[Similarity, str] = {"cosine": "1+cosine", "inner": "inner", "l2": "1/(1+distance)"}
# The length of the lists of neighbours that predictors read if they set no cutoff.
DEPTH = 1000
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
    scores = _padded(source.lists(targets, depth, progress=progress))
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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import nan
from typing import Any

from annotation.readers.pooled_batch import PooledHit
from presentation.numbers import plain_values
from retrieval.exports.grades import CollectionSizes
from stats.agreement import Agreement, cohen_kappa
from stats.arguments import Flags, Integers
from stats.libraries import np, pd

# A picture that is shown for at least this share of the targets is a hub.
HUB_SHARE = 0.1
LEAST_TARGETS = 2
MOST_HUBS = 20


@dataclass(frozen=True)
class SelfConsistency:
    n_pairs: int
    n_different: int
    kappa: Agreement

    def record(self) -> dict[str, Any]:
        values = {
            "n_pairs": self.n_pairs,
            "n_different": self.n_different,
            "agreement": self.kappa.observed,
            "kappa": self.kappa.value,
            "ci_low": self.kappa.ci_low,
            "ci_high": self.kappa.ci_high,
            "ci_method": str(self.kappa.ci_method),
            "reason": None if self.kappa.reason is None else str(self.kappa.reason),
        }
        return plain_values(values)


@dataclass(frozen=True)
class JudgedPools:
    """Assignments with their pools.

    Attributes
    ----------
    target : ndarray of int, shape (n_rows,)
        Codes among `names`, as those of pictures.
    picture : ndarray of int, shape (n_rows, n_positions)
        -1 past the end of a shorter pool.
    ticked : ndarray of bool, shape (n_rows, n_positions)
    judged : ndarray of bool, shape (n_rows,)
    line : ndarray of int, shape (n_rows,)
    names : list of str
    """

    target: Integers
    picture: Integers
    ticked: Flags
    judged: Flags
    line: Integers
    names: list[str]

    @property
    def has_picture(self) -> Flags:
        return self.picture >= 0

    @property
    def is_target(self) -> Flags:
        own: Flags = self.picture == self.target[:, None]
        return own

    @cached_property
    def is_repeat(self) -> Flags:
        row, slot = np.nonzero(self.has_picture)
        pairs = pd.DataFrame({"row": row, "picture": self.picture[row, slot]})
        repeat = np.zeros(self.picture.shape, dtype=bool)
        repeat[row, slot] = pairs.duplicated().to_numpy()
        return repeat

    @cached_property
    def block(self) -> Integers:
        """The block of each position, inferred of how many pictures each has: a source that
        always returns the same few is followed by one that does not."""
        shown = [self.picture[self.judged, slot] for slot in range(self.picture.shape[1])]
        distinct = [len(np.unique(column[column >= 0])) for column in shown]
        least = 0.1 * self.judged.sum()
        begins = [
            n > 0 and after >= MOST_OF_BEFORE * before and after >= least and before > 1
            for n, (before, after) in enumerate(zip([0, *distinct], distinct, strict=False))
        ]
        return np.cumsum(begins).astype(np.intp)

    @cached_property
    def first_slot(self) -> Integers:
        n_rows, n_slots = self.picture.shape
        first = np.tile(np.arange(n_slots), (n_rows, 1))
        for row, slot in zip(*np.nonzero(self.is_repeat), strict=True):
            first[row, slot] = np.argmax(self.picture[row] == self.picture[row, slot])
        return first

    @property
    def sizes(self) -> CollectionSizes:
        return self._sizes(self.has_picture & self.judged[:, None], self.ticked)

    @property
    def sizes_cleaned(self) -> CollectionSizes:
        """With a picture once, ticked if it was in any slot, and never the target itself."""
        ticked = self.ticked.copy()
        rows, slots = np.nonzero(self.ticked & self.is_repeat)
        ticked[rows, self.first_slot[rows, slots]] = True
        retained = self.has_picture & self.judged[:, None] & ~self.is_repeat & ~self.is_target
        return self._sizes(retained, ticked)

    def _sizes(self, judged: Flags, ticked: Flags) -> CollectionSizes:
        codes, topic = np.unique(self.target, return_inverse=True)
        return CollectionSizes(
            judged=_sums(topic, judged.sum(axis=1), len(codes)),
            relevant=_sums(topic, (judged & ticked).sum(axis=1), len(codes)),
        )


def repeats(table: JudgedPools) -> dict[str, Any]:
    repeat = table.is_repeat
    rows, slots = np.nonzero(repeat)
    within = table.block[slots] == table.block[table.first_slot[rows, slots]]
    unique = (table.has_picture & ~repeat).sum(axis=1)
    return {
        "n_rows": int(repeat.any(axis=1).sum()),
        "n_surplus": len(rows),
        "n_within_block": int(within.sum()),
        "unique_least": int(unique.min(initial=table.picture.shape[1])),
        "unique_most": int(unique.max(initial=0)),
        "unique_mean": float(unique.mean()) if len(unique) else nan,
    }


def own_targets(table: JudgedPools) -> dict[str, int]:
    own = table.is_target
    n_ticked = int((own & table.ticked).any(axis=1).sum())
    return {"n_rows": int(own.any(axis=1).sum()), "n_ticked": n_ticked}


def hubs(table: JudgedPools) -> dict[str, Any]:
    row, slot = np.nonzero(table.has_picture)
    pairs = np.unique(np.stack([table.target[row], table.picture[row, slot]]), axis=1)
    times = np.bincount(pairs[1], minlength=len(table.names))
    least = max(LEAST_TARGETS, HUB_SHARE * len(np.unique(table.target)))
    is_hub = np.append(times >= least, False)[table.picture]
    shown, judged = table.has_picture, table.has_picture & table.judged[:, None]
    largest = [int(code) for code in np.argsort(-times, kind="stable") if times[code] >= least]
    return {
        "n": len(largest),
        "share_of_slots": _share(is_hub, shown),
        "relevance": _share(table.ticked, judged & is_hub),
        "relevance_elsewhere": _share(table.ticked, judged & ~is_hub),
        "largest": [
            {"picture": table.names[code], "n_targets": int(times[code])}
            for code in largest[:MOST_HUBS]
        ],
        "least_share": HUB_SHARE,
    }


def positions(table: JudgedPools) -> list[dict[str, float]]:
    rows = []
    for slot, block in enumerate(table.block):
        judged = table.judged & table.has_picture[:, slot]
        rows.append(
            {
                "position": slot + 1,
                "block": int(block) + 1,
                "n_distinct": len(np.unique(table.picture[judged, slot])),
                "n_judged": int(judged.sum()),
                "prevalence": _share(table.ticked[:, slot], judged),
            }
        )
    return rows


def self_consistency(table: JudgedPools, *, confidence: float = 0.95) -> SelfConsistency:
    first, second, clusters = [], [], []
    for row in np.flatnonzero(table.is_repeat.any(axis=1) & table.judged):
        shown = table.picture[row]
        for a, b in combinations(np.flatnonzero(shown >= 0), 2):
            if shown[a] == shown[b]:
                first.append(bool(table.ticked[row, a]))
                second.append(bool(table.ticked[row, b]))
                clusters.append(int(row))
    kappa = cohen_kappa(
        first, second, categories=(False, True), clusters=clusters, confidence=confidence
    )
    return SelfConsistency(
        len(first), sum(a != b for a, b in zip(first, second, strict=True)), kappa
    )


def _share(flags: Flags, among: Flags) -> float:
    return float(flags[among].mean()) if among.any() else nan


# A position with this many times the pictures of the one before begins another source's block.
MOST_OF_BEFORE = 3


def _sums(group: Integers, values: Integers, n: int) -> Integers:
    return np.bincount(group, weights=values, minlength=n).astype(np.intp)


def judged_pools(hits: Sequence[PooledHit]) -> JudgedPools:
    width = max((len(hit.pictures) for hit in hits), default=0)
    numbers: dict[str, int] = {}
    picture = np.full((len(hits), width), -1, dtype=np.intp)
    ticked = np.zeros((len(hits), width), dtype=bool)
    target = np.empty(len(hits), dtype=np.intp)
    for row, hit in enumerate(hits):
        target[row] = numbers.setdefault(hit.target, len(numbers))
        shown = [numbers.setdefault(name, len(numbers)) if name else -1 for name in hit.pictures]
        picture[row, : len(shown)] = shown
        if hit.ticks is not None:
            ticked[row, : len(hit.ticks)] = hit.ticks
    return JudgedPools(
        target=target,
        picture=picture,
        ticked=ticked,
        judged=np.array([hit.ticks is not None for hit in hits], dtype=bool),
        line=np.array([hit.line for hit in hits], dtype=np.intp),
        names=list(numbers),
    )

"""What is counted of judged pools: repeats, targets among candidates, hubs, positions, and how
judgments of a picture agree with those of the same picture in the same HIT."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from math import nan
from typing import Any

import numpy as np

from presentation.records import plain_values
from retrieval.audit.judged_pools import Flags, JudgedPools
from stats.agreement import Agreement, cohen_kappa

HUB_SHARE = 0.1
"""Of the targets for which a picture is shown, from which on it is called a hub."""
LEAST_TARGETS = 2
MOST_HUBS = 20


@dataclass(frozen=True)
class Repeats:
    """Pictures that a pool shows more than once."""

    n_rows: int
    n_surplus: int
    n_within_block: int
    unique_least: int
    unique_most: int
    unique_mean: float


@dataclass(frozen=True)
class OwnTargets:
    """Targets that stand in their own pool, and those of them that were ticked."""

    n_rows: int
    n_ticked: int


@dataclass(frozen=True)
class Hubs:
    """Pictures shown for many targets: what they fill, and how often they are relevant."""

    n: int
    share_of_slots: float
    relevance: float
    relevance_elsewhere: float
    largest: tuple[tuple[str, int], ...]

    def record(self) -> dict[str, Any]:
        largest = [{"picture": name, "n_targets": n} for name, n in self.largest]
        return {**plain_values(asdict(self)), "least_share": HUB_SHARE, "largest": largest}


@dataclass(frozen=True)
class Position:
    """A slot of the pool: its block, how many pictures it shows, how many are relevant."""

    position: int
    block: int
    n_distinct: int
    n_judged: int
    prevalence: float


@dataclass(frozen=True)
class SelfConsistency:
    """The same picture twice in one HIT: pairs of judgments, and their kappa by HIT."""

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


def repeats(table: JudgedPools) -> Repeats:
    """Repeats of all rows, those that nobody judged too."""
    repeat = table.is_repeat
    rows, slots = np.nonzero(repeat)
    within = table.block[slots] == table.block[table.first_slot[rows, slots]]
    unique = (table.has_picture & ~repeat).sum(axis=1)
    return Repeats(
        n_rows=int(repeat.any(axis=1).sum()),
        n_surplus=len(rows),
        n_within_block=int(within.sum()),
        unique_least=int(unique.min(initial=table.picture.shape[1])),
        unique_most=int(unique.max(initial=0)),
        unique_mean=float(unique.mean()) if len(unique) else nan,
    )


def own_targets(table: JudgedPools) -> OwnTargets:
    """Rows that show the target among its candidates."""
    own = table.is_target
    return OwnTargets(int(own.any(axis=1).sum()), int((own & table.ticked).any(axis=1).sum()))


def hubs(table: JudgedPools) -> Hubs:
    """Pictures shown for at least a tenth of the targets, and for two."""
    row, slot = np.nonzero(table.has_picture)
    pairs = np.unique(np.stack([table.target[row], table.picture[row, slot]]), axis=1)
    n_targets = len(np.unique(table.target))
    times = np.bincount(pairs[1], minlength=len(table.names))
    least = max(LEAST_TARGETS, HUB_SHARE * n_targets)
    is_hub = np.append(times >= least, False)[table.picture]
    shown, judged = table.has_picture, table.has_picture & table.judged[:, None]
    largest = [int(code) for code in np.argsort(-times, kind="stable") if times[code] >= least]
    return Hubs(
        n=len(largest),
        share_of_slots=_share(is_hub, shown),
        relevance=_share(table.ticked, judged & is_hub),
        relevance_elsewhere=_share(table.ticked, judged & ~is_hub),
        largest=tuple((table.names[code], int(times[code])) for code in largest[:MOST_HUBS]),
    )


def positions(table: JudgedPools) -> list[Position]:
    """Each position of the rows that were judged."""
    rows = []
    for slot, block in enumerate(table.block):
        judged = table.judged & table.has_picture[:, slot]
        rows.append(
            Position(
                position=slot + 1,
                block=int(block) + 1,
                n_distinct=len(np.unique(table.picture[judged, slot])),
                n_judged=int(judged.sum()),
                prevalence=_share(table.ticked[:, slot], judged),
            )
        )
    return rows


def self_consistency(table: JudgedPools, *, confidence: float = 0.95) -> SelfConsistency:
    """Every two slots of a judged row that show the same picture."""
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
    n_different = sum(a != b for a, b in zip(first, second, strict=True))
    return SelfConsistency(len(first), n_different, kappa)


def _share(flags: Flags, among: Flags) -> float:
    """The share of flags that are set; NaN among none."""
    return float(flags[among].mean()) if among.any() else nan

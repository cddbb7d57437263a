"""What each run brought to a pool, what each depth did, and where relevant documents came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from retrieval.reuse.groups import Families
from retrieval.reuse.records import JUDGED_AT, Depth, Source, SystemInPool
from retrieval.trec_files import RelevanceGrades
from stats.arguments import Integers
from stats.ranking import JudgedLists
from stats.ranking.incomplete_judgments import judged
from stats.ranking.pool_bias import judgments_only_of, new_by_depth, share_over_topics

Flags = NDArray[np.bool_]
NO_RUN = "(no pooled run)"


@dataclass(frozen=True)
class Pooled:
    """Runs with the judgments of their pool: at which rank each run has each judged document, if
    the pool took the run down to there."""

    family: Families
    grades: RelevanceGrades
    lists: Sequence[JudgedLists]
    ranks: Integers
    depth: int
    counted: Flags
    elsewhere: Flags
    """Documents that a source brought which is no run."""

    @cached_property
    def is_judged(self) -> Flags:
        return self.grades.grade >= 0

    @cached_property
    def is_relevant(self) -> Flags:
        return self.grades.grade > 0

    @cached_property
    def share_in_qrels(self) -> float:
        """Of the documents that the pooled runs list to the depth."""
        lists = [one for one, is_in in zip(self.lists, self.family.is_pooled, strict=True) if is_in]
        known = np.concatenate([one.judgment[one.rank <= self.depth] >= 0 for one in lists])
        return float(known.mean())

    @cached_property
    def is_brought(self) -> Flags:
        """Documents of the qrels that a pooled run has within the depth."""
        return np.asarray((self.ranks[self.family.is_pooled] <= self.depth).any(axis=0))


def systems_of(pool: Pooled) -> Iterator[SystemInPool]:
    """A row for each run."""
    family = pool.family
    for at, run in enumerate(family.runs):
        within = pool.ranks[at] <= pool.depth
        only, of_group = (_only(pool, runs) for runs in ((run,), _relatives(family, run)))
        listed = pool.counted & (pool.lists[at].n_listed > 0)
        yield SystemInPool(
            run=run,
            group=family.group_of(run),
            is_pooled=bool(family.is_pooled[at]),
            n_judged=int((within & pool.is_judged).sum()),
            n_relevant=int((within & pool.is_relevant).sum()),
            n_judged_only=int((only & pool.is_judged).sum()),
            n_relevant_only=int((only & pool.is_relevant).sum()),
            n_relevant_group_only=int((of_group & within & pool.is_relevant).sum()),
            judged_at_10=float(judged(pool.lists[at], cutoff=JUDGED_AT)[listed].mean()),
        )


def _relatives(family: Families, run: str) -> tuple[str, ...]:
    return family.groups.get(family.group_of(run), (run,))


def _only(pool: Pooled, runs: Sequence[str]) -> Flags:
    """What no pooled run has but these."""
    members = pool.family.members(runs)
    among = pool.family.is_pooled | members
    return judgments_only_of(pool.ranks[among], members[among], pool.depth) & ~pool.elsewhere


def depths_of(pool: Pooled) -> Iterator[Depth]:
    """A row for each rank of the pool."""
    ranks = pool.ranks[pool.family.is_pooled][:, pool.is_judged]
    documents, relevant = new_by_depth(ranks, pool.is_relevant[pool.is_judged], pool.depth)
    so_far = zip(documents.cumsum(), relevant.cumsum(), documents, relevant, strict=True)
    for depth, (n_judged, n_relevant, n_new, n_new_relevant) in enumerate(so_far, 1):
        yield Depth(
            depth=depth,
            n_judged=int(n_judged),
            n_relevant=int(n_relevant),
            n_new_judged=int(n_new),
            n_new_relevant=int(n_new_relevant),
        )


def sources_of(pool: Pooled, confidence: float) -> Iterator[Source]:
    """Each pooled run as a source, and what none of them has."""
    pooled = np.flatnonzero(pool.family.is_pooled)
    parts = {pool.family.runs[at]: pool.ranks[at] <= pool.depth for at in pooled}
    parts |= {NO_RUN: ~pool.is_brought} if not pool.is_brought.all() else {}
    for name, part in parts.items():
        here = part & pool.is_judged
        relevant, topics = pool.is_relevant[here], pool.grades.topic[here]
        yield Source(
            source=name,
            n_judged=int(here.sum()),
            n_relevant=int(relevant.sum()),
            prevalence=share_over_topics(relevant, topics, confidence=confidence),
        )

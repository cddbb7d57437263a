"""A pool made from sources: candidates for each target, with the provenance of every slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from django.utils.translation import gettext as _

from presentation.progress import Progress, silently
from retrieval.exceptions import PoolUnfit
from retrieval.pools.catalogue import Catalogue, names_alone
from retrieval.pools.records import UNIFORM, DrySource, Pool, PoolPlan, Slot, Target
from retrieval.pools.report import pool_report
from retrieval.pools.sources import RankedLists, Source
from retrieval.pools.topic_pools import FUSED, Rules, TopicPool, topic_seed

LEAST_DEPTH, MOST_DEPTH = 100, 6400
"""Of lists that could be longer; they are made four times as long where one ended too early."""


def make_pool(
    targets: Sequence[Target],
    sources: Sequence[Source],
    plan: PoolPlan,
    *,
    catalogue: Catalogue | None = None,
    excluded: Collection[str] = (),
    progress: Progress = silently,
) -> Pool:
    """Candidates for each target by the plan, or PoolUnfit.

    Without a catalogue the documents are those that the sources know, and what is the same is
    known by name alone. With one, nothing else is pooled, and a picture or text only once.
    """
    _require_fit(targets, sources, plan)
    known = catalogue or names_alone(_documents(targets, sources))
    lists = _Lists(targets, sources, _first_depth(plan), progress)
    topics: dict[int, TopicPool] = {}
    numbers = list(range(len(targets)))
    while numbers:
        # Topics share nothing but a cap; without one, only those that ran out are made anew.
        again = range(len(targets)) if plan.cap else numbers
        rules = Rules(known, frozenset(excluded), plan.cap)
        topics |= _topic_pools(targets, again, lists, plan, rules, progress)
        numbers = [number for number in numbers if lists.ran_past_cut(number, topics[number].ended)]
        if not lists.deepen(numbers):
            break
    made = [topics[number] for number in range(len(targets))]
    pool = Pool(
        targets=tuple(targets),
        slots=tuple(slot for topic in made for slot in _presented(topic, plan.seed)),
        replacements=tuple(each for topic in made for each in topic.replacements),
        dry=tuple(each for topic in made for each in topic.dry),
        plan=plan,
        sources=tuple(source.facts for source in sources),
    )
    return pool.with_report(pool_report(pool, lists.first, known))


def require_candidates(pool: Pool) -> None:
    """Refuse a pool that has none."""
    if not pool.slots:
        raise PoolUnfit(
            _("No candidate was found for any target. Are their names those of the sources?")
        )


def _require_fit(targets: Sequence[Target], sources: Sequence[Source], plan: PoolPlan) -> None:
    if not targets:
        raise PoolUnfit("There are no targets.")
    if not sources:
        raise PoolUnfit("There are no sources of candidates.")
    topics = Counter(target.topic for target in targets)
    if twice := [topic for topic, n in topics.items() if n > 1]:
        raise PoolUnfit(f"Topic {twice[0]} is given twice.")
    names = [source.name for source in sources]
    for name, n in Counter(names).items():
        if n > 1:
            raise PoolUnfit(f"Two sources are called {name}. Give one another name.")
        if name in (UNIFORM, FUSED) or len(name.split()) != 1:
            raise PoolUnfit(f"A source cannot be called '{name}'.")
    for name, _n in plan.quotas:
        if name not in names:
            raise PoolUnfit(f"There is no source {name}. Sources: {', '.join(names)}.")


def _documents(targets: Sequence[Target], sources: Sequence[Source]) -> list[str]:
    names = dict.fromkeys(target.docno for target in targets if target.docno)
    for source in sources:
        names.update(dict.fromkeys(source.documents))
    return list(names)


def _first_depth(plan: PoolPlan) -> int:
    if plan.method == "take":
        return max(plan.fusion_depth, plan.take)
    return plan.depth or max(LEAST_DEPTH, 4 * (plan.per_topic or 0))


class _Lists:
    """The lists of all sources, deeper where a topic needs it."""

    def __init__(
        self,
        targets: Sequence[Target],
        sources: Sequence[Source],
        depth: int,
        progress: Progress,
    ) -> None:
        self._targets, self._sources, self._depth = targets, sources, depth
        self._progress = progress
        self.first = {
            source.name: source.lists(targets, depth, progress=progress) for source in sources
        }
        self._deeper: dict[tuple[str, int], tuple[RankedLists, int]] = {}

    def of(self, number: int) -> dict[str, list[str]]:
        """A topic's list of each source."""
        places = ((name, *self._place(name, number)) for name in self.first)
        return {name: lists.of(at) for name, lists, at in places}

    def ran_past_cut(self, number: int, ended: Collection[str]) -> bool:
        """Whether a topic came to the end of a list that could be longer."""
        places = (self._place(name, number) for name in ended)
        return any(bool(lists.is_cut[at]) for lists, at in places)

    def deepen(self, numbers: Sequence[int]) -> bool:
        """Make these topics' lists four times as long, unless they are as long as lists get."""
        if self._depth >= MOST_DEPTH:
            return False
        self._depth = min(4 * self._depth, MOST_DEPTH)
        targets = [self._targets[number] for number in numbers]
        for source in self._sources if targets else ():
            lists = source.lists(targets, self._depth, progress=self._progress)
            self._deeper |= {
                (source.name, number): (lists, at) for at, number in enumerate(numbers)
            }
        return True

    def _place(self, name: str, number: int) -> tuple[RankedLists, int]:
        return self._deeper.get((name, number), (self.first[name], number))


def _topic_pools(
    targets: Sequence[Target],
    numbers: Sequence[int],
    lists: _Lists,
    plan: PoolPlan,
    rules: Rules,
    progress: Progress,
) -> dict[int, TopicPool]:
    """The pools of these topics; under a cap the seed says who comes first."""
    order = np.array(numbers)
    if plan.cap:
        order = np.random.default_rng(plan.seed).permutation(order)
    pools: dict[int, TopicPool] = {}
    for number in progress(order.tolist(), len(numbers)):
        seed = topic_seed(plan.seed, targets[number].topic)
        topic = TopicPool(targets[number], lists.of(number), rules, seed)
        _fill(topic, plan)
        rules.count(topic.docnos)
        pools[number] = topic
    return pools


def _fill(topic: TopicPool, plan: PoolPlan) -> None:
    if plan.method == "depth":
        topic.fill_to_depth(plan.depth)
    elif plan.method == "take":
        topic.fill_by_fusion(plan.take, plan.fusion_constant, plan.fusion_depth)
    else:
        topic.fill_quotas(dict(plan.quotas))
    missing = (plan.per_topic or 0) - plan.uniform - len(topic.slots)
    # What no list could fill is drawn too, where the plan draws anything.
    n_drawn = plan.uniform + (max(0, missing) if plan.uniform else 0)
    drawn = topic.fill_uniformly(n_drawn)
    if drawn > plan.uniform:
        topic.dry = [_with_uniform(each) for each in topic.dry]


def _with_uniform(dry: DrySource) -> DrySource:
    n_open = dry.n_missing - len(dry.filled_by)
    return replace(dry, filled_by=(*dry.filled_by, *(UNIFORM,) * n_open))


def _presented(topic: TopicPool, seed: int) -> list[Slot]:
    """The slots with their position on a page, which says nothing about their source."""
    rng = np.random.default_rng([1, *topic_seed(seed, topic.target.topic)])
    order = rng.permutation(len(topic.slots)) + 1
    return [
        replace(slot, position=int(position), also=topic.also(slot))
        for slot, position in zip(topic.slots, order, strict=True)
    ]

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from presentation.numbers import plain_values
from presentation.progress import Progress, silently
from retrieval.exceptions import PoolUnfit
from retrieval.pools.catalogue import Catalogue, names_alone
from retrieval.pools.records import UNIFORM, DrySource, Pool, PoolPlan, Slot, Target
from retrieval.pools.sources import RankedLists, Source
from retrieval.pools.topic_pools import FUSED, Rules, TopicPool, topic_seed
from stats.ranking.pool_bias import hubness

# Lists are requested to the first depth, and to four times the depth while one ends too early.
LEAST_DEPTH, MOST_DEPTH = 100, 6400


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
    return replace(pool, report=pool_report(pool, lists.first, known))


def require_candidates(pool: Pool) -> None:
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
        places = ((name, *self._place(name, number)) for name in self.first)
        return {name: lists.of(at) for name, lists, at in places}

    def ran_past_cut(self, number: int, ended: Collection[str]) -> bool:
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
    return [
        replace(slot, position=int(position), also=topic.also(slot))
        for slot, position in zip(topic.slots, rng.permutation(len(topic.slots)) + 1, strict=True)
    ]


HUBS_LISTED = 20
# The depth at which the hubness of a source's lists is measured.
NEIGHBOURS = 10


def pool_report(
    pool: Pool, lists: Mapping[str, RankedLists], catalogue: Catalogue
) -> dict[str, Any]:
    topics = pool.by_topic()
    sizes = [len(slots) for slots in topics.values()]
    plan = pool.plan
    wanted = plan.per_topic if plan else None
    sources = [
        _of_source(pool, name) | {"n_unlisted": int((np.diff(ranked.start) == 0).sum())}
        for name, ranked in lists.items()
    ]
    if plan and plan.uniform:
        sources.append(_of_source(pool, UNIFORM) | {"n_unlisted": 0})
    return {
        "n_topics": len(topics),
        "n_slots": len(pool.slots),
        "n_documents": len({slot.docno for slot in pool.slots}),
        "n_catalogue": len(catalogue.documents),
        "candidates": {
            "planned": wanted,
            "least": min(sizes),
            "mean": float(np.mean(sizes)),
            "most": max(sizes),
        },
        "n_topics_short": sum(size < wanted for size in sizes) if wanted else 0,
        "n_topics_with_quotas_unmet": len({dry.topic for dry in pool.dry}),
        "n_replacements": len(pool.replacements),
        "replacements": dict(Counter(each.reason for each in pool.replacements)),
        "sources": sources,
        "found_by": _found_by(pool.slots),
        "hubness": plain_values(
            asdict(
                hubness(
                    [slot.docno for slot in pool.slots],
                    n_lists=len(topics),
                    n_documents=max(len(catalogue.documents), 1),
                )
            )
        ),
        "hubs": most_pooled(pool),
        "source_hubness": {
            name: _list_hubness(ranked, len(topics)) for name, ranked in lists.items()
        },
    }


def most_pooled(pool: Pool) -> list[dict[str, Any]]:
    counts = Counter(slot.docno for slot in pool.slots)
    n_topics = len(pool.targets)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:HUBS_LISTED]
    return [{"docno": docno, "n_topics": n, "share": n / n_topics} for docno, n in ordered if n > 1]


def _of_source(pool: Pool, name: str) -> dict[str, Any]:
    slots = [slot for slot in pool.slots if slot.source == name]
    passed = Counter(each.reason for each in pool.replacements if each.source == name)
    dry = [each for each in pool.dry if each.source == name]
    return {
        "source": name,
        "n_slots": len(slots),
        "share": len(slots) / len(pool.slots) if pool.slots else None,
        "n_documents": len({slot.docno for slot in slots}),
        "n_alone": sum(not slot.also for slot in slots),
        "n_for_others": sum(slot.quota not in ("", name) for slot in slots),
        "deepest_rank": max((slot.source_rank for slot in slots), default=0),
        "replacements": dict(passed),
        "n_dry_topics": len(dry),
        "n_dry_slots": sum(each.n_missing for each in dry),
    }


def _found_by(slots: Sequence[Slot]) -> dict[str, int]:
    """How many slots hold a document that one source lists, two, and so on."""
    n_sources = Counter(1 + len(slot.also) for slot in slots if slot.inclusion == 1)
    return {str(n): count for n, count in sorted(n_sources.items())}


def _list_hubness(ranked: RankedLists, n_topics: int) -> dict[str, Any]:
    place = np.arange(len(ranked.document)) - np.repeat(ranked.start[:-1], np.diff(ranked.start))
    first = ranked.document[place < NEIGHBOURS]
    measured = hubness(first, n_lists=n_topics, n_documents=len(ranked.documents))
    return plain_values(asdict(measured)) | {"depth": NEIGHBOURS}

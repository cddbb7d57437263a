"""What a pool came to: slots and replacements by source, which quotas are met, and its hubs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from presentation.records import plain_values
from retrieval.pools.catalogue import Catalogue
from retrieval.pools.records import UNIFORM, Pool, Slot
from retrieval.pools.sources import RankedLists
from stats.ranking.hubness import hubness

HUBS_LISTED = 20
NEIGHBOURS = 10
"""The depth at which the hubness of a source's lists is measured."""


def pool_report(
    pool: Pool, lists: Mapping[str, RankedLists], catalogue: Catalogue
) -> dict[str, Any]:
    """Counts of a pool that was made; shares are of all its slots."""
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
        "n_topics_with_quotas_unmet": len(unmet_quotas(pool)),
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


def unmet_quotas(pool: Pool) -> dict[str, list[str]]:
    """The topics for which a source has not filled its own quota, with those sources."""
    unmet: dict[str, list[str]] = {}
    for dry in pool.dry:
        unmet.setdefault(dry.topic, []).append(dry.source)
    return unmet


def most_pooled(pool: Pool) -> list[dict[str, Any]]:
    """The documents that stand in the most pools."""
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
    """Of the first documents of a source's lists, among all that it knows."""
    place = np.arange(len(ranked.document)) - np.repeat(ranked.start[:-1], np.diff(ranked.start))
    first = ranked.document[place < NEIGHBOURS]
    measured = hubness(first, n_lists=n_topics, n_documents=len(ranked.documents))
    return plain_values(asdict(measured)) | {"depth": NEIGHBOURS}

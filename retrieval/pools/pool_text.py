"""A pool, and what is wrong with one, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from presentation.counts import count_of
from presentation.text_tables import text_report, text_table
from retrieval.pools.lint import FAULTS, PoolLint
from retrieval.pools.records import REASONS, Pool

SOURCES = ("source", "slots", "documents", "alone", "deepest", "passed over", "dry topics")


def pool_text(pool: Pool) -> str:
    """A table of the sources, and sentences on replacements and hubs."""
    rows = [
        (
            each["source"],
            each["n_slots"],
            each["n_documents"],
            each["n_alone"],
            each["deepest_rank"],
            sum(each["replacements"].values()),
            each["n_dry_topics"],
        )
        for each in pool.report["sources"]
    ]
    return text_report([text_table(SOURCES, rows), "\n".join(_sentences(pool.report))])


def _sentences(report: dict[str, Any]) -> Iterator[str]:
    candidates = report["candidates"]
    least, most = candidates["least"], candidates["most"]
    each = count_of(least, "candidate") if least == most else f"{least} to {most} candidates"
    documents = count_of(report["n_documents"], "document")
    yield f"{count_of(report['n_topics'], 'target')}, {each} each, {documents} in all."
    for source in report["sources"]:
        if n := source["n_unlisted"]:
            yield f"{source['source']} lists nothing for {count_of(n, 'target')}."
    if n := report["n_topics_short"]:
        yield f"{count_of(n, 'target')} with fewer than {candidates['planned']} candidates."
    if n := report["n_topics_with_quotas_unmet"]:
        yield f"{count_of(n, 'target')} for which a source's list ended before its quota was met."
    for reason, n in report["replacements"].items():
        yield f"{count_of(n, 'document')} passed over: {REASONS[reason]}."
    hubs = report["hubness"]
    yield (
        f"{count_of(hubs['n_hubs'], 'hub')} in at least {hubs['hub_share']:.0%} of the pools: "
        f"{hubs['hub_slots']:.1%} of the slots; {hubs['anti_hubs']:.1%} of the catalogue in none."
    )


def lint_text(lint: PoolLint) -> str:
    """A table of the faults by name."""
    rows = [
        (
            name,
            "not checked" if count["n"] is None else count["n"],
            "" if count["n_topics"] is None else count["n_topics"],
            "allowed" if count["allowed"] else "",
            FAULTS[name],
        )
        for name, count in lint.counts().items()
    ]
    return text_table(("fault", "n", "topics", "", "what it is"), rows)

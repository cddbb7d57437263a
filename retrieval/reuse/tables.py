"""Reusability as text."""

from collections.abc import Iterator

from presentation.text_tables import text_table
from retrieval.reuse.records import Effect, LeftOut, Reusability, Source, SystemInPool

SYSTEMS = ("run", "group", "judged@10", "judged", "relevant", "by it alone", "by its group alone")
LEFT_OUT = (
    "left out",
    "documents lost",
    "relevant lost",
    "run",
    "measure",
    "mean",
    "without",
    "change",
    "interval",
    "rank",
    "judged",
)
SOURCES = ("source", "judged", "relevant", "prevalence", "interval")
DEPTHS = ("depth", "judged", "relevant", "new judged", "new relevant")
MOST_DEPTHS = 20


def as_text(record: Reusability) -> str:
    """What to expect first, then tables of systems, what is left out, sources and depths."""
    parts = ["\n".join(each.sentence for each in record.expectations)]
    parts.append(text_table(SYSTEMS, [_system(row) for row in record.systems]))
    parts.append(text_table(LEFT_OUT, list(_left_out(record))))
    parts.append(text_table(SOURCES, [_source(row) for row in record.sources]))
    parts.append(text_table(DEPTHS, list(_depths(record))))
    if record.notes:
        parts.append("\n".join(f"Note: {note}." for note in record.notes))
    return "\n\n".join(parts)


def _system(row: SystemInPool) -> tuple[str, ...]:
    return (
        row.run,
        row.group if row.is_pooled else "(outside the pool)",
        f"{row.judged_at_10:.3f}",
        str(row.n_judged),
        str(row.n_relevant),
        f"{row.n_relevant_only} relevant of {row.n_judged_only}",
        f"{row.n_relevant_group_only} relevant",
    )


def _left_out(record: Reusability) -> Iterator[tuple[str, ...]]:
    """A line for each run that is left out and measure."""
    for one in record.left_out:
        for row in one.effects:
            if row.is_left_out:
                yield _effect(one, row)


def _effect(one: LeftOut, row: Effect) -> tuple[str, ...]:
    name = f"group {one.name}" if one.unit == "group" else one.name
    return (
        name,
        str(one.n_judged_lost),
        str(one.n_relevant_lost),
        row.run,
        row.measure.name,
        f"{row.mean:.4f}",
        f"{row.mean_without:.4f}",
        f"{row.change:+.4f}",
        f"[{row.ci_low:+.4f}, {row.ci_high:+.4f}]" if row.ci_low == row.ci_low else "none",
        str(row.rank) if row.rank == row.rank_without else f"{row.rank} to {row.rank_without}",
        f"{row.judged:.3f} to {row.judged_without:.3f}",
    )


def _source(row: Source) -> tuple[str, ...]:
    share = row.prevalence
    known = share.ci_low == share.ci_low
    limits = f"[{share.ci_low:.3f}, {share.ci_high:.3f}]" if known else f"none: {share.reason}"
    value = f"{share.value:.3f}" if share.value == share.value else "undefined"
    return row.source, str(row.n_judged), str(row.n_relevant), value, limits


def _depths(record: Reusability) -> Iterator[tuple[str, ...]]:
    """At most some twenty ranks, the last among them."""
    step = -(-len(record.depths) // MOST_DEPTHS)
    for row in record.depths:
        if row.depth == 1 or row.depth % step == 0 or row is record.depths[-1]:
            counts = row.n_judged, row.n_relevant, row.n_new_judged, row.n_new_relevant
            yield str(row.depth), *map(str, counts)

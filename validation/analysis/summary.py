"""A report in lines of text, for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

SCOPES = {"all": "all", "mean_of_conditions": "mean"}


def lines_of(content: Mapping[str, Any]) -> Iterator[str]:
    """Every correlation, then the policies that would have moved one."""
    yield from (_correlation(row) for row in content["correlations"])
    moved = [row for row in content["sensitivity"] if row["moves_rank"]]
    if moved:
        yield "Ranks that another policy would have changed:"
        yield from (_moved(row) for row in moved)


def _correlation(row: Mapping[str, Any]) -> str:
    shown = f"undefined ({row['reason']})"
    if row["value"] is not None:
        shown = f"{row['value']:.3f}"
        if row["ci_low"] is not None:
            shown += f" [{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
        if row["share_of_ceiling"] is not None:
            shown += f", {row['share_of_ceiling']:.0%} of the ceiling"
    return f"{_place(row)} {shown}, {row['n_used']} of {row['n_groups']} groups"


def _moved(row: Mapping[str, Any]) -> str:
    before, now = (_number(row[name]) for name in ("base_value", "value"))
    ranks = f"rank {_rank(row['base_rank'])} -> {_rank(row['rank'])}"
    return f"{_place(row)} {row['setting']}={row['choice']}: {before} -> {now}, {ranks}"


def _place(row: Mapping[str, Any]) -> str:
    scope = row["by"] or SCOPES[row["scope"]]
    return (
        f"{row['question']:20} {scope:12} {row['metric']:20} {row['level']:7} "
        f"{row['coefficient']:9}"
    )


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _rank(rank: float | None) -> str:
    return "none" if rank is None else f"{rank:g}"

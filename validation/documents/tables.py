"""The tables of a full report."""

from __future__ import annotations

from collections.abc import Iterator

from validation.documents.cells import correlation, p_cell, signed
from validation.documents.content import ALL, MEAN, Content, Record
from validation.documents.documents import Column, Number, Row, Table
from validation.documents.wording import (
    CHOICES,
    COEFFICIENTS,
    LEVELS,
    POLICIES,
    TESTS,
    reason_in_words,
    said,
    statistic,
)

MEAN_OF_CONDITIONS = "mean of conditions"
EVERY = "all"
QUESTION, CONDITION = Column("Question", is_number=False), Column("Condition", is_number=False)
METRIC, SYSTEM = Column("Metric", is_number=False), Column("System", is_number=False)


def condition_text(record: Record) -> str:
    """What a record is of: all candidates, a condition, or the mean of the conditions."""
    return record["by"] or (MEAN_OF_CONDITIONS if record["scope"] == MEAN else EVERY)


def correlations_table(content: Content, level: str) -> Table:
    """Every metric against every question and condition at one level, with coverage."""
    coefficients = [
        name
        for name in content.coefficients
        if content.records("correlations", level=level, coefficient=name)
    ]
    columns = [
        QUESTION,
        CONDITION,
        METRIC,
        *(Column(said(COEFFICIENTS, name)) for name in coefficients),
        Column("Groups used"),
        Column("Candidates scored"),
        Column("Rank"),
    ]
    rows = [
        (
            first["question"],
            condition_text(first),
            content.label(first),
            *(correlation(content, of_one.get(name)) for name in coefficients),
            f"{first['n_used']:,} of {first['n_groups']:,}",
            f"{first['n_scored']:,} of {first['n_candidates']:,}",
            "" if first.get("cluster") is None else str(first["cluster"]),
        )
        for of_one in _by_metric(content.records("correlations", level=level))
        for first in [of_one.get(content.coefficient) or next(iter(of_one.values()))]
    ]
    counted = said(COEFFICIENTS, content.coefficient)
    return Table(
        name=f"correlations-{level}",
        caption=f"Correlation of metrics with people, {said(LEVELS, level)}, with intervals",
        columns=columns,
        rows=rows,
        note=f"Groups used and rank are those of {counted}; metrics that share a rank do not "
        "differ significantly.",
    )


def _by_metric(records: list[Record]) -> Iterator[dict[str, Record]]:
    """By coefficient, the records of each question, condition and metric."""
    groups: dict[tuple[str, ...], dict[str, Record]] = {}
    for record in records:
        key = tuple(record[name] for name in ("question", "scope", "by", "metric", "signature"))
        groups.setdefault(key, {})[record["coefficient"]] = record
    yield from groups.values()


def coverage_table(content: Content) -> Table:
    """What each correlation rests on, and what was left out and why."""
    records = content.records("correlations", level=content.level, coefficient=content.coefficient)
    counts = {
        "n_candidates": "Candidates",
        "n_scored": "Scored",
        "n_unscored": "Without a score",
        "n_undefined_scores": "Undefined score",
        "n_unparsed": "Unread score",
        "n_groups": "Groups",
        "n_used": "Used",
        "n_constant_human": "Constant people",
        "n_constant_metric": "Constant metric",
        "n_too_few": "Too few",
    }
    rows: list[Row] = [
        (r["question"], condition_text(r), content.label(r), *(r[name] for name in counts))
        for r in records
    ]
    return Table(
        name="coverage",
        caption=f"Coverage of {statistic(content.coefficient, content.level)}",
        columns=[QUESTION, CONDITION, METRIC, *map(Column, counts.values())],
        rows=rows,
    )


def ceilings_table(content: Content) -> Table:
    """What people's own ratings allow, and what share of it each metric reaches."""
    columns = [
        QUESTION,
        CONDITION,
        Column("Level", is_number=False),
        Column("Coefficient", is_number=False),
        Column("Ceiling"),
        Column("One more person"),
        Column("Best metric", is_number=False),
        Column("Share of ceiling, %"),
    ]
    rows = [_ceiling_row(content, record) for record in content.records("ceilings")]
    return Table(
        name="ceilings",
        caption="What a perfect metric could reach, given how well people agree",
        columns=columns,
        rows=rows,
        note="One more person: the mean correlation of one annotator with the mean of the others.",
    )


def _ceiling_row(content: Content, record: Record) -> Row:
    place = {name: record[name] for name in ("question", "scope", "by", "level", "coefficient")}
    best = max(
        (row for row in content.records("correlations", **place) if row["value"] is not None),
        key=lambda row: row["value"],
        default=None,
    )
    share = None if best is None else best["share_of_ceiling"]
    reason = reason_in_words(record["reason"]) or "undefined"
    of_ceiling = signed(content, "ceiling", record)
    return (
        record["question"],
        condition_text(record),
        said(LEVELS, record["level"]),
        said(COEFFICIENTS, record["coefficient"]),
        Number(record["attainable"], reason=reason, signature=of_ceiling),
        Number(
            record["leave_one_out"],
            reason=reason,
            signature=signed(content, "ceiling.leave_one_out", record),
        ),
        "" if best is None else content.label(best),
        Number(
            None if share is None else share * 100,
            0,
            reason=reason,
            signature="" if best is None else signed(content, "correlation.share", best),
        ),
    )


def comparisons_table(content: Content, question: str) -> Table:
    """Every two metrics of a question tested against each other, over all conditions."""
    records = content.records(
        "comparisons",
        question=question,
        scope=ALL,
        level=content.level,
        coefficient=content.coefficient,
    )
    tests = {said(TESTS, record["test"]) for record in records}
    rows: list[Row] = [
        (
            content.label(record, "_a"),
            content.label(record, "_b"),
            Number(
                record["delta"],
                3,
                record["ci_low"],
                record["ci_high"],
                reason_in_words(record["reason"]),
                signed(content, "comparison.delta", record),
            ),
            *(p_cell(content, record, name) for name in ("p", "p_holm", "p_bh")),
        )
        for record in records
    ]
    names = ("Metric", "against"), ("Difference", "p", "p (Holm)", "p (B.–H.)")
    return Table(
        name=f"comparisons-q{content.questions.index(question) + 1}",
        caption=f"{question}: metrics tested pair by pair, "
        f"{statistic(content.coefficient, content.level)}",
        columns=[*(Column(name, is_number=False) for name in names[0]), *map(Column, names[1])],
        rows=rows,
        note=f"By {' and '.join(sorted(tests))}; two-sided." if tests else "",
    )


def sensitivity_table(content: Content) -> Table:
    """What each policy would have changed, over all conditions and as the mean of them."""
    records = [
        record
        for record in content.records("sensitivity", level=content.level)
        if record["scope"] in (ALL, MEAN)
    ]
    base = {_place(row): row for row in content.records("correlations", level=content.level)}
    titles = ("Policy", "Instead of", "Choice", "Coefficient")
    columns = [
        QUESTION,
        CONDITION,
        *(Column(title, is_number=False) for title in titles),
        METRIC,
        Column("Value"),
        Column("Would be"),
        Column("Rank", is_number=False),
    ]
    return Table(
        name="sensitivity",
        caption=f"What other policies would give, {said(LEVELS, content.level)}",
        columns=columns,
        rows=[_sensitivity_row(content, record, base[_place(record)]) for record in records],
    )


def _place(record: Record) -> tuple[str, ...]:
    names = ("question", "scope", "by", "coefficient", "metric", "signature")
    return tuple(record[name] for name in names)


def _sensitivity_row(content: Content, record: Record, base: Record) -> Row:
    return (
        record["question"],
        condition_text(record),
        said(POLICIES, record["setting"]),
        said(CHOICES, record["base_choice"]),
        said(CHOICES, record["choice"]),
        said(COEFFICIENTS, record["coefficient"]),
        content.label(record),
        Number(
            record["base_value"],
            3,
            reason=reason_in_words(base["reason"]),
            signature=signed(content, "correlation", base),
        ),
        Number(
            record["value"],
            3,
            reason=reason_in_words(record["reason"]),
            signature=signed(content, "sensitivity", record),
        ),
        _move(record["base_rank"], record["rank"]),
    )


def _move(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    return f"{before:g}" if before == after else f"{before:g} → {after:g}"

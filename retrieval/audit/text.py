"""An audit as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from presentation.counts import count_of
from presentation.documents import Cell, Number
from presentation.text_tables import text_report, text_table
from retrieval.audit.records import Audit, AuditedFile, ClaimChecked, Finding

MOST_LINES = 8
MOST_REFUSALS = 20
SIZES = {
    "n_assessed": gettext_noop("topics assessed"),
    "n_with_relevant": gettext_noop("topics with a relevant one"),
    "n_judgments": gettext_noop("judgments"),
    "n_relevant": gettext_noop("of them relevant"),
    "mean_relevant": gettext_noop("relevant per topic that has any"),
    "mean_relevant_with_target": gettext_noop("the same, target counted"),
    "mean_relevant_of_all": gettext_noop("relevant per topic, of all"),
    "mean_relevant_of_all_with_target": gettext_noop("the same, target counted"),
    "judged_per_topic": gettext_noop("judgments per topic"),
    "prevalence": gettext_noop("share relevant"),
}
CLAIM_NAMES = {
    "assessed": "topics assessed",
    "with_relevant": "topics with a relevant one",
    "mean_relevant": "relevant per topic",
    "judged_per_topic": "judgments per topic",
    "prevalence": "share relevant",
}


def audit_text(audit: Audit) -> str:
    """File by file: refusals, defects, notes, sizes, claims; then all together."""
    parts = ["\n".join(_file(one)) for one in audit.files]
    return text_report([*parts, "\n".join(_totals(audit))])


def _file(one: AuditedFile) -> Iterator[str]:
    rows = "" if one.kind == "unknown" else f", {count_of(one.n_rows, 'row')}"
    kind = "not recognised, not audited" if one.kind == "unknown" else one.kind
    yield f"{one.path.name}: {kind} ({count_of(one.n_lines, 'line')}{rows})"
    refused = one.of("refused")
    for finding in refused[:MOST_REFUSALS]:
        yield f"  Refused: {_at(finding)}{finding.text}"
    if len(refused) > MOST_REFUSALS:
        yield f"  Refused: ... and {len(refused) - MOST_REFUSALS:,} more."
    yield from (f"  Defect: {finding.text}{_lines(finding)}." for finding in one.of("defect"))
    yield from (f"  Note: {finding.text}." for finding in one.of("note"))
    for claim in one.claims:
        yield f"  Claim: {_claim(claim)}."
    yield from (f"  {line}" for line in _facts(one))


def _at(finding: Finding) -> str:
    return f"line {finding.lines[0]}, " if finding.lines else ""


def _lines(finding: Finding) -> str:
    if not finding.lines:
        return ""
    listed = ", ".join(map(str, finding.lines[:MOST_LINES]))
    more = ", ..." if len(finding.lines) > MOST_LINES else ""
    return f" (line{'s' if len(finding.lines) > 1 else ''} {listed}{more})"


def _claim(claim: ClaimChecked) -> str:
    what = f"{CLAIM_NAMES[claim.name]} {claim.claimed:g}"
    if claim.holds:
        return f"{what}: so it is"
    return f"{what}; counted {_number(claim.counted).text}. {claim.explanation}"


def _facts(one: AuditedFile) -> Iterator[str]:
    """The tables of what was counted, with an empty line before each."""
    if "sizes" in one.facts:
        yield from _table(_sizes(one.facts), ("", *_columns(one.facts)))
    if "positions" in one.facts:
        header = ("position", "block", "different pictures", "judged", "share relevant")
        yield from _table([_position(row) for row in one.facts["positions"]], header)
    if one.facts.get("judged_at_10"):
        rows = [
            (row["qrels"], row["n_topics"], _number(row["judged"]))
            for row in one.facts["judged_at_10"]
        ]
        yield from _table(rows, ("qrels", "topics", "Judged@10"))


def _table(rows: Sequence[tuple[Cell, ...]], header: tuple[str, ...]) -> list[str]:
    return ["", *text_table(header, rows).splitlines()]


def _columns(facts: Any) -> tuple[str, ...]:
    return ("as released", "cleaned") if "sizes_cleaned" in facts else ("in the file",)


def _sizes(facts: Any) -> list[tuple[Cell, ...]]:
    tables = [facts[name] for name in ("sizes", "sizes_cleaned") if name in facts]
    return [(label, *(_number(table[name]) for table in tables)) for name, label in SIZES.items()]


def _position(row: Any) -> tuple[Cell, ...]:
    counts = (row[name] for name in ("position", "block", "n_distinct", "n_judged"))
    return *counts, _number(row["prevalence"])


def _number(value: float | None) -> Number:
    return Number(value, 0 if value is not None and value == int(value) else 3)


def _totals(audit: Audit) -> Iterator[str]:
    totals = audit.totals
    if totals:
        n_refused = totals["n_rows_refused"]
        rows = count_of(totals["n_rows"] - n_refused, "row")
        yield (
            f"{totals['n_rows_with_repeats']:,} of {rows} of judged pools show a picture more than "
            f"once, {totals['n_rows_with_target']:,} the target as its own candidate."
        )
        if n_refused:
            rows = count_of(n_refused, "row")
            yield f"{rows} more could not be read: what such a row shows is not known."
    yield (
        f"{count_of(len(audit.files), 'file')}: {count_of(audit.n_defects, 'kind')} of defects, "
        f"{count_of(len(audit.refused), 'file')} refused."
    )

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from django.utils.translation import gettext as _, gettext_noop, ngettext

from console.glossary import code_name
from presentation.documents import Cell, Column, Number, Table
from presentation.numbers import count_of
from presentation.text_tables import text_report, text_table
from results.kinds import Row
from results.models import Result
from retrieval.audit.records import Audit, AuditedFile, ClaimChecked, Finding
from retrieval.result_kinds.audit import SEVERITIES, list_claims

FILE = Column(gettext_noop("File"), is_number=False)
HISTOGRAM = " histogram"
SECTIONS = {
    "sizes": gettext_noop("as they are"),
    "sizes histogram": gettext_noop("as they are"),
    "sizes_cleaned": gettext_noop("cleaned: each picture once, never the target"),
    "sizes_cleaned histogram": gettext_noop("cleaned: each picture once, never the target"),
    "repeats": gettext_noop("pictures more than once in a row"),
    "own_targets": gettext_noop("targets in their own pool"),
    "hubs": gettext_noop("hubs"),
    "hubs largest": gettext_noop("largest hubs"),
    "self_consistency": gettext_noop("the same picture judged twice"),
}
NUMBERS = {
    "n_topics": gettext_noop("topics"),
    "n_documents": gettext_noop("documents"),
    "n_lines": gettext_noop("lines"),
    "n_rows": gettext_noop("rows"),
    "n_negative": gettext_noop("grades below 0"),
    "n_tied": gettext_noop("documents that are tied with another"),
    "n_infinite": gettext_noop("infinite scores"),
    "n_targets": gettext_noop("targets"),
    "n_alternatives": gettext_noop("alternatives"),
    "n_empty_rows": gettext_noop("rows without a judgment"),
    "n_hits": gettext_noop("HITs"),
    "n_workers": gettext_noop("workers"),
    "n_slots": gettext_noop("slots"),
    "n_pairs": gettext_noop("pairs"),
    "n_different": gettext_noop("judged differently"),
    "n_judged": gettext_noop("judged"),
    "n_distinct": gettext_noop("distinct"),
    "n_assessors": gettext_noop("assessors"),
    "n_judged_by_several": gettext_noop("documents with several grades"),
    "n_surplus": gettext_noop("slots too many"),
    "n_within_block": gettext_noop("repeated within a block of positions"),
    "n_ticked": gettext_noop("of them ticked"),
    "unique_least": gettext_noop("different pictures of a row, fewest"),
    "unique_most": gettext_noop("different pictures of a row, most"),
    "unique_mean": gettext_noop("different pictures of a row, mean"),
    "n": gettext_noop("number"),
    "share_of_slots": gettext_noop("share of slots"),
    "relevance": gettext_noop("share relevant"),
    "relevance_elsewhere": gettext_noop("share relevant of other documents"),
    "least_share": gettext_noop("from which share of the targets on"),
    "ci_low": gettext_noop("interval from"),
    "ci_high": gettext_noop("to"),
    "ci_method": gettext_noop("interval by"),
}
CLAIM_TITLES = {
    "assessed": gettext_noop("topics assessed"),
    "with_relevant": gettext_noop("topics with a relevant document"),
    "mean_relevant": gettext_noop("relevant documents a topic"),
    "judged_per_topic": gettext_noop("judged documents a topic"),
    "prevalence": gettext_noop("share of judged documents that are relevant"),
}


@dataclass(frozen=True)
class Fact:
    section: str
    row: int | None
    name: str
    value: float | str | None


class AuditedFileView:
    def __init__(self, number: int, file: Row) -> None:
        self.number, self.file = number, file
        self.refused, self.defects, self.notes = (
            [
                {**one, "lines": ", ".join(map(str, one["lines"]))}
                for one in file["findings"]
                if one["severity"] == severity
            ]
            for severity in SEVERITIES
        )

    @cached_property
    def facts(self) -> list[Fact]:
        return list(_list_facts(self.file["facts"]))

    @property
    def kind(self) -> str:
        return {
            "judged pools": _("judged pools"),
            "alternatives": _("alternatives"),
            "dialogue starts": _("dialogue starts"),
            "batch": _("a Mechanical Turk batch"),
            "qrels": _("qrels"),
            "assessors": _("several assessors' grades"),
            "run": _("a run"),
            "unknown": _("not recognised, not audited"),
        }[self.file["kind"]]

    @property
    def sign(self) -> str:
        if self.is_unknown:
            return "later"
        return "needs-you" if self.refused else "warning" if self.defects else "done"

    @property
    def is_unknown(self) -> bool:
        return bool(self.file["kind"] == "unknown")

    @property
    def finding(self) -> str:
        if self.is_unknown:
            return self.kind
        text = _("no defect")
        if n := len(self.refused):
            text = ngettext("%(n)d line refused", "%(n)d lines refused", n) % {"n": n}
        elif n := len(self.defects):
            text = ngettext("%(n)d kind of defect", "%(n)d kinds of defects", n) % {"n": n}
        return f"{self.kind}: {text}"

    @property
    def numbers(self) -> list[Table]:
        single = [one for one in self.facts if one.row is None]
        tables = [self._single(single)] if single else []
        rows = sorted(
            (one for one in self.facts if one.row is not None), key=lambda one: one.section
        )
        for section, of_section in groupby(rows, key=lambda one: one.section):
            tables.append(self._section(section, list(of_section)))
        return tables

    def _single(self, facts: list[Fact]) -> Table:
        name = f"numbers-{self.number}"
        rows = [
            (words_of(one.section), name_of(one), fact_cell(one))
            for one in facts
            if one.value is not None and one.value != ""
        ]
        columns = (
            Column(_("Of"), is_number=False),
            Column(_("Name"), is_number=False),
            Column(_("Value")),
        )
        return Table(name, _("Counted in {name}").format(name=self.file["file"]), columns, rows)

    def _section(self, section: str, facts: list[Fact]) -> Table:
        names = list(dict.fromkeys(one.name for one in facts))
        by_row: dict[int, dict[str, Fact]] = {}
        for one in facts:
            by_row.setdefault(one.row or 0, {})[one.name] = one
        rows = [
            tuple(fact_cell(each[name]) if name in each else "" for name in names)
            for _number, each in sorted(by_row.items())
        ]
        texts = {one.name for one in facts if isinstance(one.value, str)}
        columns = tuple(Column(words_of(name), is_number=name not in texts) for name in names)
        name = f"{section}-{self.number}".replace("_", "-").replace(" ", "-")
        caption = _("{section} of {name}").format(section=words_of(section), name=self.file["file"])
        return Table(name, caption, columns, rows)


def list_files(result: Result) -> list[AuditedFileView]:
    return [AuditedFileView(n, file) for n, file in enumerate(result.record["files"], 1)]


def claims_table(result: Result) -> Table | None:
    columns = (
        FILE,
        Column(_("Number"), is_number=False),
        Column(_("Published")),
        Column(_("Counted")),
        Column(_("What it is"), is_number=False),
    )
    rows = [
        (
            *(one["file"], words_of(one["name"]), f"{one['claimed']:,g}"),
            *(counted_cell(one["counted"]), one["explanation"] or _("so it is")),
        )
        for one in list_claims(result.record)
    ]
    return Table("published", _("Published numbers"), columns, rows) if rows else None


def _list_facts(facts: Mapping[str, Any]) -> Iterator[Fact]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _list_section(name, None, value)
        elif isinstance(value, list):
            for row, each in enumerate(value):
                values = each if isinstance(each, Mapping) else {"value": each}
                yield from _list_section(name, row, values)
        else:
            yield Fact("", None, name, value)


def _list_section(section: str, row: int | None, values: Mapping[str, Any]) -> Iterator[Fact]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _list_section(f"{section} {name}", row, value)
        elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
            for number, each in enumerate(value):
                yield from _list_section(f"{section} {name}", number, each)
        elif isinstance(value, list):
            yield Fact(section, row, name, ", ".join(map(str, value)))
        else:
            yield Fact(section, row, name, value)


def fact_cell(fact: Fact) -> str | Number:
    return code_name(fact.value) if isinstance(fact.value, str) else counted_cell(fact.value)


def counted_cell(number: float | None) -> Number:
    return Number(number, 0 if number is not None and float(number).is_integer() else 4)


def words_of(code: str) -> str:
    """A code as words: `n_documents` becomes `documents`."""
    titles = SECTIONS | SIZES | NUMBERS | CLAIM_TITLES
    return _(titles[code]) if code in titles else code_name(code).removeprefix("n ")


def name_of(fact: Fact) -> str:
    if fact.section.endswith(HISTOGRAM):
        return _("topics with {n} relevant").format(n=fact.name)
    return words_of(fact.name)


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

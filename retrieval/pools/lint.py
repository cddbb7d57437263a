from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from django.utils.translation import gettext as _, ngettext

from presentation.numbers import count_of, plain_values
from presentation.text_tables import text_report, text_table
from retrieval.exceptions import PoolDefective
from retrieval.pools.catalogue import Catalogue, names_alone
from retrieval.pools.pool_files import PoolRow, PoolTable
from retrieval.pools.records import REASONS, UNIFORM, Pool
from stats.ranking.pool_bias import HUB_SHARE, Hubness, hubness

FaultName = Literal[
    "repeat",
    "content",
    "target",
    "hub",
    "quota",
    "short",
    "picture",
    "unknown",
    "unlisted",
]
FAULTS: dict[FaultName, str] = {
    "repeat": "a candidate twice in a pool",
    "content": "the same picture or text twice in a pool, under two names",
    "target": "the target among its own candidates, by name or looks",
    "hub": "a candidate in the pools of many targets",
    "quota": "a source's quota that is not met",
    "short": "fewer candidates than planned",
    "picture": "a document without a picture that can be shown",
    "unknown": "a document that the catalogue does not have",
    "unlisted": "a target for which no source lists anything",
}
# A hub is pooled at least this many times as often as the average document: in a small catalogue
# every document is in many pools.
HUB_TIMES = 3
MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class PoolFault:
    name: FaultName
    problem: str
    line: int | None = None
    field: str = ""
    topic: str = ""
    docno: str = ""

    def statement(self, path: Path) -> str:
        where = f"Line {self.line} of {path.name}" if self.line else path.name
        where = f"{where}, field {self.field}" if self.field else where
        return f"{where}: {self.problem}"


@dataclass(frozen=True)
class PoolLint:
    path: Path
    faults: tuple[PoolFault, ...]
    n_topics: int
    n_slots: int
    hubness: Hubness | None = None
    allowed: frozenset[FaultName] = frozenset()
    checked: tuple[FaultName, ...] = ()

    @property
    def refused(self) -> tuple[PoolFault, ...]:
        return tuple(fault for fault in self.faults if fault.name not in self.allowed)

    def counts(self) -> dict[FaultName, dict[str, Any]]:
        """How many faults, and topics with one, by name; None where it could not be checked."""
        return {name: self._count(name) for name in get_args(FaultName)}

    def _count(self, name: FaultName) -> dict[str, Any]:
        if name not in self.checked:
            return {"n": None, "n_topics": None, "allowed": name in self.allowed}
        faults = [fault for fault in self.faults if fault.name == name]
        # A hub is one fault, of no topic.
        topics = None if name == "hub" else len({fault.topic for fault in faults})
        return {"n": len(faults), "n_topics": topics, "allowed": name in self.allowed}

    def record(self) -> dict[str, Any]:
        return {
            "file": self.path.name,
            "n_topics": self.n_topics,
            "n_slots": self.n_slots,
            "is_refused": bool(self.refused),
            "counts": self.counts(),
            "hubness": plain_values(asdict(self.hubness)) if self.hubness else None,
            "faults": [
                asdict(fault) | {"allowed": fault.name in self.allowed} for fault in self.faults
            ],
        }

    def require_sound(self) -> None:
        if not self.refused:
            return
        lines = [fault.statement(self.path) for fault in self.refused[:MOST_LISTED]]
        if (n_more := len(self.refused) - len(lines)) > 0:
            lines.append(f"... and {n_more:,} more, which --json lists.")
        refused = {fault.name for fault in self.refused}
        names = [name for name in get_args(FaultName) if name in refused]
        lines.append(
            f"{self.path.name} has {count_of(len(self.refused), 'fault')} "
            f"({', '.join(names)}). Make it anew, or allow them with --allow NAME."
        )
        raise PoolDefective("\n".join(lines))


def lint_pool(
    table: PoolTable,
    *,
    catalogue: Catalogue | None = None,
    quotas: Mapping[str, int] | None = None,
    per_topic: int | None = None,
    hub_share: float = HUB_SHARE,
    allowed: Collection[FaultName] = (),
) -> PoolLint:
    """All that is wrong with a pool: what is in the file, and with a catalogue what it shows.

    `quotas` and `per_topic` are by default those of the plan in the file, if it has one; of a table
    with a column for each candidate, every column is to be filled.
    """
    quotas = table.quotas if quotas is None else quotas
    per_topic = table.per_topic if per_topic is None else per_topic
    has_sources = any(row.source for row in table.rows)
    faults = [
        *_repeats(table, catalogue),
        *_hubs(table, hub_share),
        *_unmet(table, quotas),
        *(_short(table, per_topic) if per_topic else ()),
        *(_unlisted(table) if has_sources else ()),
        *(_unknown(table, catalogue) if catalogue else ()),
        *(_without_picture(table, catalogue) if catalogue else ()),
    ]
    checked: list[FaultName] = ["repeat", "target", "hub"]
    checked += ["content", "unknown", "picture"] if catalogue else []
    checked += ["short"] if per_topic else []
    checked += ["unlisted"] if has_sources else []
    checked += ["quota"] if quotas or any(row.quota for row in table.rows) else []
    faults.sort(key=lambda fault: fault.line or 0)
    return PoolLint(
        table.path,
        tuple(faults),
        len(table.targets),
        len(table.rows),
        _hubness(table, catalogue, hub_share),
        frozenset(allowed),
        tuple(checked),
    )


def _repeats(table: PoolTable, catalogue: Catalogue | None) -> Iterator[PoolFault]:
    content = (catalogue or names_alone(())).content
    for topic, rows in table.by_topic().items():
        target = table.targets[topic]
        first: dict[str, PoolRow] = {}
        shown: dict[str, PoolRow] = {}
        for row in rows:
            is_like_target = bool(target) and content(row.docno) == content(target)
            if row.docno == target:
                yield _fault("target", _("{docno} is the target.").format(docno=row.docno), row)
            elif is_like_target:
                problem = _("{docno} shows what the target {target} shows.")
                yield _fault("target", problem.format(docno=row.docno, target=target), row)
            before = first.setdefault(row.docno, row)
            like = shown.setdefault(content(row.docno), row)
            if before is not row:
                problem = _("{docno} is in {place} already.")
                yield _fault("repeat", problem.format(docno=row.docno, place=before.place), row)
            elif like is not row and not is_like_target:
                names = {"docno": row.docno, "other": like.docno, "place": like.place}
                yield _fault(
                    "content",
                    _("{docno} shows what {other} in {place} shows.").format(**names),
                    row,
                )


def _hubs(table: PoolTable, hub_share: float) -> Iterator[PoolFault]:
    pools: dict[str, set[str]] = defaultdict(set)
    first: dict[str, PoolRow] = {}
    for row in table.rows:
        pools[row.docno].add(row.topic)
        first.setdefault(row.docno, row)
    n_topics = len(table.targets)
    mean = sum(map(len, pools.values())) / max(len(pools), 1)
    for docno, topics in pools.items():
        n = len(topics)
        # As in `hubness`: a share of the targets as a count.
        if n >= round(hub_share * n_topics, 9) and n >= HUB_TIMES * mean:
            problem = _("{docno} is in the pools of {n} of {n_targets} targets.").format(
                docno=docno, n=f"{n:,}", n_targets=f"{n_topics:,}"
            )
            row = first[docno]
            yield PoolFault("hub", problem, row.line, row.field, "", docno)


def _hubness(table: PoolTable, catalogue: Catalogue | None, hub_share: float) -> Hubness | None:
    if not table.targets:
        return None
    docnos = [row.docno for row in table.rows]
    known = set(docnos).union(catalogue.documents if catalogue else ())
    return hubness(docnos, n_lists=len(table.targets), n_documents=len(known), hub_share=hub_share)


def _unmet(table: PoolTable, quotas: Mapping[str, int] | None) -> Iterator[PoolFault]:
    for topic, rows in table.by_topic().items():
        counts = Counter(row.source for row in rows)
        missing = (
            {source: n - counts[source] for source, n in quotas.items()}
            if quotas
            else Counter(row.quota for row in rows if row.quota not in ("", row.source))
        )
        for source, n in missing.items():
            if n > 0:
                problem = (
                    _("topic {topic} lacks {n} of {planned} of {source}.")
                    if quotas
                    else _("topic {topic} lacks {n} of {source}.")
                ).format(topic=topic, n=n, planned=quotas and quotas[source], source=source)
                yield PoolFault("quota", problem, table.line_of(topic), "", topic)


def _short(table: PoolTable, per_topic: int) -> Iterator[PoolFault]:
    for topic, rows in table.by_topic().items():
        if len(rows) < per_topic:
            problem = ngettext(
                "topic {topic} has {n} candidate where {planned} are planned.",
                "topic {topic} has {n} candidates where {planned} are planned.",
                len(rows),
            ).format(topic=topic, n=len(rows), planned=per_topic)
            yield PoolFault("short", problem, table.line_of(topic), "", topic)


def _unlisted(table: PoolTable) -> Iterator[PoolFault]:
    for topic, rows in table.by_topic().items():
        if all(row.source == UNIFORM for row in rows):
            problem = _(
                "topic {topic} has no candidate from any source. Does one of them know its name, "
                "or the document that it is about (column target)?"
            ).format(topic=topic)
            yield PoolFault("unlisted", problem, table.line_of(topic), "", topic)


def _unknown(table: PoolTable, catalogue: Catalogue) -> Iterator[PoolFault]:
    for row in _documents(table):
        if row.docno not in catalogue:
            yield _fault("unknown", _("the catalogue has no {docno}.").format(docno=row.docno), row)


def _without_picture(table: PoolTable, catalogue: Catalogue) -> Iterator[PoolFault]:
    has_pictures = any(document.image for document in catalogue.documents.values())
    for row in _documents(table):
        document = catalogue.documents.get(row.docno)
        if document is None:
            continue
        if document.problem:
            yield _fault("picture", f"{row.docno}: {document.problem}", row)
        elif has_pictures and not document.image:
            yield _fault(
                "picture",
                _("{docno} has no picture, and others have.").format(docno=row.docno),
                row,
            )


def _documents(table: PoolTable) -> Iterable[PoolRow]:
    for topic, target in table.targets.items():
        if target:
            yield PoolRow(table.line_of(topic), table.target_field, topic, target)
    yield from table.rows


def _fault(name: FaultName, problem: str, row: PoolRow) -> PoolFault:
    return PoolFault(name, problem, row.line, row.field, row.topic, row.docno)


SOURCES = ("source", "slots", "documents", "alone", "deepest", "passed over", "dry topics")


def pool_text(pool: Pool) -> str:
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

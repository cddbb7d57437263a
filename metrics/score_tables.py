"""Tables of scores that were computed elsewhere: a row a score, or a column for each metric.

A long table names item, candidate (or system) and metric in each row; a wide one has a column
of values for each metric. An empty value is a score that could not be computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from annotation.exceptions import ImportRefused
from annotation.models import Candidate, Study
from annotation.readers.rows import Row
from metrics.models import LONGEST_SIGNATURE
from metrics.stored_scores import write_scores

LONGEST = 64
OnFault = Callable[[ImportRefused], None]


@dataclass(frozen=True)
class ScoreColumns:
    """Which columns of a table hold what; with `values`, each of them is a metric's."""

    item: str = "item"
    system: str = "system"
    candidate: str = "candidate"
    metric: str = "metric"
    value: str = "value"
    signature: str = "signature"
    reason: str = "reason"
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreKey:
    """Which score of which candidate a row holds; numbers are rows of the file."""

    item: str
    candidate: str
    metric: str
    signature: str


@dataclass
class ScoreTable:
    """Values by score, and the reasons that undefined ones have."""

    values: dict[ScoreKey, float] = field(default_factory=dict)
    reasons: dict[ScoreKey, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many scores each metric has."""
        return dict(Counter(key.metric for key in self.values))

    def by_run(self) -> dict[tuple[str, str], list[ScoreKey]]:
        """The scores of each metric and signature."""
        runs: dict[tuple[str, str], list[ScoreKey]] = {}
        for key in self.values:
            runs.setdefault((key.metric, key.signature), []).append(key)
        return runs


def read_score_table(
    study: Study, rows: Iterable[Row], columns: ScoreColumns, *, signature: str, note: OnFault
) -> ScoreTable:
    """The scores of a table; `note` is given each row that cannot be, and the next one follows.

    `signature` is that of the rows that name none.
    """
    candidates, table = known_candidates(study), ScoreTable()
    lines: dict[ScoreKey, int] = {}
    for row in rows:
        try:
            item = row.required(columns.item)
            candidate = _candidate(row, columns, item, candidates, study)
        except ImportRefused as fault:
            note(fault)
            continue
        for column in columns.values or (columns.value,):
            try:
                key = _key(row, columns, column, item, candidate, signature)
                if key in table.values:
                    problem = f"line {lines[key]} gives '{key.metric}' for it already."
                    raise row.refuse(problem, column, code="repeated_score")
                table.values[key] = row.number_or_nan(column)
                lines[key] = row.line
                if reason := row.optional(columns.reason) if columns.reason else "":
                    table.reasons[key] = reason
            except ImportRefused as fault:
                note(fault)
    return table


def _key(
    row: Row, columns: ScoreColumns, column: str, item: str, candidate: str, signature: str
) -> ScoreKey:
    own = row.optional(columns.signature, longest=LONGEST_SIGNATURE) if columns.signature else ""
    if not columns.values:
        metric = row.required(columns.metric, longest=LONGEST)
    elif len(metric := column.strip()) > LONGEST:
        problem = f"a metric's name has at most {LONGEST} characters."
        raise row.refuse(problem, column, code="too_long")
    return ScoreKey(item, candidate, metric, own or signature)


@transaction.atomic
def write_score_table(
    study: Study, table: ScoreTable, *, lower_is_better: Sequence[str], signature: str
) -> None:
    """Write the scores of a table, a run for each metric and signature."""
    runs = table.by_run()
    # Outputs of one scorer share its signature; that of rows without one says nothing of them.
    variants = _variants(run for run in runs if run[1] != signature)
    for (metric, signature_), keys in runs.items():
        write_scores(
            study=study,
            metric=metric,
            signature=signature_,
            values={(key.item, key.candidate): table.values[key] for key in keys},
            higher_is_better=metric not in lower_is_better,
            is_primary=(metric, signature_) not in variants,
            reasons={(key.item, key.candidate): table.reasons.get(key, "") for key in keys},
        )


def _variants(runs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those named after another of the same signature: rougeL_precision beside rougeL."""
    known = set(runs)
    return {
        (metric, signature)
        for metric, signature in known
        for end in range(len(metric))
        if metric[end] == "_" and (metric[:end], signature) in known
    }


def known_candidates(study: Study) -> dict[tuple[str, str], set[str]]:
    """The keys of candidates by item and name: a key, or else the system they are of."""
    rows = Candidate.objects.filter(item__study=study).values_list("item__key", "key", "system")
    candidates: dict[tuple[str, str], set[str]] = {}
    for item, key, system in rows:
        candidates.setdefault((item, system), set()).add(key)
    return candidates | {(item, key): {key} for item, key, _ in rows}


def _candidate(
    row: Row,
    columns: ScoreColumns,
    item: str,
    candidates: dict[tuple[str, str], set[str]],
    study: Study,
) -> str:
    name = row.optional(columns.candidate) if columns.candidate else ""
    name = name or row.required(columns.system or columns.candidate)
    keys = candidates.get((item, name), set())
    if not keys:
        problem = f"study '{study.slug}' has no candidate '{name}' of '{item}'."
        raise row.refuse(problem, code="unknown_candidate")
    if len(keys) > 1:
        problem = f"system '{name}' has {len(keys)} candidates of '{item}'; name one by its key."
        raise row.refuse(problem, columns.candidate or "candidate", code="several_candidates")
    return next(iter(keys))

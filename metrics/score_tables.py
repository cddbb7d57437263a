"""Tables of scores that were computed elsewhere: a row a score, or a column for each metric.

A long table names item, candidate (or system) and metric in each row; a wide one has a column
of values for each metric. An empty value, or a word such as NA, is a score
that could not be computed.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction

from annotation.exceptions import FileFaults, ImportRefused
from annotation.models import Candidate, Study
from annotation.readers.drafts import place_of_line
from annotation.readers.policies import (
    Reading,
    mean_of_known,
    mode_of_known,
    note_look_alikes,
)
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from annotation.score_settings import LONGEST_SIGNATURE
from error_codes import CodedText
from metrics.exceptions import MetricsError
from metrics.stored_scores import write_scores
from presentation.numbers import group_values

LONGEST = 64
UNMATCHED = CodedText("the study has no such candidate", "unknown_candidate")
REPEATED = CodedText("another score of the same candidate counts", "repeated_score")
OnFault = Callable[[ImportRefused], None]


@dataclass(frozen=True)
class ScoreColumns:
    """The columns of a table of scores; each of `values` is a metric's, each of `systems` a
    system's."""

    item: str = "item"
    system: str = "system"
    candidate: str = "candidate"
    metric: str = "metric"
    value: str = "value"
    signature: str = "signature"
    reason: str = "reason"
    values: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreKey:
    item: str
    candidate: str
    metric: str
    signature: str


@dataclass
class ScoreTable:
    values: dict[ScoreKey, float] = field(default_factory=dict)
    reasons: dict[ScoreKey, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(key.metric for key in self.values))

    def by_run(self) -> dict[tuple[str, str], list[ScoreKey]]:
        return group_values(((key.metric, key.signature), key) for key in self.values)


def read_score_table(
    study: Study,
    rows: Iterable[Row],
    columns: ScoreColumns,
    *,
    signature: str,
    note: OnFault,
    reading: Reading | None = None,
) -> ScoreTable:
    """The scores of a table; `note` is given the fault of each row that is refused.

    `signature` is that of the rows that name none. The reading has the policies for missing words,
    repeated scores and candidates that the study does not have.
    """
    table = _ScoreReader(study, columns, signature, reading or Reading())
    for row in rows:
        table.read(row, note)
    return table.finish()


class _ScoreReader:
    def __init__(
        self, study: Study, columns: ScoreColumns, signature: str, reading: Reading
    ) -> None:
        self.study, self.columns, self.signature, self.reading = study, columns, signature, reading
        self.report = reading.report
        self.repeats = reading.repeats("refuse")
        reading.state_policies()
        self.report.policies["unmatched"] = reading.policies.unmatched
        self.candidates = known_candidates(study)
        self.table = ScoreTable()
        self.lines: dict[ScoreKey, int] = {}
        self.repeated: dict[ScoreKey, list[float]] = {}

    def read(self, row: Row, note: OnFault) -> None:
        columns = self.columns
        for system in columns.systems or ("",):
            try:
                item = row.required(columns.item)
                candidate = self._candidate(row, item, system or _candidate_name(row, columns))
            except ImportRefused as fault:
                if fault.code == UNMATCHED.code and self.reading.policies.unmatched == "leave-out":
                    self._leave_out(UNMATCHED, place_of_line(row.line))
                else:
                    note(fault)
                continue
            for column in columns.values or (system or columns.value,):
                try:
                    key = _key(row, columns, column, item, candidate, self.signature)
                    self._add(row, column, key)
                except ImportRefused as fault:
                    note(fault)

    def _leave_out(self, reason: CodedText, place: str) -> None:
        """Count a row of one score; of a row with several, a part."""
        is_row = not (self.columns.systems or (self.columns.values and reason is REPEATED))
        (self.report.leave_out if is_row else self.report.leave_out_part)(reason, place)

    def _candidate(self, row: Row, item: str, name: str) -> str:
        keys = self.candidates.get((item, name), set())
        if not keys:
            problem = f"study '{self.study.slug}' has no candidate '{name}' of '{item}'."
            raise row.refuse(problem, code=UNMATCHED.code)
        if len(keys) > 1:
            problem = (
                f"system '{name}' has {len(keys)} candidates of '{item}'; name one by its key."
            )
            column = self.columns.candidate or "candidate"
            raise row.refuse(problem, column, code="several_candidates")
        return next(iter(keys))

    def _add(self, row: Row, column: str, key: ScoreKey) -> None:
        is_again = key in self.table.values
        if is_again and self.repeats == "refuse":
            problem = f"line {self.lines[key]} gives '{key.metric}' for it already."
            raise row.refuse(problem, column, code="repeated_score")
        value = self._value(row, column)
        if is_again and self.repeats in ("mean", "majority"):
            self.repeated.setdefault(key, [self.table.values[key]]).append(value)
            return
        if is_again:
            is_missing = math.isnan(self.table.values[key])
            # A missing score is none of several.
            takes = is_missing if is_missing != math.isnan(value) else self.repeats == "last"
            self._leave_out(REPEATED, place_of_line(self.lines[key] if takes else row.line))
            if not takes:
                return
            self.table.reasons.pop(key, None)
        self.table.values[key] = value
        self.lines[key] = row.line
        reason = row.optional(self.columns.reason) if self.columns.reason else ""
        if reason:
            self.table.reasons[key] = reason

    def _value(self, row: Row, column: str) -> float:
        """A score, or NaN for a missing one, which is counted by its word."""
        text = row.text(column).strip()
        if self.reading.policies.is_missing(text):
            self.report.note_missing(text)
            return math.nan
        return row.number(column)

    def finish(self) -> ScoreTable:
        settle = mean_of_known if self.repeats == "mean" else mode_of_known
        self.table.values |= {key: settle(values) for key, values in self.repeated.items()}
        if n := sum(len(values) - 1 for values in self.repeated.values()):
            text = f"{n:,} repeated scores were read with the first of the same candidate."
            self.report.note(CodedText(text, f"repeats_{self.repeats}"))
        metrics = list(dict.fromkeys(key.metric for key in self.table.values))
        note_look_alikes(self.report, metrics, what="metrics", code="look_alike_metrics")
        return self.table


def _key(
    row: Row, columns: ScoreColumns, column: str, item: str, candidate: str, signature: str
) -> ScoreKey:
    own = row.optional(columns.signature, longest=LONGEST_SIGNATURE) if columns.signature else ""
    if not columns.values:
        metric = row.required(columns.metric, longest=LONGEST)
    elif len(metric := column.strip()) > LONGEST:
        raise row.refuse(
            f"a metric's name has at most {LONGEST} characters.", column, code="too_long"
        )
    return ScoreKey(item, candidate, metric, own or signature)


@transaction.atomic
def write_score_table(
    study: Study, table: ScoreTable, *, lower_is_better: Sequence[str], signature: str
) -> None:
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


def _candidate_name(row: Row, columns: ScoreColumns) -> str:
    name = row.optional(columns.candidate) if columns.candidate else ""
    return name or row.required(columns.system or columns.candidate)


@transaction.atomic
def import_scores(
    *,
    study: Study,
    path: Path,
    metrics: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    systems: Sequence[str] = (),
    signature: str = "",
    reading: Reading | None = None,
) -> dict[str, int]:
    """Read a file of scores into a study; return how many scores each metric has in it.

    `signature` is that of the rows that name none. Each of the `systems` is a column of scores.
    """
    reading = reading or Reading()
    names = tuple(dict.fromkeys(metrics))
    default = signature or f"imported|file:{path.name}"
    faults: list[ImportRefused] = []
    measures = () if names else ("metric",) if systems else ("metric", "value")
    if names and systems:
        raise MetricsError(
            "Columns are either metrics or systems: leave --metric or --system out.",
            code="metrics_and_systems",
        )
    table = read_score_table(
        study,
        read_rows(path, ("item", *names, *systems, *measures), report=reading.report),
        ScoreColumns(values=names, systems=tuple(systems)),
        signature=default,
        note=faults.append,
        reading=reading,
    )
    if faults:
        raise faults[0] if len(faults) == 1 else FileFaults(faults)
    counts = table.counts
    if absent := [metric for metric in lower_is_better if metric not in counts]:
        there = ", ".join(counts)
        message = f"it has no metric '{absent[0]}' to be lower (found: {there})."
        raise ImportRefused(path, message, code="unknown_metric")
    write_score_table(study, table, lower_is_better=lower_is_better, signature=default)
    return counts

"""Scoring a plain file of responses, without a database.

A file of scores is written batch by batch. What a killed process left of it is read again: a
line that was cut short is dropped, and so is a score of a text that has changed since. One
process writes a file at a time: two would each replace it by what they know.
"""

import csv
import fcntl
import io
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import place_of_line
from annotation.readers.policies import Reading, note_look_alikes
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from error_codes import CodedText
from metrics.exceptions import FileUnfit, get_code
from metrics.models import unread_text
from metrics.scorers.interface import Example, Score, Scorer, Scores
from metrics.stored_scores import Content, chunks, content_of, finite, grouped, signature_of
from metrics.study_judges import count_replies_in, prepare
from metrics.study_scores import Plan, estimated, measured
from presentation.files import plain_file
from presentation.numbers import count_of
from presentation.progress import Reporter, without_bars
from presentation.row_files import from_cell, to_cell

REPEATED = CodedText("another response of the same system counts", "repeated_response")
NEEDED = ("item", "system", "response")


@dataclass(frozen=True)
class ScoreRow:
    """A line of a file of scores; `input` is the digest of the texts that were scored."""

    item: str
    system: str
    metric: str
    value: float
    signature: str
    reason: str
    input: str

    def texts(self) -> list[str]:
        value = "" if math.isnan(self.value) else repr(self.value)
        return [to_cell(text) for text in (vars(self) | {"value": value}).values()]


COLUMNS = [field.name for field in fields(ScoreRow)]


def read_examples(path: Path, reading: Reading | None = None) -> list[Example]:
    reading = reading or Reading()
    try:
        return _examples(read_rows(path, NEEDED, report=reading.report), reading)
    except ImportRefused as refused:
        raise FileUnfit(
            path,
            refused.problem,
            line=refused.line,
            field=refused.field,
            code=get_code(refused),
        ) from refused


def _examples(rows: list[Row], reading: Reading) -> list[Example]:
    repeats = reading.repeats("refuse")
    examples: dict[tuple[str, str], tuple[int, Example]] = {}
    for row in rows:
        example = _example(row)
        key = (example.item, example.system)
        if key in examples:
            line = examples[key][0]
            if repeats == "refuse":
                problem = f"item '{key[0]}' has a response of '{key[1]}' on line {line} already."
                raise row.refuse(problem, "system", code="repeated_response")
            reading.report.leave_out(
                REPEATED, place_of_line(row.line if repeats == "first" else line)
            )
        if key not in examples or repeats == "last":
            examples[key] = (row.line, example)
    for what, at in (("items", 0), ("systems", 1)):
        names = list(dict.fromkeys(key[at] for key in examples))
        note_look_alikes(reading.report, names, what=what, code=f"look_alike_{what}")
    return [example for _line, example in examples.values()]


def _example(row: Row) -> Example:
    return Example(
        item=row.required("item"),
        system=row.required("system"),
        response=row.text("response"),
        context=row.text("context") or None,
        reference=row.text("reference") or None,
        condition=row.text("condition") or None,
    )


def read_scores(path: Path) -> list[ScoreRow]:
    if not path.exists():
        return []
    try:
        content = plain_file(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileUnfit(path, f"it cannot be read: {error.strerror}.", code="unreadable") from None
    if not content:
        return []
    records = list(csv.reader(io.StringIO(content, newline="")))
    if records[0] != COLUMNS:
        message = "it is there and no file of scores; name another --output."
        raise FileUnfit(path, message, line=1, code="not_scores")
    complete = records[1:] if content.endswith("\n") else records[1:-1]
    return [row for record in complete if (row := _read_score(record)) is not None]


def _read_score(record: list[str]) -> ScoreRow | None:
    if len(record) != len(COLUMNS):
        return None
    cells = dict(zip(COLUMNS, map(from_cell, record), strict=True))
    try:
        value = float(cells.pop("value") or "nan")
    except ValueError:
        return None
    return ScoreRow(value=value, **cells)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other processes from scoring into a file; the lock goes with the process that has it."""
    beside = path.parent / f".{path.name}.lock"
    with _refusing(path):
        lock = beside.open("w")
    with lock:
        if not _is_locked(lock, beside):
            raise FileUnfit(
                path, "another process is scoring into it; wait until it is done.", code="busy"
            )
        try:
            yield
        finally:
            beside.unlink(missing_ok=True)


def _is_locked(lock: TextIO, path: Path) -> bool:
    """Lock a file, unless another process has it or has just taken it away."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def write_scores_file(path: Path, rows: Iterable[ScoreRow]) -> None:
    """Replace a file of scores in one step: a reader sees the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with _refusing(path), beside.open("w", encoding="utf-8", newline="") as file:
            _write(file, [COLUMNS, *(row.texts() for row in rows)])
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def append_scores(path: Path, rows: Iterable[ScoreRow]) -> None:
    with _refusing(path), path.open("a", encoding="utf-8", newline="") as file:
        _write(file, (row.texts() for row in rows))


def _write(file: TextIO, records: Iterable[list[str]]) -> None:
    lines = io.StringIO(newline="")
    csv.writer(lines, lineterminator="\n").writerows(records)
    file.write(lines.getvalue())
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileUnfit(
            path, f"it cannot be written: {error.strerror}.", code="unwritable"
        ) from None


class ScoreKey(NamedTuple):
    item: str
    system: str
    metric: str
    signature: str


@dataclass(frozen=True)
class SystemMean:
    """The mean of a system's defined scores; NaN where none is."""

    system: str
    mean: float
    n: int
    n_undefined: int


@dataclass(frozen=True)
class OutputScored:
    metric: str
    signature: str
    higher_is_better: bool
    n_computed: int
    systems: tuple[SystemMean, ...]

    @property
    def n_scored(self) -> int:
        return sum(system.n for system in self.systems)

    @property
    def n_undefined(self) -> int:
        return sum(system.n_undefined for system in self.systems)

    def record(self) -> dict[str, Any]:
        systems = [
            vars(system) | {"mean": None if math.isnan(system.mean) else system.mean}
            for system in self.systems
        ]
        counts = {"n_scored": self.n_scored, "n_undefined": self.n_undefined}
        return vars(self) | counts | {"systems": systems}


@dataclass(frozen=True)
class FileScored:
    """What a file of scores holds of the responses asked for; of judges, how many replies were
    read now and how many of them have no score, by the reason's code."""

    output: Path
    n_responses: int
    outputs: tuple[OutputScored, ...]
    n_replies: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        return {
            "output": str(self.output),
            "n_responses": self.n_responses,
            "n_scored": sum(output.n_scored for output in self.outputs),
            "n_undefined": sum(output.n_undefined for output in self.outputs),
            "n_computed": sum(output.n_computed for output in self.outputs),
            "n_replies": self.n_replies,
            "unread": dict(self.unread),
            "metrics": [output.record() for output in self.outputs],
        }

    def __str__(self) -> str:
        counts = self.record()
        unread = unread_text(self.n_replies, self.unread)
        return (
            f"{self.output}: {count_of(counts['n_scored'], 'score')} of "
            f"{count_of(self.n_responses, 'response')}"
            f" ({counts['n_undefined']} undefined, {counts['n_computed']} computed now)."
            f"{f' {unread}.' if unread else ''}"
        )


def score_file(
    *,
    path: Path,
    scorers: Sequence[Scorer],
    output: Path,
    reporter: Reporter = without_bars,
    retry_undefined: bool = False,
    reading: Reading | None = None,
) -> FileScored:
    """Score a file's responses into a file of scores; what that holds already is left alone.

    Lines are added as they are computed, and put into the order of the responses at the end.
    With `retry_undefined`, what the file holds without a value is computed anew.
    """
    examples = read_examples(path, reading)
    with held(output):
        sheet = _Sheet(output, examples)
        jobs = _jobs(scorers)
        sheet.forget_undefined(jobs if retry_undefined else ())
        write_scores_file(output, sheet.rows.values())
        for job in jobs:
            for _ in reporter(job.scorer.name)(_score(sheet, job), len(sheet.waiting(job))):
                pass
        sheet.put_in_order(jobs)
    outputs = (_output_scored(sheet, job, name) for job in jobs for name in job.scorer.outputs)
    unread = dict(sheet.unread.most_common())
    return FileScored(output, len(examples), tuple(outputs), sheet.n_replies, unread)


def plan_file(
    *,
    path: Path,
    scorers: Sequence[Scorer],
    output: Path,
    retry_undefined: bool = False,
    reading: Reading | None = None,
) -> list[Plan]:
    sheet = _Sheet(output, read_examples(path, reading))
    jobs = _jobs(scorers, only_estimates=True)
    sheet.forget_undefined(jobs if retry_undefined else ())
    return [_planned(sheet, job) for job in jobs]


class _Job(NamedTuple):
    scorer: Scorer
    signatures: dict[str, str]  # by output

    @property
    def signature(self) -> str:
        return self.signatures[self.scorer.name]

    def keys_of(self, example: Example) -> list[ScoreKey]:
        return [
            ScoreKey(example.item, example.system, name, signature)
            for name, signature in self.signatures.items()
        ]


def _jobs(scorers: Sequence[Scorer], *, only_estimates: bool = False) -> list[_Job]:
    """The scorers, ready; a judge may ask its endpoint, so files are looked at before."""
    for scorer in scorers:
        prepare(scorer, only_estimates=only_estimates)
    return [
        _Job(scorer, {output: signature_of(scorer, output) for output in scorer.outputs})
        for scorer in scorers
    ]


class _Sheet:
    def __init__(self, path: Path, examples: Sequence[Example]) -> None:
        self.path = path
        self.examples = examples
        self.contents = [content_of(example) for example in examples]
        self.computed: set[ScoreKey] = set()
        self.n_replies, self.unread = 0, Counter[str]()
        digests = {
            (example.item, example.system): content.digest
            for example, content in zip(self.examples, self.contents, strict=True)
        }
        # What was scored of texts that are others now does not count.
        self.rows = {
            _key_of(row): row
            for row in read_scores(path)
            if digests.get((row.item, row.system), row.input) == row.input
        }

    def forget_undefined(self, jobs: Sequence[_Job]) -> None:
        anew = {key for job in jobs for each in self.examples for key in job.keys_of(each)}
        self.rows = {
            key: row
            for key, row in self.rows.items()
            if key not in anew or not math.isnan(row.value)
        }

    def waiting(self, job: _Job) -> list[tuple[int, Content]]:
        return [
            (number, self.contents[number])
            for number, example in enumerate(self.examples)
            if any(key not in self.rows for key in job.keys_of(example))
        ]

    def add(self, rows: Sequence[ScoreRow]) -> None:
        append_scores(self.path, rows)
        fresh = {_key_of(row): row for row in rows}
        self.rows |= fresh
        self.computed |= fresh.keys()

    def count_replies(self, scores: Sequence[Scores]) -> None:
        records = (score.raw for outputs in scores for score in outputs.values() if score.raw)
        counts = count_replies_in(records)
        self.n_replies += counts["n_replies"]
        self.unread.update(counts["unread"])

    def put_in_order(self, jobs: Sequence[_Job]) -> None:
        """By metric and then as the responses came; other scores follow as they were."""
        ordered = (key for job in jobs for each in self.examples for key in job.keys_of(each))
        self.rows = {key: self.rows[key] for key in ordered} | self.rows
        write_scores_file(self.path, self.rows.values())


def _score(sheet: _Sheet, job: _Job) -> Iterator[int]:
    for batch in chunks(grouped(sheet.waiting(job)), job.scorer.batch_size):
        scores = measured(job.scorer, [sheet.examples[numbers[0]] for _, numbers in batch])
        sheet.count_replies(scores)
        sheet.add(
            [
                _row(key, outputs[key.metric], content)
                for (content, numbers), outputs in zip(batch, scores, strict=True)
                for number in numbers
                for key in job.keys_of(sheet.examples[number])
            ]
        )
        yield from (number for _, numbers in batch for number in numbers)


def _planned(sheet: _Sheet, job: _Job) -> Plan:
    waiting = sheet.waiting(job)
    texts = tuple(sheet.examples[numbers[0]] for _, numbers in grouped(waiting))
    return Plan(
        metric=job.scorer.name,
        signature=job.signature,
        n_candidates=len(sheet.examples),
        n_known=len(sheet.examples) - len(waiting),
        n_reusable=0,
        examples=texts,
        estimate=estimated(job.scorer, texts),
    )


def _row(key: ScoreKey, score: Score, content: Content) -> ScoreRow:
    stored = finite(score)
    return ScoreRow(
        item=key.item,
        system=key.system,
        metric=key.metric,
        value=float(stored.value),
        signature=key.signature,
        reason=" ".join((stored.reason or "").split()),
        input=content.digest,
    )


def _key_of(row: ScoreRow) -> ScoreKey:
    return ScoreKey(row.item, row.system, row.metric, row.signature)


def _output_scored(sheet: _Sheet, job: _Job, output: str) -> OutputScored:
    by_system: dict[str, list[float]] = {}
    signature = job.signatures[output]
    keys = [ScoreKey(example.item, example.system, output, signature) for example in sheet.examples]
    for key in keys:
        by_system.setdefault(key.system, []).append(sheet.rows[key].value)
    return OutputScored(
        metric=output,
        signature=signature,
        higher_is_better=job.scorer.higher_is_better_for(output),
        n_computed=len(sheet.computed.intersection(keys)),
        systems=tuple(_mean(system, values) for system, values in by_system.items()),
    )


def _mean(system: str, values: Sequence[float]) -> SystemMean:
    defined = [value for value in values if not math.isnan(value)]
    return SystemMean(
        system=system,
        mean=math.fsum(defined) / len(defined) if defined else math.nan,
        n=len(defined),
        n_undefined=len(values) - len(defined),
    )

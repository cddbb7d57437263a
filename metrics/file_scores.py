"""Scoring a plain file of responses, without a database."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from annotation.readers.policies import Reading
from metrics.models import unread_text
from metrics.score_files import (
    ScoreRow,
    append_scores,
    held,
    read_examples,
    read_scores,
    write_scores_file,
)
from metrics.scorers.scorer import Example, Score, Scorer, Scores
from metrics.stored_scores import Content, chunks, content_of, finite, grouped
from metrics.study_judges import count_replies_in, prepare
from metrics.study_scores import Plan, estimated, measured, signature_of
from presentation.numbers import count_of
from presentation.progress import Reporter, without_bars


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
            steps = _score(sheet, job)
            for _ in reporter(job.scorer.name)(steps, len(sheet.waiting(job))):
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

"""What was read of runs and qrels, what is used, and what is left out and why, file by file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.readers.report import ReadingReport
from error_codes import CodedText
from presentation.counts import count_of
from retrieval.evaluation_records import Evaluation
from retrieval.trec_files import RelevanceGrades, Run

MOST_NAMED = 10
"""Files of which each is named though nothing is to be said of it."""


@dataclass(frozen=True)
class FileReading:
    """The report of one file."""

    path: Path
    report: ReadingReport

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {"file": self.path.name, **self.report.plain()}


def file_readings(*files: Run | RelevanceGrades) -> list[FileReading]:
    """The reports of files, a file once."""
    return [
        FileReading(path, report)
        for path, report in {each.path: each.reading for each in files}.items()
    ]


def evaluation_readings(
    evaluation: Evaluation, grades: RelevanceGrades, runs: Sequence[Run]
) -> list[FileReading]:
    """The reports of qrels and runs, with what takes no part in their evaluation."""
    of_qrels = deepcopy(grades.reading)
    if n := int((grades.grade < 0).sum()):
        text = f"{count_of(n, 'document')} with a grade below 0: pooled and not judged."
        of_qrels.note(CodedText(text, "grades_below_zero"))
    listed = {topic for run in runs for topic in run.topics}
    if n := sum(topic not in listed for topic in grades.topics):
        text = f"{count_of(n, 'topic')} of {len(grades.topics):,} in no run."
        of_qrels.note(CodedText(text, "topics_in_no_run"))
    readings = [FileReading(grades.path, of_qrels)]
    for run, counts in zip(runs, evaluation.runs, strict=True):
        report = deepcopy(run.reading)
        if counts.n_foreign:
            reason = f"its topic is none of {grades.path.name}"
            topics = f"{count_of(counts.n_foreign, 'topic')}"
            report.leave_out(CodedText(reason, "foreign_topic"), topics, counts.n_foreign_lines)
        if counts.n_missing:
            text = f"{count_of(counts.n_missing, 'topic')} of {grades.path.name} without a list."
            report.note(CodedText(text, "missing_topics"))
        if counts.n_unjudged:
            text = f"{count_of(counts.n_unjudged, 'document')} without a judgment."
            report.note(CodedText(text, "unjudged_documents"))
        readings.append(FileReading(run.path, report))
    return readings


def reading_lines(readings: Sequence[FileReading]) -> Iterator[str]:
    """For people: all files together, then those of which something is to be said."""
    if len(readings) > MOST_NAMED:
        n_rows = sum(each.report.n_rows for each in readings)
        n_used = sum(each.report.n_used for each in readings)
        yield f"Read {n_rows:,} rows of {len(readings):,} files. Used {n_used:,}."
    for each in readings:
        sentences = each.report.sentences()
        if len(readings) <= MOST_NAMED or len(sentences) > 1:
            yield f"{each.path.name}: {' '.join(sentences)}"

"""The reading reports of runs and qrels."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from annotation.readers.report import FileReading, FileReadings
from error_codes import CodedText
from presentation.counts import count_of
from retrieval.evaluation_records import Evaluation
from retrieval.trec_files import RelevanceGrades, Run


def file_readings(*files: Run | RelevanceGrades) -> FileReadings:
    """The reports of files, a file once."""
    reports = {each.path: each.reading for each in files}
    return FileReadings([FileReading(path, report) for path, report in reports.items()])


def evaluation_readings(
    evaluation: Evaluation, grades: RelevanceGrades, runs: Sequence[Run]
) -> FileReadings:
    """The reports of qrels and runs, with what takes no part in their evaluation."""
    of_qrels = deepcopy(grades.reading)
    if n := int((grades.grade < 0).sum()):
        text = f"{count_of(n, 'document')} with a grade below 0: pooled and not judged."
        of_qrels.note(CodedText(text, "grades_below_zero"))
    listed = {topic for run in runs for topic in run.topics}
    if n := sum(topic not in listed for topic in grades.topics):
        text = f"{count_of(n, 'topic')} of {len(grades.topics):,} in no run."
        of_qrels.note(CodedText(text, "topics_in_no_run"))
    readings = FileReadings([FileReading(grades.path, of_qrels)])
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
        readings.add(run.path, report)
    return readings

"""The options of commands that evaluate runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Protocol, get_args

from django.core.management.base import CommandError, CommandParser

from annotation.management.plain_table import natural
from annotation.readers.report import FileReading, FileReadings
from error_codes import CodedText
from metrics.management.numbers import once, share
from presentation.counts import count_of
from presentation.files import reason_of
from presentation.text_tables import text_report
from retrieval.evaluation_records import Evaluation, Missing, Settings
from retrieval.trec_files import RelevanceGrades, Run
from stats.ranking import Measure, Ties, measure
from stats.ranking.topic_means import Test


def add_evaluation_options(parser: CommandParser) -> None:
    parser.add_argument("--run", type=Path, required=True, action="append", metavar="FILE")
    parser.add_argument(
        "--measure",
        action="append",
        metavar="NAME",
        help="nDCG@10, nDCG(dcg='exp-log2')@10, RR, Success@1, P@5, P(rel=2)@5, R@100, AP, "
        "Rprec, Bpref, infAP, RBP(p=0.8), RBPresidual, Judged@10, Pooled@10; with "
        "judged_only=True over judged documents alone; trec_eval's names too (default: "
        "nDCG@10, RR@10, Judged@10)",
    )
    parser.add_argument(
        "--primary",
        action="append",
        default=[],
        metavar="NAME",
        help="measures whose tests are corrected together (default: all)",
    )
    parser.add_argument(
        "--missing",
        choices=get_args(Missing),
        default="common",
        help="topics that one of two runs lacks: left out for both, or 0 (default: common)",
    )
    parser.add_argument(
        "--leave-out-without-relevant",
        action="store_true",
        help="leave topics out that have no document of a grade above 0, for all runs and measures",
    )
    parser.add_argument(
        "--ties",
        choices=get_args(Ties),
        default="falling",
        help="order of documents with the same score, by name (default: falling, trec_eval's)",
    )
    parser.add_argument(
        "--double",
        action="store_true",
        help="compare scores as 64-bit floats, as trec_eval 10 does; pytrec_eval does not",
    )
    parser.add_argument(
        "--test", choices=get_args(Test), help="default: randomisation; mcnemar of Success"
    )
    parser.add_argument("--confidence", type=share, default=0.95)
    parser.add_argument("--seed", type=natural, default=0)
    parser.add_argument("--json", action="store_true")


def evaluation_settings(
    options: dict[str, Any], default: Sequence[str] = ("nDCG@10", "RR@10", "Judged@10")
) -> Settings:
    measures = _measures("measure", options["measure"] or default)
    primary = _measures("primary", options["primary"])
    if unknown := [one.name for one in primary if one not in measures]:
        raise CommandError(f"--primary {unknown[0]} is no --measure of this evaluation.")
    if options["test"] == "mcnemar" and not all(one.is_binary for one in measures):
        raise CommandError("--test mcnemar compares values of 0 and 1: of Success alone.")
    return Settings(
        measures=measures,
        primary=primary,
        ties=options["ties"],
        single_precision=not options["double"],
        missing=options["missing"],
        leave_out_without_relevant=options["leave_out_without_relevant"],
        test=options["test"],
        confidence=options["confidence"],
        seed=options["seed"],
    )


def _measures(option: str, names: Sequence[str]) -> tuple[Measure, ...]:
    try:
        return once(measure(name) for name in names)
    except ValueError as error:
        raise CommandError(f"--{option}: {reason_of(error)}.") from None


def file_readings(*files: Run | RelevanceGrades) -> FileReadings:
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


class Result(Protocol):
    def record(self) -> dict[str, Any]: ...


def with_readings(
    result: Result, text: str, readings: FileReadings, *, is_json: bool, **more: Any
) -> str:
    """The result as JSON, with `more`, or as text; the reading reports come last."""
    if is_json:
        return json.dumps({**result.record(), **more, "reading": readings.plain()}, indent=1)
    return text_report([text, "\n".join(readings.lines())])

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import positive
from annotation.readers.drafts import FileReadings
from presentation.progress import bar
from results.shown import ShownResult
from retrieval.evaluated_runs import evaluation_text
from retrieval.evaluation import evaluate_runs
from retrieval.management.options import (
    add_evaluation_options,
    evaluation_readings,
    evaluation_settings,
    with_readings,
)
from retrieval.result_kinds.machine import MachineKind
from retrieval.result_kinds.reuse import ReuseKind
from retrieval.reuse.machine import compare_machine
from retrieval.reuse.pools import MachineComparison, Reusability, Sample, read_groups
from retrieval.reuse.reusability import reusability
from retrieval.trec_files import read_qrels, read_run
from retrieval.weighted_means import read_weights, weighted_means

MOST_RUNS_PAIRED = 10
OPTIONS_OF = {
    "reusability": ("pool_depth", "group", "groups", "outside"),
    "machine": ("shares_model", "human_sample"),
}


class Command(BaseCommand):
    help = (
        "Evaluate runs against qrels, both in TREC's formats: measures with intervals over "
        "topics, and which runs differ; with --reusability how far the judgments may be used for "
        "systems that were not pooled, with --machine what a machine's labels do. Needs no study "
        "and no database."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--qrels", type=Path, required=True, metavar="FILE")
        add_evaluation_options(parser)
        parser.add_argument(
            "--pairs",
            action="store_true",
            help=f"test each pair of runs (default: of {MOST_RUNS_PAIRED} runs at most)",
        )
        parser.add_argument(
            "--weights",
            type=Path,
            metavar="FILE",
            help="targets with the probability that each was drawn, and its stratum, as "
            "sample_targets writes them: means for all targets beside those of the topics drawn",
        )
        _add_reusability_arguments(parser)
        _add_machine_arguments(parser)

    def handle(self, *args: Any, qrels: Path, run: Sequence[Path], **options: Any) -> None:
        for owner, names in OPTIONS_OF.items():
            if not options[owner] and (given := [name for name in names if options[name]]):
                raise CommandError(f"--{given[0].replace('_', '-')} is an option of --{owner}.")
        pairs = options["pairs"] or len(run) <= MOST_RUNS_PAIRED
        settings = replace(evaluation_settings(options), pairs=pairs)
        grades = read_qrels(qrels)
        runs = [read_run(path) for path in bar("read")(run, len(run))]
        evaluation = evaluate_runs(
            grades, runs, settings, progress=bar("evaluate"), pair_progress=bar("compare")
        )
        readings = evaluation_readings(evaluation, grades, runs)
        more: dict[str, Any] = {}
        texts = [evaluation_text(evaluation)]
        chosen = {
            "measures": [each.name for each in settings.measures],
            "primary": [each.name for each in settings.primary],
            "sharing": options["shares_model"],
        }

        def add(name: str, kind: Any, part: Reusability | MachineComparison) -> None:
            more[name] = part.record()
            texts.append(ShownResult.of_record(kind, more[name], chosen, part.notes).write_text())

        if file := options["weights"]:
            weights = read_weights(file, evaluation.topics, report=readings.add(file))
            weighted = weighted_means(evaluation, weights)
            more["weighted"] = weighted.record()
            texts.append(weighted.text())
        groups = _groups(options, readings)
        if options["reusability"]:
            depth, outside = options["pool_depth"], options["outside"]
            progress = bar("leave one out")
            reuse = reusability(
                runs, grades, depth, groups, settings, outside=outside, progress=progress
            )
            add("reusability", ReuseKind, reuse)
        if options["machine"]:
            machine = read_qrels(options["machine"])
            readings.add(machine.path, machine.reading)
            sample, progress = options["human_sample"], bar("machine")
            compared = compare_machine(
                runs, grades, machine, chosen["sharing"], settings, sample=sample, progress=progress
            )
            add("machine", MachineKind, compared)
        text, is_json = "\n\n".join(texts), options["json"]
        self.stdout.write(with_readings(evaluation, text, readings, is_json=is_json, **more))


def _add_reusability_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--reusability",
        action="store_true",
        help="leave each run, and each group of runs, out of the pool and score all anew",
    )
    parser.add_argument(
        "--pool-depth",
        type=positive,
        metavar="K",
        help="of --reusability: the rank to which runs were pooled (default: to which all "
        "documents of the pooled runs are in the qrels)",
    )
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME=RUN,RUN",
        help="of --reusability: runs of one family, which are left out together",
    )
    parser.add_argument(
        "--groups", type=Path, metavar="FILE", help="the same from a file: a run and its group"
    )
    parser.add_argument(
        "--outside",
        action="append",
        default=[],
        metavar="RUN",
        help="of --reusability: a run that was not pooled",
    )


def _add_machine_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--machine",
        type=Path,
        metavar="QRELS",
        help="labels of a machine, of which --qrels has a random sample by people; shown beside "
        "them, and corrected by them, never merged",
    )
    parser.add_argument(
        "--shares-model",
        action="append",
        default=[],
        metavar="RUN",
        help="of --machine: a run whose system shares the machine's model",
    )
    parser.add_argument(
        "--human-sample",
        choices=get_args(Sample),
        help="of --machine: what was drawn for people, whole topics or single labels (default: "
        "topics where people judged all that the machine judged in each)",
    )


def _groups(options: dict[str, Any], readings: FileReadings) -> dict[str, list[str]]:
    file: Path | None = options["groups"]
    groups = {} if file is None else read_groups(file, report=readings.add(file))
    for text in options["group"]:
        name, _, runs = text.partition("=")
        members = [run.strip() for run in runs.split(",") if run.strip()]
        if not name.strip() or not members:
            raise CommandError(f"--group {text}: give a name and runs, as in neural=dense,splade.")
        groups.setdefault(name.strip(), []).extend(members)
    return groups

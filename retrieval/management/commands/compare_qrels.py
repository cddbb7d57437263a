from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import positive
from metrics.management.options import share, some_draws
from presentation.progress import bar
from results.shown import ShownResult
from retrieval.management.options import (
    add_evaluation_options,
    evaluation_settings,
    file_readings,
    with_readings,
)
from retrieval.rankings import ComparisonSettings, compare_qrels
from retrieval.result_kinds.comparison import ComparisonKind
from retrieval.trec_files import read_assessors, read_qrels, read_run
from stats.ranking.rank_biased_overlap import RankTies

FORM = "--qrels takes NAME=FILE, such as first=round1.qrels"


class Command(BaseCommand):
    help = (
        "Rank runs under several qrels of the same topics: how alike the rankings are, which "
        "pairs of runs swap, which differences stay significant, and how far the labels agree. "
        "Needs no study and no database."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--qrels",
            action="append",
            default=[],
            metavar="NAME=FILE",
            help="qrels by one assessor, rule or round; twice or more",
        )
        parser.add_argument(
            "--assessors",
            type=Path,
            metavar="FILE",
            help="qrels with the assessor in column 2, several grades a document (qrels_jg)",
        )
        parser.add_argument(
            "--machine",
            action="append",
            default=[],
            metavar="NAME",
            help="qrels that no person made, which are not merged with people's",
        )
        parser.add_argument(
            "--truth", metavar="NAME", help="qrels that the others are held against"
        )
        parser.add_argument(
            "--top",
            type=positive,
            metavar="K",
            help="tau-b also of the best K runs by themselves, by the truth or the first",
        )
        parser.add_argument("--rbo-p", type=share, default=0.9, help="default: 0.9")
        parser.add_argument("--rbo-ties", choices=get_args(RankTies), default="b")
        parser.add_argument("--resamples", type=some_draws, default=2000, help="of topics")
        parser.add_argument(
            "--draws", type=some_draws, default=1000, help="of one assessor a topic at random"
        )
        add_evaluation_options(parser)

    def handle(self, *args: Any, run: Sequence[Path], **options: Any) -> None:
        settings = ComparisonSettings(
            evaluation=evaluation_settings(options, ("nDCG@10",)),
            truth=options["truth"],
            top=options["top"],
            rbo_p=options["rbo_p"],
            rbo_ties=options["rbo_ties"],
            n_resamples=options["resamples"],
            n_draws=options["draws"],
            machines=tuple(options["machine"]),
        )
        runs = [read_run(path) for path in run]
        qrels = {name: read_qrels(path) for name, path in _named_files(options["qrels"]).items()}
        assessors = read_assessors(options["assessors"]) if options["assessors"] else {}
        compared = compare_qrels(
            runs, qrels, settings, assessors=assessors, progress=bar("compare")
        )
        readings = file_readings(*qrels.values(), *assessors.values(), *runs)
        record = compared.record()
        shown = ShownResult.of_record(ComparisonKind, record, record["settings"], compared.notes)
        self.stdout.write(
            with_readings(compared, shown.write_text(), readings, is_json=options["json"])
        )


def _named_files(options: Sequence[str]) -> dict[str, Path]:
    pairs = [option.partition("=") for option in options]
    if wrong := [
        option
        for option, (name, _, file) in zip(options, pairs, strict=True)
        if not (name and file)
    ]:
        raise CommandError(f"{FORM}, not {wrong[0]}.")
    twice = [name for name, n in Counter(name for name, _, _ in pairs).items() if n > 1]
    if twice:
        raise CommandError(f"--qrels: two are called {twice[0]}.")
    return {name: Path(file) for name, _, file in pairs}

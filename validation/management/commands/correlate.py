from pathlib import Path
from typing import Any, get_args

from django.core.management.base import CommandParser

from annotation.management.plain_table import (
    TableCommand,
    add_cluster,
    add_item,
    each_once,
    natural,
    reading_of,
)
from metrics.management.options import draws, once, share, some_draws
from presentation.numbers import group_values
from presentation.progress import bar
from stats.correlation import Resample, Undefined
from stats.significance import Swap, Test
from validation.plain_table import (
    COEFFICIENTS,
    LEVELS,
    Columns,
    Settings,
    correlate_table,
)

TESTS: dict[Swap, Test] = {"both": "perm_both", "items": "perm_items", "systems": "perm_systems"}


class Command(TableCommand):
    help = (
        "Correlate the metrics of a table with its human values: a CSV or JSON Lines file with "
        "a row an output. Needs no study and no database."
    )
    shapes = ("long", "annotators", "systems", "scores", "nested")

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--human", required=True, action="append", metavar="COLUMN",
            help="people's values; given several times, each is the column of one annotator",
        )  # fmt: skip
        parser.add_argument("--metric", required=True, action="append", metavar="COLUMN")
        add_item(parser)
        parser.add_argument(
            "--system", default=[], action="append", metavar="COLUMN",
            help="whose output it is; given several times, each is the column of one system in a "
            "table whose column 'metric' names the measures",
        )  # fmt: skip
        add_cluster(parser)
        parser.add_argument("--by", metavar="COLUMN", help="also for each value of this column")
        parser.add_argument("--level", action="append", choices=list(LEVELS), help="default: all")
        parser.add_argument(
            "--coefficient", action="append", choices=COEFFICIENTS, help="default: all"
        )
        parser.add_argument("--resample", choices=get_args(Resample), default="items")
        parser.add_argument(
            "--undefined",
            choices=get_args(Undefined),
            default="drop",
            help="what becomes of groups with a constant side (default: drop)",
        )
        parser.add_argument(
            "--compare",
            action="store_true",
            help="compare every two metrics in the same resamples: for these systems and, beside "
            "it, for new systems (or as --resample says)",
        )
        parser.add_argument(
            "--permute",
            action="append",
            choices=get_args(Swap),
            help="permutation tests too, which swap cells (both; takes them for independent), "
            "whole items (these systems) or systems (new systems)",
        )
        parser.add_argument(
            "--williams",
            action="store_true",
            help="Williams' test too, which takes cells, or systems, for independent",
        )
        parser.add_argument("--lower-is-better", action="append", default=[], metavar="METRIC")
        parser.add_argument("--confidence", type=share, default=0.95)
        parser.add_argument("--resamples", type=draws, default=1000)
        parser.add_argument("--permutations", type=some_draws, default=1000)
        parser.add_argument("--seed", type=natural, default=0)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        reading = reading_of(options)
        correlated = correlate_table(
            file,
            _columns(options),
            _settings(options),
            compare=options["compare"],
            progress=bar("correlate"),
            reading=reading,
        )
        self.write_result(correlated, reading, options)


def _columns(options: dict[str, Any]) -> Columns:
    return Columns(
        human=each_once(options["human"]),
        metrics=tuple(options["metric"]),
        item=each_once(options["item"]),
        system=each_once(options["system"]),
        by=options["by"],
        cluster=options["cluster"],
        where=group_values(options["where"]),
    )


def _settings(options: dict[str, Any]) -> Settings:
    return Settings(
        levels=once(options["level"] or LEVELS),
        coefficients=once(options["coefficient"] or COEFFICIENTS),
        resample=options["resample"],
        undefined=options["undefined"],
        confidence=options["confidence"],
        n_resamples=options["resamples"],
        n_permutations=options["permutations"],
        seed=options["seed"],
        lower_is_better=tuple(options["lower_is_better"]),
        permutation_tests=once(TESTS[swap] for swap in options["permute"] or []),
        williams=options["williams"],
    )

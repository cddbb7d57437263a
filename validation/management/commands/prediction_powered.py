from pathlib import Path
from typing import Any, get_args

from django.core.management.base import CommandError, CommandParser

from annotation.management.plain_table import (
    TableCommand,
    add_cluster,
    add_item,
    each_once,
    positive,
    reading_of,
)
from metrics.management.options import share
from presentation.numbers import group_values
from stats.inference.looks import Spending
from stats.inference.powered_quantiles import PoweredCoefficient
from validation.conclusions.prediction_powered import (
    Estimand,
    Look,
    PoweredColumns,
    PoweredMeans,
    PoweredRegressions,
    powered_means_of_file,
    powered_regressions_of_file,
)

ESTIMAND = ("quantile", "correlation", "coefficient")


class Command(TableCommand):
    help = (
        "The mean human rating of all items, and of each system, from people's ratings of some "
        "and a judge's scores of all; or a quantile, a correlation, or least squares. The items "
        "people rated must be a random part, or drawn with recorded --probability."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_item(parser)
        add_cluster(parser)
        parser.add_argument(
            "--human", required=True, metavar="COLUMN", help="empty where people rated nothing"
        )
        parser.add_argument(
            "--judge", required=True, metavar="COLUMN", help="rows without it are left out"
        )
        parser.add_argument("--system", metavar="COLUMN", help="a mean for each, and differences")
        parser.add_argument(
            "--batch", metavar="COLUMN", help="number of the batch that sent an item first"
        )
        parser.add_argument(
            "--probability", metavar="COLUMN",
            help="with which the batch drew the item; empty where it was picked by hand",
        )  # fmt: skip
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--quantile", type=share, metavar="Q", help="that quantile instead of the mean: .5"
        )
        what.add_argument(
            "--correlation",
            metavar="COLUMN",
            help="of people with that column, filled in every row",
        )
        what.add_argument(
            "--covariate", action="append", default=[], metavar="COLUMN",
            help="what ratings rise by with it, by least squares; more than one together",
        )  # fmt: skip
        parser.add_argument(
            "--coefficient", choices=get_args(PoweredCoefficient), default="pearson",
            help="of --correlation",
        )  # fmt: skip
        parser.add_argument(
            "--looks", type=positive, default=1, metavar="N",
            help="looks planned beforehand, after equal shares of the ratings; the intervals of "
            "all of them hold together",
        )  # fmt: skip
        parser.add_argument(
            "--look", type=positive, default=1, metavar="K", help="which of them this is, from 1"
        )
        parser.add_argument(
            "--spending", choices=get_args(Spending), default="pocock",
            help="of the error: about as much at each look, or nearly all at the last",
        )  # fmt: skip
        parser.add_argument("--confidence", type=share, default=0.95)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        others = tuple(dict.fromkeys(options["covariate"]))
        if options["correlation"] is not None:
            others = (options["correlation"],)
        columns = PoweredColumns(
            human=options["human"],
            judge=options["judge"],
            item=each_once(options["item"]),
            system=options["system"],
            cluster=options["cluster"],
            where=group_values(options["where"]),
            others=others,
            batch=options["batch"],
            probability=options["probability"],
        )
        if (columns.batch is None) != (columns.probability is None):
            raise CommandError("Name both --batch and --probability, or neither.")
        others_asked = options["quantile"] is not None or bool(others)
        if columns.batch is not None and others_asked:
            raise CommandError("--batch and --probability are of means and their differences only.")
        if options["look"] > options["looks"]:
            raise CommandError("--look must lie between 1 and --looks.")
        look = Look(options["look"], options["looks"], options["spending"])
        reading = reading_of(options)
        result: PoweredMeans | PoweredRegressions
        if options["covariate"]:
            result = powered_regressions_of_file(
                file, columns, confidence=options["confidence"], look=look, reading=reading
            )
        else:
            result = powered_means_of_file(
                file,
                columns,
                estimand=Estimand(*(options[name] for name in ESTIMAND)),
                confidence=options["confidence"],
                look=look,
                reading=reading,
            )
        self.write_result(result, reading, options)

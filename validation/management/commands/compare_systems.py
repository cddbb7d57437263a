import json
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.numbers import natural
from annotation.management.selection import add_where, item_columns, values_by_column
from stats.inference.tie_likelihood import Model
from validation.analysis.rated_systems import Scale
from validation.conclusions.systems import (
    ComparisonColumns,
    PreferredSystems,
    RatingColumns,
    RatingsReport,
    preferred_systems_of_file,
    rated_systems_of_file,
)

RATINGS = ("item", "annotator", "system", "value")
COMPARISONS = ("first", "second", "winner")


class Command(BaseCommand):
    help = (
        "Which system people rate higher (--item --annotator --system --value), or prefer "
        "(--first --second --winner), from a plain file."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help=".csv, .tsv or .jsonl")
        parser.add_argument("--item", action="append", default=[], metavar="COLUMN")
        for name in ("annotator", "system", "value", "first", "second"):
            parser.add_argument(f"--{name}", metavar="COLUMN")
        parser.add_argument(
            "--cluster", metavar="COLUMN", help="of items that are not independent of each other"
        )
        parser.add_argument(
            "--scale", choices=get_args(Scale), default="interval",
            help="of --value: differences of means, or how much oftener the same annotator rates "
            "one system above the other on the same item",
        )  # fmt: skip
        parser.add_argument(
            "--winner", metavar="COLUMN", help="a system's name; empty or 'tie' for a tie"
        )
        parser.add_argument(
            "--model", choices=get_args(Model), default="davidson", help="of comparisons"
        )
        parser.add_argument(
            "--covariate",
            action="append",
            default=[],
            metavar="COLUMN",
            help="of comparisons: the first's less the second's, length for example",
        )
        parser.add_argument(
            "--side", action="store_true", help="estimate how much being first helps"
        )
        parser.add_argument(
            "--half-wins",
            action="store_true",
            help="add half a win either way to each pair where a system never lost",
        )
        add_where(parser)
        parser.add_argument("--seed", type=natural, default=0)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        result = _result(file, options)
        record, lines = result.record(), result.lines()
        text = json.dumps(record, indent=1) if options["json"] else "\n".join(lines)
        self.stdout.write(text)


def _result(file: Path, options: dict[str, Any]) -> RatingsReport | PreferredSystems:
    item, where = item_columns(options["item"]), values_by_column(options["where"])
    if all(options[name] for name in COMPARISONS):
        if options["system"] or options["value"]:
            raise CommandError("Comparisons have no --system and no --value; leave them out.")
        columns = ComparisonColumns(
            **{name: options[name] for name in COMPARISONS},
            item=item,
            annotator=options["annotator"],
            cluster=options["cluster"],
            covariates=tuple(options["covariate"]),
            where=where,
        )
        return preferred_systems_of_file(
            file,
            columns,
            model=options["model"],
            side=options["side"],
            half_wins=options["half_wins"],
        )
    if missing := [name for name in RATINGS if not options[name]]:
        raise CommandError(
            f"Name the columns --{', --'.join(missing)} too; or, for comparisons, --first, "
            "--second and --winner."
        )
    named = {name: options[name] for name in ("annotator", "system", "value")}
    return rated_systems_of_file(
        file,
        RatingColumns(item=item, where=where, cluster=options["cluster"], **named),
        seed=options["seed"],
        scale=options["scale"],
    )

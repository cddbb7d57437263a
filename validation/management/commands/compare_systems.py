from pathlib import Path
from typing import Any, get_args

from django.core.management.base import CommandError, CommandParser

from annotation.management.plain_table import ROLES, LabelsCommand, add_cluster, natural, reading_of
from annotation.readers.policies import Reading
from stats.inference.tie_likelihood import Model
from validation.analysis.rated_systems import Scale
from validation.conclusions.systems import (
    ComparisonColumns,
    PreferredSystems,
    RatingsReport,
    preferred_systems_of_file,
    rated_systems_of_file,
)

COMPARISONS = ("first", "second", "winner")


class Command(LabelsCommand):
    help = (
        "Which system people rate higher (--item --annotator --system --value), or prefer "
        "(--first --second --winner), from a plain file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_cluster(parser)
        parser.add_argument(
            "--scale", choices=get_args(Scale), default="interval",
            help="of --value: differences of means, or how much oftener the same annotator rates "
            "one system above the other on the same item",
        )  # fmt: skip
        parser.add_argument(
            "--positive",
            metavar="VALUE",
            help="of a binary scale in words: the one that counts as 1",
        )
        for name in ("first", "second"):
            parser.add_argument(f"--{name}", metavar="COLUMN", help="of comparisons: a system")
        parser.add_argument(
            "--winner", metavar="COLUMN",
            help="a system's name or its side, in any case; empty, 'tie' or 'both bad' for a tie",
        )  # fmt: skip
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
        parser.add_argument("--seed", type=natural, default=0)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        reading = reading_of(options)
        if all(options[name] for name in COMPARISONS):
            result: RatingsReport | PreferredSystems = self._preferred(file, options, reading)
        else:
            result = self._rated(file, options, reading)
        self.write_result(result, reading, options)

    def _preferred(self, file: Path, options: dict[str, Any], reading: Reading) -> PreferredSystems:
        named = self.columns(options, needs=())
        if named.system or named.value:
            raise CommandError("Comparisons have no --system and no --value; leave them out.")
        return preferred_systems_of_file(
            file,
            ComparisonColumns(
                **{name: options[name] for name in COMPARISONS},
                item=named.item,
                annotator=next(iter(named.annotator), None),
                cluster=named.cluster,
                covariates=tuple(options["covariate"]),
                where=named.where,
            ),
            model=options["model"],
            side=options["side"],
            half_wins=options["half_wins"],
            reading=reading,
        )

    def _rated(self, file: Path, options: dict[str, Any], reading: Reading) -> RatingsReport:
        if any(options[name] for name in COMPARISONS):
            missing = [f"--{name}" for name in COMPARISONS if not options[name]]
            raise CommandError(f"Name the columns {', '.join(missing)} too.")
        return rated_systems_of_file(
            file,
            self.columns(options, needs=(*ROLES, "system")),
            seed=options["seed"],
            scale=options["scale"],
            positive=options["positive"],
            reading=reading,
        )

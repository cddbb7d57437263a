from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.importer import add_study_arguments, owner_named, team_named
from annotation.management.numbers import natural, positive
from annotation.ownership import ownership_warning
from simulation.dialogue_imports import import_dialogues
from simulation.names import CATALOGUES, named_catalogue
from simulation.outcome_items import outcome_items


class Command(BaseCommand):
    help = (
        "Make a study of which recommenders' final items would do, of a file that simulate --log "
        "wrote: blind, and shuffled by a seed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_study_arguments(parser, study_help="a new one")
        parser.add_argument("--catalogue", required=True, metavar="NAME", help=CATALOGUES)
        parser.add_argument(
            "--catalogue-seed", type=natural, default=0, help="of drawn products, as in simulate"
        )
        parser.add_argument(
            "--final-user",
            default="",
            metavar="NAME",
            help="whose dialogues' final items are shown, as the log names it (its first user)",
        )
        parser.add_argument("--targets", type=positive, help="draw so many (all)")
        parser.add_argument(
            "--seed", type=natural, default=0, help="of what is drawn and the order"
        )

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            catalogue = named_catalogue(options["catalogue"], seed=options["catalogue_seed"])
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        items = outcome_items(
            file,
            catalogue,
            final_user=options["final_user"],
            n_targets=options["targets"],
            seed=options["seed"],
        )
        imported = import_dialogues(
            items,
            log=file,
            slug=options["study"],
            title=options["title"],
            owner=owner_named(options["owner"]),
            team=team_named(options["team"]),
        )
        self.stdout.write(str(imported))
        if warning := ownership_warning(imported.study):
            self.stderr.write(warning)

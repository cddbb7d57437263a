from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.importer import add_study_arguments, owner_named, team_named
from annotation.management.numbers import natural, positive
from annotation.ownership import ownership_warning
from retrieval.trec_files import read_qrels
from simulation.dialogue_imports import import_dialogues
from simulation.names import CATALOGUES, named_catalogue
from simulation.switching_items import switching_items
from simulation.targets import from_judgments


class Command(BaseCommand):
    help = (
        "Make a study of whether people switch, of the turns of a file that simulate --log wrote: "
        "losses and gains drawn by a seed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_study_arguments(parser, study_help="a new one")
        parser.add_argument("--catalogue", required=True, metavar="NAME", help=CATALOGUES)
        parser.add_argument("--qrels", type=Path, required=True, metavar="FILE")
        parser.add_argument(
            "--catalogue-seed", type=natural, default=0, help="of drawn products, as in simulate"
        )
        parser.add_argument("--per-target", type=positive, default=2, help="turns of each target")
        parser.add_argument("--seed", type=natural, default=0, help="of the turns drawn")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            catalogue = named_catalogue(options["catalogue"], seed=options["catalogue_seed"])
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        grades = read_qrels(options["qrels"])
        accepted, _ = from_judgments(
            grades.topics, grades.documents, grades.topic, grades.document, grades.grade
        )
        items = switching_items(
            file, catalogue, accepted, per_target=options["per_target"], seed=options["seed"]
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

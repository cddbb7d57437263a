from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from annotation.management.importer import StudyImportCommand, owner_named, team_named
from annotation.management.plain_table import natural
from simulation.catalogue import Catalogue
from simulation.plans import CATALOGUES, named_catalogue
from simulation.recorded_studies import DialogueItems, import_dialogues


class DialogueImportCommand(StudyImportCommand, ABC):
    study_help = "a new one"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--catalogue", required=True, metavar="NAME", help=CATALOGUES)
        parser.add_argument(
            "--catalogue-seed", type=natural, default=0, help="of drawn products, as in simulate"
        )

    @abstractmethod
    def items(self, log: Path, catalogue: Catalogue, options: Mapping[str, Any]) -> DialogueItems:
        pass

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            catalogue = named_catalogue(options["catalogue"], seed=options["catalogue_seed"])
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        imported = import_dialogues(
            self.items(file, catalogue, options),
            log=file,
            slug=options["study"],
            title=options["title"],
            owner=owner_named(options["owner"]),
            team=team_named(options["team"]),
        )
        self.write_imported(imported, is_json=options["json"])

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.plain_table import natural, positive
from annotation.relevance import relevance_sources
from simulation.catalogue import Catalogue, from_judgments
from simulation.management.dialogue_import import DialogueImportCommand
from simulation.recorded_dialogues import switching_items
from simulation.recorded_studies import DialogueItems


class Command(DialogueImportCommand):
    help = (
        "Make a study of whether people switch, of the turns of a file that simulate --log wrote: "
        "losses and gains drawn by a seed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--qrels", type=Path, required=True, metavar="FILE")
        parser.add_argument("--per-target", type=positive, default=2, help="turns of each target")
        parser.add_argument("--seed", type=natural, default=0, help="of the turns drawn")

    def items(self, log: Path, catalogue: Catalogue, options: Mapping[str, Any]) -> DialogueItems:
        grades = relevance_sources().read_qrels(options["qrels"])
        accepted, _ = from_judgments(
            grades.topics, grades.documents, grades.topic, grades.document, grades.grade
        )
        return switching_items(
            log, catalogue, accepted, per_target=options["per_target"], seed=options["seed"]
        )

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.plain_table import natural, positive
from simulation.catalogue import Catalogue
from simulation.management.dialogue_import import DialogueImportCommand
from simulation.recorded_studies import DialogueItems, outcome_items


class Command(DialogueImportCommand):
    help = (
        "Make a study of which recommenders' final items would do, of a file that simulate --log "
        "wrote: blind, and shuffled by a seed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
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

    def items(self, log: Path, catalogue: Catalogue, options: Mapping[str, Any]) -> DialogueItems:
        return outcome_items(
            log,
            catalogue,
            final_user=options["final_user"],
            n_targets=options["targets"],
            seed=options["seed"],
        )

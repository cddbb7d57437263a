from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from metrics.study_judges import judges_client, write_steps


class Command(BaseCommand):
    help = (
        "Have the judge write G-Eval's evaluation steps from the criteria, once, into a file of "
        "settings (JSON), so that every run uses the same. Needs no database."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("settings_", metavar="SETTINGS.json|PRESET")
        parser.add_argument(
            "--output", type=Path, metavar="SETTINGS.json", help="by default the file itself"
        )
        parser.add_argument("--anew", action="store_true", help="replace steps that are there")

    def handle(self, *args: Any, settings_: str, **options: Any) -> None:
        path = write_steps(
            source=settings_,
            output=options["output"],
            client=judges_client(),
            anew=options["anew"],
        )
        self.stdout.write(f"{path} has the evaluation steps; use it as geval.settings={path}.")

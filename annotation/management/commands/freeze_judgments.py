import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.frames import freeze_judgments
from annotation.models import Study
from presentation.numbers import count_of


class Command(BaseCommand):
    help = (
        "Freeze a study's judgments as Parquet under their fingerprint, where objects are stored "
        "(OBJECTS_URL), to compute with away from the database. The same judgments are one file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--json", action="store_true", help="print the file's name as JSON")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        frozen = freeze_judgments(Study.objects.named(study))
        if options["json"]:
            self.stdout.write(json.dumps(frozen))
            return
        how = "" if frozen["is_new"] else ", as it was frozen before"
        self.stdout.write(f"{frozen['name']}: {count_of(frozen['n_rows'], 'judgment')}{how}.")

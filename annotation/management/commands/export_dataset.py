import json as json_format
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.dataset import LICENSES, UNKNOWN_LICENSE, require_license, write_dataset
from annotation.models import Study
from annotation.result_kinds.agreement import AgreementKind


class Command(BaseCommand):
    help = "Write a study as a dataset with its card, which Hugging Face's `datasets` loads."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("folder", type=Path, metavar="FOLDER")
        parser.add_argument(
            "--license",
            default=UNKNOWN_LICENSE,
            metavar="NAME",
            help=f"under which the data are given: {', '.join(LICENSES)}",
        )
        parser.add_argument("--json", action="store_true", help="print the files' names as JSON")

    def handle(
        self, *args: Any, study: str, folder: Path, license: str, json: bool, **options: Any
    ) -> None:
        require_license(license)
        target = Study.objects.named(study)
        # The card states it as it is now.
        AgreementKind().require(target)
        paths = write_dataset(target, folder, license=license)
        if json:
            record = {"study": study, "license": license, "files": [str(path) for path in paths]}
            self.stdout.write(json_format.dumps(record, indent=1))
            return
        self.stdout.write(
            f"{folder}: the card and {len(paths) - 1} tables of '{study}'. "
            f'Load it with load_dataset("{folder}", "judgments").'
        )

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.exceptions import first_or_raise
from marketplace.models import RecruitedStudy
from marketplace.recruiting.files import import_statuses, read_statuses


class Command(BaseCommand):
    help = "Take over what a recruiter says became of a study's participants, from a CSV file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="What the study's link has after /join/.")
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--dry-run", action="store_true", help="Check the file only.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        study = first_or_raise(
            RecruitedStudy.objects.select_related("requester", "connection").filter(
                token=options["study"]
            ),
            CommandError(f"There is no study with the link {options['study']!r}."),
        )
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                rows = read_statuses(study, file, name=path.name)
        except OSError as error:
            raise CommandError(str(error), returncode=2) from error
        if options["dry_run"]:
            self.stdout.write(f"{path.name}: nothing is wrong with its {len(rows)} participations.")
            return
        result = import_statuses(study, rows)
        counts = f"{result.n_changed} changed, {result.n_unchanged} were so already or are no news."
        text = "\n".join([counts, *(f"Not changed: {one}" for one in result.contradictions)])
        self.stdout.write(json.dumps(asdict(result)) if options["json"] else text)

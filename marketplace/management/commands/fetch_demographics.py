import csv
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.exceptions import first_or_raise
from marketplace.models import RecruitedStudy
from marketplace.recruiting.files import demographics_file, fetch_demographics


class Command(BaseCommand):
    help = (
        "Ask a study's recruiter what its participants told it about themselves, keep it "
        "encrypted, and with --csv FILE write it by Worker ID (docs/recruiting.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="what the link has after /join/")
        parser.add_argument("--csv", metavar="FILE", help="write what is kept")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        study = first_or_raise(
            RecruitedStudy.objects.select_related("connection", "requester").filter(
                token=options["study"]
            ),
            CommandError(f"There is no study {options['study']}."),
        )
        n = fetch_demographics(study=study)
        if options["csv"]:
            with open(options["csv"], "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(demographics_file(study, user=None))
        text = f"Demographics of {n} participation{'' if n == 1 else 's'} are kept."
        self.stdout.write(json.dumps({"participations": n}) if options["json"] else text)

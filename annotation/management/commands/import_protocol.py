import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import save_draft


class Command(BaseCommand):
    help = "Make a YAML file or a template the draft of a study's protocol."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="STUDY")
        parser.add_argument("file", metavar="FILE", help="or the name of a template")
        parser.add_argument("--dry-run", action="store_true", help="only say what is wrong")
        parser.add_argument("--json", action="store_true", help="for programs to read")

    def handle(self, *args: Any, study: str, file: str, **options: Any) -> None:
        row = Study.objects.named(study)
        document = read_protocol(file, row)
        if options["dry_run"]:
            self.stdout.write(f"{file} can become the protocol of study '{study}'.")
            return
        version = save_draft(study=row, document=document)
        state = "draft" if version.frozen_at is None else "frozen"
        if options["json"]:
            self.stdout.write(
                json.dumps({"study": study, "number": version.number, "state": state})
            )
        elif version.frozen_at is None:
            self.stdout.write(
                f"Version {version.number} of the protocol of study '{study}' is a draft, which "
                "the next launch freezes."
            )
        else:
            self.stdout.write(f"Version {version.number} of study '{study}' says this already.")

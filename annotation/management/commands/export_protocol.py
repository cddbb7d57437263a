import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.templates import write_yaml
from annotation.protocols.versions import current_document, numbered_version


class Command(BaseCommand):
    help = "Write a study's protocol as YAML, which import_protocol takes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="STUDY")
        parser.add_argument("--version-number", type=int, metavar="N", help="default: the newest")
        parser.add_argument("--output", type=Path, metavar="FILE", help="default: print it")
        parser.add_argument("--json", action="store_true", help="JSON instead of YAML")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        row = Study.objects.named(study)
        document = current_document(row)
        if (number := options["version_number"]) is not None:
            document = read_document(numbered_version(row, number).document)
        text = write_yaml(document)
        if options["json"]:
            text = json.dumps(plain_document(document), indent=2, ensure_ascii=False) + "\n"
        if options["output"] is None:
            self.stdout.write(text, ending="")
            return
        options["output"].write_text(text, encoding="utf-8")
        self.stdout.write(f"Protocol of study '{study}' written to {options['output']}.")

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.recruiting.fake_prolific.drift import drift, read_document
from marketplace.recruiting.fake_prolific.schema import operations


class Command(BaseCommand):
    help = "Compare a downloaded openapi.yaml of Prolific's with the operations that are used."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the vendor's document, YAML or JSON")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = drift(read_document(options["file"]))
        except ValueError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            facts = {"operations": len(operations()), "drift": [each.facts() for each in found]}
            self.stdout.write(json.dumps(facts))
        else:
            for each in found:
                self.stdout.write(str(each))
        if n_new := sum(not each.known for each in found):
            places = "1 place that is" if n_new == 1 else f"{n_new} places that are"
            raise CommandError(f"The document differs in {places} not known of.")
        if not (options["json"] or found):
            self.stdout.write(f"The document agrees on all {len(operations())} operations.")

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from annotation.protocols.documents import protocol_schema
from annotation.protocols.templates import parse_protocol, protocol_source


class Command(BaseCommand):
    help = "Say what is wrong with a protocol's YAML: every fault with its line, exit code 2."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", help="or the name of a template")
        parser.add_argument("--study", metavar="STUDY", help="whose protocol it is to become")
        parser.add_argument("--json", action="store_true", help="for programs to read")
        parser.add_argument("--schema", action="store_true", help="print the JSON Schema instead")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["schema"] or not options["file"]:
            self.stdout.write(json.dumps(protocol_schema(), indent=2, ensure_ascii=False))
            return
        path = protocol_source(options["file"])
        faults = parse_protocol(
            path, Study.objects.named(options["study"]) if options["study"] else None
        ).faults
        if options["json"]:
            record = {"valid": not faults, "faults": [fault.record() for fault in faults]}
            self.stdout.write(json.dumps(record, ensure_ascii=False))
        else:
            n = len(faults)
            head = f"{n} {'fault' if n == 1 else 'faults'} in {path.name}:" if n else "No fault"
            self.stdout.write(head if n else f"{head} in {path.name}.")
            for fault in faults:
                self.stdout.write(f"  {fault}")
        if faults:
            sys.exit(2)

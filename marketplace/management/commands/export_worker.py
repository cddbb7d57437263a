import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from marketplace.people import personal_data
from marketplace.people.enrolment import find_worker


class Command(BaseCommand):
    help = (
        "Print all that is stored about a worker or a participant, as JSON: what they read "
        "themselves under Your data."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("worker", help="the Worker ID")

    def handle(self, *args: Any, **options: Any) -> None:
        exported = personal_data.export(find_worker(options["worker"]))
        self.stdout.write(json.dumps(exported, cls=DjangoJSONEncoder, indent=1, ensure_ascii=False))

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from marketplace.people.enrolment import find_worker
from marketplace.people.locations import correct_location


class Command(BaseCommand):
    help = (
        "Change the country that a worker has stated, which workers can't; what was stated "
        "before, and the reason, are kept."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("worker", help="the Worker ID")
        parser.add_argument("country", help="ISO 3166-1, two letters")
        parser.add_argument("--subdivision", default="", help="ISO 3166-2, without the country's")
        parser.add_argument("--reason", required=True, help="such as which document was seen")

    def handle(self, *args: Any, **options: Any) -> None:
        worker = find_worker(options["worker"])
        correct_location(
            worker=worker,
            country=options["country"],
            subdivision=options["subdivision"],
            reason=options["reason"],
        )
        self.stdout.write(f"{worker} is in {worker.country} now.")

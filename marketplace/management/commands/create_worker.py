from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from marketplace.people.enrolment import create_worker


class Command(BaseCommand):
    help = "Create a worker who can sign in to the worker site, and print the worker's id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="The name or e-mail address to sign in with.")
        parser.add_argument("--password", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(
            create_worker(username=options["name"], password=options["password"]).worker_id
        )

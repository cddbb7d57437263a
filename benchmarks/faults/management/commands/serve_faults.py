from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from work.site import require_free, serve_site


class Command(BaseCommand):
    help = "What `serve` does, without the greeting of the console."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bind", required=True)

    def handle(self, *args: Any, bind: str, **options: Any) -> None:
        require_free(bind)
        serve_site(bind, threads=2, greeting="")

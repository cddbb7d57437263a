import logging
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from work.periodic import Ticker
from work.registry import QUEUES
from work.workers import Worker


class Command(BaseCommand):
    help = "Do the jobs of a queue, and share what happens by time. Run as many as you like."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queue", action="append", choices=QUEUES, help="May be repeated; all unless given."
        )
        parser.add_argument(
            "--until-empty", action="store_true", help="End when the queues are empty."
        )
        parser.add_argument(
            "--no-periodic", action="store_true", help="Leave what happens by time to others."
        )

    def handle(
        self,
        *args: Any,
        queue: list[str] | None,
        until_empty: bool,
        no_periodic: bool,
        **options: Any,
    ) -> None:
        logging.getLogger("django_tasks").setLevel(logging.WARNING)
        worker = Worker(queue or list(QUEUES))
        if not until_empty:
            worker.install_signals()
        ticker = None if until_empty or no_periodic else Ticker()
        if ticker:
            ticker.start()
        worker.run(until_empty=until_empty)
        if ticker:
            ticker.ended.set()

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from marketplace import clock
from marketplace.exceptions import ErasureRefused
from marketplace.hits import lifecycle
from marketplace.models import Hit
from marketplace.people.enrolment import find_worker
from marketplace.people.erasure import erase_worker, erasure_obstacles


class Command(BaseCommand):
    help = (
        "Erase who a worker or a participant is, for those who ask by letter and not on their own "
        "page; answers and the ledger stay under the Worker ID, which leads to nobody then."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("worker", help="the Worker ID")
        parser.add_argument(
            "--dry-run", action="store_true", help="Only say whether it can be done."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        worker = find_worker(options["worker"])
        if worker.erased_at is not None:
            self.stdout.write(f"{worker} was erased on {worker.erased_at:%-d %B %Y}.")
            return
        if options["dry_run"]:
            if obstacles := erasure_obstacles(worker):
                raise ErasureRefused(" ".join(obstacles), code=obstacles[0].code)
            self.stdout.write(f"{worker} can be erased.")
            return
        # What is over by its time alone keeps nobody from it.
        lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=clock.now())
        erase_worker(worker)
        self.stdout.write(f"{worker} is erased.")

from typing import Any

from django.core.management.base import CommandError, CommandParser

from hits.exceptions import WorkerUnknown, require
from hits.management.base import ReviewCommand, study_with_batches
from hits.models import Exclusion, Worker
from hits.requirements import clear_workers
from presentation.numbers import count_of


class Command(ReviewCommand):
    help = "Let held workers go on, once someone has looked at their first HITs of a study."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("worker", metavar="WORKER_ID", nargs="*")
        parser.add_argument("--all", action="store_true", help="all who are held")

    def handle(
        self,
        *args: Any,
        study: str,
        worker: list[str],
        dry_run: bool,
        json: bool,
        **options: Any,
    ) -> None:
        require(bool(worker) != options["all"], CommandError("Name workers, or --all of them."))
        target = study_with_batches(study)
        workers = Worker.objects.filter(assignments__hit__batch__study=target).distinct()
        if options["all"]:
            workers = workers.filter(
                pk__in=Exclusion.objects.filter(
                    batch__study=target, reason=Exclusion.Reason.HELD
                ).values("worker")
            )
        else:
            workers = workers.filter(worker_id__in=worker)
        matches = list(workers.order_by("worker_id"))
        if unknown := sorted(set(worker) - {each.worker_id for each in matches}):
            raise WorkerUnknown(f"No worker '{unknown[0]}' has worked on study '{study}'.")
        if dry_run:
            self.report(
                f"Would clear {count_of(len(matches), 'worker')}. Nothing was written.",
                {"would_clear": [each.worker_id for each in matches]},
                as_json=json,
            )
            return
        n = clear_workers(study=target, workers=matches, cleared_by=None)
        self.report(
            f"{count_of(n, 'worker')} cleared; they may go on once answers are collected.",
            {"cleared": n},
            as_json=json,
        )

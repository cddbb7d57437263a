from typing import Any

from django.core.management.base import CommandError, CommandParser

from hits.contacts import request_block, request_unblock
from hits.exceptions import WorkerUnknown, require
from hits.management.base import ReviewCommand, study_with_batches
from hits.models import Connection, Worker


class Command(ReviewCommand):
    help = "Keep a worker from all HITs of a study's requester accounts; --unblock lifts it."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("worker", metavar="WORKER_ID")
        parser.add_argument("--reason", default="", help="which the worker never reads")
        parser.add_argument("--unblock", action="store_true")

    def handle(
        self,
        *args: Any,
        study: str,
        worker: str,
        reason: str,
        unblock: bool,
        dry_run: bool,
        json: bool,
        **options: Any,
    ) -> None:
        require((reason.strip() or unblock), CommandError("A block needs a --reason."))
        target = study_with_batches(study)
        connections = Connection.objects.filter(batches__study=target).distinct()
        match = (
            Worker.objects.filter(assignments__hit__batch__study=target, worker_id=worker)
            .distinct()
            .first()
        )
        if match is None:
            raise WorkerUnknown(f"No worker '{worker}' has worked on study '{study}'.")
        verb = "unblock" if unblock else "block"
        names = [str(connection) for connection in connections]
        if dry_run:
            self.report(
                f"Would {verb} {worker} at {', '.join(names)}. Nothing was sent.",
                {f"would_{verb}": worker, "connections": names},
                as_json=json,
            )
            return
        for connection in connections.filter(marketplace=match.marketplace):
            if unblock:
                request_unblock(
                    connection=connection, worker=match, reason=reason, unblocked_by=None
                )
            else:
                request_block(connection=connection, worker=match, reason=reason, blocked_by=None)
        self.send(target, as_json=json)

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hits.collect import collect_batch
from hits.connections import client_of
from hits.models import Batch
from presentation.progress import bar


class Command(BaseCommand):
    help = "Collect the answers to a study's HITs. Collecting twice changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        for batch in Batch.objects.started_of(study):
            result = collect_batch(
                batch=batch, client=client_of(batch.connection), progress=bar("collecting")
            )
            self.stdout.write(f"Batch {batch.pk}: {result}")

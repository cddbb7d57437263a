from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from annotation.management.numbers import positive
from annotation.readers.mturk_batch import read_mturk_batch
from hits.crowd.replay import (
    RecordedAnswers,
    Replayed,
    SimulatedAnswers,
    crowd_names,
    replay_group,
    replay_plan,
)
from hits.models import Batch, Hit
from presentation.progress import bar


class Command(BaseCommand):
    help = (
        "Let a crowd work on a study's HITs through the worker site: with the recorded answers "
        "of a Mechanical Turk batch, or with a seeded model of annotators."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--site", default=settings.SITE_URL, metavar="URL")
        parser.add_argument("--workers", type=positive, default=3, help="of the simulated crowd")
        parser.add_argument("--seed", type=int, default=0, help="of the simulated crowd")
        parser.add_argument("--recorded", type=Path, metavar="CSV", help="batch results to replay")
        parser.add_argument("--context", metavar="COLUMN", help="as in import_mturk_batch")
        parser.add_argument("--condition", metavar="COLUMN", help="as in import_mturk_batch")
        parser.add_argument("--item", action="append", default=[], metavar="COLUMN")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        replay = _recorded if options["recorded"] else _simulated
        for batch in Batch.objects.started_of(study):
            self.stdout.write(f"Batch {batch.pk}: {replay(batch, options)}")


def _recorded(batch: Batch, options: dict[str, Any]) -> Replayed:
    record = read_mturk_batch(
        options["recorded"],
        context=options["context"],
        condition=options["condition"],
        item=tuple(options["item"]),
    )
    approved = [draft for draft in record.submissions if draft.status == "approved"]
    source = RecordedAnswers(batch.study, approved)
    return replay_plan(
        plan=source.plan(batch), source=source, site_url=options["site"], progress=bar("working")
    )


def _simulated(batch: Batch, options: dict[str, Any]) -> Replayed:
    return replay_group(
        hit_type_id=batch.hit_type_id,
        names=crowd_names(options["workers"], seed=options["seed"]),
        source=SimulatedAnswers(batch.study, seed=options["seed"]),
        site_url=options["site"],
        total=Hit.objects.of(batch).published().count() * batch.max_assignments,
        progress=bar("working"),
    )

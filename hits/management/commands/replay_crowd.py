from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from annotation.management.plain_table import positive
from annotation.readers.mturk_batch import read_mturk_batch
from hits.crowd.replay import RecordedAnswers, ReplayResult, replay_plan
from hits.crowd.simulated import FAULTS, simulate_answers, simulated_practice
from hits.models import Batch
from hits.qualification_tests import right_choices
from hits.requirements import countries_of
from presentation.numbers import group_values
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
        parser.add_argument(
            "--fault", action="append", choices=FAULTS, default=[],
            help="a worker more with this fault (two who collude); may be repeated",
        )  # fmt: skip
        parser.add_argument("--recorded", type=Path, metavar="CSV", help="batch results to replay")
        parser.add_argument("--context", metavar="COLUMN", help="as in import_mturk_batch")
        parser.add_argument("--condition", metavar="COLUMN", help="as in import_mturk_batch")
        parser.add_argument("--item", action="append", default=[], metavar="COLUMN")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        batches = Batch.objects.started_of(study)
        if options["recorded"]:
            for batch in batches:
                self.stdout.write(f"Batch {batch.pk}: {_replay_record(batch, options)}")
            return
        # Batches of one HIT type are one group on the marketplace, whose tasks workers accept.
        for alike in group_values((batch.hit_type_id, batch) for batch in batches).values():
            names = ", ".join(str(batch.pk) for batch in alike)
            batch = max(alike, key=lambda one: (one.closed_at is None, one.pk))
            self.stdout.write(f"Batch {names}: {_simulate(batch, options)}")


def _replay_record(batch: Batch, options: dict[str, Any]) -> ReplayResult:
    record = read_mturk_batch(
        options["recorded"],
        context=options["context"],
        condition=options["condition"],
        item=tuple(options["item"]),
    )
    source = RecordedAnswers(
        batch.study, [draft for draft in record.submissions if draft.status == "approved"]
    )
    return replay_plan(
        plan=source.plan(batch),
        source=source,
        site_url=options["site"],
        countries=countries_of(batch),
        tests=right_choices(batch),
        practice=simulated_practice(batch, seed=options["seed"]),
        progress=bar("working"),
    )


def _simulate(batch: Batch, options: dict[str, Any]) -> ReplayResult:
    return simulate_answers(
        batch,
        n_workers=options["workers"],
        seed=options["seed"],
        site_url=options["site"],
        faulty=options["fault"],
        progress=bar("working"),
    )

import json
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import add_policies, reading_of
from annotation.models import Study
from annotation.readers.policies import REPEATS, Unmatched
from annotation.score_settings import LONGEST_SIGNATURE
from metrics.score_tables import import_scores


class Command(BaseCommand):
    help = (
        "Import scores computed elsewhere: item, system (or candidate), metric, value and "
        "optionally signature; or one column per metric, named with --metric."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--study", required=True, metavar="SLUG")
        parser.add_argument("--metric", action="append", default=[], metavar="COLUMN")
        parser.add_argument(
            "--system", action="append", default=[], metavar="COLUMN",
            help="of a matrix with a row per item and metric: the scores of one system",
        )  # fmt: skip
        add_policies(parser, repeats=REPEATS)
        parser.add_argument(
            "--unmatched", choices=get_args(Unmatched), default="refuse",
            help="what to do with rows about items or candidates that the study does not have",
        )  # fmt: skip
        parser.add_argument("--lower-is-better", action="append", default=[], metavar="METRIC")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.add_argument(
            "--signature",
            default="",
            help="of rows that name none, such as nll|model:...|version:1",
        )

    def handle(self, *args: Any, file: Path, study: str, **options: Any) -> None:
        signature = options["signature"].strip()
        if len(signature) > LONGEST_SIGNATURE:
            message = f"--signature: {len(signature)} characters, where {LONGEST_SIGNATURE} fit."
            raise CommandError(message, returncode=2)
        reading = reading_of(options)
        counts = import_scores(
            study=Study.objects.named(study),
            path=file,
            metrics=options["metric"],
            lower_is_better=options["lower_is_better"],
            systems=tuple(options["system"]),
            signature=signature,
            reading=reading,
        )
        if options["json"]:
            record = {"study": study, "n_scores": counts, "reading": reading.report.plain()}
            self.stdout.write(json.dumps(record, indent=1))
            return
        message = ", ".join(f"{count} of {metric}" for metric, count in counts.items())
        self.stdout.write(f"Study '{study}': {message} scores imported.")
        self.stdout.write("\n".join(reading.report.sentences()))

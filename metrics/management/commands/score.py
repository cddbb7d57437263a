import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.readers.policies import Policies, Reading
from metrics.file_scores import FileScored, plan_file, score_file
from metrics.management.options import add_caps, caps_of, plain_warnings
from metrics.scorer_options import chosen_scorers
from metrics.study_scores import Plan
from presentation.progress import bar


class Command(BaseCommand):
    help = (
        "Score a table of responses (item, system, response, and what the "
        "metrics need of context, reference, condition) into a file of scores (item, system, "
        "metric, value, signature, reason, input). Needs no database; resumes where it stopped."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("items", type=Path, metavar="ITEMS")
        parser.add_argument(
            "--metric", action="append", required=True, help="see the command `metrics`"
        )
        parser.add_argument(
            "--set", action="append", default=[], metavar="METRIC.PARAMETER=VALUE", dest="settings_"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be computed, and do nothing"
        )
        parser.add_argument("--output", type=Path, required=True, metavar="SCORES.csv")
        add_caps(parser)
        parser.add_argument(
            "--retry-undefined", action="store_true", help="score anew what came out undefined"
        )
        parser.add_argument(
            "--repeats", choices=("refuse", "first", "last"), default="",
            help="which of several responses of one system to one item counts (default: refuse)",
        )  # fmt: skip
        parser.add_argument("--json", action="store_true", help="print a summary as JSON")

    def handle(self, *args: Any, items: Path, output: Path, **options: Any) -> None:
        scorers = chosen_scorers(options["metric"], options["settings_"], caps=caps_of(options))
        reading = Reading(Policies(repeats=options["repeats"]))
        asked: dict[str, Any] = {
            "path": items,
            "scorers": scorers,
            "output": output,
            "retry_undefined": options["retry_undefined"],
            "reading": reading,
        }
        is_dry = options["dry_run"]
        with plain_warnings():
            results: Sequence[Plan | FileScored] = (
                plan_file(**asked) if is_dry else [score_file(**asked, reporter=bar)]
            )
        sentences = reading.report.sentences()
        if not options["json"]:
            self.stdout.write("\n".join([*map(str, results), *sentences]))
            return
        records: Any = [each.record() for each in results]
        if is_dry:
            # A list of plans has no place for the report.
            self.stderr.write("\n".join(sentences))
        else:
            records = {**records[0], "reading": reading.report.plain()}
        self.stdout.write(json.dumps(records, indent=1))

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from metrics.file_scores import FileScored, plan_file, score_file
from metrics.management.caps import add_caps, caps_of
from metrics.management.warnings_output import plain_warnings
from metrics.score_plans import Plan
from metrics.scorer_options import chosen_scorers
from presentation.progress import bar


class Command(BaseCommand):
    help = (
        "Score a CSV or JSON Lines file of responses (item, system, response, and what the "
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
        parser.add_argument("--json", action="store_true", help="print a summary as JSON")

    def handle(self, *args: Any, items: Path, output: Path, **options: Any) -> None:
        scorers = chosen_scorers(options["metric"], options["settings_"], caps=caps_of(options))
        again = options["retry_undefined"]
        result: FileScored | list[Plan]
        with plain_warnings():
            if options["dry_run"]:
                result = plan_file(
                    path=items, scorers=scorers, output=output, retry_undefined=again
                )
            else:
                result = score_file(
                    path=items,
                    scorers=scorers,
                    output=output,
                    reporter=bar,
                    retry_undefined=again,
                )
        self.stdout.write(_as_json(result) if options["json"] else _as_text(result))


def _as_json(result: FileScored | list[Plan]) -> str:
    record = [plan.record() for plan in result] if isinstance(result, list) else result.record()
    return json.dumps(record, indent=1)


def _as_text(result: FileScored | list[Plan]) -> str:
    return "\n".join(map(str, result)) if isinstance(result, list) else str(result)

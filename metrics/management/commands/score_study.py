import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from metrics.management.options import add_caps, caps_of, plain_warnings
from metrics.scorer_options import chosen_scorers
from metrics.scorers.interface import Scorer
from metrics.scorers.registry import SCORERS
from metrics.study_scores import Plan, plan_scoring, score_study
from presentation.progress import bar


class Command(BaseCommand):
    help = (
        "Score every candidate of a study with automatic metrics; resumes where it stopped. "
        "Texts that any study had scored under the same signature are not computed again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--metric", action="append", required=True, help=", ".join(SCORERS))
        parser.add_argument(
            "--set", action="append", default=[], metavar="METRIC.PARAMETER=VALUE", dest="settings_"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be computed, and do nothing"
        )
        add_caps(parser)
        parser.add_argument(
            "--retry-undefined", action="store_true", help="score anew what came out undefined"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        scored = Study.objects.named(study)
        scorers = chosen_scorers(
            options["metric"], options["settings_"], study=scored, caps=caps_of(options)
        )
        is_dry, again = options["dry_run"], options["retry_undefined"]
        with plain_warnings():
            results = [
                plan_scoring(study=scored, scorer=each)
                if is_dry
                else score_study(
                    study=scored, scorer=each, progress=bar(each.name), retry_undefined=again
                )
                for each in scorers
            ]
        if options["json"]:
            records = [
                each.record() if isinstance(each, Plan) else vars(each) | _spent(scorer)
                for scorer, each in zip(scorers, results, strict=True)
            ]
            self.stdout.write(json.dumps(records, indent=1))
            return
        line = "{n_requests:,} requests sent, {spent_usd} USD spent."
        lines = [line.format(**spent) for spent in map(_spent, scorers) if spent and not is_dry]
        # Judges of one command share a budget.
        self.stdout.write("\n".join([*map(str, results), *dict.fromkeys(lines)]))


def _spent(scorer: Scorer) -> dict[str, Any]:
    """What a judge's requests cost; empty for other metrics."""
    client = getattr(scorer, "client", None)
    if client is None:
        return {}
    return {"n_requests": client.budget.requests, "spent_usd": f"{client.budget.usd.normalize():f}"}

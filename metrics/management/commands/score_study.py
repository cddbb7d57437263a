import json
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from metrics.management.options import add_caps, caps_of, plain_warnings
from metrics.scorer_options import chosen_scorers
from metrics.scorers.registry import SCORERS
from metrics.scorers.scorer import Scorer
from metrics.study_scores import plan_scoring, score_study
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
        with plain_warnings():
            if options["dry_run"]:
                records = _plan(scored, scorers)
            else:
                records = _score(scored, scorers, options["retry_undefined"])
        messages = [record.pop("message") for record in records]
        self.stdout.write(json.dumps(records, indent=1) if options["json"] else "\n".join(messages))


def _plan(study: Study, scorers: Sequence[Scorer]) -> list[dict[str, Any]]:
    plans = [plan_scoring(study=study, scorer=scorer) for scorer in scorers]
    return [plan.record() | {"message": str(plan)} for plan in plans]


def _score(study: Study, scorers: Sequence[Scorer], again: bool) -> list[dict[str, Any]]:
    results = [
        score_study(study=study, scorer=scorer, progress=bar(scorer.name), retry_undefined=again)
        for scorer in scorers
    ]
    return [vars(scored) | {"message": str(scored)} for scored in results]

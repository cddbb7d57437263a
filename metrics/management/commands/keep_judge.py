from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from metrics.study_judges import KINDS, keep_judge, read_settings


class Command(BaseCommand):
    help = (
        "Keep a judge's settings with a study under a name, as its first or next version; "
        "`score_study --set geval.settings=NAME` then uses them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("settings_", metavar="SETTINGS.json|PRESET")
        parser.add_argument("--metric", choices=KINDS, default="geval")

    def handle(self, *args: Any, study: str, name: str, settings_: str, **options: Any) -> None:
        metric = options["metric"]
        judge_version = keep_judge(
            study=Study.objects.named(study),
            metric=metric,
            name=name,
            settings=read_settings(metric, settings_),
        )
        self.stdout.write(
            f"{metric}.settings={judge_version} in study '{study}' ({judge_version.fingerprint})."
        )

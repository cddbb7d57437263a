import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from metrics.study_judges import study_judges


class Command(BaseCommand):
    help = "List a study's judges: the versions of settings it keeps, and the runs that were made."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--json", action="store_true", help="with settings and evidence")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        told = study_judges(Study.objects.named(study))
        if options["json"]:
            self.stdout.write(json.dumps(told, indent=1))
            return
        lines = [_version(kept) for kept in told["settings"]]
        lines += [_run(run) for run in told["runs"]]
        self.stdout.write("\n".join(lines) or f"Study '{study}' has no judges.")


def _version(kept: dict[str, Any]) -> str:
    return f"{kept['metric']}.settings={kept['name']}@{kept['version']} ({kept['fingerprint']})"


def _run(run: dict[str, Any]) -> str:
    ways = ", ".join(f"{count} by {way}" for way, count in run["obtained"].items()) or "no scores"
    found = "probed" if run["capabilities"] else "not probed"
    return f"{run['metric']} by {run['model']} ({found}): {ways} ({run['signature']})"

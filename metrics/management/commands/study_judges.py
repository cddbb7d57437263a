import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from metrics.models import unread_text
from metrics.study_judges import study_judges


class Command(BaseCommand):
    help = "List a study's judges: the versions of settings it keeps, and the runs that were made."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--json", action="store_true", help="with settings and evidence")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        judges = study_judges(Study.objects.named(study))
        if options["json"]:
            self.stdout.write(json.dumps(judges, indent=1))
            return
        version = "{metric}.settings={name}@{version} ({fingerprint})"
        lines = [version.format_map(each) for each in judges["settings"]]
        lines += [_run(run) for run in judges["runs"]]
        self.stdout.write("\n".join(lines) or f"Study '{study}' has no judges.")


def _run(run: dict[str, Any]) -> str:
    ways = ", ".join(f"{count} by {way}" for way, count in run["obtained"].items()) or "no scores"
    state = "probed" if run["capabilities"] else "not probed"
    unread = unread_text(run["n_replies"], run["unread"])
    counts = "; ".join(part for part in (ways, unread) if part)
    return f"{run['metric']} by {run['model']} ({state}): {counts} ({run['signature']})"

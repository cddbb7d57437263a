import json
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from metrics.scorers.judges.capabilities import Capabilities
from metrics.study_judges import judges_client, probe_anew


class Command(BaseCommand):
    help = (
        "Find out, with six short requests, what the judges' endpoint (JUDGE_BASE_URL, "
        "JUDGE_MODEL) really does, and keep it for estimates and runs. Needs no database."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        seen = probe_anew(judges_client())
        told = json.dumps(asdict(seen), indent=1) if options["json"] else _told(seen)
        self.stdout.write(told)


def _told(seen: Capabilities) -> str:
    draws = "differ" if seen.samples_differ else "are the same: n samples would be one n times"
    lines = [
        f"{seen.asked_model} (it answers as {seen.reported_model or 'nothing'}):",
        f"  several replies to a request (n): {_yes(seen.several_replies)}",
        f"  replies drawn at temperature 1 {draws}",
        f"  alternatives with log-probabilities: {seen.top_logprobs or 'none'}",
        f"  log-probabilities of a prompt (echo): {_yes(seen.echoed_logprobs)}",
        f"  G-Eval's distribution is best had by {seen.distribution}.",
        f"What was asked, and what came (kept in {settings.JUDGE_PROBES}):",
        *(f"  {asked}: {came}" for asked, came in seen.evidence),
    ]
    return "\n".join(lines)


def _yes(found: bool) -> str:
    return "yes" if found else "no"

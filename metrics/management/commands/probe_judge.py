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
        capabilities = probe_anew(judges_client())
        self.stdout.write(
            json.dumps(asdict(capabilities), indent=1) if options["json"] else _report(capabilities)
        )


def _report(capabilities: Capabilities) -> str:
    draws = (
        "differ" if capabilities.samples_differ else "are the same: n samples would be one n times"
    )
    lines = [
        f"{capabilities.asked_model} (it answers as {capabilities.reported_model or 'nothing'}):",
        f"  several replies to a request (n): {_yes(capabilities.several_replies)}",
        f"  replies drawn at temperature 1 {draws}",
        f"  alternatives with log-probabilities: {capabilities.top_logprobs or 'none'}",
        f"  log-probabilities of a prompt (echo): {_yes(capabilities.echoed_logprobs)}",
        f"  G-Eval's distribution is best had by {capabilities.distribution}.",
        f"What was asked, and what came (kept in {settings.JUDGE_PROBES}):",
        *(f"  {request}: {came}" for request, came in capabilities.evidence),
    ]
    return "\n".join(lines)


def _yes(is_supported: bool) -> str:
    return "yes" if is_supported else "no"

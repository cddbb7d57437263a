import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from annotation.units import system_strengths
from presentation.numbers import plain_records


class Command(BaseCommand):
    help = "Bradley-Terry strengths of a study's systems from preferences, best-worst or rankings."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="STUDY")
        parser.add_argument("--question", default="", metavar="NAME", help="default: the first")
        parser.add_argument("--round", type=int, default=1)
        parser.add_argument(
            "--smoothing",
            type=float,
            default=0.0,
            help="comparisons that each system is made to win and to lose (default: 0)",
        )
        parser.add_argument("--json", action="store_true", help="for programs to read")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        row = Study.objects.named(study)
        result = system_strengths(
            row,
            question=row.question(options["question"]),
            round=options["round"],
            smoothing=options["smoothing"],
        )
        systems = plain_records(result.labels)
        if options["json"]:
            record = {
                "signature": result.signature,
                "systems": systems,
                "reason": result.reason and str(result.reason),
            }
            self.stdout.write(json.dumps(record, ensure_ascii=False))
            return
        for one in sorted(systems, key=lambda one: -(one["label"] or 0)):
            interval = f"[{_number(one['ci_low'])}, {_number(one['ci_high'])}]"
            self.stdout.write(f"{one['item']}: {_number(one['label'])} {interval}")
        if result.reason:
            self.stdout.write(f"Undefined: {str(result.reason).replace('_', ' ')}.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from metrics.scorers.registry import Description, available


class Command(BaseCommand):
    help = "List the automatic metrics, with what each needs."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        descriptions = available()
        if options["json"]:
            self.stdout.write(
                json.dumps([asdict(each) for each in descriptions], default=_plain, indent=1)
            )
        else:
            self.stdout.write("\n".join(_line(each) for each in descriptions))


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def _line(metric: Description) -> str:
    lower = ", ".join(name for name in metric.outputs if name in metric.lower_is_better)
    lines = [
        f"needs {', '.join(sorted(metric.needs)) or 'the response only'}",
        f"gives {', '.join(metric.outputs)}" + (f" (lower is better: {lower})" if lower else ""),
        *([f"takes {metric.requires}"] if metric.requires else []),
    ]
    return "\n".join([f"{metric.name:12} {metric.summary}", *(f"{'':12} {line}" for line in lines)])

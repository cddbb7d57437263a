import json as json_format
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.numbers import natural
from annotation.models import Study
from simulation.names import USERS, named_user
from simulation.switching_report import switching_record
from simulation.users import MetaUser

DEFAULT_USERS = ("base", "prob:0:0.75", "prob:0:0.75,mode=released")


class Command(BaseCommand):
    help = "Whether people switched as simulated users do: the report of a switching study."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--user", action="append", metavar="NAME", help=USERS)
        parser.add_argument("--seed", type=natural, default=0)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, study: str, seed: int, json: bool, **options: Any) -> None:
        try:
            users = [named_user(name) for name in options["user"] or DEFAULT_USERS]
            record = switching_record(Study.objects.named(study), _distinct(users), seed=seed)
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        text = json_format.dumps(record, indent=1) if json else "\n".join(_lines(record))
        self.stdout.write(text)


def _distinct(users: list[MetaUser]) -> list[MetaUser]:
    return list({user.name: user for user in users}.values())


def _lines(record: dict[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{name} {n:,}" for name, n in record["choices"].items())
    yield f"{record['n_decisions']:,} decisions: {counts}."
    if record["reason"]:
        yield f"The model is undefined: {record['reason']}."
    for name in ("p_switch_after_loss", "p_switch_after_gain", "nearest_excess", "leaves"):
        yield _estimate(name.replace("_", " "), record[name])
    for one in record["coefficients"]:
        yield _estimate(f"logit, {one['name']}", one)
    for number, user in enumerate(record["users"], 1):
        gain = _estimate("smaller than the first named user's by", user["gain"])
        yield f"{number}. {user['user']}: squared error {_number(user['brier'])}; {gain}"


def _estimate(name: str, one: dict[str, Any]) -> str:
    reason = f" ({one['reason']})" if one.get("reason") else ""
    limits = f"[{_number(one['ci_low'])}, {_number(one['ci_high'])}]"
    return f"{name}: {_number(one['value'])} {limits}{reason}"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"

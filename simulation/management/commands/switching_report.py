import json as json_format
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural
from annotation.models import Study
from presentation.documents import Number
from presentation.text_tables import estimate_line
from simulation.plans import USERS, named_user
from simulation.switching import DEFAULT_USERS, decisions_of, switching_record
from simulation.users import MetaUser


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
            named = Study.objects.named(study)
            record = switching_record(named, decisions_of(named), _distinct(users), seed=seed)
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
        yield f"The model is undefined: {record['reason']}. P(switch) are shares of decisions."
    for name in ("p_switch_after_loss", "p_switch_after_gain", "nearest_excess", "leaves"):
        yield estimate_line(name.replace("_", " "), record[name])
    for one in record["coefficients"]:
        yield estimate_line(f"logit, {one['name']}", one)
    for place, user in enumerate(record["users"], 1):
        gain = estimate_line("smaller than the first named user's by", user["gain"])
        yield f"{place}. {user['user']}: squared error {Number(user['brier'], 3).text}; {gain}"

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.exceptions import first_or_raise
from marketplace.models import Intent
from marketplace.recruiting.calls import Called, call_recruiters
from marketplace.recruiting.dispatch import decide_uncertain


class Command(BaseCommand):
    help = (
        "Follow what changed at recruiters, and send them what was decided here, each once. "
        "The site does it every minute by itself (docs/recruiting.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        parser.add_argument("--uncertain", action="store_true", help="List what nobody answered.")
        for name, text in (("done", "was done there"), ("not-done", "was not: send it again")):
            parser.add_argument(
                f"--was-{name}", type=int, metavar="N", help=f"an uncertain one that {text}"
            )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["uncertain"]:
            for intent in Intent.objects.filter(state=Intent.State.UNCERTAIN).order_by("pk"):
                amount = "" if intent.amount is None else f" of {intent.amount} {intent.currency}"
                self.stdout.write(
                    f"{intent.pk}: {intent.kind}{amount}, submission "
                    f"{intent.session.submission_id}, {intent.connection}: {intent.problem}"
                )
            return
        for name, was_done in (("was_done", True), ("was_not_done", False)):
            if options[name] is not None:
                rows = Intent.objects.filter(pk=options[name])
                unknown = CommandError(f"There is no intent {options[name]}.")
                decide_uncertain(intent=first_or_raise(rows, unknown), was_done=was_done)
        called = call_recruiters()
        self.stdout.write(json.dumps(asdict(called)) if options["json"] else said(called))


def said(called: Called) -> str:
    lines = [
        f"{called.n_done} done, {called.n_waiting} waiting, {called.n_uncertain} uncertain, "
        f"{called.n_refused} refused; {called.n_followed} sessions followed."
    ]
    return "\n".join([*lines, *called.problems])

import json
from decimal import Decimal
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.exceptions import first_or_raise, require
from marketplace.management.commands.recruit import amount
from marketplace.models import RecruiterConnection, RecruitingRule, Requester
from marketplace.recruiting.rules import RuleValues, create_rule, end_rule


class Command(BaseCommand):
    help = (
        "Have what a requester's programs create done by a recruiter's participants, though the "
        "programs know nothing of it: HIT types whose title or keywords have --words in them, "
        "until all studies together cost --most-cost (docs/recruiting.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("requester", help="The requester's name, as workers see it.")
        parser.add_argument("--connection", default="Prolific", help="by its name")
        parser.add_argument("--words", default="", help="in title or keywords (default: any)")
        parser.add_argument("--reward", type=amount, help="a participant's, in its currency")
        parser.add_argument("--minutes", type=int, help="that a participation takes")
        parser.add_argument("--items", type=int, default=1, help="HITs a participant")
        parser.add_argument("--most-cost", type=amount, help="in its currency, fees included")
        parser.add_argument("--end", type=int, metavar="N", help="attach nothing more by rule N")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        requester = first_or_raise(
            Requester.objects.filter(name=options["requester"]),
            CommandError(f"There is no requester {options['requester']}."),
        )
        if options["end"] is not None:
            rows = requester.recruiting_rules.filter(pk=options["end"])
            unknown = CommandError(f"{requester} has no rule {options['end']}.")
            end_rule(rule=first_or_raise(rows, unknown))
        elif options["most_cost"] is not None:
            _create(requester, options)
        rules = [_facts(rule) for rule in requester.recruiting_rules.order_by("pk")]
        text = "\n".join(map(_line, rules)) or "There is no rule."
        self.stdout.write(json.dumps({"rules": rules}) if options["json"] else text)


def _create(requester: Requester, options: dict[str, Any]) -> None:
    connection = first_or_raise(
        RecruiterConnection.objects.filter(requester=requester, name=options["connection"]).exclude(
            encrypted_token=""
        ),
        CommandError(f"{requester} has no connection {options['connection']}."),
    )
    require(options["minutes"] is not None, CommandError("Say --minutes."))
    create_rule(
        connection=connection,
        values=RuleValues(
            most_cost=options["most_cost"],
            minutes=options["minutes"],
            items_per_session=options["items"],
            reward=options["reward"],
            words=options["words"],
        ),
    )


def _facts(rule: RecruitingRule) -> dict[str, Any]:
    return {
        "rule": rule.pk,
        "words": rule.words,
        "most_cost": str(rule.most_cost.quantize(Decimal("0.01"))),
        "is_open": rule.ended_at is None,
        "hit_types": [
            {
                "hit_type": one.hit_type.public_id,
                "study": study.token if study else "",
                "state": study.state if study else "",
                "problem": one.problem,
            }
            for one, study in (
                (one, one.study) for one in rule.attached.select_related("hit_type").order_by("pk")
            )
        ],
    }


def _line(facts: dict[str, Any]) -> str:
    state = "open" if facts["is_open"] else "ended"
    words = f"with “{facts['words']}”" if facts["words"] else "of any words"
    lines = [f"Rule {facts['rule']} ({state}): HIT types {words}, up to {facts['most_cost']}."]
    for one in facts["hit_types"]:
        lines.append(f"  {one['hit_type']}: {one['problem'] or one['state'] or 'to be drafted'}")
    return "\n".join(lines)

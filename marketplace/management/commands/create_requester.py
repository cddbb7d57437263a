import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from marketplace.money import ledger
from marketplace.money.amounts import parse_amount
from marketplace.people.enrolment import issue_access_key, let_act_for


class Command(BaseCommand):
    help = "Issue an access key of the marketplace to a requester, who is enrolled where unknown."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="The requester's name, as workers see it.")
        parser.add_argument("--deposit", metavar="USD", help="Dollars to put into the account.")
        parser.add_argument("--user", help="A user who may see the requester's pages.")
        parser.add_argument(
            "--owner",
            action="store_true",
            help="The user may see who participants are at their recruiter, as the first user may.",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        deposit = options["deposit"]
        key = issue_access_key(
            name=options["name"], deposit_usd=None if deposit is None else parse_amount(deposit)
        )
        if options["user"]:
            let_act_for(
                requester=key.requester, username=options["user"], is_owner=options["owner"]
            )
        facts = {
            "requester": key.requester.name,
            "access_key_id": key.access_key_id,
            "secret_access_key": key.secret_access_key,
            "balance_usd": str(ledger.balance_of(ledger.available_account(key.requester))),
        }
        text = (
            "Requester {requester}, balance ${balance_usd}.\n"
            "AWS_ACCESS_KEY_ID={access_key_id}\n"
            "AWS_SECRET_ACCESS_KEY={secret_access_key}"
        )
        self.stdout.write(json.dumps(facts) if options["json"] else text.format(**facts))

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from marketplace.money import ledger
from marketplace.money.deposits import deposit, find_requester
from marketplace.people.enrolment import parse_amount


class Command(BaseCommand):
    help = "Put money that a requester has paid into the requester's account."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("requester", help="The requester's id.")
        parser.add_argument("amount", metavar="USD")
        parser.add_argument("--note", default="", help="For the audit log, such as an invoice.")

    def handle(self, *args: Any, **options: Any) -> None:
        requester = find_requester(options["requester"])
        amount_usd = parse_amount(options["amount"])
        deposit(requester=requester, amount_usd=amount_usd, reference=options["note"])
        balance = ledger.balance_of(ledger.available_account(requester))
        self.stdout.write(f"Requester {requester.name} now has ${balance}.")

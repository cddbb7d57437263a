from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from marketplace.money import ledger
from marketplace.money.amounts import parse_amount
from marketplace.money.transfers import deposit, find_requester


class Command(BaseCommand):
    help = "Put money that a requester has paid into the requester's account."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("requester", help="The requester's id.")
        parser.add_argument("amount", metavar="USD")
        parser.add_argument(
            "--note",
            default="",
            help="What the money is for, such as an invoice: twice the same is one deposit.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        requester = find_requester(options["requester"])
        credit, is_new = deposit(
            requester=requester,
            amount_usd=parse_amount(options["amount"]),
            reference=options["note"],
        )
        balance = ledger.balance_of(ledger.available_account(requester))
        state = "is" if is_new else "was already"
        self.stdout.write(
            f"Requester {requester.name} now has ${balance}. "
            f"Deposit {credit.public_id} {state} in the account."
        )

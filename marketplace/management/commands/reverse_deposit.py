from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from marketplace.money import ledger
from marketplace.money.transfers import find_deposit, reverse_deposit


class Command(BaseCommand):
    help = (
        "Take a deposit out of a requester's account again, where it was a mistake. Only money "
        "that is still available can be taken out, and only once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("deposit", help="The deposit's id, as `deposit` printed it.")
        parser.add_argument("--reason", required=True, help="For the audit log.")

    def handle(self, *args: Any, **options: Any) -> None:
        deposit = find_deposit(options["deposit"])
        is_new = reverse_deposit(deposit=deposit, reason=options["reason"])
        balance = ledger.balance_of(ledger.available_account(deposit.requester))
        self.stdout.write(
            f"Deposit {deposit.public_id} of ${deposit.amount_usd} "
            f"{'is' if is_new else 'was already'} taken out. "
            f"Requester {deposit.requester.name} now has ${balance}."
        )

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from marketplace.money.reconciliation import audit


class Command(BaseCommand):
    help = "Check that every transaction balances and that no account says what it hasn't."

    def handle(self, *args: Any, **options: Any) -> None:
        problems = audit()
        if problems:
            raise CommandError("\n".join(problems))
        self.stdout.write("The ledger balances.")

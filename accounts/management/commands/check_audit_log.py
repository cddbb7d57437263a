from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.audit import chain_faults
from accounts.models import AuditChain, AuditEntry


class Command(BaseCommand):
    help = "Check that no entry of the audit log was changed or taken away since it was written."

    def handle(self, *args: Any, **options: Any) -> None:
        chains = AuditChain.objects.order_by("name")
        faults = [fault for chain in chains for fault in chain_faults(chain)]
        if faults:
            raise CommandError("\n".join(faults), returncode=1)
        self.stdout.write(
            f"{AuditEntry.objects.count()} entries in {chains.count()} chains: all as written."
        )

from typing import Any

from django.core.management.base import BaseCommand

from accounts.audit import reseal
from accounts.models import AuditChain


class Command(BaseCommand):
    help = "Seal the audit log anew under the first of the ENCRYPTION_KEYS, where a seal holds."

    def handle(self, *args: Any, **options: Any) -> None:
        n_changed = sum(reseal(chain) for chain in AuditChain.objects.order_by("name"))
        self.stdout.write(f"Sealed under the first key: {n_changed} entries of the audit log.")

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand
from django.db import transaction

from encryption import reencrypt

SECRETS = ("secret", "seed")


class Command(BaseCommand):
    help = "Encrypt what second factors rest on under the first of the ENCRYPTION_KEYS."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        n_changed = 0
        for factor in Authenticator.objects.select_for_update().order_by("pk"):
            former = dict(factor.data)
            factor.data |= {key: reencrypt(former[key]) for key in SECRETS if key in former}
            if factor.data != former:
                factor.save(update_fields=["data"])
                n_changed += 1
        self.stdout.write(f"Encrypted under the first key: {n_changed} second factors.")

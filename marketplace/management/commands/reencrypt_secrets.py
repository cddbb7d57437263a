from typing import Any

from django.core.management.base import BaseCommand, CommandError

from encryption import UndecryptableSecret
from marketplace.money.transfers import reencrypt_details
from marketplace.people.enrolment import reencrypt_secrets, reencrypt_webhook_secrets
from marketplace.recruiting.participants import (
    reencrypt_demographics,
    reencrypt_participants,
    reencrypt_tokens,
)


class Command(BaseCommand):
    help = (
        "Encrypt the secrets of all access keys and webhooks, workers' payout details and "
        "participants' ids under the first of ENCRYPTION_KEYS, so that the others can be taken "
        "away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            n_changed = reencrypt_secrets() + reencrypt_details() + reencrypt_webhook_secrets()
            n_changed += reencrypt_participants() + reencrypt_tokens() + reencrypt_demographics()
        except UndecryptableSecret as error:
            raise CommandError(f"{error} Nothing was changed.", returncode=2) from error
        self.stdout.write(f"{n_changed} secret{'' if n_changed == 1 else 's'} encrypted anew.")

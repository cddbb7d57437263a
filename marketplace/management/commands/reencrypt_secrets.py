from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from encryption import UndecryptableSecret, reencrypt_column
from marketplace.models import AccessKey, RecruiterConnection, Requester, SessionDemographics
from marketplace.money.transfers import reencrypt_details
from marketplace.recruiting.participants import reencrypt_participants

# Nothing is sealed with these.
COLUMNS: tuple[tuple[Any, str], ...] = (
    (AccessKey, "encrypted_secret"),
    (Requester, "encrypted_webhook_secret"),
    (RecruiterConnection, "encrypted_token"),
    (RecruiterConnection, "encrypted_offer"),
    (RecruiterConnection, "encrypted_webhook_secret"),
    (SessionDemographics, "encrypted_answers"),
)


class Command(BaseCommand):
    help = (
        "Encrypt the secrets of all access keys and webhooks, workers' payout details and "
        "participants' ids under the first of ENCRYPTION_KEYS, so that the others can be taken "
        "away."
    )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            n_changed = reencrypt_details() + reencrypt_participants()
            for model, column in COLUMNS:
                n_changed += reencrypt_column(model.objects.exclude(**{column: ""}), column)
        except UndecryptableSecret as error:
            raise CommandError(f"{error} Nothing was changed.", returncode=2) from error
        self.stdout.write(f"{n_changed} secret{'' if n_changed == 1 else 's'} encrypted anew.")

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from encryption import UndecryptableSecret
from metrics.scoring_requests import reencrypt_judge_connections
from presentation.numbers import count_of


class Command(BaseCommand):
    help = (
        "Encrypt the keys of teams' language models under the first of ENCRYPTION_KEYS, so that "
        "the others can be taken away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            n_changed = reencrypt_judge_connections()
        except UndecryptableSecret as error:
            raise CommandError(f"{error} Nothing was changed.", returncode=2) from error
        self.stdout.write(f"{count_of(n_changed, 'key')} of language models encrypted anew.")

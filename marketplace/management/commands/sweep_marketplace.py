from typing import Any

from django.core.management.base import BaseCommand

from marketplace import clock
from marketplace.hits import lifecycle


class Command(BaseCommand):
    help = "Expire, abandon, auto-approve and dispose of what is due. Run it every minute."

    def handle(self, *args: Any, **options: Any) -> None:
        count = lifecycle.sweep(clock.now())
        self.stdout.write(f"Time had something to do on {count} HIT{'' if count == 1 else 's'}.")

from typing import Any

from django.core.management.base import BaseCommand

from marketplace import clock
from marketplace.notifications.delivery import send_due


class Command(BaseCommand):
    help = "Send the notifications that wait in the outbox. Run it every minute."

    def handle(self, *args: Any, **options: Any) -> None:
        count = send_due(clock.now())
        self.stdout.write(f"{count} notification{'' if count == 1 else 's'} delivered.")

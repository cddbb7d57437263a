from typing import Any

from django.core.management.base import BaseCommand

from marketplace import clock
from marketplace.notifications.delivery import send_due, send_due_mail


class Command(BaseCommand):
    help = (
        "Send the notifications that wait in the outbox, and workers' messages by e-mail. "
        "Run it every minute."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        now = clock.now()
        count = send_due(now) + send_due_mail(now)
        self.stdout.write(f"{count} notification{'' if count == 1 else 's'} delivered.")

"""Sending workers' messages by e-mail. Each is claimed by a conditional UPDATE, as the events of
the outbox are; the address is the one that holds at the time of sending."""

import logging
from datetime import datetime

from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse

from marketplace.models import WorkerMessage
from marketplace.notifications.delivery import CLAIMED_FOR, FIRST_DELAY, MOST_ATTEMPTS
from marketplace.people.messages import mail_address

logger = logging.getLogger(__name__)


def send_due_mail(now: datetime) -> int:
    """Send every message that is due, and return how many were sent."""
    due = WorkerMessage.objects.filter(next_mail_at__lte=now).select_related("worker", "requester")
    return sum(_send(message, now=now) for message in list(due.order_by("pk")))


def _send(message: WorkerMessage, *, now: datetime) -> bool:
    unclaimed = WorkerMessage.objects.filter(pk=message.pk, next_mail_at=message.next_mail_at)
    if not unclaimed.update(next_mail_at=now + CLAIMED_FOR):
        return False
    message.mail_attempts += 1
    message.next_mail_at = None
    address = mail_address(message.worker)
    try:
        if address is not None:
            send_mail(" ".join(message.subject.split()), _body(message), None, [address])
            message.mailed_at = now
    except (OSError, ValueError) as error:
        logger.warning("Message %s was not sent by e-mail: %s", message.pk, type(error).__name__)
        if message.mail_attempts < MOST_ATTEMPTS:
            message.next_mail_at = now + FIRST_DELAY * 2 ** (message.mail_attempts - 1)
    # Not save(): the worker may have erased it meanwhile.
    WorkerMessage.objects.filter(pk=message.pk).update(
        mail_attempts=message.mail_attempts,
        next_mail_at=message.next_mail_at,
        mailed_at=message.mailed_at,
    )
    return message.mailed_at is not None


def _body(message: WorkerMessage) -> str:
    inbox = f"{settings.SITE_URL}{reverse('marketplace:inbox')}"
    return f"{message.text}\n\n{message.requester.name}\n\nAll your messages: {inbox}\n"

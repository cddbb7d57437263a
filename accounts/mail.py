"""Sending mail: in the background, so that no page waits for a mail server.

What waits is encrypted, since a link in it opens an account.
"""

import json
import logging

from django.conf import settings
from django.core.mail import EmailMessage
from django_tasks import task

import encryption

logger = logging.getLogger(__name__)


def send_later(*, subject: str, body: str, to: str) -> None:
    """Queue a message, on a site that has a mail server; elsewhere nothing is sent."""
    if not settings.SENDS_MAIL:
        return
    content = json.dumps({"subject": subject, "body": body, "to": [to]})
    send_message.enqueue(encryption.encrypt(content))


@task(queue_name="interactive")
def send_message(encrypted: str) -> None:
    """Send what was queued; a server that cannot be reached leaves an error in the log."""
    try:
        EmailMessage(**json.loads(encryption.decrypt(encrypted))).send()
    except OSError:
        logger.exception("A message could not be sent: the mail server was not reached")
        raise

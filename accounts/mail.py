"""Sending mail: in the background, so that no page waits for a mail server.

What waits is encrypted, since a link in it opens an account.
"""

import json

from django.conf import settings

import encryption
from work.request import request_job

SEND_MAIL = "send_mail"


def send_later(*, subject: str, body: str, to: str) -> None:
    """Queue a message, on a site that has a mail server; elsewhere nothing is sent."""
    if not settings.SENDS_MAIL:
        return
    content = json.dumps({"subject": subject, "body": body, "to": [to]})
    request_job(kind=SEND_MAIL, arguments={"encrypted": encryption.encrypt(content)})

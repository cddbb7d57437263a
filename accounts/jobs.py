import json

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils.translation import gettext_lazy

import encryption
from work.exceptions import JobPostponed
from work.execution import RunningJob
from work.models import Job
from work.registry import INTERACTIVE, register
from work.tasks import request_job

# Sending mail: in the background, so that no page waits for a mail server.
#
# What waits is encrypted, since a link in it opens an account.

SEND_MAIL = "send_mail"


def send_later(*, subject: str, body: str, to: str) -> None:
    """Queue a message, on a site that has a mail server; elsewhere nothing is sent."""
    if not settings.SENDS_MAIL:
        return
    content = json.dumps({"subject": subject, "body": body, "to": [to]})
    request_job(kind=SEND_MAIL, arguments={"encrypted": encryption.encrypt(content)})


# Over some forty minutes, for which a mail server may be away.
MOST_ATTEMPTS = 11


@register(
    SEND_MAIL,
    label=gettext_lazy("Sending mail"),
    queue=INTERACTIVE,
    refusals=(encryption.UndecryptableSecret,),
    max_attempts=MOST_ATTEMPTS,
)
def send_mail(running: RunningJob) -> str:
    # Send a message, and forget it: a link in it opens an account.
    content = json.loads(encryption.decrypt(running.arguments["encrypted"]))
    try:
        EmailMessage(**content).send()
    except OSError as error:
        raise JobPostponed(f"The mail server did not take it: {type(error).__name__}") from error
    Job.objects.filter(pk=running.job.pk).update(arguments={})
    return "Sent."

"""What `accounts` does in the background."""

import json

from django.core.mail import EmailMessage
from django.utils.translation import gettext_lazy

import encryption
from accounts.mail import SEND_MAIL
from work.exceptions import JobPostponed
from work.execution import RunningJob
from work.models import Job
from work.registry import INTERACTIVE, register

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
    """Send a message, and forget it: a link in it opens an account."""
    content = json.loads(encryption.decrypt(running.arguments["encrypted"]))
    try:
        EmailMessage(**content).send()
    except OSError as error:
        raise JobPostponed(f"The mail server did not take it: {type(error).__name__}") from error
    Job.objects.filter(pk=running.job.pk).update(arguments={})
    return "Sent."

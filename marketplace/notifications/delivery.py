"""Sending what is in the outbox. Each message is claimed by a conditional UPDATE, so that
two senders don't send it twice; one that can't be delivered is tried again, later and later,
and then given up."""

import logging
import re
from datetime import datetime, timedelta
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.mail import send_mail
from django.utils import timezone

from marketplace.models import Notification, Transport
from marketplace.notifications import webhooks
from marketplace.notifications.destinations import check_destination

FIRST_DELAY = timedelta(seconds=30)
MOST_ATTEMPTS = 8
# Longer than any attempt takes: a sender that died in the middle is followed by another.
CLAIMED_FOR = timedelta(minutes=5)
# Where a topic's ARN or a queue's address at Amazon names its region.
REGION = re.compile(r"arn:aws[\w-]*:sns:([\w-]+):|https://sqs\.([\w-]+)\.amazonaws\.com[./]")
# The outbox does the trying again.
CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 1})

logger = logging.getLogger(__name__)


def send_due(now: datetime) -> int:
    """Send everything in the outbox that is due, and return how many were delivered."""
    due = Notification.objects.due(now).select_related("requester").order_by("pk")
    return sum(_send(notification, now=now) for notification in list(due))


def _send(notification: Notification, *, now: datetime) -> bool:
    unclaimed = Notification.objects.filter(
        pk=notification.pk, next_attempt_at=notification.next_attempt_at
    )
    if not unclaimed.update(next_attempt_at=now + CLAIMED_FOR):
        return False
    notification.attempts += 1
    try:
        _deliver(notification)
    except (BotoCoreError, ClientError, OSError, ValueError) as error:
        logger.warning("Notification %s was not delivered: %s", notification.event_doc_id, error)
        notification.last_error = str(error)
        is_last = notification.attempts >= MOST_ATTEMPTS
        delay = FIRST_DELAY * 2 ** (notification.attempts - 1)
        notification.next_attempt_at = None if is_last else now + delay
    else:
        notification.sent_at = now
        notification.next_attempt_at = None
    notification.save(update_fields=["attempts", "next_attempt_at", "sent_at", "last_error"])
    return notification.sent_at is not None


def _deliver(notification: Notification) -> None:
    destination, body = notification.destination, notification.body
    requester, transport = notification.requester, Transport(notification.transport)
    # Anew: it may have been set before there were such rules, or a user left.
    check_destination(requester=requester, transport=transport, destination=destination)
    match transport:
        case Transport.SQS:
            _client("sqs", destination).send_message(QueueUrl=destination, MessageBody=body)
        case Transport.SNS:
            _client("sns", destination).publish(TopicArn=destination, Message=body)
        case Transport.EMAIL:
            send_mail(notification.event_type, body, None, [destination])
        case Transport.HTTPS:
            webhooks.post(notification, now=timezone.now())


def _client(service: str, destination: str) -> Any:
    """A client of the marketplace's own: its keys and endpoint are its environment's
    (AWS_ENDPOINT_URL_SQS and the like), unless a setting names the endpoint. It goes to the
    destination's region, since nobody answers for it in another."""
    import boto3

    endpoint_url = getattr(settings, f"AWS_ENDPOINT_URL_{service.upper()}", None) or None
    client: Any = boto3.client
    return client(
        service, region_name=_region_of(destination), endpoint_url=endpoint_url, config=CONFIG
    )


def _region_of(destination: str) -> str:
    import boto3

    if match := REGION.match(destination):
        return match[1] or match[2]
    return getattr(settings, "AWS_REGION", None) or boto3.Session().region_name or "us-east-1"

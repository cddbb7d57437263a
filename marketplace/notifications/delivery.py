"""Sending what is in the outbox. Each message is claimed by a conditional UPDATE, so that two
senders don't send it twice; a failed one is tried again, later and later, and then given up.

Webhooks are signed as Standard Webhooks says (https://www.standardwebhooks.com). The connection is
made only to an address that was looked up and checked; the certificate is still the name's. No
redirect is followed, and no answer is kept.
"""

import base64
import hashlib
import hmac
import logging
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.client import HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.mail import send_mail
from django.db.models import Count, F, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from marketplace.models import Notification, Transport, WorkerMessage
from marketplace.notifications.events import check_destination
from marketplace.people.enrolment import PREFIX, webhook_secret
from marketplace.people.messages import mail_address
from work.addresses import checked_addresses

CONNECT_SECONDS = 5
# Of an answer as a whole: a timeout of a socket begins anew with every byte.
ANSWER_SECONDS = 15


def post(notification: Notification, *, now: datetime) -> None:
    """Raises OSError or ValueError if it was not accepted."""
    parts = urlsplit(notification.destination)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    body = notification.body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "Assay"}
    headers |= signed_headers(
        webhook_secret(notification.requester), notification.event_doc_id, body, now=now
    )
    connection = _Pinned(parts.hostname or "", parts.port or 443, timeout=CONNECT_SECONDS)
    try:
        connection.connect()
        with _cut_after(connection.sock, ANSWER_SECONDS):
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
    except HTTPException as error:
        raise ValueError(f"no answer of HTTP: {type(error).__name__}") from error
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise ValueError(f"answered with HTTP {status}")


def signed_headers(secret: str, event_id: str, body: bytes, *, now: datetime) -> dict[str, str]:
    timestamp = str(int(now.timestamp()))
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


class _Pinned(HTTPSConnection):
    # The checked address is used, so that another look-up cannot lead elsewhere.
    def connect(self) -> None:
        addresses = checked_addresses(self.host)
        if addresses is None:
            raise ValueError("the address is inside this marketplace's own network")
        plain = _connected(addresses or [self.host], self.port)
        context = ssl.create_default_context()
        try:
            self.sock = context.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def _connected(addresses: list[str], port: int) -> socket.socket:
    problem = OSError("no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=CONNECT_SECONDS)
        except OSError as error:
            problem = error
    raise problem


@contextmanager
def _cut_after(connection: socket.socket, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, _shut, [connection])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


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
    due = Notification.objects.due(now).select_related("requester").order_by("pk")
    return sum(_send(notification, now=now) for notification in list(due))


def _send(notification: Notification, *, now: datetime) -> bool:
    if not Notification.objects.filter(
        pk=notification.pk, next_attempt_at=notification.next_attempt_at
    ).update(next_attempt_at=now + CLAIMED_FOR):
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
            post(notification, now=timezone.now())


def _client(service: str, destination: str) -> Any:
    # The marketplace's own keys and endpoint, from its environment (AWS_ENDPOINT_URL_SQS and the
    # like) or a setting. Only the destination's region answers for it.
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


# Sending workers' messages by e-mail. Each is claimed by a conditional UPDATE, as the events of the
# outbox are; the address is the one that holds at the time of sending.


def send_due_mail(now: datetime) -> int:
    due = WorkerMessage.objects.filter(next_mail_at__lte=now).select_related("worker", "requester")
    return sum(_send_message(message, now=now) for message in list(due.order_by("pk")))


def _send_message(message: WorkerMessage, *, now: datetime) -> bool:
    unclaimed = WorkerMessage.objects.filter(pk=message.pk, next_mail_at=message.next_mail_at)
    if not unclaimed.update(next_mail_at=now + CLAIMED_FOR):
        return False
    message.mail_attempts += 1
    message.next_mail_at = None
    address = mail_address(message.worker)
    try:
        if address is not None:
            inbox = f"{settings.SITE_URL}{reverse('marketplace:inbox')}"
            sender = message.requester.name
            body = f"{message.text}\n\n{sender}\n\nAll your messages: {inbox}\n"
            send_mail(" ".join(message.subject.split()), body, None, [address])
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


# What could not be delivered: events of requesters by every transport, and workers' mail.

FAILURES_SHOWN = 20
SHOWN_FOR = timedelta(days=7)
WORKER_MAIL = "worker mail"


@dataclass(frozen=True)
class Delivery:
    """Counts of one transport: first attempts waiting, retries waiting, and failures of a week."""

    name: str
    n_waiting: int = 0
    n_retrying: int = 0
    n_given_up: int = 0

    @property
    def label(self) -> str:
        return _("E-mail to workers") if self.name == WORKER_MAIL else self.name


def deliveries(now: datetime) -> list[Delivery]:
    open_rows = Notification.objects.unsent() | Notification.objects.given_up().filter(
        Q(created_at__gte=now - SHOWN_FOR)
    )
    is_waiting = Q(next_attempt_at__isnull=False)
    by_transport: dict[str, dict[str, Any]] = {
        row["name"]: dict(row)
        for row in open_rows.order_by()
        .values(name=F("transport"))
        .annotate(
            n_waiting=Count("pk", is_waiting & Q(attempts=0)),
            n_retrying=Count("pk", is_waiting & Q(attempts__gt=0)),
            n_given_up=Count("pk", Q(next_attempt_at=None)),
        )
    }
    of_events = [
        Delivery(**by_transport.get(transport, {"name": str(transport)})) for transport in Transport
    ]
    return [*of_events, _worker_mail(now)]


def given_up_lately(now: datetime) -> QuerySet[Notification]:
    rows = Notification.objects.given_up().filter(created_at__gte=now - SHOWN_FOR)
    return rows.select_related("requester").order_by("-created_at")[:FAILURES_SHOWN]


def _worker_mail(now: datetime) -> Delivery:
    waiting = WorkerMessage.objects.filter(next_mail_at__isnull=False)
    given_up = WorkerMessage.objects.filter(
        next_mail_at=None, mailed_at=None, mail_attempts__gt=0, created_at__gte=now - SHOWN_FOR
    )
    counts = waiting.aggregate(
        n_waiting=Count("pk", Q(mail_attempts=0)), n_retrying=Count("pk", Q(mail_attempts__gt=0))
    )
    return Delivery(WORKER_MAIL, n_given_up=given_up.count(), **counts)

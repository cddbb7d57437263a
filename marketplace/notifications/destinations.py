"""Where a requester may have notifications sent: what is theirs to name, and nothing inside the
site's own network. Checked when it is set and again when something is sent there."""

import os
import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from allauth.account.models import EmailAddress
from django.conf import settings

from marketplace.exceptions import InvalidParameter, NotificationUndeliverable
from marketplace.models import Requester, Transport
from work.addresses import is_public

AMAZON_QUEUE = re.compile(
    r"https://(sqs\.[a-z0-9-]+\.amazonaws\.com(\.cn)?|([a-z0-9-]+\.)?queue\.amazonaws\.com)"
    r"/[0-9]{12}/[A-Za-z0-9_-]{1,80}(\.fifo)?"
)
OF_NUMBERS = re.compile(r"[0-9]+|0x[0-9a-f]*")
TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?")


def check_destination(*, requester: Requester, transport: str, destination: str) -> None:
    """Raise InvalidParameter where the requester may not have anything sent there."""
    match Transport(transport):
        case Transport.SQS:
            _require(_is_queue(destination), "an SQS queue's URL")
        case Transport.SNS:
            _require(TOPIC.fullmatch(destination), "an SNS topic's ARN")
        case Transport.EMAIL:
            _check_email(requester, destination)
        case Transport.HTTPS:
            _check_address(destination)


def require_deliverable(transport: str) -> None:
    """Raise NotificationUndeliverable where this marketplace can send nothing in that way."""
    import boto3

    match Transport(transport):
        case Transport.SQS | Transport.SNS:
            # On a machine of Amazon's this asks a service there, for a second at most.
            if boto3.Session().get_credentials() is None:
                raise NotificationUndeliverable(
                    f"This marketplace has no AWS credentials, so it can send nothing to "
                    f"{transport}. Use the Transport HTTPS, or ask its operator."
                )
        case Transport.EMAIL:
            if not settings.SENDS_MAIL:
                raise NotificationUndeliverable(
                    "This marketplace has no mail server, so it can send no e-mail. Use the "
                    "Transport HTTPS, or ask its operator."
                )


def _is_queue(destination: str) -> bool:
    """At Amazon, or where the operator says that queues are."""
    endpoint_url = getattr(settings, "AWS_ENDPOINT_URL_SQS", None) or _configured_endpoint()
    is_operators = bool(endpoint_url) and destination.startswith(f"{endpoint_url.rstrip('/')}/")
    return is_operators or bool(AMAZON_QUEUE.fullmatch(destination))


def _configured_endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL_SQS", "")


def _check_email(requester: Requester, destination: str) -> None:
    """An address whose owner acts for the requester: mail to others would be spam."""
    _require("@" in destination, "an e-mail address")
    if settings.OWN_MACHINE:
        return
    addresses = EmailAddress.objects.filter(user__in=requester.users.all(), verified=True)
    if not addresses.filter(email__iexact=destination).exists():
        raise InvalidParameter(
            "Destination must be an e-mail address that a user who acts for this requester has "
            "confirmed."
        )


def _check_address(destination: str) -> None:
    try:
        parts = urlsplit(destination)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    is_written_well = destination.isascii() and destination.isprintable() and " " not in destination
    if not host or port == 0 or parts.scheme != "https" or not is_written_well:
        raise InvalidParameter("Destination must be an address that begins with https://.")
    if parts.username is not None or parts.fragment:
        raise InvalidParameter("Destination must hold neither a user's name nor a fragment (#).")
    if not settings.OWN_MACHINE and _is_inside(host):
        raise InvalidParameter("Destination is an address inside this marketplace's own network.")


def _is_inside(host: str) -> bool:
    """By its form alone; what a name leads to is looked up when something is sent."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        ip_address(name)
    except ValueError:
        # No name of the internet ends in a number: it is an address in another form, as 127.1 is.
        return OF_NUMBERS.fullmatch(name.rpartition(".")[2]) is not None
    return not is_public(name)


def _require(is_fine: object, shape: str) -> None:
    if not is_fine:
        raise InvalidParameter(f"Destination must be {shape}.")

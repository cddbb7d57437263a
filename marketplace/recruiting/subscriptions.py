"""Having a recruiter's news sent here, where both can be reached."""

from datetime import timedelta

from django.conf import settings
from django.urls import reverse

from encryption import encrypt
from marketplace import clock
from marketplace.models import RecruiterConnection
from marketplace.recruiting.prolific import Prolific

# A recruiter stops sending after some days of failures, and somebody may have changed the secret.
CHECKED_EVERY = timedelta(days=1)


def keep_subscribed(connection: RecruiterConnection, recruiter: Prolific) -> None:
    """See once a day that news are sent here, and with which secret they are signed."""
    checked_at = connection.webhooks_checked_at
    if checked_at is None or checked_at <= clock.now() - CHECKED_EVERY:
        subscribe(connection, recruiter)


def subscribe(connection: RecruiterConnection, recruiter: Prolific) -> None:
    """Have news sent here; said again, nothing changes."""
    if not _is_reachable():
        return
    # Before the first of them can come.
    connection.encrypted_webhook_secret = encrypt(recruiter.webhook_secret())
    connection.save(update_fields=["encrypted_webhook_secret"])
    recruiter.subscribe(_address(connection))
    connection.webhooks_checked_at = clock.now()
    connection.save(update_fields=["webhooks_checked_at"])


def unsubscribe(connection: RecruiterConnection, recruiter: Prolific) -> None:
    """Have no news sent here any more."""
    if connection.encrypted_webhook_secret:
        recruiter.unsubscribe(_address(connection))


def _is_reachable() -> bool:
    """Recruiters send to https alone; a fake on this machine isn't so particular."""
    ours, theirs = str(settings.SITE_URL), str(settings.PROLIFIC_URL)
    return ours.startswith("https://") or theirs.startswith("http://")


def _address(connection: RecruiterConnection) -> str:
    path = reverse("marketplace:recruiter_events", args=[connection.public_id])
    return f"{settings.SITE_URL}{path}"

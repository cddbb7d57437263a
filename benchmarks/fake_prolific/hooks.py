"""The fake's webhooks: one secret, subscriptions that are silent until they are confirmed, and
events that are sent as they say, or as a test wants them to go wrong.

What becomes of the next events is said beforehand, one word each: `lose` (never sent), `double`
(one try that arrives twice), `late` (an hour later, so that others overtake it), `forge` (signed
with another secret); '' sends one as it should be.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import requests

SUBMISSION, STUDY = "submission.status.change", "study.status.change"
TRIES, FIRST_WAIT = 11, timedelta(minutes=1)
DISABLED_AFTER = timedelta(days=5)
LATE = timedelta(hours=1)

Send = Callable[[str, dict[str, str], bytes], int]


@dataclass
class Subscription:
    id: str
    event_type: str
    target_url: str
    workspace: str
    confirmation: str
    is_enabled: bool = False
    failing_since: datetime | None = None

    def shown(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "event_type": self.event_type,
            "target_url": self.target_url,
            "is_enabled": self.is_enabled,
            "workspace_id": self.workspace,
        }


@dataclass
class Delivery:
    event_id: str
    subscription: Subscription
    body: bytes
    due: datetime
    is_forged: bool = False
    n_tries: int = 0
    # Of a try, however often it arrives.
    sent_at: str = ""


class Hooks:
    def __init__(self) -> None:
        self.secret = ""
        self.subscriptions: dict[str, Subscription] = {}
        self.pending: list[Delivery] = []
        self.fates: list[str] = []
        self.sent: list[tuple[str, int]] = []
        self._announced: dict[str, str] = {}

    def observe(
        self, kind: str, key: str, status: str, facts: dict[str, Any], at: datetime
    ) -> None:
        """Announce a status that is another than before; that of what is new isn't a change."""
        before = self._announced.get(key)
        self._announced[key] = status
        if before in (None, status):
            return
        body = json.dumps({"event_type": kind, "resource_id": key, "status": status} | facts)
        for each in self.subscriptions.values():
            if each.is_enabled and each.event_type == kind:
                self._plan(each, body.encode(), at)

    def _plan(self, subscription: Subscription, body: bytes, at: datetime) -> None:
        fate = self.fates.pop(0) if self.fates else ""
        due = at + LATE if fate == "late" else at
        planned = Delivery(
            secrets.token_hex(12), subscription, body, due, is_forged=fate == "forge"
        )
        self.pending += [planned] * {"lose": 0, "double": 2}.get(fate, 1)

    def take_due(self, now: datetime) -> list[Delivery]:
        due = [each for each in self.pending if each.due <= now]
        self.pending = [each for each in self.pending if each.due > now]
        return due

    def deliver(self, delivery: Delivery, now: datetime, send: Send) -> None:
        subscription = delivery.subscription
        if not subscription.is_enabled:
            return
        delivery.sent_at = delivery.sent_at or str(int(time.time()))
        status = send(subscription.target_url, self._headers(delivery), delivery.body)
        self.sent.append((delivery.event_id, status))
        if 200 <= status < 300:
            subscription.failing_since = None
            return
        subscription.failing_since = subscription.failing_since or now
        if now - subscription.failing_since >= DISABLED_AFTER:
            subscription.is_enabled = False
        delivery.n_tries += 1
        delivery.sent_at = ""  # each try is signed with its own time
        if delivery.n_tries < TRIES and not delivery.is_forged:
            delivery.due = now + FIRST_WAIT * 2 ** (delivery.n_tries - 1)
            self.pending.append(delivery)

    def _headers(self, delivery: Delivery) -> dict[str, str]:
        sent_at = delivery.sent_at
        secret = "somebody else's" if delivery.is_forged else self.secret
        digest = hmac.digest(secret.encode(), sent_at.encode() + delivery.body, hashlib.sha256)
        return {
            "Content-Type": "application/json",
            "X-Prolific-Request-Timestamp": sent_at,
            "X-Prolific-Request-Signature": base64.b64encode(digest).decode(),
            "X-Event-ID": delivery.event_id,
            "X-Timestamp": sent_at,
        }


def send_by_http(url: str, headers: dict[str, str], body: bytes) -> int:
    """Send to a server on this machine, where a fake belongs; 0 where nobody answers."""
    if not url.startswith(("http://127.0.0.1:", "http://localhost:")):
        return 0
    try:
        return requests.post(url, body, headers=headers, timeout=10).status_code
    except requests.RequestException:
        return 0

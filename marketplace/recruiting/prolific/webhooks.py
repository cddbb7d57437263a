"""Prolific's webhooks: subscriptions of a workspace, and the signature of what is sent.

A workspace has one secret, and making another ends the first; so it is asked for before one is
made, and whoever else uses the workspace goes on with the same. A subscription sends nothing
until it was confirmed with a word that stands in the answer's header alone: one whose answer was
lost is deleted and made anew.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from marketplace.recruiting.problems import NotFound, NotVerified, Refused
from marketplace.recruiting.prolific.transport import Transport
from marketplace.recruiting.prolific.words import id_of, is_id, mapping_of, rows_of, secret_of
from marketplace.recruiting.records import Event

SUBMISSION, STUDY = "submission.status.change", "study.status.change"
SIGNATURE, SENT_AT = "X-Prolific-Request-Signature", "X-Prolific-Request-Timestamp"
CONFIRMATION = "X-Hook-Secret"
# What is not received is sent again for a day or two; a clock may be a little ahead.
OLDEST, NEWEST = timedelta(days=2), timedelta(minutes=5)
LONGEST_KIND = 100
MOST_SUBSCRIPTIONS = 100


def find_secret(api: Transport, workspace: str) -> str:
    """The workspace's secret; made only where there is none."""
    there = rows_of(api.read("/hooks/secrets/", {"workspace_id": workspace}))
    mine = [row for row in there if row.get("workspace_id", workspace) == workspace]
    if mine:
        return secret_of(mine[0])
    made = api.change("POST", "/hooks/secrets/", {"workspace_id": workspace})
    return secret_of(mapping_of(made))


def subscribe(api: Transport, workspace: str, address: str) -> None:
    """Have each kind of event sent to the address, once."""
    for kind in (SUBMISSION, STUDY):
        if _of_address(api, workspace, kind, address, is_enabled=True):
            continue
        for row in _of_address(api, workspace, kind, address, is_enabled=False):
            _delete(api, id_of(row))
        _make(api, workspace, kind, address)


def unsubscribe(api: Transport, workspace: str, address: str) -> None:
    """Have nothing sent to the address any more; other addresses of the workspace's stay."""
    for kind in (SUBMISSION, STUDY):
        for is_enabled in (True, False):
            for row in _of_address(api, workspace, kind, address, is_enabled=is_enabled):
                _delete(api, id_of(row))


def verify_event(secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Event:
    """What the body says, as received, if it was signed with the secret not long ago."""
    sent_at, signature = headers.get(SENT_AT, ""), headers.get(SIGNATURE, "")
    if not secret or not hmac.compare_digest(
        signature.encode(), signed(secret, sent_at, body).encode()
    ):
        raise NotVerified("The signature is not Prolific's.")
    if not sent_at.isascii() or not sent_at.isdigit() or len(sent_at) > 11:
        raise NotVerified("The time of sending is not a number of seconds.")
    if not now - OLDEST <= datetime.fromtimestamp(int(sent_at), UTC) <= now + NEWEST:
        raise NotVerified("It was sent too long ago.")
    # What a sender of it again cannot choose: the header's id of the event is not signed.
    return _event(hashlib.sha256(sent_at.encode() + body).hexdigest(), body)


def signed(secret: str, sent_at: str, body: bytes) -> str:
    """The signature of a body that is sent at this time."""
    digest = hmac.digest(secret.encode(), sent_at.encode() + body, hashlib.sha256)
    return base64.b64encode(digest).decode()


def _event(event_id: str, body: bytes) -> Event:
    try:
        facts = json.loads(body)
    except (ValueError, RecursionError):
        raise NotVerified("The body is no JSON.") from None
    if not isinstance(facts, dict):
        raise NotVerified("The event has no facts.")
    kind, resource = str(facts.get("event_type", ""))[:LONGEST_KIND], facts.get("resource_id")
    if not kind.isprintable():
        raise NotVerified("The event's type is no word.")
    if not isinstance(resource, str) or not is_id(resource):
        return Event(event_id, kind)
    # Only a submission has a participant, whose id is left unread.
    if kind == SUBMISSION or "participant_id" in facts:
        return Event(event_id, kind or SUBMISSION, submission=resource)
    return Event(event_id, kind, study=resource)


def _of_address(
    api: Transport, workspace: str, kind: str, address: str, *, is_enabled: bool
) -> list[Mapping[str, Any]]:
    query = {
        "workspace_id": workspace,
        "enabled": str(is_enabled).lower(),
        "limit": MOST_SUBSCRIPTIONS,
        "offset": 0,
    }
    rows = rows_of(api.read("/hooks/subscriptions/", query))
    return [
        row
        for row in rows
        if (row.get("event_type"), row.get("target_url")) == (kind, address)
        and bool(row.get("is_enabled")) == is_enabled
    ]


def _make(api: Transport, workspace: str, kind: str, address: str) -> None:
    facts = {"workspace_id": workspace, "event_type": kind, "target_url": address}
    made, headers = api.change_with_headers("POST", "/hooks/subscriptions/", facts)
    # Their document promises a list, their own program reads an object.
    row = made[0] if isinstance(made, list) and made else made
    key = id_of(mapping_of(row))
    if not headers.get(CONFIRMATION):
        raise Refused("Prolific's answer to a subscription has nothing to confirm it with.")
    api.change("POST", f"/hooks/subscriptions/{key}/", {"secret": headers[CONFIRMATION]})


def _delete(api: Transport, key: str) -> None:
    try:
        api.change("DELETE", f"/hooks/subscriptions/{key}/")
    except NotFound:
        return

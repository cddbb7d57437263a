"""Enrolment at an Assay marketplace: what its Requester API lacks, over HTTP.

Requests are signed with the operator secret, which only those have who run the marketplace
(MARKETPLACE_OPERATOR_SECRET).
"""

import hashlib
import hmac
import secrets
import time
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from hits import marketplace_api
from hits.endpoints import AccessKey
from hits.exceptions import MarketplaceRefused, MarketplaceUnreachable


def enrol_requester(
    *, site_url: str, name: str, display_name: str = "", test_funds_usd: Decimal | None = None
) -> AccessKey:
    """A new key for the requester of this name, who is enrolled first where unknown; participants
    read the display name instead, where there is one."""
    optional = {"test_funds_usd": f"{test_funds_usd:f}" if test_funds_usd else ""}
    optional["display_name"] = display_name
    given = {key: value for key, value in optional.items() if value}
    content = _post(site_url, "/requesters", {"name": name} | given)
    return AccessKey(content["access_key_id"], content["secret_access_key"])


def enrol_worker(*, site_url: str, username: str, password: str) -> str:
    """The id of a new worker who can sign in to the worker site."""
    content = _post(site_url, "/workers", {"username": username, "password": password})
    return str(content["worker_id"])


def _post(site_url: str, path: str, content: dict[str, str]) -> dict[str, Any]:
    answer = marketplace_api.post(site_url, path, content, signature=_signature)
    if answer.content is None:
        raise MarketplaceUnreachable(
            _("What answers at {address} is not an Assay marketplace (HTTP {status}).").format(
                address=answer.address, status=answer.status
            ),
            code="not_assay",
        )
    if answer.status != HTTPStatus.CREATED:
        raise MarketplaceRefused(_code(answer.status), answer.error)
    return answer.content


def _signature(address: str, body: bytes) -> dict[str, str]:
    secret = settings.MARKETPLACE_OPERATOR_SECRET
    return signed_headers(secret=secret, path=urlsplit(address).path, body=body)


def signed_headers(*, secret: str, path: str, body: bytes) -> dict[str, str]:
    """The headers of a POST to this path with this body, for once and for the next minutes."""
    timestamp, nonce = str(int(time.time())), secrets.token_urlsafe(24)
    lines = ["POST", path, timestamp, nonce, hashlib.sha256(body).hexdigest()]
    signature = hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()
    return {
        "X-Assay-Timestamp": timestamp,
        "X-Assay-Nonce": nonce,
        "X-Assay-Signature": signature,
    }


def _code(status: int) -> str:
    names = {401: "InvalidSignature", 409: "NameTaken"}
    return names.get(status, f"HTTP {status}")

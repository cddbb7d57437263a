"""The small JSON API of an Assay marketplace: what the Requester API lacks, over signed HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import requests
from django.utils.translation import gettext as _
from urllib3.exceptions import HTTPError

from hits.call_limits import bounded_session
from hits.exceptions import MarketplaceUnreachable

PREFIX = "/marketplace-api/v1"
TIMEOUT_SECONDS = (10, 60)
# The headers that sign a POST of a body to an address.
Signature = Callable[[str, bytes], dict[str, str]]


@dataclass(frozen=True)
class Answer:
    """What came back; `content` is None where that is no whole JSON object."""

    address: str
    status: int
    is_json: bool
    content: dict[str, Any] | None

    @property
    def error(self) -> str:
        """What the marketplace says is wrong."""
        return str((self.content or {}).get("error", self.content))


def post(site_url: str, path: str, content: dict[str, Any], *, signature: Signature) -> Answer:
    """POST to a marketplace; a redirect is not followed."""
    address = site_url.rstrip("/") + PREFIX + path
    body = json.dumps(content).encode()
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"} | signature(
        address, body
    )
    try:
        with (
            bounded_session() as session,
            session.post(
                address,
                data=body,
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            # Not unpacked: a small answer could become a huge one.
            answer_body = response.raw.read(decode_content=False)
    except (requests.RequestException, HTTPError) as error:
        raise MarketplaceUnreachable(
            _("No marketplace answers at {address}: {error}").format(address=address, error=error),
            code="no_answer",
        ) from error
    is_json = "json" in response.headers.get("Content-Type", "")
    return Answer(address, response.status_code, is_json, _json_object(answer_body))


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None

"""What an Assay marketplace tells a requester beyond the Requester API, over HTTP.

Requests are signed as those of the Requester API are (AWS Signature Version 4), with the
connection's access key. Other marketplaces have no such addresses: None is the answer there.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from hits.connections import AMAZON, access_key_of, endpoint_of
from hits.endpoints import REGION, AccessKey
from hits.exceptions import MarketplaceRefused, MarketplaceUnreachable
from hits.models import Connection

PREFIX = "/marketplace-api/v1"
SERVICE = "mturk-requester"
TIMEOUT_SECONDS = (10, 60)


def post(connection: Connection, path: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """What the marketplace answers at one of its own addresses; None where it has no such."""
    if connection.marketplace in AMAZON:
        return None
    address = _origin(endpoint_of(connection)) + PREFIX + path
    body = json.dumps(content).encode()
    try:
        response = requests.post(
            address,
            data=body,
            headers=_signed_headers(access_key_of(connection), address, body),
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
        )
    except requests.RequestException as error:
        raise MarketplaceUnreachable(f"No marketplace answers at {address}: {error}") from error
    if response.status_code == HTTPStatus.NOT_FOUND:
        return None
    try:
        answer = response.json()
    except requests.JSONDecodeError:
        return None
    if response.status_code not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise MarketplaceRefused(str(response.status_code), str(answer.get("error", answer)))
    return dict(answer)


def _origin(endpoint_url: str) -> str:
    parts = urlsplit(endpoint_url)
    return f"{parts.scheme}://{parts.netloc}"


def _signed_headers(key: AccessKey, address: str, body: bytes) -> dict[str, str]:
    request = AWSRequest(
        method="POST",
        url=address,
        data=body,
        headers={"Content-Type": "application/json", "X-Amz-Target": "Assay"},
    )
    credentials = Credentials(key.access_key_id, key.secret_access_key)
    SigV4Auth(credentials, SERVICE, REGION).add_auth(request)
    return dict(request.headers.items())

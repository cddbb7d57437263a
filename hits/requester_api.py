"""What an Assay marketplace tells a requester beyond the Requester API.

Requests are signed as those of the Requester API are (AWS Signature Version 4), with the
connection's access key. Other marketplaces have no such addresses: None is the answer there.
"""

from __future__ import annotations

import random
import time
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.utils.translation import gettext as _
from urllib3.exceptions import ReadTimeoutError

from hits import marketplace_api
from hits.addresses import require_outside
from hits.call_limits import require_time_left
from hits.connections import access_key_of, endpoint_of
from hits.endpoints import REGION, AccessKey
from hits.exceptions import MarketplaceRefused, MarketplaceUnreachable
from hits.models import Connection
from hits.profiles import AMAZON

SERVICE = "mturk-requester"
# Between attempts: whatever is asked here may be asked again.
PAUSES_SECONDS = (0.2, 1.0, 3.0)


def post(connection: Connection, path: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """What the marketplace answers at one of its own addresses; None where it has no such."""
    if connection.marketplace in AMAZON:
        return None
    for pause_seconds in PAUSES_SECONDS:
        require_time_left()
        try:
            return _post_once(connection, path, content)
        except MarketplaceUnreachable as away:
            if isinstance(away.__cause__, requests.Timeout | ReadTimeoutError):
                raise  # it took its time already
            time.sleep(pause_seconds * random.uniform(0.5, 1))
    require_time_left()
    return _post_once(connection, path, content)


def _post_once(connection: Connection, path: str, content: dict[str, Any]) -> dict[str, Any] | None:
    parts = urlsplit(endpoint_of(connection))
    site_url = f"{parts.scheme}://{parts.netloc}"
    require_outside(connection.endpoint_url)
    signature = partial(signed_headers, access_key_of(connection))
    answer = marketplace_api.post(site_url, path, content, signature=signature)
    if answer.status == HTTPStatus.NOT_FOUND:
        return None
    if answer.status >= 500 or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        raise MarketplaceUnreachable(
            _("{address} answers with HTTP {status}.").format(
                address=answer.address, status=answer.status
            ),
            code="bad_status",
        )
    if not answer.is_json:
        return None
    # None of the answers is empty: that is one whose rest was lost, as one cut in the middle is.
    if not answer.content:
        raise MarketplaceUnreachable(
            _("The answer from {address} was cut short.").format(address=answer.address),
            code="cut_short",
        )
    if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise MarketplaceRefused(str(answer.status), answer.error)
    return answer.content


def signed_headers(key: AccessKey, address: str, body: bytes) -> dict[str, str]:
    """The headers of a POST to this address with this body."""
    request = AWSRequest(
        method="POST",
        url=address,
        data=body,
        headers={"Content-Type": "application/json", "X-Amz-Target": "Assay"},
    )
    credentials = Credentials(key.access_key_id, key.secret_access_key)
    SigV4Auth(credentials, SERVICE, REGION).add_auth(request)
    return dict(request.headers.items())

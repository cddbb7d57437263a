"""What an Assay marketplace tells a requester beyond the Requester API.

Requests are signed as those of the Requester API are (AWS Signature Version 4), with the
connection's access key. Other marketplaces have no such addresses: None is the answer there.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import time
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.db import transaction
from django.utils.translation import gettext as _
from urllib3.exceptions import ReadTimeoutError

from hits.connections import PREFIX, access_key_of, endpoint_of, post_json
from hits.endpoints import REGION, AccessKey
from hits.exceptions import MarketplaceFault, MarketplaceRefused, MarketplaceUnreachable
from hits.foreign_records import count, identifier
from hits.limits import require_time_left
from hits.marketplaces import AMAZON, require_outside
from hits.models import Assignment, Batch, Connection, Recruitment, SharedDevice, Worker

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
    answer = post_json(site_url, path, content, signature=signature)
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
    request = AWSRequest(
        method="POST",
        url=address,
        data=body,
        headers={"Content-Type": "application/json", "X-Amz-Target": "Assay"},
    )
    credentials = Credentials(key.access_key_id, key.secret_access_key)
    SigV4Auth(credentials, SERVICE, REGION).add_auth(request)
    return dict(request.headers.items())


MOST_ROWS = 10_000
MOST_OTHERS = 10


def fetch_shared_devices(*, batch: Batch) -> int:
    """Store anew which of a batch's workers shared a device; return how many."""
    prefix = {"annotation_prefix": f"assay:{batch.key}:"}
    answer = post(batch.connection, "/devices", prefix)
    if answer is None:
        return 0
    listed = answer.get("shared_devices")
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        raise MarketplaceFault(_("it sent no list of shared devices"), code="not_a_list")
    workers = _workers_of(batch)
    pseudonyms = _pseudonyms_of(batch)
    rows = [_row(batch, row, workers, pseudonyms) for row in listed[:MOST_ROWS]]
    known = [row for row in rows if row is not None]
    with transaction.atomic():
        SharedDevice.objects.filter(batch=batch).delete()
        SharedDevice.objects.bulk_create(known, ignore_conflicts=True)
    return len(known)


def _row(
    batch: Batch, row: dict[str, Any], workers: dict[str, Worker], pseudonyms: dict[str, str]
) -> SharedDevice | None:
    """One worker's; None of a worker of whom nothing is collected yet."""
    worker = workers.get(identifier(row, "worker_id"))
    others = row.get("others")
    if not isinstance(others, list) or not all(isinstance(each, str) for each in others):
        raise MarketplaceFault(
            _("the other workers of a device are not a list of ids"), code="not_ids"
        )
    if worker is None:
        return None
    return SharedDevice(
        batch=batch,
        worker=worker,
        n_shared=count(row.get("n_shared"), "n_shared"),
        n=count(row.get("n"), "n"),
        n_others=count(row.get("n_others"), "n_others"),
        others=[pseudonyms[each] for each in others[:MOST_OTHERS] if each in pseudonyms],
    )


def _workers_of(batch: Batch) -> dict[str, Worker]:
    rows = Worker.objects.filter(assignments__hit__batch=batch).distinct()
    return {worker.worker_id: worker for worker in rows}


def _pseudonyms_of(batch: Batch) -> dict[str, str]:
    read = Assignment.objects.of(batch).exclude(submission=None).order_by()
    return dict(read.values_list("worker__worker_id", "submission__annotator__pseudonym"))


SECONDS = 120
PARTICIPANTS, JOIN, DEMOGRAPHICS = "participants", "join", "demographics"
FILES = (PARTICIPANTS, JOIN, DEMOGRAPHICS)


def file_address(recruitment: Recruitment, name: str, *, reader: str) -> str:
    """Where the marketplace gives this file for two minutes; on this site, a path."""
    connection = recruitment.batch.connection
    key = access_key_of(connection)
    path = f"{PREFIX}/recruiting/files/{recruitment.public_id}/{name}.csv"
    values = {
        "key": key.access_key_id,
        "reader": reader,
        "expires": str(int(time.time()) + SECONDS),
    }
    signed = "\n".join([path, *values.values()]).encode()
    secret = key.secret_access_key.encode()
    signature = hmac.new(secret, signed, hashlib.sha256).hexdigest()
    parts = urlsplit(endpoint_of(connection))
    site = "" if connection.is_on_this_site else f"{parts.scheme}://{parts.netloc}"
    return f"{site}{path}?{urlencode(values | {'signature': signature})}"

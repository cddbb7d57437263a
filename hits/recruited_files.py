"""A recruited study's files, which stay at the marketplace: the address of one, signed with the
team's key for a person who may have it (marketplace.api.recruited_files says how)."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from hits.connections import access_key_of, endpoint_of
from hits.marketplace_api import PREFIX

if TYPE_CHECKING:
    from hits.models import Recruitment

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

"""Which marketplace to talk to, and the one place where its errors are translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)
from django.conf import settings

from hits.exceptions import (
    CredentialsMissing,
    MarketplaceRefused,
    MarketplaceUnreachable,
    ProfileUnknown,
)

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

REGION = "us-east-1"
PATIENCE = Config(
    connect_timeout=10, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 6}
)
# What boto3 raises where it finds no key of its own, or not the AWS_PROFILE it is sent to.
NO_KEY = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    ProfileNotFound,
)


@dataclass(frozen=True)
class Profile:
    """A marketplace by name; one without an endpoint is configured by the site's settings."""

    name: str
    endpoint_url: str | None
    note: str = ""


PROFILES = {
    "local": Profile("local", None),
    "sandbox": Profile(
        "sandbox",
        "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
        "retired by AWS on 2026-09-30",
    ),
    "production": Profile(
        "production",
        "https://mturk-requester.us-east-1.amazonaws.com",
        "retired by AWS on 2026-09-30",
    ),
}


@dataclass(frozen=True)
class AccessKey:
    access_key_id: str
    secret_access_key: str


def connect(
    profile: str = "local", *, key: AccessKey | None = None, endpoint_url: str | None = None
) -> MTurkClient:
    """A boto3 client for a marketplace.

    The local profile's key comes from MARKETPLACE_ACCESS_KEY_ID and
    MARKETPLACE_SECRET_ACCESS_KEY; Amazon's from wherever boto3 finds its own.
    """
    if profile not in PROFILES:
        known = ", ".join(PROFILES)
        raise ProfileUnknown(f"There is no marketplace profile '{profile}'. Profiles: {known}.")
    if profile == "local" and key is None:
        key = _local_key()
    address = endpoint_url or PROFILES[profile].endpoint_url or settings.MARKETPLACE_ENDPOINT_URL
    try:
        return _client(address, key)
    except ValueError as problem:
        raise MarketplaceUnreachable(
            f"'{address}' is no marketplace's address: {problem}. It needs http(s)://, a host and "
            "a path, such as http://127.0.0.1:8000/requester."
        ) from None


def _client(address: str, key: AccessKey | None) -> MTurkClient:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or parts.port == 0:
        raise ValueError("nothing on the web is there")
    with translated_errors():
        client: MTurkClient = boto3.client(
            "mturk",
            region_name=REGION,
            endpoint_url=address,
            aws_access_key_id=key.access_key_id if key else None,
            aws_secret_access_key=key.secret_access_key if key else None,
            config=PATIENCE,
        )
    client.meta.events.register("after-call.mturk", _require_a_marketplace)
    return client


def _require_a_marketplace(http_response: AWSResponse, **called: Any) -> None:
    """Refuse a page of another web server, which boto3 takes for an answer that says nothing."""
    kind = http_response.headers.get("Content-Type", "")
    if http_response.status_code == HTTPStatus.OK and "json" not in kind:
        raise MarketplaceUnreachable(
            f"What answers there is not a marketplace (it sends {kind or 'no JSON'}). "
            "Is its address right?"
        )


def _local_key() -> AccessKey:
    key = AccessKey(
        settings.MARKETPLACE_ACCESS_KEY_ID,
        settings.MARKETPLACE_SECRET_ACCESS_KEY,
    )
    if not (key.access_key_id and key.secret_access_key):
        raise CredentialsMissing(
            "There is no access key for the marketplace. Make one with `python manage.py "
            "create_requester NAME --deposit 100 --json` and put it into the environment (or "
            ".env) as MARKETPLACE_ACCESS_KEY_ID and MARKETPLACE_SECRET_ACCESS_KEY."
        )
    return key


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn what boto3 raises into this app's errors."""
    try:
        yield
    except ClientError as error:
        answer = error.response
        code = str(answer.get("TurkErrorCode") or answer["Error"].get("Code", "unknown"))
        if code.isdigit():  # an HTTP status, where a marketplace would have said what is wrong
            raise MarketplaceUnreachable(
                f"What answers there is not a marketplace (HTTP {code}). Is its address right?"
            ) from error
        raise MarketplaceRefused(code, answer["Error"].get("Message", "no reason given")) from error
    except NO_KEY as error:
        raise CredentialsMissing(f"There is no access key for the marketplace: {error}.") from error
    except (ConnectionError, HTTPClientError) as error:
        raise MarketplaceUnreachable(
            f"No marketplace answers: {error} Is the site running (`make run`)?"
        ) from error

"""Which marketplace to talk to, and the one place where its errors are translated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

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
from botocore.parsers import ResponseParserError
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hits.call_limits import bind
from hits.exceptions import (
    CredentialsMissing,
    HitsError,
    MarketplaceRefused,
    MarketplaceUnreachable,
    ProfileUnknown,
)
from hits.profiles import profile_problem
from hits.responses import drop_partial_body, require_complete, retry_delay_seconds

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

REGION = "us-east-1"
UNKNOWN_KEY = ("UnrecognizedClientException", "InvalidSignatureException")
KEY_ADVICE = gettext_lazy(
    "Is this the marketplace that the key in MARKETPLACE_ACCESS_KEY_ID is for? SITE_URL, or "
    "AWS_ENDPOINT_URL_MTURK, in .env or the environment says where it is."
)
PATIENCE = Config(
    connect_timeout=10, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 6}
)
# What boto3 raises where a key is not whole, or the AWS_PROFILE it is sent to is not there.
NO_KEY = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    ProfileNotFound,
)


@dataclass(frozen=True)
class AccessKey:
    access_key_id: str
    secret_access_key: str


def connect(
    profile: str = "local", *, key: AccessKey | None = None, endpoint_url: str | None = None
) -> MTurkClient:
    """A boto3 client for a marketplace.

    The local profile's key comes from MARKETPLACE_ACCESS_KEY_ID and
    MARKETPLACE_SECRET_ACCESS_KEY.
    """
    if problem := profile_problem(profile):
        raise ProfileUnknown(problem, code=problem.code)
    address = endpoint_url or settings.MARKETPLACE_ENDPOINT_URL
    try:
        return _client(address, key or local_key())
    except ValueError as error:
        raise MarketplaceUnreachable(
            _(
                "'{address}' is not a marketplace's address: {problem}. It needs http(s)://, a "
                "host and a path, such as http://127.0.0.1:8000/requester."
            ).format(address=address, problem=error),
            code="not_an_address",
        ) from None


def _client(address: str, key: AccessKey) -> MTurkClient:
    import boto3

    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or parts.port == 0:
        raise ValueError(_("not a valid web address"))
    with translated_errors():
        client: MTurkClient = boto3.client(
            "mturk",
            region_name=REGION,
            endpoint_url=address,
            aws_access_key_id=key.access_key_id,
            aws_secret_access_key=key.secret_access_key,
            config=PATIENCE,
        )
    bind(client)
    events = client.meta.events
    events.register("before-parse.mturk", drop_partial_body)
    # The stubs know no event that listens to what its handlers return; this one does.
    events.register("needs-retry.mturk", retry_delay_seconds)  # type: ignore[arg-type]
    events.register("after-call.mturk", partial(require_complete, address=address))
    return client


def local_key() -> AccessKey:
    """The key in the environment to this site's own marketplace, or CredentialsMissing."""
    key = AccessKey(
        settings.MARKETPLACE_ACCESS_KEY_ID,
        settings.MARKETPLACE_SECRET_ACCESS_KEY,
    )
    if not (key.access_key_id and key.secret_access_key):
        raise CredentialsMissing(
            _(
                "There is no access key for the marketplace. Make one with `python manage.py "
                "create_requester NAME --deposit 100 --json` and put it into the environment (or "
                ".env) as MARKETPLACE_ACCESS_KEY_ID and MARKETPLACE_SECRET_ACCESS_KEY."
            ),
            code="no_key",
        )
    return key


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn what boto3 raises into this app's errors."""
    try:
        yield
    except ClientError as error:
        raise _error_of(error) from error
    except NO_KEY as error:
        raise CredentialsMissing(
            _("There is no access key for the marketplace: {error}.").format(error=error),
            code="no_key",
        ) from error
    except (ConnectionError, HTTPClientError, ResponseParserError) as error:
        if isinstance(inner := getattr(error, "kwargs", {}).get("error"), HitsError):
            raise inner from error  # such as of hits.call_limits, below boto3
        raise MarketplaceUnreachable(
            _("No marketplace answers: {error} Is the site running (`make run`)?").format(
                error=error
            ),
            code="no_answer",
        ) from error


def _error_of(error: ClientError) -> HitsError:
    answer: Mapping[str, Any] = error.response
    code = str(answer.get("TurkErrorCode") or answer["Error"].get("Code", "unknown"))
    metadata = answer.get("ResponseMetadata", {})
    address = metadata.get("Address", "")
    if code.isdigit():  # an HTTP status, where a marketplace would have said what is wrong
        return MarketplaceUnreachable(
            _(
                "What answers at {address} is not a marketplace (HTTP {code}). "
                "Is its address right?"
            ).format(address=address or _("its address"), code=code),
            code="not_a_marketplace",
        )
    message = answer["Error"].get("Message", _("no reason given"))
    if code in UNKNOWN_KEY:
        message = f"{message} {KEY_ADVICE}"
    is_retried = metadata.get("RetryAttempts", 0) > 0
    return MarketplaceRefused(code, message, address=address, is_retried=is_retried)

"""Clients of a marketplace: where it is, the one place where its errors are translated, and another
attempt where an answer is not whole.

A cut connection or a proxy on the way can leave of an answer a 200 with half a body or none.
boto3 takes that for an answer that says nothing; asked again, the marketplace says it whole.
Asking again is harmless: a HIT has its request token, and everything else but a decision
repeats itself, whose answer says nothing anyway."""

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

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
from botocore.model import OperationModel
from botocore.parsers import ResponseParserError
from django.conf import settings
from django.utils.translation import gettext as _, gettext_lazy

from hits.exceptions import (
    CredentialsMissing,
    HitsError,
    MarketplaceRefused,
    MarketplaceUnreachable,
    ProfileUnknown,
    require,
)
from hits.limits import bind, profile_problem

if TYPE_CHECKING:
    from mypy_boto3_mturk import client as stubs, type_defs

    MTurkClient: TypeAlias = stubs.MTurkClient
    HITTypeDef: TypeAlias = type_defs.HITTypeDef
    QualificationRequirementTypeDef: TypeAlias = type_defs.QualificationRequirementTypeDef
else:
    MTurkClient = HITTypeDef = QualificationRequirementTypeDef = Any


MOST_ATTEMPTS = 6
LONGEST_DELAY_SECONDS = 10.0
# What `hits` reads of an answer: a member, and what it, or each of its elements, must hold.
ASSIGNMENT = (
    "AssignmentId",
    "WorkerId",
    "AssignmentStatus",
    "AcceptTime",
    "SubmitTime",
    "Answer",
)
REQUIRED_MEMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CreateHITType": ("HITTypeId", ()),
    "CreateHITWithHITType": ("HIT", ("HITId",)),
    "GetHIT": ("HIT", ("HITId", "HITStatus", "MaxAssignments", "Expiration")),
    "ListHITs": ("HITs", ("HITId",)),
    "ListAssignmentsForHIT": ("Assignments", ASSIGNMENT),
    "GetAssignment": ("Assignment", ("AssignmentStatus",)),
    # An empty list that was none would have a bonus paid twice.
    "ListBonusPayments": ("BonusPayments", ("AssignmentId", "BonusAmount", "Reason")),
    "GetAccountBalance": ("AvailableBalance", ()),
}


def is_complete(operation: str, answer: Any) -> bool:
    if not isinstance(answer, dict):
        return False
    member, inner = REQUIRED_MEMBERS.get(operation, ("", ()))
    if not member:
        return True
    if member not in answer:
        return False
    value = answer[member]
    return not inner or all(
        isinstance(element, dict) and element.keys() >= set(inner)
        for element in (value if isinstance(value, list) else [value])
    )


def drop_partial_body(
    operation_model: OperationModel, response_dict: dict[str, Any], **event: Any
) -> None:
    try:
        answer = json.loads(response_dict["body"] or b"{}")
    except (ValueError, RecursionError):  # half a character as well
        answer = None
    is_error = response_dict["status_code"] >= HTTPStatus.MULTIPLE_CHOICES
    if not (isinstance(answer, dict) and (is_error or is_complete(operation_model.name, answer))):
        response_dict["body"] = b""


def retry_delay_seconds(
    response: tuple[AWSResponse, dict[str, Any]] | None,
    operation: OperationModel,
    attempts: int,
    **event: Any,
) -> float | None:
    if response is None or attempts >= MOST_ATTEMPTS or not _is_cut_short(operation, *response):
        return None
    # Not all at once, where many were cut off at once.
    return min(0.1 * float(2**attempts), LONGEST_DELAY_SECONDS) * random.uniform(0.5, 1)


def require_complete(
    http_response: AWSResponse,
    parsed: dict[str, Any],
    model: OperationModel,
    *,
    address: str,
    **event: Any,
) -> None:
    parsed.setdefault("ResponseMetadata", {})["Address"] = address
    if http_response.status_code == HTTPStatus.OK and not _is_json(http_response):
        raise MarketplaceUnreachable(
            _(
                "What answers at {address} is not a marketplace (it sends {kind}). "
                "Is its address right?"
            ).format(address=address, kind=http_response.headers.get("Content-Type") or "no JSON"),
            code="not_a_marketplace",
        )
    require(
        not _is_cut_short(model, http_response, parsed),
        MarketplaceUnreachable(
            _(
                "The marketplace at {address} was asked {n} times, and each answer to "
                "{operation} was cut short. What was done until then is stored; run it again to "
                "go on from there."
            ).format(address=address, n=MOST_ATTEMPTS, operation=model.name),
            code="cut_short",
        ),
    )


def _is_cut_short(
    operation: OperationModel, http_response: AWSResponse, parsed: dict[str, Any]
) -> bool:
    if not _is_json(http_response):
        return False
    if http_response.status_code == HTTPStatus.OK:
        return not is_complete(operation.name, parsed)
    # Without its code an error is named after its HTTP status.
    return str(parsed.get("Error", {}).get("Code", "")).isdigit()


def _is_json(http_response: AWSResponse) -> bool:
    return "json" in http_response.headers.get("Content-Type", "")


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
    require(
        parts.scheme in ("http", "https") and parts.port != 0,
        ValueError(_("not a valid web address")),
    )
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
    key = AccessKey(
        settings.MARKETPLACE_ACCESS_KEY_ID,
        settings.MARKETPLACE_SECRET_ACCESS_KEY,
    )
    require(
        (key.access_key_id and key.secret_access_key),
        CredentialsMissing(
            _(
                "There is no access key for the marketplace. Make one with `python manage.py "
                "create_requester NAME --deposit 100 --json` and put it into the environment (or "
                ".env) as MARKETPLACE_ACCESS_KEY_ID and MARKETPLACE_SECRET_ACCESS_KEY."
            ),
            code="no_key",
        ),
    )
    return key


@contextmanager
def translated_errors() -> Iterator[None]:
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
            raise inner from error  # such as of hits.limits, below boto3
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
    return MarketplaceRefused(
        code, message, address=address, is_retried=metadata.get("RetryAttempts", 0) > 0
    )

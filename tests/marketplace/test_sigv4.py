"""Signatures, made by botocore and checked by us."""

from datetime import UTC, datetime, timedelta

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from marketplace import clock
from marketplace.api.sigv4 import ReceivedRequest, authenticate
from marketplace.exceptions import ProtocolError
from marketplace.models import AccessKey
from tests.boto_clients import in_process_client
from tests.codes import refused
from tests.marketplace.conformance.refusals import error_code

KEY_ID, SECRET = "ASSAYAAAAAAAAAAAAAAA", "a-secret"


def signed(
    *, path="/requester", body=b"{}", headers=None, secret=SECRET, service="mturk-requester"
):
    request = AWSRequest(
        "POST",
        f"http://127.0.0.1:8000{path}",
        data=body,
        headers={"X-Amz-Target": "MTurkRequesterServiceV20170117.GetAccountBalance"}
        | (headers or {}),
    )
    SigV4Auth(Credentials(KEY_ID, secret), service, "us-east-1").add_auth(request)
    prepared = request.prepare()
    received = {name.lower(): value for name, value in prepared.headers.items()}
    path, _, query = path.partition("?")
    return ReceivedRequest("POST", path, query, received | {"host": "127.0.0.1:8000"}, body)


def changed(request, **changes):
    values = {name: getattr(request, name) for name in request.__dataclass_fields__}
    return ReceivedRequest(**values | changes)


def check(request, now=None):
    """The key of a request that comes in at a time, or now: hours after this file was read."""
    now = now or datetime.now(UTC)
    secrets = {KEY_ID: ["not-this-one", SECRET]}
    return authenticate(request, secrets_for=lambda key: secrets.get(key, []), now=now)[0]


def refusal_of(request, now=None):
    with refused(ProtocolError) as caught:
        check(request, now=now)
    return caught.value.code


def with_header(request, name, value):
    return changed(request, headers=request.headers | {name: value})


@pytest.mark.parametrize(
    "path", ["/", "/requester", "/requester/", "/a%20b/requester", "/requester?b=2&a=1%2F2&a="]
)
def test_what_botocore_signs_is_accepted(path):
    request = signed(path=path)
    assert check(changed(request, path=request.path.replace("%20", " "))) == KEY_ID


def test_header_values_are_signed_with_single_spaces():
    assert check(signed(headers={"X-Amz-Note": "two   spaces "})) == KEY_ID


def test_what_was_not_signed_so_is_refused():
    request = signed()
    for tampered in (
        changed(request, body=b'{"a": 1}'),
        with_header(request, "x-amz-target", "MTurkRequesterServiceV20170117.DeleteHIT"),
        changed(request, path="/other"),
        changed(request, query_string="a=1"),
        with_header(request, "host", "elsewhere.example"),
        with_header(request, "x-amz-date", "20010101T000000Z"),  # not the credential's
        signed(secret="another"),
    ):
        assert refusal_of(tampered) == "InvalidSignatureException"


@pytest.mark.parametrize("name", ["host", "x-amz-date", "x-amz-target"])
def test_a_header_that_matters_must_be_signed(name):
    request = signed()
    authorization = request.headers["authorization"]
    start = authorization.index("SignedHeaders=") + len("SignedHeaders=")
    end = authorization.index(",", start)
    names = ";".join(part for part in authorization[start:end].split(";") if part != name)
    headers = request.headers | {
        "authorization": authorization[:start] + names + authorization[end:]
    }
    with refused(ProtocolError, "InvalidSignatureException") as caught:
        check(changed(request, headers=headers))
    assert f"'{name}'" in str(caught.value)


def test_a_signature_for_another_service_is_refused():
    with refused(ProtocolError, "InvalidSignatureException") as caught:
        check(signed(service="s3"))
    assert "'mturk-requester'" in str(caught.value)


@pytest.mark.parametrize("skew", [16, -16])
def test_a_date_more_than_fifteen_minutes_off_is_refused(skew):
    request = signed()
    wrong = refusal_of(request, now=datetime.now(UTC) + timedelta(minutes=skew))
    assert wrong == "InvalidSignatureException"
    assert check(request, now=datetime.now(UTC) + timedelta(minutes=skew * 14 / 16)) == KEY_ID


@pytest.mark.parametrize("text", ["", "20261332T000000Z", "today"])
def test_a_request_without_a_readable_date_is_incomplete(text):
    code = refusal_of(with_header(signed(), "x-amz-date", text))
    assert code == "IncompleteSignatureException"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "MissingAuthenticationTokenException"),
        ("Basic YTpi", "IncompleteSignatureException"),
        ("AWS4-HMAC-SHA256", "IncompleteSignatureException"),
        ("AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=c", None),
        ("AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, Signature=c", None),
    ],
)
def test_a_broken_authorization_header_is_refused(header, code):
    expected = code or "IncompleteSignatureException"
    assert refusal_of(with_header(signed(), "authorization", header)) == expected


def test_a_session_token_is_refused_because_none_is_ever_issued():
    request = signed(headers={"X-Amz-Security-Token": "token"})
    assert refusal_of(request) == "UnrecognizedClientException"


def test_an_unknown_key_gets_amazons_error(db):
    client = in_process_client({"access_key_id": KEY_ID, "secret_access_key": SECRET})
    assert error_code(client.get_account_balance) == "UnrecognizedClientException"


def test_a_key_that_was_ended_is_unknown(keys, mturk):
    mturk.get_account_balance()
    AccessKey.objects.filter(access_key_id=keys["access_key_id"]).update(revoked_at=clock.now())
    assert error_code(mturk.get_account_balance) == "UnrecognizedClientException"


def test_a_key_does_not_open_with_another_keys_secret(make_keys):
    ours, theirs = make_keys("Ours"), make_keys("Theirs")
    client = in_process_client(ours | {"secret_access_key": theirs["secret_access_key"]})
    assert error_code(client.get_account_balance) == "InvalidSignatureException"

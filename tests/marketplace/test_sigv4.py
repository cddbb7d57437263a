"""Signatures, made by botocore and checked by us."""

from datetime import UTC, datetime, timedelta

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from marketplace import clock
from marketplace.api.sigv4 import ReceivedRequest, authenticate
from marketplace.exceptions import ProtocolError
from marketplace.models import AccessKey
from tests.boto_clients import in_process_client

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
    with pytest.raises(ProtocolError) as caught:
        check(request, now=now)
    return caught.value.code


@pytest.mark.parametrize(
    "path", ["/", "/requester", "/requester/", "/a%20b/requester", "/requester?b=2&a=1%2F2&a="]
)
def test_what_botocore_signs_is_accepted(path):
    request = signed(path=path)
    assert check(changed(request, path=request.path.replace("%20", " "))) == KEY_ID


def test_header_values_are_signed_with_single_spaces():
    assert check(signed(headers={"X-Amz-Note": "two   spaces "})) == KEY_ID


def test_a_tampered_body_is_refused():
    assert refusal_of(changed(signed(), body=b'{"a": 1}')) == "InvalidSignatureException"


def test_a_tampered_target_is_refused():
    request = signed()
    headers = request.headers | {"x-amz-target": "MTurkRequesterServiceV20170117.DeleteHIT"}
    assert refusal_of(changed(request, headers=headers)) == "InvalidSignatureException"


def test_another_path_or_host_or_query_is_refused():
    request = signed()
    elsewhere = request.headers | {"host": "elsewhere.example"}
    assert refusal_of(changed(request, path="/other")) == "InvalidSignatureException"
    assert refusal_of(changed(request, query_string="a=1")) == "InvalidSignatureException"
    assert refusal_of(changed(request, headers=elsewhere)) == "InvalidSignatureException"


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
    with pytest.raises(ProtocolError, match=f"'{name}' must be a 'SignedHeader'"):
        check(changed(request, headers=headers))


def test_a_wrong_secret_is_refused():
    assert refusal_of(signed(secret="another")) == "InvalidSignatureException"


def test_a_signature_for_another_service_is_refused():
    with pytest.raises(ProtocolError, match="correct service: 'mturk-requester'"):
        check(signed(service="s3"))


@pytest.mark.parametrize(
    ("skew", "text"), [(16, "Signature expired"), (-16, "Signature not yet current")]
)
def test_a_date_more_than_fifteen_minutes_off_is_refused(skew, text):
    request = signed()
    with pytest.raises(ProtocolError, match=text) as caught:
        check(request, now=datetime.now(UTC) + timedelta(minutes=skew))
    assert caught.value.code == "InvalidSignatureException"
    assert check(request, now=datetime.now(UTC) + timedelta(minutes=skew * 14 / 16)) == KEY_ID


def test_a_date_that_is_not_the_credentials_is_refused():
    request = signed()
    headers = request.headers | {"x-amz-date": "20010101T000000Z"}
    assert refusal_of(changed(request, headers=headers)) == "InvalidSignatureException"


@pytest.mark.parametrize("text", ["", "20261332T000000Z", "today"])
def test_a_request_without_a_readable_date_is_incomplete(text):
    request = signed()
    headers = request.headers | {"x-amz-date": text}
    assert refusal_of(changed(request, headers=headers)) == "IncompleteSignatureException"


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
    request = signed()
    headers = request.headers | {"authorization": header}
    expected = code or "IncompleteSignatureException"
    assert refusal_of(changed(request, headers=headers)) == expected


def test_a_session_token_is_refused_because_none_is_ever_issued():
    request = signed(headers={"X-Amz-Security-Token": "token"})
    assert refusal_of(request) == "UnrecognizedClientException"


def test_an_unknown_key_gets_amazons_error(db):
    client = in_process_client({"access_key_id": KEY_ID, "secret_access_key": SECRET})
    with pytest.raises(ClientError) as caught:
        client.get_account_balance()
    assert caught.value.response["Error"] == {
        "Code": "UnrecognizedClientException",
        "Message": "The security token included in the request is invalid.",
    }


def test_a_key_that_was_ended_is_unknown(keys, mturk):
    mturk.get_account_balance()
    AccessKey.objects.filter(access_key_id=keys["access_key_id"]).update(revoked_at=clock.now())
    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        mturk.get_account_balance()


def test_a_key_does_not_open_with_another_keys_secret(make_keys):
    ours, theirs = make_keys("Ours"), make_keys("Theirs")
    client = in_process_client(ours | {"secret_access_key": theirs["secret_access_key"]})
    with pytest.raises(ClientError, match="InvalidSignatureException"):
        client.get_account_balance()

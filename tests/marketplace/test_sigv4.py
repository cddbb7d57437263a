"""Signatures by botocore; the API's host names, Amazon's names, and bodies in chunks."""

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.test import Client

from marketplace import clock, exceptions
from marketplace.api.authentication import AMAZON_HOSTS, SIGNED_HOST, ReceivedRequest, authenticate
from marketplace.api.dispatch import SERVICE_TARGET
from marketplace.models import AccessKey
from tests.boto_clients import in_process_client, network_client, send_in_process
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
    received = {name.lower(): value for name, value in request.prepare().headers.items()}
    path, _, query = path.partition("?")
    return ReceivedRequest("POST", path, query, received | {"host": "127.0.0.1:8000"}, body)


def changed(request, **changes):
    values = {name: getattr(request, name) for name in request.__dataclass_fields__}
    return ReceivedRequest(**values | changes)


def check(request, now=None):
    """Of a request that comes in at a time, or now: hours after this file was read."""
    authenticate(request, secret_for={KEY_ID: SECRET}.get, now=now or datetime.now(UTC))


def refusal_of(request, now=None):
    with refused(exceptions.ProtocolError) as caught:
        check(request, now=now)
    return caught.value.code


def with_header(request, name, value):
    return changed(request, headers=request.headers | {name: value})


@pytest.mark.parametrize(
    "path", ["/", "/requester", "/requester/", "/a%20b/requester", "/requester?b=2&a=1%2F2&a="]
)
def test_what_botocore_signs_is_accepted(path):
    request = signed(path=path)
    check(changed(request, path=request.path.replace("%20", " ")))


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
    with refused(exceptions.ProtocolError, "InvalidSignatureException") as caught:
        check(changed(request, headers=headers))
    assert f"'{name}'" in str(caught.value)


@pytest.mark.parametrize("skew", [16, -16])
def test_a_date_more_than_fifteen_minutes_off_is_refused(skew):
    request = signed()
    wrong = refusal_of(request, now=datetime.now(UTC) + timedelta(minutes=skew))
    assert wrong == "InvalidSignatureException"
    check(request, now=datetime.now(UTC) + timedelta(minutes=skew * 14 / 16))


@pytest.mark.parametrize("text", ["", "20261332T000000Z", "today"])
def test_a_request_without_a_readable_date_is_incomplete(text):
    assert refusal_of(with_header(signed(), "x-amz-date", text)) == "IncompleteSignatureException"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "MissingAuthenticationTokenException"),
        ("Basic YTpi", "IncompleteSignatureException"),
        ("AWS4-HMAC-SHA256", "IncompleteSignatureException"),
        (
            "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=c",
            "IncompleteSignatureException",
        ),
    ],
)
def test_a_broken_authorization_header_is_refused(header, code):
    assert refusal_of(with_header(signed(), "authorization", header)) == code


def test_spaces_are_signed_as_one_and_a_session_token_or_another_service_refused():
    check(signed(headers={"X-Amz-Note": "two   spaces "}))
    request = signed(headers={"X-Amz-Security-Token": "token"})
    assert refusal_of(request) == "UnrecognizedClientException"
    with refused(exceptions.ProtocolError, "InvalidSignatureException") as caught:
        check(signed(service="s3"))
    assert "'mturk-requester'" in str(caught.value)


def test_a_key_that_is_unknown_or_was_ended_or_anothers_opens_nothing(keys, mturk, db, make_keys):
    mturk.get_account_balance()
    AccessKey.objects.filter(access_key_id=keys["access_key_id"]).update(revoked_at=clock.now())
    assert error_code(mturk.get_account_balance) == "UnrecognizedClientException"
    client = in_process_client({"access_key_id": KEY_ID, "secret_access_key": SECRET})
    assert error_code(client.get_account_balance) == "UnrecognizedClientException"
    ours, theirs = make_keys("Ours"), make_keys("Theirs")
    client = in_process_client(ours | {"secret_access_key": theirs["secret_access_key"]})
    assert error_code(client.get_account_balance) == "InvalidSignatureException"


API_HOST = "mturk.assay.example.org"
BALANCE = f"{SERVICE_TARGET}.GetAccountBalance"


@pytest.fixture(autouse=True)
def api_hosts(settings):
    settings.MARKETPLACE_API_HOSTS = [API_HOST]
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, API_HOST]


def client_at(url, keys):
    client = network_client(url, keys)
    client.meta.events.register("before-send.mturk.*", send_in_process)
    return client


def signed_headers(keys, url, *, service="mturk-requester", target=BALANCE, body=b"{}"):
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target}
    request = AWSRequest("POST", url, headers, body)
    credentials = Credentials(keys["access_key_id"], keys["secret_access_key"])
    SigV4Auth(credentials, service, "us-east-1").add_auth(request)
    return dict(request.headers)


def post(path, headers, *, host="testserver"):
    return Client().generic(
        "POST",
        path,
        b"{}",
        content_type="application/x-amz-json-1.1",
        headers={name: value for name, value in headers.items() if name != "Content-Type"}
        | {"Host": host},
    )


def error_of(answer):
    assert answer.headers["Content-Type"] == "application/x-amz-json-1.1"
    return json.loads(answer.content)["__type"]


@pytest.mark.parametrize("url", [f"https://{API_HOST}", f"http://{API_HOST}:8000/"])
def test_the_api_is_at_the_root_of_its_own_host_names(keys, url):
    assert client_at(url, keys).get_account_balance()["AvailableBalance"] == "100.00"


@pytest.mark.parametrize("path", ["/", "/worker/", "/requester", "/healthz", "/static/assay.css"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT"])
def test_no_page_is_there(path, method):
    answer = Client().generic(method, path, headers={"Host": API_HOST})
    assert answer.status_code == 404
    assert method == "HEAD" or error_of(answer) == "UnknownOperationException"


def test_a_form_posted_there_is_refused_in_json():
    answer = Client(enforce_csrf_checks=True).post(
        "/worker/login/", {"username": "ada"}, headers={"Host": API_HOST}
    )
    assert (answer.status_code, error_of(answer)) == (404, "UnknownOperationException")
    answer = Client(enforce_csrf_checks=True).post("/", {"x": "y"}, headers={"Host": API_HOST})
    assert (answer.status_code, error_of(answer)) == (400, "MissingAuthenticationTokenException")


def test_https_is_required_there_where_the_site_has_it_and_hsts_is_not_sent(keys, settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 3600
    headers = signed_headers(keys, f"https://{API_HOST}/")
    plain = post("/", headers, host=API_HOST)
    assert (plain.status_code, error_of(plain)) == (403, "AccessDeniedException")
    secure = Client().generic(
        "POST",
        "/",
        b"{}",
        content_type=headers.pop("Content-Type"),
        headers=headers | {"Host": API_HOST},
        secure=True,
    )
    assert secure.status_code == 200
    assert "Strict-Transport-Security" not in secure.headers
    assert "Strict-Transport-Security" in Client().get("/worker/login/", secure=True).headers


@pytest.mark.parametrize("host", AMAZON_HOSTS)
def test_what_was_signed_for_amazons_name_is_accepted_where_the_request_says_so(keys, host):
    answer = post("/requester", signed_headers(keys, f"https://{host}/") | {SIGNED_HOST: host})
    assert answer.status_code == 200
    assert json.loads(answer.content)["AvailableBalance"] == "100.00"


@pytest.mark.parametrize(
    ("signed_for", "claimed"),
    [
        (AMAZON_HOSTS[0], AMAZON_HOSTS[1]),
        (AMAZON_HOSTS[0], None),
        ("testserver", AMAZON_HOSTS[0]),
        ("evil.example.org", "evil.example.org"),
        ("s3.us-east-1.amazonaws.com", "s3.us-east-1.amazonaws.com"),
        (AMAZON_HOSTS[0], f"{AMAZON_HOSTS[0]},{AMAZON_HOSTS[0]}"),
        (AMAZON_HOSTS[0], ""),
    ],
)
def test_a_name_that_was_not_signed_or_is_not_amazons_is_refused(keys, signed_for, claimed):
    headers = signed_headers(keys, f"https://{signed_for}/")
    if claimed is not None:
        headers[SIGNED_HOST] = claimed
    answer = post("/requester", headers)
    assert (answer.status_code, error_of(answer)) == (400, "InvalidSignatureException")


def test_only_the_requester_api_and_its_root_are_signed_under_amazons_names(keys):
    host = {SIGNED_HOST: AMAZON_HOSTS[0]}
    for signed in (
        signed_headers(keys, f"https://{AMAZON_HOSTS[0]}/requester"),
        signed_headers(keys, f"https://{AMAZON_HOSTS[0]}/", service="sqs"),
    ):
        assert error_of(post("/requester", signed | host)) == "InvalidSignatureException"
    headers = signed_headers(keys, f"https://{AMAZON_HOSTS[0]}/") | host
    assert post("/marketplace-api/v1/statement", headers).status_code == 403
    headers = signed_headers(keys, "http://testserver/")
    assert post("/", headers).status_code in (302, 403)
    assert Client().get("/worker/login/").status_code == 200


def send_in_chunks(keys: dict[str, str], body: bytes) -> tuple[int, str]:
    """What a server that has put the chunks together hands on: an input without a length."""
    url = "http://127.0.0.1:8000/requester"
    headers = signed_headers(keys, url, target=f"{SERVICE_TARGET}.GetHIT", body=body)
    response = Client().generic(
        "POST",
        "/requester",
        headers=headers | {"Host": "127.0.0.1:8000", "Transfer-Encoding": "chunked"},
        **{"CONTENT_LENGTH": "", "wsgi.input": io.BytesIO(body), "wsgi.input_terminated": True},
    )
    return response.status_code, json.loads(response.content)["__type"]


def test_a_body_in_chunks_is_read_and_bounded(keys, settings):
    assert send_in_chunks(keys, b'{"HITId": "NONE"}') == (400, "RequestError")
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 64
    body = b'{"HITId": "' + b"A" * 64 + b'"}'
    assert send_in_chunks(keys, body) == (413, "RequestEntityTooLargeException")

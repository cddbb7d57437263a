"""The API under host names of its own, and requests that were signed for Amazon's names."""

import json

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.test import Client

from marketplace.api.dispatch import SERVICE_TARGET
from marketplace.api.signed_hosts import AMAZON_HOSTS, SIGNED_HOST
from tests.boto_clients import network_client, send_in_process
from tests.marketplace.conformance.refusals import error_code, turk_code

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


def signed_headers(keys, url, *, service="mturk-requester"):
    """What boto3 sends to that address, less what names the host it goes to."""
    request = AWSRequest(
        "POST", url, {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": BALANCE}, b"{}"
    )
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


def test_an_error_there_is_what_clients_read(keys):
    client = client_at(f"https://{API_HOST}", keys)
    assert turk_code(client.get_hit, HITId="XYZ") == "HITDoesNotExist"
    wrong = client_at(f"https://{API_HOST}", keys | {"secret_access_key": "x"})
    assert error_code(wrong.get_account_balance) == "InvalidSignatureException"


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
    page = Client().get("/worker/login/", secure=True)
    assert "Strict-Transport-Security" in page.headers


def test_other_names_have_the_pages_and_no_api_at_the_root(keys):
    headers = signed_headers(keys, "http://testserver/")
    assert post("/", headers).status_code in (302, 403)
    assert Client().get("/worker/login/").status_code == 200


@pytest.mark.parametrize("host", AMAZON_HOSTS)
def test_what_was_signed_for_amazons_name_is_accepted_where_the_request_says_so(keys, host):
    headers = signed_headers(keys, f"https://{host}/") | {SIGNED_HOST: host}
    answer = post("/requester", headers)
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

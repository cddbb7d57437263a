"""An ordinary boto3 client, an ordinary socket; and proxies that send bodies in chunks."""

import io
import json

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.test import Client

from marketplace.api.dispatch import SERVICE_TARGET
from tests.boto_clients import network_client
from tests.marketplace.conformance.refusals import error_code
from tests.marketplace.conftest import HIT


@pytest.mark.parametrize("path", ["/requester", "/requester/"])
def test_an_unmodified_client_works_over_the_network(live_server, keys, path):
    client = network_client(live_server.url + path, keys)
    hits = [client.create_hit(**HIT)["HIT"] for _ in range(3)]
    assert client.get_hit(HITId=hits[0]["HITId"])["HIT"] == hits[0]
    pages = client.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": 2})
    assert [hit["HITId"] for page in pages for hit in page["HITs"]] == [
        hit["HITId"] for hit in hits[::-1]
    ]


def test_a_script_that_names_no_endpoint_needs_only_its_environment(live_server, keys, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_MTURK", f"{live_server.url}/requester")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["secret_access_key"])
    client = boto3.session.Session().client("mturk", region_name="us-east-1")
    assert client.get_account_balance()["AvailableBalance"] == "100.00"


def test_a_wrong_secret_is_refused_over_the_network(live_server, keys):
    client = network_client(f"{live_server.url}/requester", keys | {"secret_access_key": "x"})
    assert error_code(client.list_hits) == "InvalidSignatureException"


def signed_headers(keys: dict[str, str], url: str, body: bytes) -> dict[str, str]:
    request = AWSRequest(
        "POST",
        url,
        {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": f"{SERVICE_TARGET}.GetHIT"},
        body,
    )
    credentials = Credentials(keys["access_key_id"], keys["secret_access_key"])
    SigV4Auth(credentials, "mturk-requester", "us-east-1").add_auth(request)
    return dict(request.headers)


def send_in_chunks(keys: dict[str, str], body: bytes) -> tuple[int, str]:
    """What a server that has put the chunks together hands on: an input without a length."""
    url = "http://127.0.0.1:8000/requester"
    headers = signed_headers(keys, url, body)
    response = Client().generic(
        "POST",
        "/requester",
        headers=headers | {"Host": "127.0.0.1:8000", "Transfer-Encoding": "chunked"},
        **{"CONTENT_LENGTH": "", "wsgi.input": io.BytesIO(body), "wsgi.input_terminated": True},
    )
    return response.status_code, json.loads(response.content)["__type"]


def test_a_body_in_chunks_is_read(keys):
    assert send_in_chunks(keys, b'{"HITId": "NONE"}') == (400, "RequestError")


def test_a_body_in_chunks_is_bounded_too(keys, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 64
    body = b'{"HITId": "' + b"A" * 64 + b'"}'
    assert send_in_chunks(keys, body) == (413, "RequestEntityTooLargeException")

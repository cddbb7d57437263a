"""Texts that not every database keeps, in requests to what Assay has beside the Requester API."""

import json

import pytest
from django.test import Client

from hits.endpoints import AccessKey
from hits.requester_api import signed_headers

pytestmark = pytest.mark.django_db
PREFIX = {"annotation_prefix": "{text}"}
REQUESTS = [
    ("statement", PREFIX),
    ("devices", PREFIX),
    ("shared-traits", PREFIX),
    ("recruiting", PREFIX),
    ("appeals/answer", {"assignment_id": "{text}", "answer": "Yes."}),
    ("appeals/answer", {"assignment_id": "3A", "answer": "{text}"}),
    ("recruiting/draft", {"excluded": ["{text}"]}),
    ("webhook-secret", {"{text}": True}),
]


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"], ids=["nul", "half a pair"])
def test_a_text_that_no_database_keeps_is_refused(keys, text):
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])
    for path, content in REQUESTS:
        address = f"/marketplace-api/v1/{path}"
        body = json.dumps(content).replace("{text}", json.dumps(text)[1:-1]).encode()
        signed = signed_headers(key, f"http://testserver{address}", body) | {"host": "testserver"}
        answer = Client().post(address, body, content_type="application/json", headers=signed)
        assert answer.status_code == 400, path
        assert answer.json()["error"]

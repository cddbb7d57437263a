from hashlib import sha256

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Picture

pytestmark = pytest.mark.django_db

DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture
def picture():
    digest = sha256(DRAWING).hexdigest()
    return Picture.objects.create(sha256=digest, media_type="image/svg+xml", content=DRAWING)


def fetch(digest, method="get"):
    return getattr(Client(), method)(reverse("console:picture", args=[digest]))


def test_anyone_who_knows_its_hash_sees_a_picture_that_runs_nothing_and_never_changes(picture):
    answer = fetch(picture.sha256)
    assert (answer.status_code, answer.content) == (200, DRAWING)
    assert answer["Content-Type"] == "image/svg+xml"
    policy = answer["Content-Security-Policy"].split("; ")
    assert {"sandbox", "default-src 'none'"} <= set(policy)
    assert not any("script" in rule for rule in policy)
    assert answer["X-Content-Type-Options"] == "nosniff"
    rules = {rule.strip() for rule in answer["Cache-Control"].split(",")}
    assert rules == {"public", "max-age=31536000", "immutable"}
    assert "Set-Cookie" not in answer
    # A worker's page of another origin may show it.
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert fetch(picture.sha256, "head").status_code == 200
    for method in ("post", "put", "delete"):
        assert fetch(picture.sha256, method).status_code == 405


@pytest.mark.parametrize("digest", ["0" * 64, "nothing", "..%2Fsettings"])
def test_an_unknown_picture_is_not_found(picture, digest):
    assert fetch(digest).status_code == 404

"""Pages and links written for Mechanical Turk, used here unchanged."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from marketplace import clock
from marketplace.documents.html import begin_with, send_here
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.models import Assignment, Hit
from tests.codes import message_codes
from tests.marketplace.conftest import HIT, HTML_QUESTION
from tests.marketplace.test_worker_site import text_of

HERE = {"external_hit": "/a.js", "crowd_elements": "/b.js", "external_submit": "/submit"}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("https://s3.amazonaws.com/mturk-public/externalHIT_v1.js", "/a.js"),
        ("http://s3.amazonaws.com/mturk-public/externalHIT_v1.js", "/a.js"),
        ("//s3.amazonaws.com/mturk-public/externalHIT_v1.js", "/a.js"),
        ("https://mturk-public.s3.amazonaws.com/externalHIT_v1.js", "/a.js"),
        ("https://assets.crowd.aws/crowd-html-elements.js", "/b.js"),
        ("https://www.mturk.com/mturk/externalSubmit", "/submit"),
        ("https://workersandbox.mturk.com/mturk/externalSubmit", "/submit"),
    ],
)
def test_amazons_addresses_lead_here(theirs, ours):
    page = '<script src="{0}"></script><form action="{0}"></form>'
    assert send_here(page.format(theirs), **HERE) == page.format(ours)


@pytest.mark.parametrize(
    "address",
    [
        "https://s3.amazonaws.com/my-bucket/externalHIT_v1.js",
        "https://assets.crowd.aws/other.js",
        "https://www.mturk.com.example/mturk/externalSubmit",
        "https://study.example/mturk/externalSubmit",
    ],
)
def test_other_addresses_are_left_alone(address):
    assert send_here(address, **HERE) == address


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html>{}<html>",
        "\n <!-- made by a tool -->\n<!doctype html>{}\n<p>",
        "\ufeff<!doctype html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN'>{}<p>",
        "{}<form>",
        "{}Just text <!doctype html>",
    ],
)
def test_a_script_of_ours_runs_first_and_leaves_the_document_type_alone(page):
    script = '<script src="/a.js?b&amp;c"></script>'
    assert begin_with(page.format(""), script="/a.js?b&c") == page.format(script)


def test_the_frame_loads_our_scripts_from_our_own_origin(mturk, ada):
    scripts = (
        '<script src="https://s3.amazonaws.com/mturk-public/externalHIT_v1.js"></script>'
        '<script src="https://assets.crowd.aws/crowd-html-elements.js"></script>'
    )
    question = HTML_QUESTION.replace("<title>Task</title>", f"<title>Task</title>{scripts}")
    hit = mturk.create_hit(**HIT | {"Question": question})["HIT"]["HITId"]
    page = text_of(ada.get(f"/worker/frame/preview/{hit}/"))
    for name in ("externalHIT_v1.js", "crowd-elements.js"):
        assert f'src="http://testserver/static/marketplace/{name}"' in page
        assert finders.find(f"marketplace/{name}")


@pytest.fixture
def hits(mturk):
    return [mturk.create_hit(**HIT)["HIT"] for _ in range(2)]


def test_links_to_a_group_or_a_hit_lead_to_it_after_signing_in(ada, hits):
    group, hit = f"/worker/groups/{hits[0]['HITTypeId']}/", f"/worker/hits/{hits[1]['HITId']}/"
    for link, page in (
        (f"/mturk/preview?groupId={hits[0]['HITTypeId']}", group),
        (f"/mturk/preview?groupId={hits[0]['HITGroupId']}", group),
        (f"/projects/{hits[0]['HITTypeId']}/tasks", group),
        (f"/projects/{hits[0]['HITGroupId']}/tasks", group),
        (f"/mturk/preview?hitId={hits[1]['HITId']}", hit),
    ):
        assert ada.get(link).headers["Location"] == page
        anonymous = urlsplit(Client().get(link).headers["Location"])
        assert anonymous.path == "/worker/login/"
        assert parse_qs(anonymous.query) == {"next": [link]}


def test_previewandaccept_accepts_and_looking_ahead_does_not(ada, worker, hits):
    path = f"/mturk/previewandaccept?groupId={hits[0]['HITGroupId']}"
    assert ada.head(path).status_code == 405
    assert not Assignment.objects.exists()
    response = ada.get(path)
    held = Assignment.objects.get()
    assert response.headers["Location"] == f"/worker/assignments/{held.public_id}/"
    assert (held.worker, held.hit.public_id) == (worker, hits[0]["HITId"])


@pytest.mark.parametrize(
    "path",
    [
        "/mturk/preview",
        "/mturk/preview?groupId=NONE",
        "/mturk/previewandaccept?groupId=%00",
        "/mturk/preview?hitId=%00",
    ],
)
def test_a_link_to_nothing_is_not_found(ada, path):
    assert ada.get(path).status_code == 404


def test_the_next_page_shows_a_hit_and_confirms_what_was_submitted(ada, worker, hits):
    assignment = accept_hit(worker=worker, hit=Hit.objects.get(public_id=hits[0]["HITId"]))
    group = f"/worker/groups/{hits[0]['HITTypeId']}/"
    path = f"{group}next/"
    assert ada.get(path).headers["Location"] == group
    assert Assignment.objects.count() == 1
    assert "receipt" not in message_codes(ada.get(path, follow=True))
    submit_assignment(public_id=assignment.public_id, fields=[("rating", ["4"])])
    assert "receipt" in message_codes(ada.get(path, follow=True))
    clock.advance(timedelta(minutes=2))
    assert "receipt" not in message_codes(ada.get(path, follow=True))


def test_auto_accept_goes_on_until_nothing_is_left(ada, hits):
    group = f"/worker/groups/{hits[0]['HITTypeId']}/"
    ada.post(group + "accept/", {"auto_accept": "on"})
    first = Assignment.objects.get()
    second = ada.get(group + "next/").headers["Location"]
    assert second == f"/worker/assignments/{Assignment.objects.exclude(pk=first.pk).get()}/"
    assert is_ticked(ada.get(second))
    response = ada.get(group + "next/", follow=True)
    assert response.redirect_chain[-1] == ("/worker/", 302)
    assert message_codes(response) == ["none_left"]


def test_auto_accept_can_be_switched_off_while_working(ada, hits):
    group = f"/worker/groups/{hits[0]['HITTypeId']}/"
    ada.post(group + "accept/", {"auto_accept": "on"})
    work = f"/worker/assignments/{Assignment.objects.get()}/"
    assert is_ticked(ada.get(work))
    assert ada.post(work + "auto-accept/").headers["Location"] == work
    assert not is_ticked(ada.get(work))
    assert ada.get(group + "next/").headers["Location"] == group


def is_ticked(response):
    return 'name="auto_accept" checked' in text_of(response)

"""Pages and links written for Mechanical Turk, used here unchanged."""

from datetime import timedelta

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from marketplace import clock
from marketplace.documents.html import begin_with, send_here
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.models import Assignment, Hit
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


@pytest.mark.parametrize("key", ["HITTypeId", "HITGroupId"])
@pytest.mark.parametrize("link", ["/mturk/preview?groupId={}", "/projects/{}/tasks"])
def test_links_to_a_group_lead_to_it(ada, hits, key, link):
    response = ada.get(link.format(hits[0][key]))
    assert response.headers["Location"] == f"/worker/groups/{hits[0]['HITTypeId']}/"


def test_a_link_to_a_hit_leads_to_it(ada, hits):
    response = ada.get(f"/mturk/preview?hitId={hits[1]['HITId']}")
    assert response.headers["Location"] == f"/worker/hits/{hits[1]['HITId']}/"


def test_previewandaccept_accepts(ada, worker, hits):
    response = ada.get(f"/mturk/previewandaccept?groupId={hits[0]['HITGroupId']}")
    held = Assignment.objects.get()
    assert response.headers["Location"] == f"/worker/assignments/{held.public_id}/"
    assert (held.worker, held.hit.public_id) == (worker, hits[0]["HITId"])


def test_looking_ahead_accepts_nothing(ada, hits):
    path = f"/mturk/previewandaccept?groupId={hits[0]['HITGroupId']}"
    assert ada.head(path).status_code == 405
    assert not Assignment.objects.exists()


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


def test_links_ask_to_sign_in_first_and_remember_where_to(worker, hits):
    path = f"/mturk/preview?groupId={hits[0]['HITGroupId']}"
    response = Client().get(path)
    assert response.headers["Location"].startswith("/worker/login/?next=/mturk/preview%3FgroupId")


def test_without_auto_accept_the_next_hit_is_shown_first(ada, worker, hits):
    accept_hit(worker=worker, hit=Hit.objects.get(public_id=hits[0]["HITId"]))
    path = f"/worker/groups/{hits[0]['HITTypeId']}/"
    assert ada.get(path + "next/").headers["Location"] == path
    assert Assignment.objects.count() == 1


def test_the_next_page_confirms_what_was_submitted_a_moment_ago(ada, worker, hits):
    assignment = accept_hit(worker=worker, hit=Hit.objects.get(public_id=hits[0]["HITId"]))
    path = f"/worker/groups/{hits[0]['HITTypeId']}/next/"
    assert "were submitted" not in text_of(ada.get(path, follow=True))
    submit_assignment(public_id=assignment.public_id, fields=[("rating", ["4"])])
    assert "were submitted" in text_of(ada.get(path, follow=True))
    clock.advance(timedelta(minutes=2))
    assert "were submitted" not in text_of(ada.get(path, follow=True))


def test_auto_accept_goes_on_until_nothing_is_left(ada, hits):
    group = f"/worker/groups/{hits[0]['HITTypeId']}/"
    ada.post(group + "accept/", {"auto_accept": "on"})
    first = Assignment.objects.get()
    second = ada.get(group + "next/").headers["Location"]
    assert second == f"/worker/assignments/{Assignment.objects.exclude(pk=first.pk).get()}/"
    assert is_ticked(ada.get(second))
    response = ada.get(group + "next/", follow=True)
    assert response.redirect_chain[-1] == ("/worker/", 302)
    assert "are left for you" in text_of(response)


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

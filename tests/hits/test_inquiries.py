"""Messages between workers and requesters, over the wire in both directions."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.teams import create_team
from annotation.access import give_to_team
from hits import connections, contacts
from hits.exceptions import DecisionRefused
from hits.models import Inquiry
from hits.sending import retry_refused
from marketplace.hits.assignments import accept_hit
from marketplace.models import Hit as MarketplaceHit, WorkerMessage
from tests.codes import message_codes, refused
from tests.hits.work import hit_on, published_batch
from work.execution import run_job
from work.tasks import request_job

QUESTION, ANSWER = "What counts as <fluent>?", "Errors of spelling do not matter."
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def batch(site, study, client):
    return published_batch(study, client)


def write(worker, hit, text=QUESTION):
    http = Client()
    http.force_login(worker.user)
    requester = WorkerMessage.requester.field.related_model.objects.get()
    address = reverse("marketplace:contact", args=[requester.public_id], query={"about": hit})
    return http, address, http.post(address, {"text": text})


def test_a_worker_asks_from_a_hit_and_reads_the_answer(batch, study, ann, bob):
    hit = hit_on(batch, "d1")
    http, address, sent = write(ann, hit.hit_id)
    assert "sent" in message_codes(http.get(sent.url))
    for text in ("", " ", "x" * 4097):
        assert write(ann, hit.hit_id, text)[2].status_code == 200
    assert contacts.connections_with_workers() == [batch.connection]
    run_job(request_job(kind="collect_appeals").pk)
    row = Inquiry.objects.of(study).unanswered().get()
    facts = (row.hit, row.text, row.worker.worker_id, row.is_accepted)
    assert facts == (hit, QUESTION, ann.worker_id, False)
    assert contacts.fetch_inquiries(connection=batch.connection) == 0
    # The requester answers from Review.
    rosa = User.objects.create_user("rosa")
    give_to_team(study=study, team=create_team(name="Lab", owner=rosa), actor=None)
    desk = Client()
    desk.force_login(rosa)
    path = reverse("console:review-messages", args=[study.slug])
    listed = desk.get(path).content.decode()
    assert "What counts as &lt;fluent&gt;?" in listed
    assert 'data-state="preview"' in listed
    for pages in (reverse("console:review", args=[study.slug]), reverse("console:studies")):
        assert path in desk.get(pages).content.decode()
    assert desk.post(f"{path}{row.pk}/", {"answer": " "}).status_code == 302
    assert desk.post(f"{path}{row.pk}/", {"answer": ANSWER}).status_code == 302
    with refused(DecisionRefused, "answered_already"):
        contacts.answer_inquiry(inquiry=row, answer="No.", actor=rosa, study=study)
    assert (contacts.send_replies(study=study), contacts.send_replies(study=study)) == (1, 0)
    assert ANSWER in desk.get(path).content.decode()
    assert [each.text for each in http.get(address).context["thread"]] == [ANSWER, QUESTION]
    assert ANSWER in http.get("/worker/messages/").content.decode()
    # Nobody else reads any of it.
    http.force_login(bob.user)
    assert list(http.get(address).context["thread"]) == []


def test_only_messages_about_hits_of_the_connection_are_kept(batch, study, ann):
    hit = hit_on(batch, "d0")
    accept_hit(worker=ann, hit=MarketplaceHit.objects.get(public_id=hit.hit_id))
    write(ann, hit.hit_id)
    connection = batch.connection
    records = connections.post(connection, "/messages", {})["messages"]
    assert [(each["hit_id"], each["is_accepted"]) for each in records] == [(hit.hit_id, True)]
    later = connections.post(connection, "/messages", {"after": records[0]["number"]})
    assert later == {"messages": []}
    batch.hits.update(hit_id="3ANOTHER")
    assert contacts.fetch_inquiries(connection=connection) == 0
    assert not Inquiry.objects.exists()


def test_a_refused_answer_says_why_and_can_be_tried_again(batch, study, ann):
    write(ann, hit_on(batch, "d0").hit_id)
    contacts.fetch_inquiries(connection=batch.connection)
    WorkerMessage.objects.all().delete()  # as if the account was erased
    row, rosa = Inquiry.objects.get(), User.objects.create_user("rosa")
    contacts.answer_inquiry(inquiry=row, answer=ANSWER, actor=rosa, study=study)
    assert contacts.send_replies(study=study) == 0
    row.refresh_from_db()
    assert row.problem
    write(ann, hit_on(batch, "d0").hit_id)
    assert retry_refused(study=study) == 1
    assert contacts.send_replies(study=study) == 1

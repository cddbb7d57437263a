"""A worker appeals a rejection on the worker site; the requester reads and answers it."""

import pytest
from django.test import Client

from accounts.models import User
from hits.appeals import answer_appeal, fetch_appeals, send_answers
from hits.collect import collect_batch
from hits.exceptions import DecisionRefused
from hits.models import Appeal, Assignment
from hits.review import REJECT, decide, send_decisions
from tests.hits.work import hand_in, hit_on, published

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rejected(live_server, keys, settings, study, client, ann):
    """Ann's assignment that was rejected."""
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = keys["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys["secret_access_key"]
    batch = published(study, client)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    collect_batch(batch=batch, client=client)
    decide(assignments=Assignment.objects.all(), decision=REJECT, feedback="Too fast.")
    send_decisions(batch=batch, client=client)
    return Assignment.objects.select_related("hit__batch__connection").get()


def appeal(http, worker, assignment_id, reason="I read it twice."):
    http.force_login(worker.user)
    address = f"/worker/assignments/{assignment_id}/appeal/"
    return http.post(address, {"reason": reason})


def test_an_appeal_is_made_once_read_and_answered(rejected, study, live_server, ann):
    http, connection = Client(), rejected.hit.batch.connection
    assert appeal(http, ann, rejected.assignment_id).status_code == 302
    assert appeal(http, ann, rejected.assignment_id).status_code == 200
    assert fetch_appeals(connection=connection) == 1
    assert fetch_appeals(connection=connection) == 0
    stored, rosa = Appeal.objects.get(), User.objects.create_user("rosa")
    assert stored.reason == "I read it twice."
    answer_appeal(appeal=stored, answer="We looked again.", actor=rosa, study=study)
    with pytest.raises(DecisionRefused, match="already"):
        answer_appeal(appeal=stored, answer="No.", actor=rosa, study=study)
    assert send_answers(study=study) == 1
    assert send_answers(study=study) == 0
    page = http.get("/worker/dashboard/").content.decode()
    assert "We looked again." in page
    assert "I read it twice." in page


def test_only_the_worker_whose_work_it_is_appeals(rejected, bob, live_server):
    assert appeal(Client(), bob, rejected.assignment_id).status_code == 404


@pytest.mark.parametrize("reason", ["", "x" * 4097])
def test_an_appeal_says_why(rejected, ann, live_server, reason):
    assert appeal(Client(), ann, rejected.assignment_id, reason).status_code == 200
    assert fetch_appeals(connection=rejected.hit.batch.connection) == 0

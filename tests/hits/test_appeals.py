from unittest.mock import patch

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from hits import collect, connections, exceptions, models, sending
from hits.contacts import answer_appeal, connections_with_rejections, fetch_appeals, send_answers
from hits.decisions import REJECT, decide, send_decisions
from marketplace.models import Appeal as AppealThere
from tests.codes import refused
from tests.console.filled import add_assignment
from tests.hits import cutting_proxy as cuts, work
from tests.hits.cutting_proxy import cutting_proxy
from tests.hits.foreign_site import foreign_site
from work import execution, tasks

REASON, ANSWER = "I read it twice.", "We looked again."
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def rejection(site, study, client, ann):
    batch = work.published_batch(study, client)
    work.hand_in(ann, work.hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    collect.collect_batch(batch=batch, client=client)
    decide(assignments=models.Assignment.objects.all(), decision=REJECT, feedback="Too fast.")
    send_decisions(batch=batch, client=client)
    return models.Assignment.objects.select_related("hit__batch__connection").get()


def appeal(http, worker, assignment_id, reason=REASON):
    http.force_login(worker.user)
    return http.post(f"/worker/assignments/{assignment_id}/appeal/", {"reason": reason})


def test_an_appeal_is_made_once_read_and_answered(rejection, study, live_server, ann, bob):
    http, connection = Client(), rejection.hit.batch.connection
    assert appeal(Client(), bob, rejection.assignment_id).status_code == 404
    for reason in ("", "x" * 4097):
        assert appeal(http, ann, rejection.assignment_id, reason).status_code == 200
    assert fetch_appeals(connection=connection) == 0
    assert appeal(http, ann, rejection.assignment_id).status_code == 302
    assert appeal(http, ann, rejection.assignment_id).status_code == 200
    assert (fetch_appeals(connection=connection), fetch_appeals(connection=connection)) == (1, 0)
    row, rosa = models.Appeal.objects.get(), User.objects.create_user("rosa")
    assert row.reason == REASON
    answer_appeal(appeal=row, answer=ANSWER, actor=rosa, study=study)
    with refused(exceptions.DecisionRefused, "answered_already"):
        answer_appeal(appeal=row, answer="No.", actor=rosa, study=study)
    assert (send_answers(study=study), send_answers(study=study)) == (1, 0)
    page = http.get("/worker/dashboard/").content.decode()
    assert all(text in page for text in (REASON, ANSWER))


def test_appeals_come_by_themselves_though_nothing_else_is_awaited(rejection, ann, study):
    """A connection that does not answer holds up no other."""
    appeal(Client(), ann, rejection.assignment_id)
    away = models.Connection.objects.create(
        name="Away", marketplace="away.example.org", endpoint_url="http://127.0.0.1:9/requester"
    )
    batch = models.Batch.objects.create(
        study=study, connection=away, title="Judge", description="Judge.", reward_usd="0.10", part=9
    )
    hit = models.Hit.objects.create(batch=batch, item=study.items.first(), hit_id="3ELSEWHERE")
    models.Assignment.objects.filter(pk=add_assignment(hit).pk).update(
        status=models.Assignment.Status.REJECTED, submitted_at=timezone.now()
    )
    execution.run_job(tasks.request_job(kind="collect_appeals").pk)
    assert models.Appeal.objects.get().assignment == rejection
    assert connections_with_rejections() == [away]


LOSSES = {
    "half a body": cuts.half_a_body,
    "no body": cuts.no_body,
    "a cut line": cuts.a_cut_line,
    "a gateway's page": lambda head, body: (
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<h1>"
    ),
    "too many requests": lambda head, body: (
        b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    ),
}


@pytest.mark.parametrize("how", LOSSES.values(), ids=LOSSES)
def test_a_lost_answer_is_sent_until_it_arrives(rejection, study, settings, site, ann, how):
    assert appeal(Client(), ann, rejection.assignment_id).status_code == 302
    with cutting_proxy(site) as proxy, patch.object(connections, "PAUSES_SECONDS", (0, 0)):
        settings.MARKETPLACE_ENDPOINT_URL = f"{proxy.url}/requester"
        # What calls beside the Requester API name as their operation.
        proxy.cut("Assay", how, 1, 2)
        assert fetch_appeals(connection=rejection.hit.batch.connection) == 1
        row, rosa = models.Appeal.objects.get(), User.objects.create_user("rosa")
        answer_appeal(appeal=row, answer=ANSWER, actor=rosa, study=study)
        proxy.cut("Assay", how, 1, 2, 3)
        with pytest.raises(exceptions.MarketplaceUnreachable):
            send_answers(study=study)
        row.refresh_from_db()
        assert row.state == "intended"
        assert send_answers(study=study) == 1
    row.refresh_from_db()
    assert row.state == "confirmed"


@pytest.mark.parametrize("is_there", [False, True])
def test_an_answer_not_taken_says_why_and_is_sent_again(rejection, study, settings, ann, is_there):
    appeal(Client(), ann, rejection.assignment_id)
    fetch_appeals(connection=rejection.hit.batch.connection)
    row, rosa = models.Appeal.objects.get(), User.objects.create_user("rosa")
    answer_appeal(appeal=row, answer=ANSWER, actor=rosa, study=study)
    there = AppealThere.objects.all()
    if not is_there:
        endpoint = settings.MARKETPLACE_ENDPOINT_URL
        with foreign_site() as site:
            settings.MARKETPLACE_ENDPOINT_URL = site.endpoint_url
            assert send_answers(study=study) == 0
        settings.MARKETPLACE_ENDPOINT_URL = endpoint
    else:
        there.update(answer="No.")
        assert send_answers(study=study) == 0
        there.update(answer="")
    row.refresh_from_db()
    assert (row.state, bool(row.problem)) == ("refused", True)
    assert sending.retry_refused(study=study) == 1
    assert send_answers(study=study) == 1
    assert there.get().answer == ANSWER

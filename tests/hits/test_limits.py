import json
import time
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from botocore.config import Config

from annotation.study_facts import COLLECT_NEW, PUBLISH, REVIEW, request_study_job
from hits import calls, connections, decisions, endpoints, limits, publications
from hits.exceptions import MarketplaceSlow, MarketplaceUnreachable
from hits.jobs import APPLY_CHANGES
from hits.models import Assignment, Batch, Hit, Payment
from tests.annotation.studies import rating_study
from tests.codes import refused_naming
from tests.console.filled import add_assignment, add_batch
from tests.hits.foreign_site import connection_to, foreign_site
from work import execution, models, tasks

pytestmark = pytest.mark.django_db(transaction=True)

N = 6
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
LONG = HEAD % 400_000


def drip(head):
    def pieces(number):
        yield head
        for _each in range(200):
            time.sleep(0.02)
            yield b" "

    return pieces


@pytest.fixture
def site():
    with foreign_site() as site:
        yield site


@pytest.fixture
def connection(site, monkeypatch):
    once = Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 2})
    monkeypatch.setattr(endpoints, "PATIENCE", once)
    return connection_to(site, "Slow")


def call(connection, is_requester_api):
    if is_requester_api:
        connections.balance_usd(connections.client_of(connection))
    else:
        connections.post(connection, "/appeals", {})


@pytest.mark.parametrize("head", [LONG, b"HTTP/1.1 200 O"], ids=["a slow body", "a slow head"])
@pytest.mark.parametrize("is_requester_api", [True, False])
def test_an_answer_that_drips_ends_with_the_time_there_is(connection, site, head, is_requester_api):
    site.answers |= {"GetAccountBalance": drip(head), "/appeals": drip(head)}
    began = time.monotonic()
    with pytest.raises((MarketplaceSlow, MarketplaceUnreachable)), limits.call_time(0.2):
        call(connection, is_requester_api)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("is_requester_api", [True, False])
def test_an_answer_is_not_larger_than_it_may_be(connection, site, monkeypatch, is_requester_api):
    monkeypatch.setattr(limits, "MOST_BYTES", 10_000)
    monkeypatch.setattr(connections, "PAUSES_SECONDS", ())
    large = {"AvailableBalance": "1.00", "rest": "x" * 20_000}
    site.answers |= {"GetAccountBalance": large, "/appeals": large}
    with pytest.raises(MarketplaceUnreachable):
        call(connection, is_requester_api)


@pytest.mark.slow
def test_a_slow_marketplace_is_left_for_later_and_reported(connection, site, monkeypatch):
    monkeypatch.setattr("hits.jobs.PERIODIC_CALL_SECONDS", 0.5)
    batch = batch_at(connection, n_published=3)

    def list_of_none(number):
        time.sleep(0.3)
        return {"Assignments": []}

    site.answers["ListAssignmentsForHIT"] = list_of_none
    assert execution.run_job(request_study_job(study=batch.study, kind=COLLECT_NEW).pk) == "done"
    assert Hit.objects.of(batch).exclude(collected_at=None).count() in (1, 2)
    site.answers["ListAssignmentsForHIT"] = drip(LONG)
    assert execution.run_job(request_study_job(study=batch.study, kind=COLLECT_NEW).pk) == "failed"
    connection.refresh_from_db()
    assert connection.problem
    execution.run_job(tasks.request_job(kind="collect_all").pk)
    assert not models.Job.objects.of_kind(COLLECT_NEW).queued().exists()


def dripped(text, seconds=0.15):
    """An answer whose bytes come one by one, all of them just within the limit of a call."""
    yield HEAD % len(text)
    for letter in text:
        time.sleep(seconds / len(text))
        yield letter.encode()


class SlowMarketplace:
    def __init__(self, site):
        self.site, self.seconds = site, 0.15
        self.hits, self.max_assignments = {}, Counter()
        site.answers |= {
            "GetAccountBalance": {"AvailableBalance": "100.00"},
            "CreateHITType": {"HITTypeId": "3TYPE"},
            "CreateHITWithHITType": self.create_hit,
            "ListBonusPayments": self.list_bonuses,
            "GetHIT": self.get_hit,
            "CreateAdditionalAssignmentsForHIT": self.add_assignments,
            **dict.fromkeys(("ApproveAssignment", "SendBonus", "NotifyWorkers"), self.done),
        }

    def create_hit(self, number):
        token = self.site.requests[number - 1][1]["UniqueRequestToken"]
        hit_id = self.hits.setdefault(token, f"3HIT{len(self.hits)}")
        return dripped(f'{{"HIT": {{"HITId": "{hit_id}"}}}}', self.seconds)

    def get_hit(self, number):
        hit_id = self.site.requests[number - 1][1]["HITId"]
        there = {"HITId": hit_id, "HITStatus": "Assignable", "Expiration": 2e9}
        there["MaxAssignments"] = 3 + self.max_assignments[hit_id]
        return dripped(json.dumps({"HIT": there}), self.seconds)

    def add_assignments(self, number):
        content = self.site.requests[number - 1][1]
        self.max_assignments[content["HITId"]] += content["NumberOfAdditionalAssignments"]
        return dripped("{}", self.seconds)

    def list_bonuses(self, number):
        about = self.site.requests[number - 1][1]["AssignmentId"]
        sent = [one for operation, one in self.site.requests if operation == "SendBonus"]
        names = ("AssignmentId", "BonusAmount", "Reason")
        paid = [{name: one[name] for name in names} for one in sent if one[names[0]] == about]
        return dripped(json.dumps({"BonusPayments": paid}), self.seconds)

    def done(self, number):
        return dripped("{}", self.seconds)

    def subjects(self, operation, member):
        return Counter(one[member] for name, one in self.site.requests if name == operation)


@pytest.fixture
def slow(site, monkeypatch):
    monkeypatch.setattr(limits, "RUN_SECONDS", 0.5)
    monkeypatch.setattr(limits, "SECONDS_EACH", 0.02)
    return SlowMarketplace(site)


def batch_at(connection, *, n_published):
    batch = add_batch(rating_study("slow", n_items=N), n_published=n_published)
    Batch.objects.filter(pk=batch.pk).update(connection=connection)
    return Batch.objects.get(pk=batch.pk)


@pytest.fixture
def reviewed(connection):
    batch = batch_at(connection, n_published=N)
    for hit in batch.hits.all():
        assignment = add_assignment(hit)
        Assignment.objects.filter(pk=assignment.pk).update(submitted_at=datetime.now(UTC))
        facts = {"purpose": decisions.bonus_purpose("Careful work."), "amount_usd": Decimal("0.05")}
        decisions.request_payment(assignment=assignment, reason="Careful work.", **facts)
    decisions.decide(assignments=Assignment.objects.of(batch), decision=Assignment.Decision.APPROVE)
    return batch


def runs(job):
    """Try the job again, as a person does, until it is done; the message of each run."""
    messages = []
    while execution.run_job(job.pk) == "failed":
        assert len(messages) < 3 * N, messages
        messages.append(models.Job.objects.get(pk=job.pk).message)
        tasks.resume_job(job=models.Job.objects.get(pk=job.pk))
    assert all(messages)
    return messages


@pytest.mark.slow
def test_a_slow_publication_ends_with_a_reason_and_goes_on_once(slow, connection, settings):
    settings.MARKETPLACE_REQUESTS_AT_ONCE = 1
    batch = batch_at(connection, n_published=0)
    job = request_study_job(study=batch.study, kind=PUBLISH, arguments={"batch": batch.pk})
    assert len(runs(job)) >= 1
    ids = list(Hit.objects.of(batch).values_list("hit_id", flat=True))
    assert sorted(ids) == sorted(slow.hits.values())
    assert slow.subjects("CreateHITWithHITType", "UniqueRequestToken").total() == N


@pytest.mark.slow
def test_a_run_never_ends_in_the_middle_of_a_call(slow, connection, settings, monkeypatch):
    settings.MARKETPLACE_REQUESTS_AT_ONCE = 1
    monkeypatch.setattr(limits, "RUN_SECONDS", 0.3)
    slow.seconds = 0.8
    batch = batch_at(connection, n_published=0)
    with refused_naming(MarketplaceSlow, "1"):
        publications.publish_batch(batch=batch, client=connections.client_of(connection))
    assert Hit.objects.of(batch).exclude(hit_id="").count() == 1


@pytest.mark.slow
def test_a_slow_review_ends_and_goes_on_and_pays_once(slow, reviewed):
    assert len(runs(request_study_job(study=reviewed.study, kind=REVIEW))) >= 2
    ids = Assignment.objects.of(reviewed).values_list("assignment_id", flat=True)
    everyone = dict.fromkeys(ids, 1)
    assert slow.subjects("ApproveAssignment", "AssignmentId") == everyone
    assert slow.subjects("SendBonus", "AssignmentId") == everyone
    assert not Payment.objects.unsent().exists()
    assert Assignment.objects.of(reviewed).filter(status="Approved").count() == N


@pytest.mark.slow
def test_slow_changes_end_and_go_on_once(slow, connection):
    batch = batch_at(connection, n_published=N)
    Hit.objects.of(batch).update(max_assignments=4, confirmed_assignments=3)
    job = request_study_job(study=batch.study, kind=APPLY_CHANGES, arguments={"batch": batch.pk})
    assert len(runs(job)) >= 2
    assert (set(slow.max_assignments.values()), len(slow.max_assignments)) == ({1}, N)
    assert not Hit.objects.of(batch).awaiting_change().exists()


@pytest.mark.slow
def test_what_goes_on_at_a_fair_pace_is_not_ended(slow, reviewed, monkeypatch):
    monkeypatch.setattr(limits, "SECONDS_EACH", 0.5)
    assert runs(request_study_job(study=reviewed.study, kind=REVIEW)) == []


@pytest.mark.usefixtures("slow")
def test_who_waits_for_a_slow_publisher_waits_no_longer_than_a_run(connection):
    batch = batch_at(connection, n_published=0)
    with calls.sole_publisher(batch), pytest.raises(MarketplaceSlow):
        publications.publish_batch(batch=Batch.objects.get(pk=batch.pk), client=None)

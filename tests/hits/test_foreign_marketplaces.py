from datetime import UTC, datetime

import pytest

from annotation.models import Submission
from hits import calls, connections, contacts, exceptions, models, participants, progress
from hits.collect import collect_batch
from hits.decisions import REJECT, decide, send_decisions
from marketplace.people.enrolment import create_worker
from tests.annotation.studies import rating_study
from tests.codes import refused
from tests.console.filled import add_batch
from tests.hits.foreign_site import connection_to, foreign_site
from tests.hits.wire import wire_of
from tests.hits.work import PASSWORD, hand_in, hit_on, published_batch, requester_keys

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()
APPEAL = {"assignment_id": "A", "reason": "", "answer": ""}
APPEAL["appealed_at"] = "2026-03-02T12:00:00+00:00"


def assignment(assignment_id, **fields):
    record = {"AssignmentId": assignment_id, "WorkerId": "A1FOREIGN", "Answer": "<x/>"}
    record |= {"AssignmentStatus": "Rejected", "AcceptTime": AT, "SubmitTime": AT}
    return record | fields


@pytest.fixture
def site():
    with foreign_site() as site:
        yield site


@pytest.fixture(scope="module")
def keys(stored_for_module):
    keys = requester_keys()
    client, study = wire_of(keys).client, rating_study()
    batch = published_batch(study, client)
    ann = create_worker(username="ann", password=PASSWORD)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    collect_batch(batch=batch, client=client)
    return keys


@pytest.fixture
def victim(keys, wire):
    return models.Assignment.objects.get(hit__batch__study__slug="ratings")


@pytest.fixture
def batch(victim, site):
    batch = add_batch(rating_study("evil", n_items=1), max_assignments=2)
    models.Batch.objects.filter(pk=batch.pk).update(connection=connection_to(site, "Evil"))
    batch.refresh_from_db()
    return batch


def collect(batch):
    return collect_batch(batch=batch, client=connections.client_of(batch.connection))


def test_no_other_teams_assignment_is_changed(victim, batch, site):
    site.answers["ListAssignmentsForHIT"] = {"Assignments": [assignment(victim.assignment_id)]}
    collect(batch)
    own = models.Assignment.objects.get(hit__batch=batch)
    assert (own.assignment_id, own.status) == (victim.assignment_id, "Rejected")
    victim.refresh_from_db()
    assert victim.status == "Submitted"
    assert Submission.objects.get().status == Submission.Status.SUBMITTED


def test_no_other_teams_rejection_is_appealed(victim, batch, site, client):
    decide(assignments=models.Assignment.objects.all(), decision=REJECT, feedback="Too fast.")
    send_decisions(batch=victim.hit.batch, client=client)
    site.answers["/appeals"] = {"appeals": [APPEAL | {"assignment_id": victim.assignment_id}]}
    assert contacts.fetch_appeals(connection=batch.connection) == 0
    assert not models.Appeal.objects.exists()


def test_an_answer_that_cannot_be_is_a_fault_and_stores_nothing(batch, site):
    n_before = models.Assignment.objects.count()
    for code, records in (
        ("other_hit", [assignment("A", HITId="3ANOTHER")]),
        ("unknown_status", [assignment("A", AssignmentStatus="Paid")]),
        ("", [assignment("A" * 65)]),
        ("", [assignment("A", WorkerId="")]),
        ("", [assignment("A", Answer="\x00")]),
        ("", [assignment("A", AcceptTime=-6e10)]),
        ("", [assignment("A", SubmitTime=1e300)]),
        ("", [assignment("A", SubmitTime="soon")]),
        ("", [assignment(str(number)) for number in range(3)]),  # more than on offer
    ):
        site.answers["ListAssignmentsForHIT"] = {"Assignments": records}
        with refused(exceptions.MarketplaceFault, code):
            collect(batch)
    assert models.Assignment.objects.count() == n_before
    for content in ({"assignments": 3}, {"rewards_usd": "x", "assignments": {}}, {"id": 1}):
        site.answers["/statement"] = content
        with pytest.raises(exceptions.MarketplaceFault):
            progress.fetch_statement(batch=batch)
    n_calls = site.n_calls
    site.answers["ListAssignmentsForHIT"] = lambda n: {"Assignments": [], "NextToken": f"t{n}"}
    with refused(exceptions.MarketplaceFault, "endless"):
        collect(batch)
    assert site.n_calls - n_calls < 20
    assert not models.Hit.objects.of(batch).exclude(collected_at=None).exists()


def test_decisions_that_name_no_time_are_a_fault(batch, monkeypatch):
    for after in ("hello", "x y", "0001-01-01T00:00:00+00:00", "2026-02-31T00"):
        answer = {"decisions": [], "after": after}
        monkeypatch.setattr("hits.recruiter_api.post", lambda *_given, answer=answer: answer)
        with pytest.raises(exceptions.MarketplaceFault):
            participants.follow_decisions(batch.connection)


def test_appeals_and_amounts_that_are_none_are_a_fault():
    for content in (
        {"nonsense": 1},
        {"appeals": [{"nonsense": 1}]},
        {"appeals": ["nonsense"]},
        {"appeals": [APPEAL | {"appealed_at": "0001-01-01T00:00:00+14:00"}]},
        {"appeals": [APPEAL | {"reason": 7}]},
    ):
        with pytest.raises(exceptions.MarketplaceFault):
            calls.appeal_records(content)
    for text in ("NaN", "ten", "1e99", None):
        with refused(exceptions.MarketplaceFault, "not_an_amount"):
            calls.amount_usd(text, "AvailableBalance")

"""A batch in numbers, and our record against the marketplace's ledger."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models import F

from annotation.models import Submission
from hits.collect import collect_batch
from hits.models import Assignment, Hit
from hits.review import decide, send_decisions
from hits.statements import batch_report, fetch_statement, refresh_statements
from marketplace.hits.assignments import accept_hit, return_assignment
from marketplace.models import Hit as MarketplaceHit
from tests.hits.work import hand_in, hit_on, published_batch

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"alpha": 70, "beta": 20}


@pytest.fixture
def batch(site, settings, study, client):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    return published_batch(study, client, max_assignments=2, reward_usd="0.63")


@pytest.fixture
def batch_with_work(batch, client, ann, bob):
    """Ann does all three items and bob one, which he first gave back; one of ann's is rejected."""
    for hit in Hit.objects.of(batch):
        hand_in(ann, hit, VALUES)
    hit = MarketplaceHit.objects.get(public_id=hit_on(batch, "d1").hit_id)
    return_assignment(assignment=accept_hit(worker=bob, hit=hit))
    hand_in(bob, hit_on(batch, "d1"), VALUES)
    collect_batch(batch=batch, client=client)
    rows = Assignment.objects.of(batch)
    of_first = rows.filter(hit=hit_on(batch, "d0"))
    decide(assignments=of_first, decision=Assignment.Decision.REJECT, feedback="Not read.")
    decide(assignments=rows.filter(hit=hit_on(batch, "d1")), decision=Assignment.Decision.APPROVE)
    send_decisions(batch=batch, client=client)
    return batch


def test_a_batch_nobody_worked_on_has_spent_nothing_and_knows_no_wage(batch):
    report = batch_report(batch)
    assert (report.n_published, report.n_collected, report.spend.total_usd) == (3, 0, 0)
    assert report.seconds is report.hourly_usd is report.statement is report.difference_usd is None


@pytest.mark.slow
def test_our_record_and_the_marketplaces_agree_to_the_cent(batch_with_work, client):
    batch = batch_with_work
    fetch_statement(batch=batch)
    report = batch_report(batch)
    assert (report.spend.rewards_usd, report.spend.fees_usd) == (Decimal("1.26"), Decimal("0.26"))
    assert report.difference_usd == 0
    # Of six assignments at 0.76 two are paid and one was rejected.
    assert report.statement.held_usd == 3 * Decimal("0.76")
    assert (report.n_collected, report.n_approved, report.n_rejected) == (4, 2, 1)
    assert (report.n_undecided, report.n_workers, report.dropout_share) == (1, 2, 1 / 5)
    # What we have not heard of yet is a difference.
    assignment = Assignment.objects.of(batch).get(status="Submitted")
    client.approve_assignment(AssignmentId=assignment.assignment_id)
    fetch_statement(batch=batch)
    assert batch_report(batch).difference_usd == Decimal("0.76")
    collect_batch(batch=batch, client=client)
    assert batch_report(batch).difference_usd == 0


@pytest.mark.slow
def test_a_statement_that_payments_left_behind_is_fetched_anew(batch_with_work, client):
    fetch_statement(batch=batch_with_work)
    rows = Assignment.objects.of(batch_with_work).filter(status="Submitted")
    decide(assignments=rows, decision=Assignment.Decision.APPROVE)
    send_decisions(batch=batch_with_work, client=client)
    assert batch_report(batch_with_work).difference_usd == Decimal("-0.76")
    refresh_statements(study=batch_with_work.study)
    assert batch_report(batch_with_work).difference_usd == 0


@pytest.mark.slow
def test_the_wage_is_the_median_of_what_an_hour_of_each_assignment_paid(batch_with_work):
    for number, submission in enumerate(Submission.objects.order_by("pk"), start=1):
        Submission.objects.filter(pk=submission.pk).update(
            seconds=60 * number, accepted_at=F("submitted_at") - timedelta(minutes=number)
        )
    report = batch_report(batch_with_work)
    assert report.seconds.median == 150
    # 0.63 for 1, 2, 3, 4 minutes: 37.80, 18.90, 12.60, 9.45 dollars an hour
    assert report.hourly_usd.median == pytest.approx((18.90 + 12.60) / 2)
    # Time that is too short to be true makes no wage.
    Submission.objects.update(seconds=0.11)
    report = batch_report(batch_with_work)
    assert (report.hourly_usd, report.n_implausible) == (None, 4)
    assert report.seconds.median == pytest.approx(0.11)
    first = Submission.objects.order_by("pk").first()
    Submission.objects.filter(pk=first.pk).update(seconds=60)
    report = batch_report(batch_with_work)
    # $0.63 for a minute
    assert (report.hourly_usd.median, report.hourly_usd.n) == (pytest.approx(37.80), 1)
    assert report.n_implausible == 3

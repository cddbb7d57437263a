from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts import models, teams
from annotation.access import give_to_team
from hits import changes, collect, decisions, exceptions, publications
from hits.costs import rooms_of, set_budget
from hits.models import Assignment, Batch, Hit
from hits.publications import publish_batch
from marketplace import clock
from marketplace.models import Hit as MarketplaceHit
from tests.codes import refused
from tests.hits.wire import answer_lost, unreachable
from tests.hits.work import batch_of, hand_in, hit_on, hits_there, published_batch

pytestmark = pytest.mark.django_db
VALUES = {"alpha": 70, "beta": 20}


def test_more_assignments_cost_their_rewards_and_fees_and_are_added_once(batch, client):
    batch.connection.fees = "mturk"
    cost = changes.price_of_more(batch, 2)
    # Three HITs, two more each, at 0.10 and a fee of 0.02.
    assert (cost.n_assignments, cost.total_usd) == (6, Decimal("0.72"))
    # From ten assignments on the fee is higher.
    with refused(exceptions.ChangeUnfit, "fee_step"):
        changes.price_of_more(batch, 8)
    assert changes.price_of_more(batch, 7).n_assignments == 21
    batch.refresh_from_db()
    add = {"batch": batch, "n_more": 2, "n_added": 0, "expected": changes.price_of_more(batch, 2)}
    changes.add_assignments(**add, actor=None)
    with refused(exceptions.ChangeUnfit, "changed_since"):
        changes.add_assignments(**add, actor=None)
    batch.refresh_from_db()
    assert changes.apply_changes(batch=batch, client=client).n_assignments_added == 6
    assert changes.apply_changes(batch=batch, client=client).n_assignments_added == 0
    assert there() == [4, 4, 4]


@pytest.fixture
def batch(study, client):
    return published_batch(study, client, max_assignments=2)


def in_days(number):
    return (timezone.now() + timedelta(days=number)).replace(microsecond=0)


def more(batch, n):
    cost = changes.price_of_more(batch, n)
    changes.add_assignments(batch=batch, n_more=n, n_added=batch.n_added, expected=cost, actor=None)
    batch.refresh_from_db()


def there():
    return list(MarketplaceHit.objects.order_by("pk").values_list("max_assignments", flat=True))


def expiries():
    return set(MarketplaceHit.objects.values_list("expiration", flat=True))


@pytest.mark.parametrize("fault", [answer_lost, unreachable])
def test_an_interrupted_change_goes_on_where_it_was(batch, client, wire, fault):
    more(batch, 1)
    wire.fail("CreateAdditionalAssignmentsForHIT", fault, at=2)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        changes.apply_changes(batch=batch, client=client)
    changes.apply_changes(batch=batch, client=client)
    assert there() == [3, 3, 3]


def test_a_budget_holds_for_more_assignments(batch, study):
    ada = models.User.objects.create_user("ada")
    study.owner = ada
    study.save()
    give_to_team(study=study, team=teams.create_team(name="Lab", owner=ada), actor=ada)
    # Six assignments at 0.10 are committed.
    set_budget(study=study, cap_usd=Decimal("0.89"), actor=ada)
    with pytest.raises(exceptions.OverBudget):
        more(batch, 1)
    set_budget(study=study, cap_usd=Decimal("0.90"), actor=ada)
    more(batch, 1)


def test_what_an_extension_opens_again_is_within_the_budgets(batch, client, ann):
    hand_in(ann, hit_on(batch, "d0"), VALUES)
    changes.end_batch(batch=batch, actor=None)
    Hit.objects.of(batch).update(n_answers=0)
    Hit.objects.filter(pk=hit_on(batch, "d0").pk).update(n_answers=1)
    cost = changes.price_of_extension(batch)
    assert (cost.n_assignments, cost.total_usd) == (5, Decimal("0.50"))
    later = {"batch": batch, "expires_at": in_days(20), "actor": None}
    with refused(exceptions.ChangeUnfit, "changed_since"):
        changes.extend_batch(**later)
    set_budget(study=batch.study, cap_usd=Decimal("0.59"), actor=None)
    with pytest.raises(exceptions.OverBudget):
        changes.extend_batch(**later, expected=cost)
    set_budget(study=batch.study, cap_usd=Decimal("0.60"), actor=None)
    changes.extend_batch(**later, expected=cost)
    assert (rooms_of(batch.study)[0].left_usd, changes.price_of_extension(batch).n_assignments) == (
        0,
        0,
    )


def test_a_batch_is_extended_also_once_it_expired_but_not_beyond_a_year(batch, client):
    start = Batch.objects.get().publishing_started_at
    assert batch.offered_until == start + timedelta(seconds=batch.lifetime_seconds)
    for days, code in ((-1, "not_in_future"), (3, "before_expiry"), (400, "not_in_future")):
        with refused(exceptions.ChangeUnfit, code):
            changes.extend_batch(batch=batch, expires_at=in_days(days), actor=None)
    changes.extend_batch(batch=batch, expires_at=in_days(20), actor=None)
    batch.refresh_from_db()
    assert changes.apply_changes(batch=batch, client=client).n_expiries_set == 3
    assert expiries() == {batch.expires_at}
    assert changes.apply_changes(batch=batch, client=client).n_expiries_set == 0
    changes.end_batch(batch=batch, actor=None)
    batch.refresh_from_db()
    assert changes.apply_changes(batch=batch, client=client).n_expiries_set == 3
    assert all(expiry <= clock.now() for expiry in expiries())
    changes.extend_batch(batch=batch, expires_at=in_days(2), actor=None)
    batch.refresh_from_db()
    changes.apply_changes(batch=batch, client=client)
    assert expiries() == {batch.expires_at}


def test_closing_ends_a_publication_that_is_under_way(study, client, monkeypatch):
    monkeypatch.setattr(publications, "UNWRITTEN_SECONDS", -1)
    batch = batch_of(study)

    def closed_meanwhile(hits, total):
        for n, hit in enumerate(hits):
            if n == 1:
                changes.end_batch(batch=batch, actor=None, is_closed=True)
            yield hit

    assert publish_batch(batch=batch, client=client, progress=closed_meanwhile).n_hits == 2
    changes.apply_changes(batch=Batch.objects.get(), client=client)
    assert len(expiries()) == 2
    assert all(expiry <= clock.now() for expiry in expiries())


def test_a_hit_whose_answer_was_lost_does_not_outlive_its_closed_batch(study, client, wire):
    batch = batch_of(study)
    wire.fail("CreateHITWithHITType", answer_lost, at=2)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        publish_batch(batch=batch, client=client)
    changes.end_batch(batch=batch, actor=None, is_closed=True)
    changes.apply_changes(batch=Batch.objects.get(), client=client)
    there = {hit["HITId"] for hit in hits_there(client)}
    assert there == set(Hit.objects.published().values_list("hit_id", flat=True))
    assert len(there) == 2
    assert all(expiry <= clock.now() for expiry in expiries())


@pytest.mark.slow
def test_rejected_and_expired_work_is_offered_again(batch, client, ann, bob, make_worker):
    """Until the overlap is reached."""
    assert changes.missing_assignments(batch).hits == ()
    with refused(exceptions.ChangeUnfit, "nothing_missing"):
        cost = changes.price_of_more(batch, 1)
        changes.repost_missing(batch=batch, expires_at=in_days(9), expected=cost, actor=None)
    hand_in(ann, hit_on(batch, "d0"), VALUES)
    hand_in(bob, hit_on(batch, "d0"), VALUES)
    hand_in(ann, hit_on(batch, "d1"), VALUES)
    collect.collect_batch(batch=batch, client=client)
    of_bob = Assignment.objects.filter(worker__worker_id=bob.worker_id)
    decisions.decide(assignments=of_bob, decision=Assignment.Decision.REJECT, feedback="Not read.")
    decisions.send_decisions(batch=batch, client=client)
    changes.end_batch(batch=batch, actor=None)
    batch.refresh_from_db()
    changes.apply_changes(batch=batch, client=client)
    gap = changes.missing_assignments(batch)
    # One of d0 was rejected, one of d1 and two of d2 never came.
    assert (gap.n_assignments, gap.cost.total_usd) == (4, Decimal("0.40"))
    changes.repost_missing(batch=batch, expires_at=in_days(3), expected=gap.cost, actor=None)
    batch.refresh_from_db()
    changes.apply_changes(batch=batch, client=client)
    assert there() == [3, 2, 2]
    cat, dan = make_worker("cat"), make_worker("dan")
    for item in ("d0", "d1", "d2"):
        hand_in(cat, hit_on(batch, item), VALUES)
    hand_in(dan, hit_on(batch, "d2"), VALUES)
    collect.collect_batch(batch=batch, client=client)
    assert changes.missing_assignments(batch).hits == ()
    assert Assignment.objects.of(batch).exclude(status="Rejected").count() == 6


def test_a_closed_batch_is_expired_and_stays_as_it_is(batch, client):
    changes.end_batch(batch=batch, actor=None, is_closed=True)
    batch.refresh_from_db()
    changes.apply_changes(batch=batch, client=client)
    assert all(expiry <= clock.now() for expiry in expiries())
    with refused(exceptions.ChangeUnfit, "batch_closed"):
        changes.extend_batch(batch=batch, expires_at=in_days(2), actor=None)
    with refused(exceptions.BatchUnfit, "batch_closed"):
        publish_batch(batch=batch, client=client)

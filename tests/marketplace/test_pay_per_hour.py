"""What HITs pay for an hour, as workers' own times have it."""

from datetime import timedelta
from decimal import Decimal

from marketplace import clock
from marketplace.hits import wages
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.hits.wages import observed_wages
from marketplace.models import Hit, HitType
from tests.marketplace.conftest import HIT


def work(worker, hit, seconds):
    assignment = accept_hit(worker=worker, hit=hit)
    clock.advance(timedelta(seconds=seconds))
    submit_assignment(public_id=assignment.public_id, fields=[("rating", ["4"])])


def shown_wages(browser):
    return [wage for _, _, wage in browser.get("/worker/").context["rows"]]


def test_pay_per_hour_is_the_reward_over_the_median_time_of_at_least_ten_workers(
    mturk, ada, make_worker
):
    mturk.create_hit(**HIT, MaxAssignments=12)
    hit = Hit.objects.get()
    for number, seconds in enumerate([60, 90, 100, 110, 120, 120, 130, 140, 900]):
        work(make_worker(f"w{number}"), hit, seconds)
    assert observed_wages(HitType.objects.all()) == {}
    assert shown_wages(ada) == [None]
    work(make_worker("tenth"), hit, 120)
    (wage,) = observed_wages(HitType.objects.all()).values()
    assert (wage.median_seconds, wage.n_workers) == (120, 10)
    assert wage.usd_per_hour == Decimal("18.90")  # $0.63 for two minutes
    assert shown_wages(ada) == [wage]
    for address in ("/worker/", f"/worker/hits/{hit.public_id}/"):
        assert "$18.90" in ada.get(address).content.decode()


def test_pay_per_hour_is_not_made_of_time_that_is_nobodys(mturk, ada, make_worker):
    mturk.create_hit(**HIT, MaxAssignments=12)
    for number in range(10):
        work(make_worker(f"w{number}"), Hit.objects.get(), 0.1)
    assert observed_wages(HitType.objects.all()) == {}
    assert shown_wages(ada) == [None]


def test_pay_per_hour_of_a_group_with_much_work_is_looked_for_once_a_minute(
    mturk, ada, make_worker, monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(wages, "KEPT_FROM", 10)
    mturk.create_hit(**HIT, MaxAssignments=12)
    hit = Hit.objects.get()
    for number in range(10):
        work(make_worker(f"w{number}"), hit, 120)
    groups = list(HitType.objects.all())
    known = observed_wages(groups)
    with django_assert_num_queries(0):
        assert observed_wages(groups) == known
    assert [wage.n_workers for wage in known.values()] == [10]


def test_that_pay_is_not_known_yet_is_not_looked_for_again_either(
    mturk, make_worker, monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(wages, "KEPT_FROM", 1)
    mturk.create_hit(**HIT, MaxAssignments=12)
    work(make_worker("only"), Hit.objects.get(), 120)
    groups = list(HitType.objects.all())
    assert observed_wages(groups) == {}
    with django_assert_num_queries(0):
        assert observed_wages(groups) == {}

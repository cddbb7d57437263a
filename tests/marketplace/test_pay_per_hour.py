"""What HITs pay for an hour, as workers' own times have it."""

from datetime import timedelta
from decimal import Decimal

from marketplace import clock
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.hits.wages import observed_wages
from marketplace.models import Hit, HitType
from tests.marketplace.conftest import HIT


def work(worker, hit, seconds):
    assignment = accept_hit(worker=worker, hit=hit)
    clock.advance(timedelta(seconds=seconds))
    submit_assignment(public_id=assignment.public_id, fields=[("rating", ["4"])])


def test_pay_per_hour_is_the_reward_over_the_median_time_of_at_least_ten_workers(
    mturk, ada, make_worker
):
    mturk.create_hit(**HIT, MaxAssignments=12)
    hit = Hit.objects.get()
    for number, seconds in enumerate([60, 90, 100, 110, 120, 120, 130, 140, 900]):
        work(make_worker(f"w{number}"), hit, seconds)
    assert observed_wages(HitType.objects.all()) == {}
    assert "not known yet" in ada.get("/worker/").content.decode()
    work(make_worker("tenth"), hit, 120)
    (wage,) = observed_wages(HitType.objects.all()).values()
    assert (wage.median_seconds, wage.n_workers) == (120, 10)
    assert wage.usd_per_hour == Decimal("18.90")  # $0.63 for two minutes
    assert "$18.90" in ada.get("/worker/").content.decode()
    assert "About $18.90 an hour" in ada.get(f"/worker/hits/{hit.public_id}/").content.decode()

import re
import time
from decimal import Decimal

import pytest

from hits.connections import site_connection
from hits.costs import SCHEDULES, estimate, price_items, require_funds
from hits.exceptions import BatchUnfit, FundsMissing, MarketplaceUnreachable
from hits.exclusions import excludes_workers
from hits.launch_plans import draft_batch
from hits.models import Batch, Hit
from hits.preflight import wave_saving_usd
from hits.publish import publish_batch
from tests.codes import refused, refused_naming
from tests.hits.wire import unreachable
from tests.hits.work import balance_of, batch_of, published_batch


@pytest.mark.parametrize(
    ("reward", "max_assignments", "fee"),
    [
        ("0.01", 1, "0.01"),  # the least
        ("0.00", 1, "0.01"),
        ("0.12", 9, "0.02"),
        ("0.13", 9, "0.03"),
        ("0.13", 10, "0.05"),
        ("1.00", 9, "0.20"),
        ("1.00", 10, "0.40"),
    ],
)
def test_amazon_charges_a_fifth_and_two_from_ten_assignments_on(reward, max_assignments, fee):
    assert SCHEDULES["mturk"].fee_usd(Decimal(reward), max_assignments) == Decimal(fee)


def draft(study, reward="0.50", assignments=1, **settings):
    texts = {"title": "T", "description": "D"}
    terms = {"reward_usd": Decimal(reward), "max_assignments": assignments}
    return draft_batch(study=study, **texts, **terms, **settings)


def test_the_local_marketplace_charges_nothing_for_a_draft_or_a_batch(study):
    assert estimate(draft(study, assignments=4)).total_usd == Decimal(6)
    assert not Batch.objects.exists()
    cost = estimate(batch_of(study, reward_usd="0.50", max_assignments=2))
    assert (cost.n_hits, cost.n_assignments) == (3, 6)
    assert (cost.rewards_usd, cost.fees_usd, cost.total_usd) == (3, 0, 3)
    assert re.findall(r"[\d.]+", str(cost)) == ["3", "6", "3.00", "0.00", "3.00"]


@pytest.mark.parametrize(("reward", "assignments"), [("0.07", 3), ("0.13", 10), ("0.01", 1)])
def test_the_estimate_is_what_a_marketplace_with_these_fees_holds(
    study, client, settings, reward, assignments
):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    batch = batch_of(study, reward_usd=reward, max_assignments=assignments)
    cost = estimate(batch)
    publish_batch(batch=batch, client=client)
    assert balance_of(client)[1] == f"{cost.total_usd:.2f}"


def test_what_is_published_already_costs_nothing_more(study, client):
    batch = published_batch(study, client, reward_usd="0.50")
    assert estimate(batch).total_usd == 0
    last = Hit.objects.of(batch).last()
    Hit.objects.filter(pk=last.pk).update(hit_id="")
    assert estimate(batch).total_usd == Decimal("0.50")


def test_a_batch_beyond_the_balance_is_refused_with_both_sums(study, wire, client):
    cost = estimate(batch_of(study, reward_usd="3.34"))
    with refused_naming(FundsMissing, "$10.02", "$10.00"):
        require_funds(cost=cost, client=client)
    cost = estimate(batch_of(study, reward_usd="3.33", round=2))
    require_funds(cost=cost, client=client)
    assert wire.calls == {"GetAccountBalance": 2}
    wire.fail("GetAccountBalance", unreachable)
    with pytest.raises(MarketplaceUnreachable):
        require_funds(cost=cost, client=client)


# Amazon's published rules: 20% of the reward; 20% more where a HIT has ten assignments or more;
# 5% more for Masters; at least $0.01 for an assignment. A fee is rounded to the cent, halves up.
BY_HAND = [
    # reward, HITs, assignments, Masters: rewards, fees
    # A fee of 0.63 x 0.20 = 0.126 is 0.13; 400 x 0.13 = 52.00.
    ("0.63", 400, 1, False, "252.00", "52.00"),
    # 0.01 x 0.20 = 0.002, so the minimum of 0.01; 3 x 100 x 0.01.
    ("0.01", 100, 3, False, "3.00", "3.00"),
    # 0.05 x 0.20 = 0.01: the minimum itself.
    ("0.05", 10, 9, False, "4.50", "0.90"),
    # 0.07 x 0.20 = 0.014, down to 0.01; 0.08 x 0.20 = 0.016, up to 0.02.
    ("0.07", 10, 1, False, "0.70", "0.10"),
    ("0.08", 10, 1, False, "0.80", "0.20"),
    # Ten assignments: 0.50 x 0.40 = 0.20 on each of 100.
    ("0.50", 10, 10, False, "50.00", "20.00"),
    # Nine: 0.50 x 0.20 = 0.10 on each of 90.
    ("0.50", 10, 9, False, "45.00", "9.00"),
    # Masters: 0.50 x 0.25 = 0.125, half a cent up: 0.13 on each of 30.
    ("0.50", 10, 3, True, "15.00", "3.90"),
    # Masters and ten assignments: 1.00 x 0.45 = 0.45 on each of 20.
    ("1.00", 2, 10, True, "20.00", "9.00"),
    # Nothing for the work, and still a cent for each.
    ("0.00", 7, 2, False, "0.00", "0.14"),
    # 0.63 x 0.45 = 0.2835, which is 0.28, on each of 4,800.
    ("0.63", 400, 12, True, "3024.00", "1344.00"),
]


@pytest.mark.parametrize(("reward", "n", "assignments", "masters", "rewards", "fees"), BY_HAND)
def test_the_cost_is_what_the_published_rules_come_to_by_hand(
    study, settings, reward, n, assignments, masters, rewards, fees
):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    cost = price_items(draft(study, reward, assignments, needs_masters=masters), n_items=n)
    assert (cost.n_hits, cost.n_assignments) == (n, n * assignments)
    assert (cost.rewards_usd, cost.fees_usd) == (Decimal(rewards), Decimal(fees))


@pytest.mark.parametrize(
    ("assignments", "wave", "sizes", "fees"),
    [
        # Two tens of 0.40 x 0.50 without waves: 20 x 0.20.
        (20, None, [20], "4.00"),
        # 9 + 9 + 2, each under ten: 20 x 0.10.
        (20, 9, [9, 9, 2], "2.00"),
        (9, 9, [9], "0.90"),
        (10, 5, [5, 5], "1.00"),
        # A wave of all is none.
        (4, 9, [4], "0.40"),
    ],
)
def test_waves_of_nine_avoid_the_fee_for_ten(study, settings, assignments, wave, sizes, fees):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    waves = draft(study, assignments=assignments, wave_size=wave)
    assert [waves.wave_assignments(n + 1) for n in range(waves.n_waves)] == sizes
    cost = price_items(waves, n_items=1)
    assert (cost.n_hits, cost.n_assignments) == (len(sizes), assignments)
    assert cost.fees_usd == Decimal(fees)


@pytest.mark.parametrize("wave", [None, 9])
def test_the_price_of_a_thousand_million_assignments_is_known_at_once(study, wave):
    draft = Batch(
        study=study,
        connection=site_connection(),
        reward_usd=Decimal("0.01"),
        max_assignments=1_000_000_000,
        wave_size=wave,
    )
    began = time.process_time()
    assert price_items(draft, n_items=1).n_assignments == 1_000_000_000
    assert wave_saving_usd(draft, 1) >= 0
    assert not excludes_workers(draft) or wave
    assert time.process_time() - began < 1


def test_more_waves_than_anybody_waits_for_are_refused(study):
    with refused(BatchUnfit, "settings") as error:
        draft(study, assignments=9_001, wave_size=9)
    assert all(text in str(error.value) for text in ("wave_size: ", "1000"))


@pytest.mark.parametrize(
    ("bonus", "fee"),
    [("0.01", "0.01"), ("0.05", "0.01"), ("0.13", "0.03"), ("0.50", "0.10"), ("2.55", "0.51")],
)
def test_a_bonus_costs_a_fifth_and_at_least_a_cent(bonus, fee):
    # 0.13 x 0.20 = 0.026, up to 0.03; 2.55 x 0.20 = 0.51.
    assert SCHEDULES["mturk"].bonus_fee_usd(Decimal(bonus)) == Decimal(fee)

from decimal import Decimal

import pytest

from hits.costs import SCHEDULES, estimate, require_funds
from hits.exceptions import FundsMissing, MarketplaceUnreachable
from hits.models import Batch, Hit
from hits.publish import draft_batch, publish_batch
from tests.hits.wire import unreachable
from tests.hits.work import balance_of, batch_of, published


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


@pytest.mark.parametrize(("reward", "assignments"), [("0.07", 3), ("0.13", 10), ("0.01", 1)])
def test_the_estimate_is_what_a_marketplace_with_these_fees_holds(
    study, client, settings, reward, assignments
):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    batch = batch_of(study, reward_usd=reward, max_assignments=assignments)
    cost = estimate(batch)
    publish_batch(batch=batch, client=client)
    assert balance_of(client)[1] == f"{cost.total_usd:.2f}"


def test_the_local_marketplace_charges_nothing(study):
    cost = estimate(batch_of(study, reward_usd="0.50", max_assignments=2))
    assert (cost.n_hits, cost.n_assignments) == (3, 6)
    assert (cost.rewards_usd, cost.fees_usd, cost.total_usd) == (3, 0, 3)
    assert str(cost) == "3 HITs, 6 assignments: rewards $3.00, fees $0.00, in all $3.00"


def test_a_draft_costs_what_the_batch_will(study):
    draft = draft_batch(
        study=study, title="T", description="D", reward_usd=Decimal("0.5"), max_assignments=4
    )
    assert estimate(draft).total_usd == Decimal(6)
    assert not Batch.objects.exists()


def test_what_is_published_already_costs_nothing_more(study, client):
    batch = published(study, client, reward_usd="0.50")
    assert estimate(batch).total_usd == 0
    last = Hit.objects.of(batch).last()
    Hit.objects.filter(pk=last.pk).update(hit_id="")
    assert estimate(batch).total_usd == Decimal("0.50")


def test_a_batch_beyond_the_balance_is_refused_with_both_sums(study, wire, client):
    cost = estimate(batch_of(study, reward_usd="3.34"))
    with pytest.raises(FundsMissing, match=r"in all \$10\.02; but .* only \$10\.00\."):
        require_funds(cost=cost, client=client)
    require_funds(cost=estimate(batch_of(study, reward_usd="3.33", round=2)), client=client)
    assert wire.calls == {"GetAccountBalance": 2}


def test_an_unknown_balance_is_no_balance(study, wire, client):
    wire.fail("GetAccountBalance", unreachable)
    with pytest.raises(MarketplaceUnreachable):
        require_funds(cost=estimate(batch_of(study)), client=client)

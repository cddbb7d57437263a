"""What a study pays can be changed by hand at the recruiter while it is open: charges follow it."""

from decimal import Decimal

import pytest

from marketplace.models import RecruitedStudy, RecruiterCharge
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.standing import studies_of
from tests.marketplace.prolific import approve, completion_code, hand_in, minutes, publish


def sum_of(*kinds):
    rows = RecruiterCharge.objects.all()
    return tuple(sum(one.amount for one in rows.filter(kind=kind)) for kind in kinds)


@pytest.mark.slow
def test_a_reward_that_is_raised_there_is_charged_as_it_is_there(posted, mturk, fake, connection):
    """More is set aside for each place, and whoever was approved before is paid the rest."""
    there = fake.world.studies[posted.external_id]
    first, second = hand_in(fake, posted), hand_in(fake, posted)
    approve(mturk, first)
    call_recruiters()
    assert sum_of("study", "reward") == (Decimal(8), Decimal(2))
    fake.world.change_reward(there, 450)
    approve(mturk, second)
    minutes(3)
    # Six pounds each with fees: four places, two of them paid.
    assert sum_of("study", "reward") == (Decimal(24), Decimal(12))
    assert fake.world.available == 100_000 - 2400
    (told,) = studies_of(RecruitedStudy.objects.filter(pk=posted.pk))
    assert (told["reward"], told["reward_there"]) == ("1.50", "4.50")
    assert told["charges"] == {"study": "24.0000", "reward": "12.0000"}


@pytest.mark.slow
def test_a_reward_that_is_changed_back_there_sets_nothing_more_aside(posted, fake):
    there = fake.world.studies[posted.external_id]
    for pence, charged in [(450, 24), (300, 16), (150, 8), (450, 24)]:
        fake.world.change_reward(there, pence)
        call_recruiters()
        assert sum_of("study") == (charged,)


@pytest.mark.slow
def test_who_was_paid_a_raised_reward_keeps_it(posted, mturk, fake):
    there, submission = fake.world.studies[posted.external_id], hand_in(fake, posted)
    approve(mturk, submission)
    call_recruiters()
    for pence, charged in [(450, 6), (150, 6), (300, 6), (600, 8)]:
        fake.world.change_reward(there, pence)
        call_recruiters()
        assert sum_of("reward") == (charged,)


def test_a_raised_reward_whose_price_was_not_heard_is_charged_later_and_once(posted, fake):
    fake.world.change_reward(fake.world.studies[posted.external_id], 450)
    fake.fail_next("calculate_cost", "500")
    call_recruiters()
    assert sum_of("study") == (8,)
    minutes(3)
    assert sum_of("study") == (24,)


def test_pay_of_who_is_screened_out_is_charged_as_it_is_there(connection, hit_type, fake):
    study = publish(connection, hit_type, screen_out_reward=Decimal("0.20"), screen_out_places=5)
    there = fake.world.studies[study.external_id]
    for code in there.facts["completion_codes"]:
        for action in code["actions"]:
            if action["action"] == "FIXED_SCREEN_OUT_PAYMENT":
                action["fixed_screen_out_reward"] = 60
    submission = fake.world.arrive(there)
    fake.world.enter(submission, completion_code(study, "screened_out"))
    minutes(2)
    assert sum_of("screen_out") == (Decimal("0.8"),)

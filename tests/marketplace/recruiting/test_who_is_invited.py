"""Whom Prolific is asked to invite, under which labels, and pay for who is screened out."""

from decimal import Decimal

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from marketplace.exceptions import InvalidParameter
from marketplace.models import Intent, LedgerTransaction, RecruiterCharge, Session
from marketplace.recruiting.arrivals import device_of
from marketplace.recruiting.charges import totals_of
from marketplace.recruiting.drafts import filter_of
from marketplace.recruiting.posting import price_places, publish_study
from marketplace.recruiting.records import Filter
from marketplace.recruiting.submissions import PASSED_ON
from tests.codes import refused
from tests.marketplace.conftest import make_type
from tests.marketplace.prolific import (
    arrive,
    ask_for_more,
    completion_code,
    create_hits,
    draft,
    join,
    minutes,
    paid,
    publish,
    reload,
    session_of,
)
from tests.marketplace.test_worker_site import require, text_of

PAY = {"screen_out_reward": Decimal("0.20"), "screen_out_places": 2}


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("age = 18..65", Filter("age", lower=Decimal(18), upper=Decimal(65))),
        ("approval_rate=95..", Filter("approval_rate", lower=Decimal(95))),
        ("age = ..40.5", Filter("age", upper=Decimal("40.5"))),
        ("handedness = 1, 2", Filter("handedness", values=("1", "2"))),
    ],
)
def test_a_line_says_a_filter_as_people_write_it(line, meant):
    assert filter_of(line) == meant


def test_filters_and_labels_are_in_the_draft_beside_who_is_excluded(connection, hit_type, fake):
    filters = ("age = 18..65", "handedness = 1, 2")
    study, _cost = draft(connection, hit_type, filters=filters, labels=("ai_evaluation",))
    facts = fake.world.studies[study.external_id].facts
    age, hand, blocked = facts["filters"]
    assert age == {"filter_id": "age", "selected_range": {"lower": 18, "upper": 65}}
    assert hand == {"filter_id": "handedness", "selected_values": ["1", "2"]}
    assert blocked["filter_id"] == "participant_group_blocklist"
    codes = [one for one in facts["completion_codes"] if one["code_type"] == "FIXED_SCREENOUT"]
    assert [[one["action"] for one in code["actions"]] for code in codes] == [["REQUEST_RETURN"]]
    assert facts["study_labels"] == ["ai_evaluation"]


@pytest.fixture
def screened(connection, mturk):
    wants = [require(make_type(mturk, "Careful"), "Exists")]
    return draft(connection, create_hits(mturk, QualificationRequirements=wants), **PAY)


def test_the_price_has_the_most_that_screening_out_may_cost(screened, fake, mturk):
    study, cost = screened
    # 4 places of 1.50 and 2 of 0.20, with a fee of a third.
    assert cost.displayed == Decimal("8.53")
    with refused(InvalidParameter, "not_confirmed") as found:
        publish_study(study=study, confirmed=Decimal("8.00"))
    assert "8.53 GBP" in str(found.value)
    publish_study(study=study, confirmed=Decimal("8.53"))
    assert reload(study).state == "active"
    ask_for_more(mturk, study.hit_type)
    # More places are no more people to be screened out.
    assert price_places(study=study, total=5).displayed == Decimal("2.00")


@pytest.mark.parametrize("changed", [{"fixed_screen_out_reward": 90}, {"slots": 50}])
def test_a_draft_whose_screen_out_pay_was_raised_there_is_refused(screened, fake, changed):
    study, cost = screened
    there = fake.world.studies[study.external_id]
    actions = [one for code in there.facts["completion_codes"] for one in code["actions"]]
    next(one for one in actions if "slots" in one).update(changed)
    with refused(InvalidParameter, "screen_out_changed"):
        publish_study(study=study, confirmed=cost.total)
    assert there.status == "UNPUBLISHED"


def test_who_is_screened_out_is_paid_there_once_and_charged_once(screened, fake):
    study, cost = screened
    publish_study(study=study, confirmed=cost.total)
    movements = LedgerTransaction.objects.count()
    submission, browser, _answer = arrive(fake, study)
    page = browser.get("/worker/study/", follow=True)
    assert page.context["session"].study.screen_out_reward == Decimal("0.20")
    session = Session.objects.get()
    assert (session.outcome, session.items.count()) == ("screened_out", 0)
    fake.world.enter(submission, session.code)
    minutes(3)
    session.refresh_from_db()
    assert (submission.status, session.state) == ("SCREENED OUT", "screened_out")
    assert len(paid(fake, "screen-out")) == 1
    charge = RecruiterCharge.objects.get(kind="screen_out")
    assert (charge.amount.quantize(Decimal("0.01")), charge.session) == (Decimal("0.27"), session)
    amounts = [round(amount, 2) for _text, amount, _currency in totals_of(study)]
    assert amounts == [Decimal("0.27"), Decimal(8)]
    assert LedgerTransaction.objects.count() == movements


@pytest.mark.parametrize("opens", [True, False])
def test_who_enters_that_code_unasked_is_charged_for_and_noted(connection, hit_type, fake, opens):
    study = publish(connection, hit_type, **PAY)
    if opens:
        submission, _browser, _answer = arrive(fake, study)
    else:
        submission = fake.world.arrive(fake.world.studies[study.external_id])
    fake.world.enter(submission, completion_code(study, "screened_out"))
    minutes(3)
    session = Session.objects.get()
    assert (session.submission_id, session.state) == (submission.id, "screened_out")
    assert not session.items.filter(assignment__status="Accepted").exists()
    assert RecruiterCharge.objects.get(kind="screen_out").session == session
    said = Intent.objects.get()
    assert (said.kind, said.state) == ("doubt", "refused")
    assert said.problem == PASSED_ON.format(recruiter="Prolific")


@pytest.mark.parametrize("option", ["--reward", "--screen-out-reward", "--confirm"])
def test_what_is_no_amount_is_refused_by_the_command(option):
    with pytest.raises(CommandError) as found:
        call_command("recruit", "--hit-type", "3A", option, "NaN")
    assert "'NaN'" in str(found.value)


# Devices


TELEPHONE = (
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Mobile Safari/537.36"
)
COMPUTER = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Safari/537.36"
)


@pytest.mark.parametrize(
    ("user_agent", "device"),
    [
        (TELEPHONE, "mobile"),
        (COMPUTER, "desktop"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Mobile/15E148", "mobile"),
        ("Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) Mobile/15E148", "tablet"),
        ("Mozilla/5.0 (Linux; Android 13; SM-X200) Chrome/140.0.0.0 Safari/537.36", "tablet"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "desktop"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Safari/605.1.15", "desktop"),
        ("curl/8.0", ""),
        ("", ""),
    ],
)
def test_a_browser_says_what_it_runs_on(user_agent, device):
    assert device_of(user_agent) == device


def test_the_code_for_a_device_that_does_not_do_is_decided_at_arrival(connection, hit_type, fake):
    study = publish(connection, hit_type, devices=("desktop",))
    there = fake.world.studies[study.external_id]
    assert {one["code_type"] for one in there.facts["completion_codes"]} == {
        *("COMPLETED", "NO_CONSENT", "FIXED_SCREENOUT", "OTHER", "INCOMPATIBLE_DEVICE")
    }
    outcomes = []
    for user_agent in (TELEPHONE, COMPUTER, ""):
        submission = fake.world.arrive(there)
        browser = Client(headers={"User-Agent": user_agent})
        ids = f"PROLIFIC_PID={submission.participant}&SESSION_ID={submission.id}"
        shown = browser.get(f"/join/{study.token}/?{ids}")
        assert shown.context["is_compatible"] == (user_agent != TELEPHONE)
        join(study, submission, browser)
        session = session_of(submission)
        outcomes.append((session.outcome, session.items.count()))
        if user_agent == TELEPHONE:
            code = completion_code(study, "incompatible_device")
            assert code in text_of(browser.get("/worker/study/", follow=True))
    assert outcomes == [("incompatible_device", 0), ("", 2), ("", 2)]

"""Participants whose device a study does not take."""

import pytest
from django.test import Client

from marketplace.models import RecruitedStudy
from marketplace.recruiting.devices import device_of
from tests.marketplace.prolific import completion_code, draft, join, publish, session_of
from tests.marketplace.test_worker_site import text_of

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
        *("COMPLETED", "NO_CONSENT", "FIXED_SCREENOUT", "OTHER", "INCOMPATIBLE_DEVICE"),
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


def test_without_devices_there_is_no_code_for_them(connection, hit_type, fake):
    study, _cost = draft(connection, hit_type)
    assert RecruitedStudy.objects.get().codes.count() == 4
    assert not study.codes.filter(outcome="incompatible_device").exists()

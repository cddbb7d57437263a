# ruff: noqa: F811 (fixtures)
"""Codes entered at Prolific without the work: put before a person, and never paid unseen."""

from datetime import timedelta

import pytest

from marketplace import clock
from marketplace.models import Assignment, Intent, Session
from marketplace.recruiting.calls import call_recruiters, decide_uncertain
from tests.marketplace.prolific import (  # noqa: F401
    arrive,
    connection,
    fake,
    hand_in,
    hit_type,
    paid,
    posted,
)
from tests.marketplace.test_recruited_studies import work

OPEN = {"kind": "doubt", "state": "uncertain"}


def claimed(fake, posted, *, opens=True, n_done=0):
    """Somebody enters the code of completion, which another has passed on."""
    if opens:
        submission, browser, _answer = arrive(fake, posted)
        if n_done:
            work(browser, times=n_done)
    else:
        submission = fake.world.arrive(fake.world.studies[posted.external_id])
    fake.world.enter(submission, posted.codes.get(outcome="completed").code)
    return submission


@pytest.mark.parametrize(("opens", "n_done"), [(True, 0), (True, 1), (False, 0)])
def test_a_code_without_the_work_is_put_before_a_person_once(fake, posted, opens, n_done):
    good = hand_in(fake, posted)
    submission = claimed(fake, posted, opens=opens, n_done=n_done)
    for _minute in range(3):
        call_recruiters()
    doubt = Intent.objects.get(**OPEN)
    assert doubt.session.submission_id == submission.id
    n_items = 2 if opens else 0
    assert f"{n_done} of {n_items} pages" in doubt.problem
    assert "that of: Completed" in doubt.problem
    decide_uncertain(intent=doubt, was_done=False)
    for _minute in range(2):
        call_recruiters()
    assert (submission.status, good.status) == ("REJECTED", "AWAITING REVIEW")
    assert not Intent.objects.filter(**OPEN).exists()
    assert Session.objects.get(submission_id=submission.id).state == "rejected"
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert paid(fake, "reward") == [200]


def test_what_is_left_as_it_is_is_not_put_before_anybody_again(fake, posted):
    submission = claimed(fake, posted)
    call_recruiters()
    decide_uncertain(intent=Intent.objects.get(**OPEN), was_done=True)
    call_recruiters()
    assert not Intent.objects.filter(**OPEN).exists()
    assert submission.status == "AWAITING REVIEW"


@pytest.mark.parametrize(
    ("is_left", "there"), [(True, "APPROVED"), (False, "REJECTED")], ids=["left", "rejected"]
)
@pytest.mark.parametrize("code", ["XXXX", "no_more_items", "completed"])
def test_an_approved_hit_pays_no_participation_whose_other_hits_are_not_here(
    fake, posted, mturk, code, is_left, there
):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    first = Assignment.objects.get(status="Submitted")
    mturk.approve_assignment(AssignmentId=first.public_id)
    entered = posted.codes.filter(outcome=code).values_list("code", flat=True).first()
    fake.world.enter(submission, entered or code)
    for _minute in range(3):
        call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("AWAITING REVIEW", [])
    doubt = Intent.objects.get(**OPEN)
    assert "1 of 2 pages" in doubt.problem
    assert "What was approved of it waits" in doubt.problem
    decide_uncertain(intent=doubt, was_done=is_left)
    call_recruiters()
    assert submission.status == there
    assert not Intent.objects.filter(state="written").exists()
    first.refresh_from_db()
    assert first.status == "Approved"


def test_an_approval_waits_for_who_finishes_after_all(fake, posted, mturk):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    first = Assignment.objects.get(status="Submitted")
    mturk.approve_assignment(AssignmentId=first.public_id)
    fake.world.enter(submission, posted.codes.get(outcome="completed").code)
    call_recruiters()
    work(browser)
    call_recruiters()
    assert submission.status == "APPROVED"
    assert not Intent.objects.filter(kind="doubt").exists()


def test_who_finishes_after_all_is_doubted_no_more(fake, posted):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    fake.world.enter(submission, posted.codes.get(outcome="completed").code)
    call_recruiters()
    assert Intent.objects.filter(**OPEN).exists()
    work(browser)
    call_recruiters()
    assert not Intent.objects.filter(kind="doubt").exists()


def test_who_was_asked_back_has_a_day_to_return_the_place(fake, posted):
    submission, browser, _answer = arrive(fake, posted)
    session = Session.objects.get()
    browser.post(f"/worker/studies/{session.public_id}/leave/")
    session.refresh_from_db()
    fake.world.enter(submission, session.code)
    call_recruiters()
    assert not Intent.objects.filter(kind="doubt").exists()
    clock.advance(timedelta(hours=25))
    call_recruiters()
    doubt = Intent.objects.get(**OPEN)
    assert "that of: No consent" in doubt.problem
    assert doubt.basis == {"category": "NO_DATA"}

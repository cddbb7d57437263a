"""Codes entered at Prolific without the work: put before a person, and never paid unseen."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection as connection_of_database
from django.test.utils import CaptureQueriesContext

from marketplace import clock
from marketplace.exceptions import ErasureRefused, InvalidParameter
from marketplace.hits.assignments import accept_hit
from marketplace.models import Assignment, Intent, RecruitedStudy, RecruiterCharge, Session
from marketplace.people.erasure import erase_worker
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import recruiter_of
from marketplace.recruiting.doubts import follow_doubts
from marketplace.recruiting.drafts import Posting, draft_study
from marketplace.recruiting.fake_prolific import operations
from marketplace.recruiting.participants import new_participant
from marketplace.recruiting.posting import follow_study, publish_study, stop_study
from marketplace.recruiting.sessions import GRACE, settle_sessions
from marketplace.recruiting.settlements import decide_uncertain
from tests.marketplace.prolific import (
    OPEN_DOUBT,
    approve,
    approve_submitted,
    arrive,
    assignments,
    completion_code,
    hand_in,
    leave,
    minutes,
    paid,
    publish,
    reject,
    session_of,
    work,
)

OPEN = {"kind": "doubt", "state": "uncertain"}


def claimed(fake, posted, *, opens=True, n_done=0):
    """Somebody enters the code of completion, which another has passed on."""
    if opens:
        submission, browser, _answer = arrive(fake, posted)
        if n_done:
            work(browser, times=n_done)
    else:
        submission = fake.world.arrive(fake.world.studies[posted.external_id])
    fake.world.enter(submission, completion_code(posted))
    return submission


@pytest.mark.parametrize(("opens", "n_done"), [(True, 0), (True, 1), (False, 0)])
def test_a_code_without_the_work_is_put_before_a_person_once(fake, posted, opens, n_done):
    good = hand_in(fake, posted)
    submission = claimed(fake, posted, opens=opens, n_done=n_done)
    minutes(3)
    doubt = Intent.objects.get(**OPEN_DOUBT)
    assert doubt.session.submission_id == submission.id
    said = f"{n_done} of 2 pages" if opens else "Nobody has opened the study here for it"
    assert said in doubt.problem
    assert "that of: Completed" in doubt.problem
    decide_uncertain(intent=doubt, was_done=False)
    minutes(2)
    assert (submission.status, good.status) == ("REJECTED", "AWAITING REVIEW")
    assert not Intent.objects.filter(**OPEN_DOUBT).exists()
    assert session_of(submission).state == "rejected"
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert paid(fake, "reward") == [200]


def test_what_is_left_as_it_is_is_not_put_before_anybody_again(fake, posted):
    submission = claimed(fake, posted)
    call_recruiters()
    decide_uncertain(intent=Intent.objects.get(**OPEN_DOUBT), was_done=True)
    call_recruiters()
    assert not Intent.objects.filter(**OPEN_DOUBT).exists()
    assert submission.status == "AWAITING REVIEW"


def test_who_is_paid_by_time_after_a_late_code_is_approved_and_charged_for(fake, posted):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    fake.world.leave(submission, "TIMED-OUT")
    call_recruiters()
    for time in (timedelta(days=12), timedelta(days=22)):
        clock.advance(time)
        fake.world.pass_time(time)
        if submission.status == "TIMED-OUT":
            fake.world.enter(submission, completion_code(posted))
        call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])
    assert Session.objects.get().state == "approved"
    assert RecruiterCharge.objects.get(kind="reward").amount == 2
    assert not Intent.objects.filter(**OPEN_DOUBT).exists()


@pytest.mark.parametrize(
    ("is_left", "there"), [(True, "APPROVED"), (False, "REJECTED")], ids=["left", "rejected"]
)
@pytest.mark.parametrize("code", ["XXXX", "no_more_items", "completed"])
def test_an_approved_hit_pays_no_participation_whose_other_hits_are_not_here(
    fake, posted, mturk, code, is_left, there
):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    first = approve_submitted(mturk)
    entered = posted.codes.filter(outcome=code).values_list("code", flat=True).first()
    fake.world.enter(submission, entered or code)
    minutes(3)
    assert (submission.status, paid(fake, "reward")) == ("AWAITING REVIEW", [])
    doubt = Intent.objects.get(**OPEN_DOUBT)
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
    first = approve_submitted(mturk)
    fake.world.enter(submission, completion_code(posted))
    call_recruiters()
    work(browser)
    call_recruiters()
    assert submission.status == "APPROVED"
    assert not Intent.objects.filter(kind="doubt").exists()


def test_who_finishes_after_all_is_doubted_no_more(fake, posted):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    fake.world.enter(submission, completion_code(posted))
    call_recruiters()
    assert Intent.objects.filter(**OPEN_DOUBT).exists()
    work(browser)
    call_recruiters()
    assert not Intent.objects.filter(kind="doubt").exists()


def test_who_was_asked_back_has_a_day_to_return_the_place(fake, posted):
    submission, browser, _answer = arrive(fake, posted)
    session = Session.objects.get()
    leave(browser, session)
    session.refresh_from_db()
    fake.world.enter(submission, session.code)
    call_recruiters()
    assert not Intent.objects.filter(kind="doubt").exists()
    clock.advance(timedelta(hours=25))
    call_recruiters()
    doubt = Intent.objects.get(**OPEN_DOUBT)
    assert "that of: No consent" in doubt.problem
    assert doubt.basis == {"category": "NO_DATA"}


def test_a_place_that_was_never_opened_is_put_before_a_person_after_the_study_is_stopped(
    fake, posted, mturk
):
    good = hand_in(fake, posted)
    approve(mturk, good)
    place = fake.world.arrive(fake.world.studies[posted.external_id])
    call_recruiters()
    stop_study(study=posted)
    call_recruiters()
    fake.world.enter(place, completion_code(posted))
    call_recruiters()
    assert Intent.objects.get(**OPEN_DOUBT).session.submission_id == place.id


def test_a_stopped_study_is_asked_about_no_more_once_nothing_waits_there(fake, posted, mturk):
    good = hand_in(fake, posted)
    approve(mturk, good)
    call_recruiters()
    stop_study(study=posted)
    call_recruiters()
    posted.refresh_from_db()
    assert posted.n_payable_there == 0
    n_calls = len(fake.calls)
    call_recruiters()
    assert "submissions" not in str(fake.calls[n_calls:])


def test_who_withdraws_after_an_approval_and_claims_the_work_stays_before_a_person(
    fake, posted, mturk
):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    first = approve_submitted(mturk)
    leave(browser)
    fake.world.enter(submission, completion_code(posted))
    minutes(3)
    decide_uncertain(intent=Intent.objects.get(**OPEN_DOUBT), was_done=False)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("REJECTED", [])


def test_a_rejection_taken_back_of_part_of_the_work_is_put_before_a_person(fake, posted, mturk):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    first = Assignment.objects.get(status="Submitted")
    fake.world.enter(submission, completion_code(posted))
    mturk.reject_assignment(AssignmentId=first.public_id, RequesterFeedback="x" * 120)
    call_recruiters()
    assert submission.status == "REJECTED"
    mturk.approve_assignment(AssignmentId=first.public_id, OverrideRejection=True)
    minutes(2)
    decide_uncertain(intent=Intent.objects.get(**OPEN_DOUBT), was_done=True)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])


def test_a_submission_that_is_gone_there_holds_up_no_other(fake, posted, mturk):
    gone, other = hand_in(fake, posted), hand_in(fake, posted)
    approve(mturk, gone)
    fake.fail_next("move_submission", "lose")
    call_recruiters()
    del fake.world.submissions[gone.id]
    approve(mturk, other)
    called = call_recruiters()
    assert (other.status, called.problems) == ("APPROVED", ())
    assert Intent.objects.get(session__submission_id=gone.id).state == "uncertain"


@pytest.mark.parametrize("is_polled_first", [True, False])
def test_who_did_the_work_and_enters_the_code_of_screened_out_is_paid_as_one_of_both(
    fake, connection, hit_type, mturk, is_polled_first
):
    study = publish(
        connection,
        hit_type,
        reward=Decimal("1.50"),
        screen_out_reward=Decimal("0.20"),
        screen_out_places=5,
    )
    submission, browser, _answer = arrive(fake, study)
    work(browser, times=2)
    fake.world.enter(submission, completion_code(study, "screened_out"))
    if is_polled_first:
        call_recruiters()
    for assignment in Assignment.objects.filter(status="Submitted"):
        mturk.approve_assignment(AssignmentId=assignment.public_id)
    minutes(2)
    assert paid(fake, "reward") == []
    approval = Intent.objects.get(kind="approve")
    assert (approval.state, "pay a bonus" in approval.problem) == ("refused", True)
    kinds = RecruiterCharge.objects.values_list("kind", flat=True)
    assert set(kinds) == {"study", "screen_out"}


def test_work_that_came_since_it_was_listed_is_not_rejected(fake, posted, mturk):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    fake.world.enter(submission, completion_code(posted))
    call_recruiters()
    doubt = Intent.objects.get(**OPEN_DOUBT)
    work(browser)
    approve(mturk, submission)
    with pytest.raises(InvalidParameter, match="has come since"):
        decide_uncertain(intent=doubt, was_done=False)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])
    assert not Intent.objects.filter(**OPEN_DOUBT).exists()


def test_who_is_rejected_for_work_that_is_not_here_frees_the_rest_of_it(fake, posted):
    claimed(fake, posted, n_done=1)
    call_recruiters()
    decide_uncertain(intent=Intent.objects.get(**OPEN_DOUBT), was_done=False)
    call_recruiters()
    statuses = Assignment.objects.order_by("status").values_list("status", flat=True)
    assert list(statuses) == ["Rejected", "Returned"]


def test_a_refused_approval_after_a_withdrawal_is_charged_to_nobody(fake, posted, mturk):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    first = approve_submitted(mturk)
    session = Session.objects.get()
    leave(browser, session)
    session.refresh_from_db()
    fake.world.enter(submission, session.code)
    call_recruiters()
    session.refresh_from_db()
    assert (session.state, paid(fake, "reward")) == ("finished", [])
    assert not RecruiterCharge.objects.filter(kind="reward").exists()


def test_a_rejection_of_work_in_the_minutes_of_grace_waits_for_its_late_code(fake, posted, mturk):
    fake.world.now = clock.now()
    submission, browser, _answer = arrive(fake, posted)
    fake.world.pass_time(timedelta(minutes=40))
    work(browser, times=2)
    reject(mturk, submission)
    call_recruiters()
    assert submission.status == "TIMED-OUT"
    fake.world.enter(submission, Session.objects.get().code)
    call_recruiters()
    assert (submission.status, Session.objects.get().state) == ("REJECTED", "rejected")
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert paid(fake, "reward") == []


def test_a_stopped_study_is_not_over_while_a_place_has_a_word_that_is_not_known(fake, posted):
    place = fake.world.arrive(fake.world.studies[posted.external_id])
    stop_study(study=posted)
    place.status = "UNKNOWN"
    call_recruiters()
    posted.refresh_from_db()
    assert posted.n_payable_there != 0
    place.status = "ACTIVE"
    fake.world.enter(place, completion_code(posted))
    call_recruiters()
    assert Intent.objects.filter(**OPEN_DOUBT).count() == 1


def test_an_approval_after_a_stopped_study_was_settled_has_it_looked_at_again(fake, posted, mturk):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    first = Assignment.objects.get(status="Submitted")
    fake.world.enter(submission, completion_code(posted))
    mturk.reject_assignment(AssignmentId=first.public_id, RequesterFeedback="x" * 120)
    call_recruiters()
    stop_study(study=posted)
    call_recruiters()
    posted.refresh_from_db()
    assert (submission.status, posted.n_payable_there) == ("REJECTED", 0)
    mturk.approve_assignment(AssignmentId=first.public_id, OverrideRejection=True)
    call_recruiters()
    decide_uncertain(intent=Intent.objects.get(**OPEN_DOUBT), was_done=True)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])


def test_an_approval_that_was_refused_once_can_be_made_again(fake, posted, mturk):
    submission = hand_in(fake, posted)
    one, two = assignments(submission)
    fake.fail_next("move_submission", "400")  # for want of money, say
    mturk.approve_assignment(AssignmentId=one)
    call_recruiters()
    assert submission.status == "AWAITING REVIEW"
    mturk.approve_assignment(AssignmentId=two)
    call_recruiters()
    assert (submission.status, Session.objects.get().state) == ("APPROVED", "approved")


def test_a_rejection_that_was_taken_back_before_it_was_sent_is_not_sent(
    fake, posted, mturk, monkeypatch
):
    done, move = [], operations.move_submission

    def noted(world, body, key):
        done.append(body["action"])
        return move(world, body, key)

    monkeypatch.setattr(operations, "move_submission", noted)
    submission = hand_in(fake, posted)
    reject(mturk, submission)
    approve(mturk, submission, OverrideRejection=True)
    call_recruiters()
    assert (done, submission.status) == (["APPROVE"], "APPROVED")


def test_a_decision_that_was_refused_is_sent_again_when_somebody_says_so(fake, posted, mturk):
    submission = hand_in(fake, posted)
    fake.fail_next("move_submission", "400")  # for want of money, say
    approve(mturk, submission)
    call_recruiters()
    [refused] = Intent.objects.all()
    assert (refused.state, submission.status) == ("refused", "AWAITING REVIEW")
    first, reason = assignments(submission)[0], "x" * 120
    with pytest.raises(mturk.exceptions.RequestError):
        mturk.reject_assignment(AssignmentId=first, RequesterFeedback=reason)
    with pytest.raises(InvalidParameter):
        decide_uncertain(intent=refused, was_done=True)
    decide_uncertain(intent=refused, was_done=False)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])
    assert Session.objects.get().state == "approved"


def test_an_approval_written_while_a_study_is_looked_at_has_it_looked_at_again(
    fake, posted, mturk, connection
):
    stop_study(study=posted)
    call_recruiters()
    before = RecruitedStudy.objects.get()
    assert before.n_payable_there == 0
    RecruitedStudy.objects.update(n_payable_there=None)  # as a decision does meanwhile
    follow_study(before, recruiter_of(connection))
    assert RecruitedStudy.objects.get().n_payable_there is None


def test_who_was_asked_to_return_a_place_erases_once_it_is_returned(fake, posted):
    submission, browser, _answer = arrive(fake, posted)
    session = Session.objects.get()
    leave(browser, session)
    with pytest.raises(ErasureRefused, match="return it there first"):
        erase_worker(session.worker)
    fake.world.leave(submission)
    call_recruiters()
    erase_worker(session.worker)


def test_who_never_returns_the_place_waits_for_thirty_days_at_most(fake, posted):
    _submission, browser, _answer = arrive(fake, posted)
    session = Session.objects.get()
    leave(browser, session)
    clock.advance(timedelta(days=31))
    erase_worker(session.worker)


@pytest.mark.parametrize("is_left", [True, False])
def test_work_that_others_have_done_meanwhile_is_put_before_a_person(fake, posted, is_left):
    """Nothing of it is at the review desk, where it could be decided on."""
    submission, browser, _answer = arrive(fake, posted)
    held = assignments(submission)
    clock.advance(timedelta(seconds=posted.maximum_seconds) + GRACE + timedelta(seconds=1))
    settle_sessions(clock.now())
    for public_id in held:
        hit = Assignment.objects.get(public_id=public_id).hit
        for _ in range(2):
            accept_hit(worker=new_participant("recruiter"), hit=hit)
    for public_id in held:
        browser.post("/mturk/externalSubmit", {"assignmentId": public_id, "rating": "4"})
    session = session_of(submission)
    assert session.outcome == "completed"
    fake.world.enter(submission, session.code)
    minutes(2)
    doubt = Intent.objects.get(**OPEN_DOUBT)
    assert "others had done each page" in doubt.problem
    decide_uncertain(intent=doubt, was_done=is_left)
    minutes(2)
    assert submission.status == ("AWAITING REVIEW" if is_left else "REJECTED")
    assert not Intent.objects.filter(**OPEN_DOUBT).exists()


def test_those_who_wait_with_all_of_their_work_cost_no_statement_each(fake, posted):
    recruiter = recruiter_of(posted.connection)

    def n_statements():
        listed = list(recruiter.submissions(posted.external_id))
        with CaptureQueriesContext(connection_of_database) as queries:
            follow_doubts(posted, listed, is_whole=True)
        return len(queries)

    hand_in(fake, posted)
    before = n_statements()
    for _ in range(3):
        hand_in(fake, posted)
    assert n_statements() == before

"""Calls of an account at a recruiter: one process at a time, what fails holds up nothing else, and
what was not heard of a study is heard later."""

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.utils import timezone

from benchmarks.fake_prolific import operations
from marketplace import clock
from marketplace.exceptions import InvalidParameter, RecruiterBusy
from marketplace.models import AttachedHitType, Intent, RecruiterConnection, Requester
from marketplace.recruiting import posting
from marketplace.recruiting.calls import CUT_OFF, call_recruiters, perform_action, request_action
from marketplace.recruiting.connections import required_recruiter, turn_at
from marketplace.recruiting.dispatch import decide_uncertain
from marketplace.recruiting.posting import pause_study, publish_study, set_places, stop_study
from tests.codes import codes_of, refused
from tests.marketplace.prolific import (
    approve,
    arrive,
    ask_for_more,
    begun,
    broken,
    charges,
    completion_code,
    create_hits,
    draft,
    hand_in,
    join,
    minutes,
    numbers,
    paid,
    reload,
    session_of,
    work,
)
from tests.marketplace.recruiting.test_recruiting_rules import HIT_HERE
from work.execution import claim
from work.models import Job
from work.periodic import recover

UNHEARD = ("drop", "500", "500", "500")


def test_a_second_process_leaves_an_account_to_the_first(posted, connection):
    with turn_at(connection):
        assert codes_of(call_recruiters().problems) == ["recruiter_busy"]
        request_action(study=posted, action="pause")
        with pytest.raises(RecruiterBusy):
            perform_action(posted.pk, 1)
    connection.refresh_from_db()
    assert connection.turn_until is None
    perform_action(posted.pk, 1)
    posted.refresh_from_db()
    assert posted.state == "paused"


def test_the_turn_of_a_process_that_was_killed_ends_by_itself(posted, connection):
    later = timezone.now() + timedelta(minutes=5)
    rows = RecruiterConnection.objects.filter(pk=connection.pk)
    rows.update(turn_until=later, turn_token="killed")
    assert call_recruiters().problems
    rows.update(turn_until=timezone.now() - timedelta(seconds=1))
    assert call_recruiters().problems == ()


def test_a_process_that_lost_its_turn_goes_on_no_more(connection):
    with turn_at(connection) as turn:
        RecruiterConnection.objects.filter(pk=connection.pk).update(turn_token="another's")
        with pytest.raises(RecruiterBusy):
            turn.go_on()
    connection.refresh_from_db()
    assert connection.turn_token == "another's"


def test_an_action_whose_job_was_killed_each_time_is_in_the_way_of_no_other(posted):
    request_action(study=posted, action="pause")
    job = Job.objects.get(kind="act_on_recruited_study")
    for _ in range(job.max_attempts):
        claim(job.pk)
        Job.objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(hours=1))
        recover(now=timezone.now(), last_at=timezone.now() - timedelta(seconds=1))
        Job.objects.filter(pk=job.pk).update(run_after=None)
    with refused(InvalidParameter, "under_way"):
        request_action(study=posted, action="stop")
    cut_off = CUT_OFF.format(action=reload(posted).get_action_display())
    call_recruiters()
    posted.refresh_from_db()
    assert (posted.action, posted.problem) == ("", cut_off)
    request_action(study=posted, action="stop")
    call_recruiters()  # nothing ends what a job is still to do
    posted.refresh_from_db()
    assert posted.action == "stop"


def test_a_publication_that_nobody_heard_of_is_found_and_charged(fake, connection, hit_type):
    drafted, cost = draft(connection, hit_type)
    fake.fail_next("move_study", "drop")
    fake.fail_next("study", "", *UNHEARD[1:])
    with pytest.raises(InvalidParameter):
        publish_study(study=drafted, confirmed=cost.total)
    drafted.refresh_from_db()
    assert drafted.state == "draft"
    _submission, _browser, answer = arrive(fake, drafted)  # before the minute is over
    assert answer.status_code == 302
    drafted.refresh_from_db()
    assert (drafted.state, charges()) == ("active", [cost.total])
    minutes()
    assert charges() == [cost.total]


@pytest.mark.slow
@pytest.mark.parametrize("is_by_arrival", [True, False])
def test_a_stopped_study_is_open_again_as_it_is_there(
    fake, posted, mturk, is_by_arrival, handed_in
):
    approve(mturk, handed_in)
    call_recruiters()
    stop_study(study=posted)
    call_recruiters()
    posted.refresh_from_db()
    assert (posted.state, posted.n_payable_there) == ("stopped", 0)
    there = fake.world.studies[posted.external_id]
    before = charges()
    operations.change_study(fake.world, {"total_available_places": there.places + 1}, there.id)
    if is_by_arrival:
        _submission, _browser, answer = arrive(fake, posted)
        assert answer.status_code == 302
    else:
        clock.advance(timedelta(hours=1))
        call_recruiters()
    posted.refresh_from_db()
    assert (posted.state, posted.n_payable_there) == ("active", None)
    assert charges() == [*before, Decimal(2)]


@pytest.mark.slow
def test_unconfirmed_places_of_a_stopped_study_are_found(fake, posted, mturk, hit_type):
    stop_study(study=posted)
    call_recruiters()
    ask_for_more(mturk, hit_type)
    fake.fail_next("change_study", "drop")
    fake.fail_next("study", "", "", *UNHEARD[1:])
    with pytest.raises(InvalidParameter):
        set_places(study=posted, total=6)
    minutes(2)
    posted.refresh_from_db()
    there = fake.world.studies[posted.external_id]
    assert (there.status, posted.state, posted.places) == ("ACTIVE", "active", 6)
    assert charges()[-1] == 2 * Decimal(2)


@pytest.mark.slow
def test_a_rule_counts_places_added_before_a_crash(fake, mturk, ruled, monkeypatch):
    there, real = fake.world.studies[ruled.external_id], posting.follow_study
    for _ in range(4):
        create_hits(mturk, n=2, max_assignments=4, **HIT_HERE)
        clock.advance(timedelta(minutes=2))
        n_before = there.places

        def killed(one, recruiter, n_before=n_before):
            if there.places > n_before:
                raise KeyboardInterrupt
            return real(one, recruiter)

        with monkeypatch.context() as patched:
            patched.setattr(posting, "follow_study", killed)
            with suppress(KeyboardInterrupt):
                call_recruiters()
        minutes(2)
    assert "30.00" in numbers(AttachedHitType.objects.get().problem)
    assert sum(charges()) == Decimal(there.places) * 2 <= 30


def test_an_account_that_cannot_be_opened_holds_up_no_other(fake, posted, mturk, connection):
    other = Requester.objects.create(name="Other lab", created_at=clock.now())
    facts = {"requester": other, "kind": "prolific", "name": "P", "created_at": clock.now()}
    RecruiterConnection.objects.create(pk=-1, encrypted_token="of a key that is gone", **facts)
    good = hand_in(fake, posted)
    approve(mturk, good)
    assert codes_of(call_recruiters().problems) == ["cannot_be_called"]
    assert (good.status, paid(fake, "reward")) == ("APPROVED", [200])


@pytest.mark.parametrize("is_stopped", [True, False])
def test_who_holds_a_place_of_a_study_that_was_closed_since_is_let_in(fake, posted, is_stopped):
    place = fake.world.arrive(fake.world.studies[posted.external_id])
    (stop_study if is_stopped else pause_study)(study=posted)
    assert join(posted, place).status_code == 302
    assert join(posted, place, SESSION_ID="5" * 24).status_code == 410
    assert session_of(place).items.count() == 2


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 500])
def test_unreadable_rows_stop_nothing(
    fake, posted, mturk, connection, hit_type, monkeypatch, status
):
    ask_for_more(mturk, hit_type, n=4)
    set_places(study=posted, total=8)
    bad = [hand_in(fake, posted) for _ in range(4)]
    keys = {one.id for one in bad}
    good = hand_in(fake, posted)
    broken(monkeypatch, "submission", lambda _world, _body, key: key in keys, status)
    for one in [*bad, good]:
        approve(mturk, one)
    called = minutes(2)
    assert (good.status, called.n_waiting) == ("APPROVED", 4)


@pytest.mark.slow
def test_five_failed_rounds_are_followed_by_a_pause(fake, posted, mturk, monkeypatch):
    asked, bad = [], hand_in(fake, posted)
    real = operations.submission

    def submission(world, body, key):
        asked.append(key)
        if len(asked) < 16:
            raise operations.Denied(500, "broken")
        return real(world, body, key)

    monkeypatch.setattr(operations, "submission", submission)
    approve(mturk, bad)
    for _minute in range(7):
        assert "500" in numbers(call_recruiters().problems[0])
    assert len(asked) == 15  # three attempts in each of five rounds
    cache.clear()  # as time does
    assert call_recruiters().problems == ()
    assert bad.status == "APPROVED"


@pytest.mark.slow
def test_who_finishes_before_a_rejection_is_sent_is_not_rejected(fake, posted, mturk):
    submission, browser = begun(fake, posted)
    fake.world.enter(submission, completion_code(posted))
    call_recruiters()
    decide_uncertain(intent=Intent.objects.get(kind="doubt"), was_done=False)
    work(browser)
    call_recruiters()
    assert submission.status == "AWAITING REVIEW"
    approve(mturk, submission)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])


def test_a_study_stopped_there_is_stopped_here_without_a_price(fake, posted, monkeypatch):
    there = fake.world.studies[posted.external_id]
    operations.change_study(fake.world, {"total_available_places": there.places + 1}, there.id)
    there.status = "COMPLETED"
    broken(monkeypatch, "calculate_cost")
    call_recruiters()
    posted.refresh_from_db()
    assert posted.state == "stopped"
    monkeypatch.undo()
    before = charges()
    posting.follow_study(posted, required_recruiter(posted.connection))
    assert charges() == [*before, Decimal(2)]

"""A study at Prolific from its draft to the last bonus, at the fake, over HTTP; whom Prolific is
asked to invite, and pay for who is screened out.

Answers are dropped, requests lost, and refusals made at every call in turn: nobody is paid twice,
nobody is left unpaid without somebody being told, and places are as they were asked for.
"""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from ssl import SSLError

import pytest
import requests
import urllib3
from django.core.management import CommandError, call_command
from django.test import Client

from benchmarks.fake_prolific import operations
from marketplace import clock, models, money
from marketplace.exceptions import InvalidParameter
from marketplace.people.erasure import erasure_obstacles
from marketplace.recruiting import charges, dispatch, drafts, files, sessions, standing, submissions
from marketplace.recruiting.arrivals import MOST_UNKNOWN, device_of
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import disconnect, offer_prolific
from marketplace.recruiting.intents import approve_overdue, note
from marketplace.recruiting.places import free_and_needed, places_for
from marketplace.recruiting.posting import price_places, publish_study, set_places, stop_study
from marketplace.recruiting.prolific.transport import TOKEN_REFUSED
from marketplace.recruiting.records import Filter
from marketplace.templatetags.marketplace_tags import duration
from tests.codes import refused
from tests.marketplace import prolific
from tests.marketplace.conftest import make_type
from tests.marketplace.recruiting.conftest import PID
from tests.marketplace.test_worker_site import require, text_of


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"token": "wrong"}, "not_authorized"),
        ({"token": "tök en"}, "bad_token"),
        ({"workspace": "f" * 24}, "not_found"),
        ({"project": "f" * 24}, "unknown_project"),
    ],
)
def test_a_token_workspace_or_project_that_is_wrong_is_refused(fake, requester, changed, code):
    with refused(InvalidParameter, code) as found:
        prolific.connect(fake, requester, name="Other", **changed)
    assert all(value in str(found.value) for name, value in changed.items() if name != "token")
    assert not models.RecruiterConnection.objects.filter(name="Other").exists()


def test_places_are_the_judgments_that_are_wanted_by_a_participants_hits(hit_type, fake, posted):
    # Those that an open study has are no more needed.
    assert places_for(hit_type, 3) == 0
    assert free_and_needed(posted) == (4, 4)
    there = fake.world.studies[posted.external_id]
    assert (there.places, there.status) == (4, "ACTIVE")
    assert there.facts["reward"] == 150
    ids = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    assert there.facts["external_study_url"].endswith(ids)
    prolific.hand_in(fake, posted)
    assert free_and_needed(posted) == (3, 3)
    models.RecruitedStudy.objects.update(state="paused")
    assert (places_for(hit_type, 2), places_for(hit_type, 3)) == (3, 2)
    assert places_for(hit_type, 100) == 2  # as many as one HIT wants judgments


@pytest.mark.slow
def test_no_more_places_are_sold_than_judgments_need(hit_type, fake, connection, mturk):
    def too_many(expected, act):
        with refused(InvalidParameter, "too_many_places") as found:
            act()
        assert prolific.numbers(found.value) == expected

    too_many(["8", "4"], lambda: prolific.draft(connection, hit_type, places=5))
    study, cost = prolific.draft(connection, hit_type)
    late, _cost = prolific.draft(connection, hit_type)
    publish_study(study=study, confirmed=cost.total)
    prolific.hand_in(fake, study)
    too_many(["6", "3", "3"], lambda: price_places(study=study, total=5))
    too_many(["6", "3", "3"], lambda: publish_study(study=late, confirmed=cost.total))
    for _place in range(3):
        prolific.hand_in(fake, study)
    for act in (
        lambda: publish_study(study=late, confirmed=cost.total),
        lambda: price_places(study=study, total=5),
        lambda: set_places(study=study, total=5),
        lambda: prolific.draft(connection, hit_type, places=1),
    ):
        with refused(InvalidParameter, "no_judgment_left"):
            act()
    assert [one.places for one in fake.world.studies.values()] == [4, 4]
    # Published by a try whose answer was lost, it is not refused.
    assert publish_study(study=study, confirmed=cost.total).total == 8
    set_places(study=study, total=4)  # as many as there are
    prolific.ask_for_more(mturk, hit_type)
    assert price_places(study=study, total=6).total == 4
    too_many(["4", "2"], lambda: price_places(study=study, total=7))


def test_it_is_published_for_the_amount_that_is_typed_back_and_its_own_reward(
    connection, hit_type, fake
):
    study, cost = prolific.draft(connection, hit_type)
    assert (cost.total, cost.currency) == (Decimal(8), "GBP")
    with refused(InvalidParameter, "not_confirmed") as found:
        publish_study(study=study, confirmed=Decimal(7))
    assert "8.00 GBP" in str(found.value)
    there = fake.world.studies[study.external_id]
    fake.world.change_reward(there, 450)
    with refused(InvalidParameter, "reward_changed") as found:
        publish_study(study=study, confirmed=cost.total)
    assert prolific.numbers(found.value) == ["4.50", "1.50"]
    fake.world.change_reward(there, 150)
    assert there.status == "UNPUBLISHED"
    assert prolific.reload(hit_type).paid_by == "ledger"
    assert Client().get(f"/join/{study.token}/?PROLIFIC_PID=a").status_code == 410
    publish_study(study=study, confirmed=Decimal(8))
    charge = models.RecruiterCharge.objects.get()
    assert (there.status, charge.kind) == ("ACTIVE", "study")
    assert (charge.amount, charge.currency) == (8, "GBP")
    set_places(study=study, total=study.places)  # costs nothing more
    assert prolific.charges() == [8]


def test_a_cost_with_fractions_of_a_penny_is_typed_back_to_the_penny(connection, hit_type, fake):
    study, cost = prolific.draft(connection, hit_type, reward=Decimal("1.00"), minutes=5, places=1)
    assert cost.total == Decimal("1.3333")
    with refused(InvalidParameter, "not_confirmed") as found:
        publish_study(study=study, confirmed=Decimal("1.34"))
    assert "1.33 GBP" in str(found.value)
    publish_study(study=study, confirmed=Decimal("1.33"))
    set_places(study=study, total=3, confirmed=Decimal("2.67"))
    assert fake.world.studies[study.external_id].places == 3
    assert prolific.reload(study).quoted_cost == Decimal("2.6667")


def test_places_at_a_reward_that_was_raised_there_are_charged_as_there(posted, mturk, fake):
    there = fake.world.studies[posted.external_id]
    fake.world.change_reward(there, 450)
    prolific.ask_for_more(mturk, posted.hit_type)
    for buy in (price_places, set_places):
        with refused(InvalidParameter, "reward_changed"):
            buy(study=posted, total=5)
    assert there.places == 4
    with fake.lock:
        operations.change_study(fake.world, {"total_available_places": 5}, there.id)
    call_recruiters()
    assert prolific.charges() == [8, 16, 6]  # four raised, one more


@pytest.mark.slow
def test_participants_read_what_an_hour_pays_before_they_take_part(posted):
    page = text_of(Client().get(f"/join/{posted.token}/?PROLIFIC_PID={PID}&SESSION_ID=s"))
    assert duration(600) in page
    assert "9.00 GBP" in page  # 1.50 for ten minutes


def test_made_up_arrivals_turn_nobody_away(fake, posted, monkeypatch):
    real, asked = operations.submission, []

    def submission(world, body, key):
        asked.append(key)
        return real(world, body, key)

    monkeypatch.setattr(operations, "submission", submission)
    path = f"/join/{posted.token}/?STUDY_ID={posted.external_id}&PROLIFIC_PID={'c' * 24}"
    for _press in range(3):
        assert Client().post(f"{path}&SESSION_ID={'d' * 24}").status_code == 400
    assert len(asked) == 1
    first, _browser, answer = prolific.arrive(fake, posted)
    assert answer.status_code == 302
    for n in range(MOST_UNKNOWN + 5):
        assert Client().post(f"{path}&SESSION_ID={n:024d}").status_code == 400
    assert len(asked) == MOST_UNKNOWN + 1
    # Whoever is in the study comes back, and whoever is elsewhere comes.
    assert prolific.join(posted, first).status_code == 302
    second = fake.world.arrive(fake.world.studies[posted.external_id])
    assert prolific.join(posted, second).context["code"] == "not_asked"
    assert prolific.join(posted, second, Client(REMOTE_ADDR="192.0.2.9")).status_code == 302


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["lose", "500"])
@pytest.mark.parametrize("operation", ["create_study", "move_study", "change_study", "study"])
def test_one_study_results_whatever_is_lost(connection, hit_type, fake, mturk, operation, fault):
    prolific.ask_for_more(mturk, hit_type, 2)
    fake.fail_next(operation, fault)
    study, cost = pressed(lambda: prolific.draft(connection, hit_type, places=6))

    def extend():
        publish_study(study=study, confirmed=cost.total)
        set_places(study=study, total=7)

    pressed(extend)
    there = fake.world.studies[study.external_id]
    assert (there.status, there.places) == ("ACTIVE", 7)
    assert sum(one.status == "ACTIVE" for one in fake.world.studies.values()) == 1
    assert len(fake.world.studies) == 1 or fault == "lose"
    assert prolific.reload(study).state == "active"


def test_ids_that_prolific_did_not_send_are_not_let_in(fake, posted, mturk, connection, hit_type):
    submission = fake.world.arrive(fake.world.studies[posted.external_id])
    for changed, code in (
        ({"PROLIFIC_PID": "0" * 24}, "not_sent"),
        ({"SESSION_ID": "0" * 24}, "not_sent"),
        ({"STUDY_ID": "c" * 24}, "other_study"),
        ({"STUDY_ID": "0" * 24, "SESSION_ID": "../studies"}, "other_study"),
        ({"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}, "bad_id"),
    ):
        answer = prolific.join(posted, submission, **changed)
        assert (answer.status_code, answer.context["code"]) == (400, code)
        assert not models.Session.objects.exists()
    page = Client().get(f"/join/{posted.token}/?PROLIFIC_PID=Please+call+555&SESSION_ID=b")
    assert (page.status_code, page.context["visit"].shown_id) == (200, "")
    assert b"call 555" not in page.content
    prolific.ask_for_more(mturk, hit_type, n=2)
    other = prolific.publish(connection, hit_type, items_per_session=1)
    answer = prolific.join(posted, fake.world.arrive(fake.world.studies[other.external_id]))
    assert answer.context["code"] == "not_sent"
    assert not models.Session.objects.exists()


def test_whoever_has_begun_comes_back_and_nobody_new_without_the_token(fake, posted, connection):
    submission, _browser, _answer = prolific.arrive(fake, posted)
    fake.fail_next("submission", "lose", "lose", "lose")
    assert prolific.join(posted, submission).status_code == 302
    assert models.Session.objects.get().items.count() == 2
    disconnect(connection=connection)
    invented = prolific.join(posted, submission, PROLIFIC_PID="c" * 24, SESSION_ID="d" * 24)
    assert (invented.status_code, prolific.join(posted, submission).status_code) == (400, 302)
    assert models.Session.objects.count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ("submission", ""),
        ("submission", "500"),
        ("submissions", "500"),
        *(("move_submission", fault) for fault in prolific.FAULTS),
    ],
)  # fmt: skip
def test_an_approval_is_paid_once_there_and_nothing_here(fake, mturk, operation, fault, handed_in):
    movements = models.LedgerTransaction.objects.count()
    prolific.approve(mturk, handed_in)
    fake.fail_next(operation, *[fault] * 4 * bool(fault))
    prolific.minutes(6 if fault else 2)
    assert (handed_in.status, prolific.paid(fake, "reward")) == ("APPROVED", [200])
    assert fake.calls.count("move_submission") == 1 or fault
    assert models.Intent.objects.get().state == "done"
    assert models.LedgerTransaction.objects.count() == movements
    assert money.transfers.make_batch() is None
    assert money.reconciliation.store_audit().n_problems == 0


@pytest.mark.slow
@pytest.mark.parametrize("n_done", [1, 2])
def test_an_approval_waits_until_the_participant_has_come_back(fake, mturk, posted, n_done):
    submission, browser, _answer = prolific.arrive(fake, posted)
    prolific.work(browser, times=n_done)
    first = models.Assignment.objects.filter(status="Submitted").first()
    mturk.approve_assignment(AssignmentId=first.public_id)
    call_recruiters()
    assert models.Intent.objects.get().state == "written"
    assert models.Session.objects.get().state == ("started" if n_done == 1 else "approved")
    prolific.work(browser, times=2 - n_done)
    session = models.Session.objects.get()
    assert (session.state, session.outcome) == ("approved", "completed")
    fake.world.enter(submission, session.code)
    call_recruiters()
    assert (submission.status, models.Intent.objects.get().state) == ("APPROVED", "done")
    assert prolific.paid(fake, "reward") == [200]


@pytest.mark.slow
@pytest.mark.parametrize("status", ["RETURNED", "TIMED-OUT"])
@pytest.mark.parametrize("is_first", [True, False])
def test_approving_answers_of_who_left_pays_nothing_there(fake, mturk, posted, status, is_first):
    submission, _browser = prolific.begun(fake, posted)
    done = models.Assignment.objects.get(status="Submitted")
    if is_first:  # before it is known that they leave
        mturk.approve_assignment(AssignmentId=done.public_id)
    fake.world.leave(submission, status)
    call_recruiters()
    if not is_first:
        mturk.approve_assignment(AssignmentId=done.public_id)
    prolific.minutes(2)
    assert (prolific.reload(done).status, submission.status) == ("Approved", status)
    assert prolific.paid(fake, "reward") == []
    intent, state = models.Intent.objects.get(), status.lower().replace("-", "_")
    problem = dispatch.LEFT.format(state=state.replace("_", " "))
    assert (intent.state, intent.problem) == ("refused", problem)
    assert models.Session.objects.get().state == state
    assert prolific.charges("reward") == []
    fake.world.approve(submission)  # by hand, at Prolific
    call_recruiters()
    assert models.Session.objects.get().state == "approved"


def test_an_approval_of_who_withdrew_before_it_was_made_there_pays_nothing(fake, mturk, posted):
    submission, _browser = prolific.begun(fake, posted)
    prolific.approve_submitted(mturk)
    session = sessions.end_session(session=models.Session.objects.get(), outcome="no_consent")
    fake.world.enter(submission, session.code)
    prolific.minutes(2)
    assert (submission.status, prolific.paid(fake, "reward")) == ("AWAITING REVIEW", [])
    # Its answer is deleted: of what nobody had been told yet there is nothing to tell.
    assert not models.Intent.objects.exists()
    assert prolific.charges("reward") == []
    fake.world.approve(submission)  # by hand, at Prolific
    prolific.minutes(2)
    assert len(prolific.charges("reward")) == 1


def test_a_refused_approval_costs_nothing_until_it_is_made_there(fake, mturk, handed_in):
    prolific.approve(mturk, handed_in)
    fake.fail_next("move_submission", "400")
    for _minute in range(2):
        call_recruiters()
        assert approve_overdue() == 0
    assert (handed_in.status, models.Intent.objects.get().state) == ("AWAITING REVIEW", "refused")
    assert (models.Session.objects.get().state, prolific.charges("reward")) == ("finished", [])
    fake.world.approve(handed_in)  # by hand, at Prolific
    prolific.minutes(2)
    assert (models.Session.objects.get().state, len(prolific.charges("reward"))) == ("approved", 1)


@pytest.mark.parametrize("is_approved", [True, False])
def test_a_decision_found_there_is_one_on_all_items_here(fake, mturk, is_approved, handed_in):
    """Prolific takes the decision, and is away after that until somebody has looked there."""
    first = {"AssignmentId": prolific.assignments(handed_in)[0]}
    if is_approved:
        mturk.approve_assignment(**first)
    else:
        mturk.reject_assignment(**first, RequesterFeedback=prolific.REASON)
    fake.fail_next("move_submission", "drop")
    call_recruiters()
    dispatch.decide_uncertain(intent=models.Intent.objects.get(state="uncertain"), was_done=True)
    call_recruiters()
    decided = "Approved" if is_approved else "Rejected"
    assert set(prolific.statuses()) == {decided}
    assert (handed_in.status, models.Session.objects.get().state) == (
        decided.upper(),
        decided.lower(),
    )


def test_a_rejection_taken_back_is_none_though_it_was_found_there(fake, mturk, handed_in):
    first = {"AssignmentId": prolific.assignments(handed_in)[0]}
    mturk.reject_assignment(**first, RequesterFeedback=prolific.REASON)
    fake.fail_next("move_submission", "drop")
    call_recruiters()
    mturk.approve_assignment(**first, OverrideRejection=True)
    dispatch.decide_uncertain(intent=models.Intent.objects.get(state="uncertain"), was_done=True)
    assert "Rejected" not in prolific.statuses()
    assert models.Session.objects.get().state == "approved"
    call_recruiters()
    assert (set(prolific.statuses()), handed_in.status) == ({"Approved"}, "APPROVED")


@pytest.mark.slow
def test_a_rejection_needs_prolifics_hundred_characters_and_is_taken_back(
    fake, mturk, posted, handed_in
):
    first = {"AssignmentId": prolific.assignments(handed_in)[0]}
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.reject_assignment(**first, RequesterFeedback="Too fast.")
    assert "RequesterFeedback" in str(found.value)
    assert {"100", "9"} <= set(prolific.numbers(found.value))
    mturk.reject_assignment(**first, RequesterFeedback=prolific.REASON)
    fake.fail_next("move_submission", "drop")
    prolific.minutes(2)
    # Nobody is paid for the other one, which would have been approved by itself here.
    assert (handed_in.status, set(prolific.statuses())) == ("REJECTED", {"Rejected"})
    assert free_and_needed(posted)[1] == 3  # a rejected answer frees no place
    mturk.approve_assignment(**first, OverrideRejection=True)
    call_recruiters()
    assert (handed_in.status, set(prolific.statuses())) == ("APPROVED", {"Approved"})
    assert prolific.paid(fake, "reward") == [200]


@pytest.mark.slow
def test_who_is_rejected_here_and_ran_out_of_time_there_holds_no_place(fake, mturk, posted):
    before = free_and_needed(posted)[0]
    submission, _browser = prolific.begun(fake, posted, 2)
    prolific.reject(mturk, submission)
    fake.world.leave(submission, "TIMED-OUT")
    rejection = models.Intent.objects.get()
    for hours in (1, 22):  # a late code has it rejected there
        clock.advance(timedelta(hours=hours))
        call_recruiters()
        rejection.refresh_from_db()
        assert rejection.state == "written"
    clock.advance(timedelta(hours=2))
    prolific.minutes(2)
    rejection.refresh_from_db()
    assert (rejection.state, rejection.problem) == ("refused", str(dispatch.RAN_OUT))
    assert models.Session.objects.get().state == "rejected"
    assert free_and_needed(posted)[0] == before
    assert erasure_obstacles(models.Session.objects.get().worker) == []
    # A code that comes days after is rejected there then.
    fake.world.enter(submission, models.Session.objects.get().code)
    prolific.minutes()
    assert (submission.status, models.Intent.objects.get().state) == ("REJECTED", "done")
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert (prolific.paid(fake, "reward"), models.Session.objects.get().state) == ([], "rejected")


def test_what_time_approved_there_before_our_rejection_is_approved_here(fake, mturk, handed_in):
    mturk.reject_assignment(
        AssignmentId=prolific.assignments(handed_in)[0], RequesterFeedback=prolific.REASON
    )
    fake.world.pass_time(timedelta(days=21))
    call_recruiters()
    intent = models.Intent.objects.get()
    assert (intent.state, intent.problem) == ("refused", str(dispatch.APPROVED_BEFORE))
    assert (models.Session.objects.get().state, set(prolific.statuses())) == (
        "approved",
        {"Approved"},
    )


@pytest.fixture
def bonus(fake, mturk, posted, connection):
    prolific.pay_in_pounds(mturk, connection, prolific.hand_in(fake, posted))
    return models.Intent.objects.get()


@pytest.fixture
def earner(fake, bonus):
    return fake.world.submissions[bonus.session.submission_id]


def test_a_refusal_names_no_participant(bonus, earner):
    earner.study = replace(earner.study)
    call_recruiters()
    bonus.refresh_from_db()
    assert (bonus.state, bool(bonus.problem)) == ("refused", True)
    assert earner.id not in bonus.problem
    assert earner.participant not in bonus.problem


BEFORE_PAYING = ("submission", "prepare_bonuses", "submissions", "balance")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "fault", "n"),
    [
        ("pay_bonuses", "drop", 1),
        ("pay_bonuses", "drop", 0),
        *((operation, "500", 4) for operation in BEFORE_PAYING),
        *(("prepare_bonuses", fault, 4) for fault in prolific.FAULTS),
    ],
)
def test_a_bonus_is_paid_once_though_answers_are_lost(fake, bonus, operation, fault, n):
    fake.fail_next(operation, *[fault] * n)
    prolific.minutes(6 if n > 1 else 3)
    assert (prolific.paid(fake, "bonus"), fake.calls.count("pay_bonuses")) == ([200], 1)
    assert (models.Intent.objects.get().state, prolific.charges("bonus")) == ("done", [2])


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["lose", "429", "500"])
def test_a_bonus_that_does_not_show_is_uncertain(fake, mturk, connection, bonus, earner, fault):
    prolific.pay_in_pounds(mturk, connection, earner, amount="0.75", token="t2")
    fake.fail_next("pay_bonuses", fault)
    prolific.minutes()
    first, second = models.Intent.objects.order_by("pk")
    assert (first.state, second.state) == ("uncertain", "written")
    assert first.problem == str(dispatch.MAY_SHOW)
    clock.advance(timedelta(hours=1))
    call_recruiters()
    first.refresh_from_db()
    assert first.problem == str(dispatch.NOT_SHOWN)
    assert prolific.paid(fake, "bonus") == []
    assert "1.50 USD" in _told("--uncertain")
    dispatch.decide_uncertain(intent=first, was_done=False)
    prolific.minutes(2)
    assert sorted(prolific.paid(fake, "bonus")) == [100, 200]
    with refused(InvalidParameter, "not_uncertain"):
        dispatch.decide_uncertain(intent=first, was_done=False)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_bonus_that_shows_there_is_not_paid_again_whatever_was_said(fake, bonus, is_late):
    """Its answer was lost, and whoever is asked in that minute says that it was not done."""
    fake.fail_next("pay_bonuses", "drop")
    call_recruiters()
    intent = models.Intent.objects.get()
    if is_late:  # nobody looked for an hour, the site itself neither
        clock.advance(timedelta(hours=1, minutes=1))
    else:
        with refused(InvalidParameter, "may_still_show"):
            dispatch.decide_uncertain(intent=intent, was_done=False)
        intent.refresh_from_db()
        models.Intent.objects.update(sent_at=intent.sent_at - timedelta(hours=2))
    dispatch.decide_uncertain(intent=intent, was_done=False)
    prolific.minutes(2)
    assert (prolific.paid(fake, "bonus"), prolific.charges("bonus")) == ([200], [2])
    assert models.Intent.objects.get().state == "done"


def _told(*options):
    out = StringIO()
    call_command("call_recruiters", *options, stdout=out)
    return out.getvalue()


def test_an_answer_that_tls_loses_is_no_call_that_never_left(fake, bonus, monkeypatch):
    """The request was read and paid; what came back was no record of TLS."""
    call, broken = requests.request, SSLError(1, "[SSL] record layer failure")

    def lose(method, url, **options):
        answer = call(method, url, **options)
        if url.endswith("/pay/"):
            answer.close()
            reason = urllib3.exceptions.SSLError(broken)
            raise requests.exceptions.SSLError(urllib3.exceptions.MaxRetryError(None, url, reason))
        return answer

    monkeypatch.setattr("marketplace.recruiting.prolific.transport.requests.request", lose)
    prolific.minutes()
    assert prolific.paid(fake, "bonus") == [200]
    assert models.Intent.objects.get().state == "done"


def test_another_workspace_takes_no_name_of_one_with_studies(fake, requester, posted, connection):
    assert "token" not in connection.encrypted_token
    assert models.AuditEntry.objects.filter(action="recruiter.connect").exists()
    facts = {"requester": requester, "name": "Prolific", "token": "token", "workspace": "ab" * 12}
    with refused(InvalidParameter, "other_workspace"):
        prolific.connect(fake, requester, workspace="ab" * 12)
    with refused(InvalidParameter, "other_workspace"):
        offer_prolific(**facts)
    prolific.connect(fake, requester)


def test_a_process_that_was_killed_over_a_bonus_leaves_it_to_be_looked_for(fake, bonus, earner):
    """Claimed and then nothing: of two, one was paid before the kill and one was not."""
    bonus.basis = {"before": [], "prepared": "a" * 24, "total": "2.00"}
    bonus.state, bonus.sent_at = "sent", clock.now()
    bonus.save()
    earner.bonuses.append(150)
    call_recruiters()
    assert models.Intent.objects.get().state == "sent"
    clock.advance(timedelta(minutes=11))
    call_recruiters()
    assert models.Intent.objects.get().state == "done"
    assert "pay_bonuses" not in fake.calls


def test_a_process_that_looked_before_takes_back_no_call_of_another(fake, bonus):
    """It read the bonus as one to pay; another paid it meanwhile, and the answer was lost."""
    fake.fail_next("pay_bonuses", "drop")
    call_recruiters()
    assert not note(bonus, models.Intent.State.WRITTEN)
    assert models.Intent.objects.get().state == "uncertain"


def test_a_message_is_sent_once_at_most(fake, mturk, handed_in):
    worker = models.Session.objects.get().worker.worker_id
    mturk.notify_workers(Subject="Thanks", MessageText="It helped.", WorkerIds=[worker])
    fake.fail_next("send_message", "drop")
    prolific.minutes()
    (message,) = fake.world.messages
    assert message["recipient_id"] == handed_in.participant
    intent = models.Intent.objects.get()
    assert (intent.state, intent.problem) == ("uncertain", str(dispatch.PERHAPS_SENT))
    assert intent.problem in _told("--uncertain")
    _told("--was-done", str(intent.pk))
    assert models.Intent.objects.get().state == "done"


def test_a_token_that_was_withdrawn_is_shown_and_nothing_is_lost(
    fake, mturk, connection, handed_in
):
    prolific.approve(mturk, handed_in)
    fake.token = "another"
    assert TOKEN_REFUSED in _told()
    connection.refresh_from_db()
    assert TOKEN_REFUSED in connection.problem
    assert "token " not in connection.problem.replace(TOKEN_REFUSED, "")
    fake.token = "token"
    call_recruiters()
    assert (handed_in.status, prolific.reload(connection).problem) == ("APPROVED", "")


def test_commands_publish_a_study_of_a_hit_type(fake, requester, hit_type, monkeypatch, capsys):
    monkeypatch.delenv("PROLIFIC_TOKEN", raising=False)
    place = ("--workspace", fake.world.workspace, "--project", fake.world.project)
    with pytest.raises(CommandError) as found:
        call_command("connect_prolific", requester.name, *place)
    assert "PROLIFIC_TOKEN" in str(found.value)
    monkeypatch.setenv("PROLIFIC_TOKEN", "token")
    call_command("connect_prolific", requester.name, *place)
    assert "1000.00 GBP" in capsys.readouterr().out
    pay = ("--reward", "1.50", "--json")
    terms = (*pay, "--minutes", "10", "--items", "2")
    call_command("recruit", "--hit-type", hit_type.public_id, *terms)
    facts = json.loads(capsys.readouterr().out)
    assert (facts["state"], Decimal(facts["cost"])) == ("draft", 8)
    with refused(InvalidParameter, "not_confirmed"):
        call_command("recruit", "--study", facts["study"], *pay, "--confirm", "9")
    call_command("recruit", "--study", facts["study"], *pay, "--confirm", facts["cost"])
    call_command("recruit", "--study", facts["study"], "--stop")
    assert models.RecruitedStudy.objects.get().state == "stopped"


# Rewards that are changed by hand at the recruiter


def sum_of(*kinds):
    rows = models.RecruiterCharge.objects.all()
    return tuple(sum(one.amount for one in rows.filter(kind=kind)) for kind in kinds)


@pytest.mark.slow
def test_a_reward_that_is_raised_there_is_charged_as_it_is_there(posted, mturk, fake, connection):
    there = fake.world.studies[posted.external_id]
    first, second = prolific.hand_in(fake, posted), prolific.hand_in(fake, posted)
    prolific.approve(mturk, first)
    call_recruiters()
    assert sum_of("study", "reward") == (Decimal(8), Decimal(2))
    fake.world.change_reward(there, 450)
    prolific.approve(mturk, second)
    prolific.minutes(3)
    # Six pounds each with fees: four places, two of them paid.
    assert sum_of("study", "reward") == (Decimal(24), Decimal(12))
    assert fake.world.available == 100_000 - 2400
    (told,) = standing.studies_of(models.RecruitedStudy.objects.filter(pk=posted.pk))
    assert (told["reward"], told["reward_there"]) == ("1.50", "4.50")
    assert told["charges"] == {"study": "24.0000", "reward": "12.0000"}


@pytest.mark.slow
def test_who_was_paid_a_raised_reward_keeps_it(posted, mturk, fake):
    there, submission = fake.world.studies[posted.external_id], prolific.hand_in(fake, posted)
    prolific.approve(mturk, submission)
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
    prolific.minutes(3)
    assert sum_of("study") == (24,)


def test_pay_of_who_is_screened_out_is_charged_as_it_is_there(connection, hit_type, fake):
    study = prolific.publish(
        connection, hit_type, screen_out_reward=Decimal("0.20"), screen_out_places=5
    )
    there = fake.world.studies[study.external_id]
    for code in there.facts["completion_codes"]:
        for action in code["actions"]:
            if action["action"] == "FIXED_SCREEN_OUT_PAYMENT":
                action["fixed_screen_out_reward"] = 60
    fake.world.enter(fake.world.arrive(there), prolific.completion_code(study, "screened_out"))
    prolific.minutes(2)
    assert sum_of("screen_out") == (Decimal("0.8"),)


# A whole study, with the answer of every kind of call dropped in turn


# Those of a row are dropped in the same story, as different actions of it make them.
CALLED = (
    ("me", "calculate_cost", "submissions", "demographic_export"),
    ("balance", "project_studies", "submission", "add_to_group"),
    ("projects", "create_group", "move_submission"),
    ("hook_secrets", "create_study", "prepare_bonuses"),
    ("create_hook_secret", "study"),
    ("subscriptions", "move_study"),
    ("subscribe", "change_study", "pay_bonuses"),
    ("confirm_subscription", "send_message"),
)


def pressed(act):
    for _ in range(3):
        try:
            return act()
        except InvalidParameter:
            continue
    return act()


def open_link(study, submission):
    browser = Client()
    for _ in range(2):
        if prolific.join(study, submission, browser).status_code == 302:
            return browser
    raise AssertionError("not let in")


def opened(fake, requester, hit_type):
    connection, _account = pressed(lambda: prolific.connect(fake, requester))
    study, cost = pressed(lambda: prolific.draft(connection, hit_type))
    pressed(lambda: publish_study(study=study, confirmed=cost.total))
    return connection, study


def participated(fake, study):
    there = fake.world.studies[study.external_id]
    good, bad, late, left = came = [fake.world.arrive(there) for _ in range(4)]
    browsers = {one.id: open_link(study, one) for one in came}
    for one in (good, bad):
        prolific.work(browsers[one.id], times=2)
        fake.world.enter(one, prolific.session_of(one).code)
    prolific.work(browsers[late.id])
    held = prolific.assignments(late)[1]
    fake.world.leave(left)
    fake.world.leave(late, "TIMED-OUT")
    prolific.minutes(2)
    prolific.submit_page(held)
    fake.world.enter(late, prolific.session_of(late).code)
    return came


def decided(mturk, connection, good, bad, late):
    prolific.approve(mturk, good, late)
    mturk.reject_assignment(
        AssignmentId=prolific.assignments(bad)[0], RequesterFeedback=prolific.REASON
    )
    prolific.pay_in_pounds(mturk, connection, good)
    worker = prolific.session_of(good).worker.worker_id
    mturk.notify_workers(Subject="Thanks", MessageText="It helped.", WorkerIds=[worker])
    mturk.create_worker_block(WorkerId=prolific.session_of(bad).worker.worker_id, Reason="Careless")


@pytest.mark.slow
@pytest.mark.parametrize("operations", CALLED)
def test_every_answer_is_dropped_in_turn(fake, mturk, requester, hit_type, operations):
    for operation in operations:
        fake.fail_next(operation, "drop")
    connection, study = opened(fake, requester, hit_type)
    movements = models.LedgerTransaction.objects.count()  # what was held was released
    good, bad, late, left = participated(fake, study)
    decided(mturk, connection, good, bad, late)
    prolific.ask_for_more(mturk, hit_type)
    pressed(lambda: set_places(study=study, total=5))
    prolific.minutes(5)
    pressed(lambda: files.fetch_demographics(study=study))
    pressed(lambda: stop_study(study=study))
    clock.advance(timedelta(minutes=61))
    call_recruiters()
    assert [fake.faults[operation] for operation in operations] == [[]] * len(operations)
    assert (good.status, bad.status, late.status) == ("APPROVED", "REJECTED", "APPROVED")
    states = [prolific.session_of(one).state for one in (good, bad, late, left)]
    assert states == ["approved", "rejected", "approved", "returned"]
    assert_all_is_paid_once(fake, study)
    assert {bad.participant} in fake.world.groups.values()
    unsure = models.Intent.objects.exclude(state="done")
    assert [one.kind for one in unsure] == (["message"] if "send_message" in operations else [])
    assert models.LedgerTransaction.objects.count() == movements
    assert money.transfers.make_batch() is None
    assert money.reconciliation.store_audit().n_problems == 0


def assert_all_is_paid_once(fake, study):
    there = fake.world.studies[study.external_id]
    assert (there.places, there.status) == (5, "COMPLETED")
    assert [one.status for one in fake.world.studies.values()] == ["COMPLETED"]
    assert (prolific.paid(fake, "reward"), prolific.paid(fake, "bonus")) == ([200, 200], [200])
    assert len(fake.world.messages) == 1
    assert (prolific.charges("bonus"), prolific.charges("reward")) == ([2], [2, 2])
    for hit in models.Hit.objects.all():
        taken = models.Assignment.objects.on(hit).exclude(status__in=["Returned", "Abandoned"])
        assert taken.filter(surplus_answer=None).count() <= hit.max_assignments


# Invitations and screening out


PAY = {"screen_out_reward": Decimal("0.20"), "screen_out_places": 2}


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("approval_rate=95..", Filter("approval_rate", lower=Decimal(95))),
        ("age = ..40.5", Filter("age", upper=Decimal("40.5"))),
    ],
)
def test_a_line_says_a_filter_as_people_write_it(line, meant):
    assert drafts.filter_of(line) == meant


def test_filters_and_labels_are_in_the_draft_beside_who_is_excluded(connection, hit_type, fake):
    filters = ("age = 18..65", "handedness = 1, 2")
    study, _cost = prolific.draft(connection, hit_type, filters=filters, labels=("ai_evaluation",))
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
    return prolific.draft(
        connection, prolific.create_hits(mturk, QualificationRequirements=wants), **PAY
    )


def test_the_price_has_the_most_that_screening_out_may_cost(screened, fake, mturk):
    study, cost = screened
    # 4 places of 1.50 and 2 of 0.20, with a fee of a third.
    assert cost.displayed == Decimal("8.53")
    with refused(InvalidParameter, "not_confirmed") as found:
        publish_study(study=study, confirmed=Decimal("8.00"))
    assert "8.53 GBP" in str(found.value)
    publish_study(study=study, confirmed=Decimal("8.53"))
    assert prolific.reload(study).state == "active"
    prolific.ask_for_more(mturk, study.hit_type)
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
    movements = models.LedgerTransaction.objects.count()
    submission, browser, _answer = prolific.arrive(fake, study)
    page = browser.get("/worker/study/", follow=True)
    assert page.context["session"].study.screen_out_reward == Decimal("0.20")
    session = models.Session.objects.get()
    assert (session.outcome, session.items.count()) == ("screened_out", 0)
    fake.world.enter(submission, session.code)
    prolific.minutes(3)
    session.refresh_from_db()
    assert (submission.status, session.state) == ("SCREENED OUT", "screened_out")
    assert len(prolific.paid(fake, "screen-out")) == 1
    charge = models.RecruiterCharge.objects.get(kind="screen_out")
    assert (charge.amount.quantize(Decimal("0.01")), charge.session) == (Decimal("0.27"), session)
    amounts = [round(amount, 2) for _text, amount, _currency in charges.totals_of(study)]
    assert amounts == [Decimal("0.27"), Decimal(8)]
    assert models.LedgerTransaction.objects.count() == movements


@pytest.mark.parametrize("opens", [True, False])
def test_who_enters_that_code_unasked_is_charged_for_and_noted(connection, hit_type, fake, opens):
    study = prolific.publish(connection, hit_type, **PAY)
    if opens:
        submission, _browser, _answer = prolific.arrive(fake, study)
    else:
        submission = fake.world.arrive(fake.world.studies[study.external_id])
    fake.world.enter(submission, prolific.completion_code(study, "screened_out"))
    prolific.minutes(3)
    session = models.Session.objects.get()
    assert (session.submission_id, session.state) == (submission.id, "screened_out")
    assert not session.items.filter(assignment__status="Accepted").exists()
    assert models.RecruiterCharge.objects.get(kind="screen_out").session == session
    said = models.Intent.objects.get()
    assert (said.kind, said.state) == ("doubt", "refused")
    assert said.problem == submissions.PASSED_ON.format(recruiter="Prolific")


@pytest.mark.parametrize("option", ["--reward", "--screen-out-reward", "--confirm"])
def test_what_is_no_amount_is_refused_by_the_command(option):
    with pytest.raises(CommandError) as found:
        call_command("recruit", "--hit-type", "3A", option, "NaN")
    assert "'NaN'" in str(found.value)


# Devices


CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0"
TELEPHONE = f"Mozilla/5.0 (Linux; Android 10; K) {CHROME} Mobile Safari/537.36"
COMPUTER = f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36"


@pytest.mark.parametrize(
    ("user_agent", "device"),
    [
        (TELEPHONE, "mobile"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Mobile/15E148", "mobile"),
        ("Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) Mobile/15E148", "tablet"),
        ("Mozilla/5.0 (Linux; Android 13; SM-X200) Chrome/140.0.0.0 Safari/537.36", "tablet"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "desktop"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Safari/605.1.15", "desktop"),
        ("curl/8.0", ""),
    ],
)
def test_a_browser_says_what_it_runs_on(user_agent, device):
    assert device_of(user_agent) == device


def test_the_code_for_a_device_that_does_not_do_is_decided_at_arrival(connection, hit_type, fake):
    study = prolific.publish(connection, hit_type, devices=("desktop",))
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
        prolific.join(study, submission, browser)
        session = prolific.session_of(submission)
        outcomes.append((session.outcome, session.items.count()))
        if user_agent == TELEPHONE:
            code = prolific.completion_code(study, "incompatible_device")
            assert code in text_of(browser.get("/worker/study/", follow=True))
    assert outcomes == [("incompatible_device", 0), ("", 2), ("", 2)]

# ruff: noqa: F811 (fixtures)
"""A study at Prolific from its draft to the last bonus, at the fake, over HTTP.

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

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
    Assignment,
    AuditEntry,
    Intent,
    LedgerTransaction,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    Session,
)
from marketplace.money.payouts import make_batch
from marketplace.money.reconciliation import store_audit
from marketplace.people.erasure import erasure_obstacles
from marketplace.recruiting.asked_arrivals import MOST_UNKNOWN
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import connect_prolific, disconnect, offer_prolific
from marketplace.recruiting.decisions import approve_overdue
from marketplace.recruiting.drafts import Posting, draft_study
from marketplace.recruiting.fake_prolific import operations
from marketplace.recruiting.intents import note
from marketplace.recruiting.needed_places import free_and_needed, places_for
from marketplace.recruiting.posting import (
    pause_study,
    price_places,
    publish_study,
    resume_study,
    set_places,
    stop_study,
)
from marketplace.recruiting.sessions import end_session, leave_session
from marketplace.recruiting.settlements import decide_uncertain
from tests.marketplace.prolific import (  # noqa: F401
    FAULTS,
    REWARD,
    arrive,
    ask_for_more,
    assignments,
    connection,
    fake,
    hand_in,
    hit_type,
    paid,
    pay_in_pounds,
    posted,
)
from tests.marketplace.test_recruited_studies import work
from tests.marketplace.test_worker_site import text_of

REASON = "The ratings are the same for every response, also where two responses contradict. " * 2


def test_a_token_is_tried_and_kept_encrypted(fake, requester, connection):
    assert "token" not in connection.encrypted_token
    assert AuditEntry.objects.filter(action="recruiter.connect").exists()
    with pytest.raises(InvalidParameter, match="does not accept the token"):
        connect_prolific(
            requester=requester, name="Other", token="wrong", workspace=fake.world.workspace
        )
    assert not RecruiterConnection.objects.filter(name="Other").exists()


@pytest.mark.parametrize(
    ("field", "words"),
    [("workspace", "no workspace ffffffff"), ("project", "no project ffffffff")],
)
def test_a_workspace_or_project_that_is_not_there_is_named(fake, requester, field, words):
    ids = {"workspace": fake.world.workspace, "project": fake.world.project}
    with pytest.raises(InvalidParameter, match=words):
        connect_prolific(
            requester=requester, name="Other", token="token", **ids | {field: "f" * 24}
        )
    assert not RecruiterConnection.objects.filter(name="Other").exists()


def test_places_are_the_judgments_that_are_wanted_by_a_participants_hits(hit_type, fake, posted):
    # Those that an open study has are no more needed.
    assert places_for(hit_type, 3) == 0
    assert free_and_needed(posted) == (4, 4)
    there = fake.world.studies[posted.external_id]
    assert (there.places, there.status) == (4, "ACTIVE")
    assert there.facts["reward"] == 150
    assert there.facts["external_study_url"].endswith(
        "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    hand_in(fake, posted)
    assert free_and_needed(posted) == (3, 3)
    RecruitedStudy.objects.update(state="paused")
    assert (places_for(hit_type, 2), places_for(hit_type, 3)) == (3, 2)


def test_a_rejected_answer_frees_no_place(hit_type, fake, mturk, posted):
    submission = hand_in(fake, posted)
    mturk.reject_assignment(AssignmentId=assignments(submission)[0], RequesterFeedback=REASON)
    assert free_and_needed(posted)[1] == 3


def test_no_more_places_are_priced_or_published_than_judgments_need(
    hit_type, fake, connection, mturk
):
    facts = {"reward": REWARD, "minutes": 10, "items_per_session": 2}
    with pytest.raises(InvalidParameter, match="8 judgments are left to give, which need 4 places"):
        draft_study(connection=connection, hit_type=hit_type, values=Posting(places=5, **facts))
    study, cost = draft_study(connection=connection, hit_type=hit_type, values=Posting(**facts))
    late, _cost = draft_study(connection=connection, hit_type=hit_type, values=Posting(**facts))
    publish_study(study=study, confirmed=cost.total)
    hand_in(fake, study)
    with pytest.raises(InvalidParameter, match=r"need 3 places; .* 3 places of the study are free"):
        price_places(study=study, total=5)
    with pytest.raises(InvalidParameter, match="6 judgments are left to give, which need 3 places"):
        publish_study(study=late, confirmed=cost.total)
    for _place in range(3):
        hand_in(fake, study)
    for refused in (
        lambda: publish_study(study=late, confirmed=cost.total),
        lambda: price_places(study=study, total=5),
        lambda: set_places(study=study, total=5),
        lambda: draft_study(
            connection=connection, hit_type=hit_type, values=Posting(places=1, **facts)
        ),
    ):
        with pytest.raises(InvalidParameter, match="No judgment is left to give"):
            refused()
    assert [one.places for one in fake.world.studies.values()] == [4, 4]
    set_places(study=study, total=4)  # as many as there are
    ask_for_more(mturk, hit_type)
    assert price_places(study=study, total=6).total == 4
    with pytest.raises(InvalidParameter, match="4 judgments are left to give, which need 2 places"):
        price_places(study=study, total=7)


def test_a_place_that_was_given_back_is_not_bought_again(hit_type, fake, posted):
    there, _browser, _answer = arrive(fake, posted)
    fake.world.leave(there)
    call_recruiters()
    with pytest.raises(InvalidParameter, match="4 places of the study are free already"):
        price_places(study=posted, total=5)


def test_a_study_published_by_a_try_whose_answer_was_lost_is_not_refused(hit_type, fake, posted):
    for _place in range(4):
        hand_in(fake, posted)
    assert places_for(hit_type, 2) == 0
    assert publish_study(study=posted, confirmed=Decimal(8)).total == 8


def test_every_place_that_is_paid_for_has_work(hit_type, fake, connection):
    values = Posting(reward=REWARD, minutes=10, items_per_session=3)
    study, cost = draft_study(connection=connection, hit_type=hit_type, values=values)
    publish_study(study=study, confirmed=cost.total)
    assert study.places == 3
    for n_items in (3, 3, 2):
        submission, browser, _answer = arrive(fake, study)
        work(browser, times=n_items)
        fake.world.enter(submission, Session.objects.get(submission_id=submission.id).code)
        assert submission.status == "AWAITING REVIEW"
    assert {hit.status for hit in hit_type.hits.all()} == {"Reviewable"}
    assert places_for(hit_type, 3) == 0


def test_as_many_participants_as_one_hit_wants_judgments(hit_type):
    assert places_for(hit_type, 100) == 2


def test_the_command_says_what_the_last_participant_does(hit_type, connection):
    out = StringIO()
    options = {"hit_type": hit_type.public_id, "reward": REWARD, "minutes": 10, "stdout": out}
    call_command("recruit", items=3, **options)
    assert "3 for the 8 judgments that are wanted, 3 each. The last does 2" in out.getvalue()
    call_command("recruit", items=3, places=2, **options)
    assert "2 judgments stay over" in out.getvalue()


def test_it_is_published_for_the_amount_that_is_typed_back_alone(connection, hit_type, fake):
    values = Posting(reward=REWARD, minutes=10, items_per_session=2)
    study, cost = draft_study(connection=connection, hit_type=hit_type, values=values)
    assert (cost.total, cost.currency) == (Decimal(8), "GBP")
    with pytest.raises(InvalidParameter, match=r"asks 8\.00 GBP"):
        publish_study(study=study, confirmed=Decimal(7))
    assert fake.world.studies[study.external_id].status == "UNPUBLISHED"
    hit_type.refresh_from_db()
    assert hit_type.paid_by == "ledger"
    assert Client().get(f"/join/{study.token}/?PROLIFIC_PID=a").status_code == 410
    publish_study(study=study, confirmed=Decimal(8))
    charge = RecruiterCharge.objects.get()
    assert (charge.kind, charge.amount, charge.currency) == ("study", 8, "GBP")


def test_a_draft_whose_reward_was_changed_there_is_not_published_for_the_amount_of_before(
    connection, hit_type, fake
):
    values = Posting(reward=REWARD, minutes=10, items_per_session=2)
    study, cost = draft_study(connection=connection, hit_type=hit_type, values=values)
    there = fake.world.studies[study.external_id]
    fake.world.change_reward(there, 450)
    with pytest.raises(InvalidParameter, match=r"is 4\.50 GBP, and here it is 1\.50 GBP"):
        publish_study(study=study, confirmed=cost.total)
    assert there.status == "UNPUBLISHED"
    hit_type.refresh_from_db()
    assert hit_type.paid_by == "ledger"
    fake.world.change_reward(there, 150)
    publish_study(study=study, confirmed=cost.total)
    assert (there.status, RecruiterCharge.objects.get().amount) == ("ACTIVE", cost.total)


def test_places_of_a_study_whose_reward_was_raised_there_are_charged_as_they_are_there(
    posted, mturk, fake
):
    there = fake.world.studies[posted.external_id]
    fake.world.change_reward(there, 450)
    ask_for_more(mturk, posted.hit_type)
    for buy in (price_places, set_places):
        with pytest.raises(InvalidParameter, match=r"4\.50 GBP, and here it is 1\.50 GBP"):
            buy(study=posted, total=5)
    assert there.places == 4
    with fake.lock:
        operations.change_study(fake.world, {"total_available_places": 5}, there.id)
    call_recruiters()
    amounts = RecruiterCharge.objects.order_by("pk").values_list("amount", flat=True)
    assert list(amounts) == [Decimal(8), Decimal(16), Decimal(6)]  # four raised, one more


def test_to_say_the_places_that_are_there_costs_nothing_more(posted):
    set_places(study=posted, total=posted.places)
    assert RecruiterCharge.objects.get().amount == 8


def test_a_cost_with_fractions_of_a_penny_is_typed_back_to_the_penny(connection, hit_type, fake):
    values = Posting(reward=Decimal("1.00"), minutes=5, items_per_session=2, places=1)
    study, cost = draft_study(connection=connection, hit_type=hit_type, values=values)
    assert cost.total == Decimal("1.3333")
    with pytest.raises(InvalidParameter, match=r"asks 1\.33 GBP for it"):
        publish_study(study=study, confirmed=Decimal("1.34"))
    publish_study(study=study, confirmed=Decimal("1.33"))
    set_places(study=study, total=3, confirmed=Decimal("2.67"))
    assert fake.world.studies[study.external_id].places == 3
    study.refresh_from_db()
    assert study.quoted_cost == Decimal("2.6667")


def test_made_up_arrivals_are_asked_about_a_few_times_and_turn_nobody_away(
    fake, posted, monkeypatch
):
    real, asked = operations.submission, []

    def submission(world, body, key):
        asked.append(key)
        return real(world, body, key)

    monkeypatch.setattr(operations, "submission", submission)
    path = f"/join/{posted.token}/?STUDY_ID={posted.external_id}&PROLIFIC_PID={'c' * 24}"
    for _press in range(3):
        assert Client().post(f"{path}&SESSION_ID={'d' * 24}").status_code == 400
    assert len(asked) == 1
    first, _browser, answer = arrive(fake, posted)
    assert answer.status_code == 302
    for n in range(40):
        assert Client().post(f"{path}&SESSION_ID={n:024d}").status_code == 400
    assert len(asked) == MOST_UNKNOWN + 1
    # Whoever is in the study comes back, and whoever is elsewhere comes.
    ids = f"PROLIFIC_PID={first.participant}&SESSION_ID={first.id}"
    back = Client().post(f"/join/{posted.token}/?STUDY_ID={posted.external_id}&{ids}")
    assert back.status_code == 302
    second = fake.world.arrive(fake.world.studies[posted.external_id])
    ids = f"STUDY_ID={posted.external_id}&PROLIFIC_PID={second.participant}&SESSION_ID={second.id}"
    assert "be asked at the moment" in text_of(Client().post(f"/join/{posted.token}/?{ids}"))
    elsewhere = Client(REMOTE_ADDR="192.0.2.9").post(f"/join/{posted.token}/?{ids}")
    assert elsewhere.status_code == 302


def test_without_its_token_nobody_new_is_let_in(fake, posted, connection):
    submission, _browser, _answer = arrive(fake, posted)
    disconnect(connection=connection)
    path = f"/join/{posted.token}/?STUDY_ID={posted.external_id}"
    invented = Client().post(f"{path}&PROLIFIC_PID={'c' * 24}&SESSION_ID={'d' * 24}")
    assert invented.status_code == 400
    begun = f"{path}&PROLIFIC_PID={submission.participant}&SESSION_ID={submission.id}"
    assert Client().post(begun).status_code == 302
    assert Session.objects.count() == 1


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", ["create_study", "move_study", "change_study", "study"])
def test_one_study_with_the_right_places_whatever_is_lost(
    connection, hit_type, fake, mturk, operation, fault
):
    ask_for_more(mturk, hit_type, 2)
    values = Posting(reward=REWARD, minutes=10, items_per_session=2, places=6)
    fake.fail_next(operation, fault)
    for _press in range(3):
        try:
            study, cost = draft_study(connection=connection, hit_type=hit_type, values=values)
            break
        except InvalidParameter:
            continue
    for _press in range(3):
        try:
            publish_study(study=study, confirmed=cost.total)
            set_places(study=study, total=7)
            break
        except InvalidParameter:
            continue
    there = fake.world.studies[study.external_id]
    assert (there.status, there.places) == ("ACTIVE", 7)
    assert sum(one.status == "ACTIVE" for one in fake.world.studies.values()) == 1
    assert len(fake.world.studies) == 1 or fault == "lose"
    study.refresh_from_db()
    assert study.state == "active"


def test_a_study_is_paused_gone_on_with_and_stopped_in_both_places(fake, posted):
    there = fake.world.studies[posted.external_id]
    for move, status, state in (
        (pause_study, "PAUSED", "paused"),
        (resume_study, "ACTIVE", "active"),
        (stop_study, "COMPLETED", "stopped"),
    ):
        fake.fail_next("move_study", "drop")
        move(study=posted)
        assert (there.status, posted.state) == (status, state)


@pytest.mark.parametrize(
    "changed",
    [
        {"PROLIFIC_PID": "0" * 24},
        {"SESSION_ID": "0" * 24},
        {"STUDY_ID": "0" * 24, "SESSION_ID": "../studies"},
        {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"},
    ],
)
def test_ids_that_prolific_did_not_send_are_not_let_in(fake, posted, changed):
    _submission, _browser, answer = arrive(fake, posted, **changed)
    assert answer.status_code >= 400
    assert not Session.objects.exists()


def test_a_submission_of_another_study_is_not_let_in(fake, posted, mturk, connection, hit_type):
    ask_for_more(mturk, hit_type, n=2)
    values = Posting(reward=REWARD, minutes=10)
    other, cost = draft_study(connection=connection, hit_type=hit_type, values=values)
    publish_study(study=other, confirmed=cost.total)
    submission = fake.world.arrive(fake.world.studies[other.external_id])
    _there, _browser, answer = arrive(
        fake, posted, PROLIFIC_PID=submission.participant, SESSION_ID=submission.id
    )
    assert "did not send this" in text_of(answer)
    assert not Session.objects.exists()


def test_whoever_has_begun_comes_back_though_prolific_is_away(fake, posted):
    submission, _browser, _answer = arrive(fake, posted)
    held = Session.objects.get().items.count()
    query = (
        f"PROLIFIC_PID={submission.participant}&STUDY_ID={posted.external_id}"
        f"&SESSION_ID={submission.id}"
    )
    fake.fail_next("submission", "lose", "lose", "lose")
    again = Client().post(f"/join/{posted.token}/?{query}")
    assert again.status_code == 302
    assert Session.objects.get().items.count() == held == 2


def test_an_approval_pays_once_at_prolific_and_nothing_here(fake, mturk, posted):
    submission = hand_in(fake, posted)
    movements = LedgerTransaction.objects.count()
    for assignment in assignments(submission):
        mturk.approve_assignment(AssignmentId=assignment)
    call_recruiters()
    call_recruiters()
    assert submission.status == "APPROVED"
    assert paid(fake, "reward") == [200]
    assert fake.calls.count("move_submission") == 1
    assert Intent.objects.get().state == "done"
    assert LedgerTransaction.objects.count() == movements
    assert make_batch() is None
    assert store_audit().n_problems == 0


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", ["submission", "move_submission", "submissions"])
def test_an_approval_is_paid_once_whatever_is_lost(fake, mturk, posted, operation, fault):
    submission = hand_in(fake, posted)
    mturk.approve_assignment(AssignmentId=assignments(submission)[0])
    fake.fail_next(operation, *[fault] * 4)
    for _minute in range(6):
        call_recruiters()
    assert submission.status == "APPROVED"
    assert paid(fake, "reward") == [200]
    assert Intent.objects.get().state == "done"


def test_an_approval_waits_until_the_participant_has_come_back(fake, mturk, posted):
    submission, browser, _answer = arrive(fake, posted)
    work(browser, times=2)
    mturk.approve_assignment(AssignmentId=assignments(submission)[0])
    call_recruiters()
    assert Intent.objects.get().state == "written"
    fake.world.enter(submission, Session.objects.get().code)
    call_recruiters()
    assert (submission.status, Intent.objects.get().state) == ("APPROVED", "done")


def test_approving_the_first_hit_at_once_leaves_the_participant_at_work(fake, mturk, posted):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    done = Assignment.objects.get(status=Assignment.Status.SUBMITTED)
    mturk.approve_assignment(AssignmentId=done.public_id)
    call_recruiters()
    assert Session.objects.get().state == "started"
    work(browser)
    session = Session.objects.get()
    assert (session.state, session.outcome) == ("approved", "completed")
    fake.world.enter(submission, session.code)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])


@pytest.mark.parametrize("status", ["RETURNED", "TIMED-OUT"])
@pytest.mark.parametrize("is_first", [True, False])
def test_approving_answers_of_who_left_pays_nothing_there(fake, mturk, posted, status, is_first):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    done = Assignment.objects.get(status=Assignment.Status.SUBMITTED)
    if is_first:  # before it is known that they leave
        mturk.approve_assignment(AssignmentId=done.public_id)
    fake.world.leave(submission, status)
    call_recruiters()
    if not is_first:
        mturk.approve_assignment(AssignmentId=done.public_id)
    for _minute in range(2):
        call_recruiters()
    done.refresh_from_db()
    assert (done.status, submission.status) == ("Approved", status)
    assert paid(fake, "reward") == []
    intent = Intent.objects.get()
    assert (intent.state, "approve it there" in intent.problem) == ("refused", True)
    assert Session.objects.get().state == status.lower().replace("-", "_")
    assert not RecruiterCharge.objects.filter(kind="reward").exists()
    fake.world.approve(submission)  # by hand, at Prolific
    call_recruiters()
    assert Session.objects.get().state == "approved"


def test_what_is_left_of_a_participation_that_was_approved_in_part_is_free_again(
    fake, mturk, posted
):
    RecruitedStudy.objects.update(discards_returned=True)
    _submission, browser, _answer = arrive(fake, posted)
    work(browser)
    done = Assignment.objects.get(status=Assignment.Status.SUBMITTED)
    mturk.approve_assignment(AssignmentId=done.public_id)
    session = Session.objects.get()
    # It counts as approved here, so that it is not looked at there until the approval is sent.
    Session.objects.update(state="approved")
    leave_session(session=session, state="returned")
    session.refresh_from_db()
    assert session.state == "returned"
    statuses = Assignment.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["Approved", "Returned"]


def test_an_approval_of_who_withdrew_before_it_was_made_there_pays_nothing(fake, mturk, posted):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    done = Assignment.objects.get(status=Assignment.Status.SUBMITTED)
    mturk.approve_assignment(AssignmentId=done.public_id)
    session = end_session(session=Session.objects.get(), outcome="no_consent")
    fake.world.enter(submission, session.code)
    for _minute in range(2):
        call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("AWAITING REVIEW", [])
    # Its answer is deleted: of what nobody had been told yet there is nothing to tell.
    assert not Intent.objects.exists()
    assert not RecruiterCharge.objects.filter(kind="reward").exists()
    fake.world.approve(submission)  # by hand, at Prolific
    for _minute in range(2):
        call_recruiters()
    assert RecruiterCharge.objects.filter(kind="reward").count() == 1


def test_an_approval_that_was_refused_there_costs_nothing_until_it_is_made_there(
    fake, mturk, posted
):
    submission = hand_in(fake, posted)
    for public_id in assignments(submission):
        mturk.approve_assignment(AssignmentId=public_id)
    fake.fail_next("move_submission", "400")
    for _minute in range(2):
        call_recruiters()
        assert approve_overdue() == 0
    assert (submission.status, Intent.objects.get().state) == ("AWAITING REVIEW", "refused")
    assert Session.objects.get().state == "finished"
    assert not RecruiterCharge.objects.filter(kind="reward").exists()
    fake.world.approve(submission)  # by hand, at Prolific
    for _minute in range(2):
        call_recruiters()
    assert Session.objects.get().state == "approved"
    assert RecruiterCharge.objects.filter(kind="reward").count() == 1


@pytest.mark.parametrize("is_approved", [True, False])
def test_what_somebody_says_was_decided_there_is_decided_on_all_items_here(
    fake, mturk, posted, is_approved
):
    """Prolific takes the decision, and is away after that until somebody has looked there."""
    submission = hand_in(fake, posted)
    first = {"AssignmentId": assignments(submission)[0]}
    if is_approved:
        mturk.approve_assignment(**first)
    else:
        mturk.reject_assignment(**first, RequesterFeedback="x" * 120)
    fake.fail_next("move_submission", "drop")
    call_recruiters()
    decide_uncertain(intent=Intent.objects.get(state="uncertain"), was_done=True)
    call_recruiters()
    decided = "Approved" if is_approved else "Rejected"
    statuses = Assignment.objects.filter(public_id__in=assignments(submission))
    assert set(statuses.values_list("status", flat=True)) == {decided}
    assert (submission.status, Session.objects.get().state) == (decided.upper(), decided.lower())


def test_a_rejection_that_was_taken_back_is_none_though_somebody_says_that_it_was_made_there(
    fake, mturk, posted
):
    submission = hand_in(fake, posted)
    first = {"AssignmentId": assignments(submission)[0]}
    mturk.reject_assignment(**first, RequesterFeedback="x" * 120)
    fake.fail_next("move_submission", "drop")
    call_recruiters()
    mturk.approve_assignment(**first, OverrideRejection=True)
    decide_uncertain(intent=Intent.objects.get(state="uncertain"), was_done=True)
    statuses = Assignment.objects.filter(public_id__in=assignments(submission))
    assert not statuses.filter(status="Rejected").exists()
    assert Session.objects.get().state == "approved"
    call_recruiters()
    assert set(statuses.values_list("status", flat=True)) == {"Approved"}
    assert submission.status == "APPROVED"


def test_a_rejection_needs_prolifics_hundred_characters_and_is_taken_back(fake, mturk, posted):
    submission = hand_in(fake, posted)
    (first, second) = assignments(submission)

    def statuses() -> set[str]:
        rows = Assignment.objects.filter(public_id__in=[first, second])
        return set(rows.values_list("status", flat=True))

    with pytest.raises(mturk.exceptions.RequestError, match="at least 100 characters"):
        mturk.reject_assignment(AssignmentId=first, RequesterFeedback="Too fast.")
    mturk.reject_assignment(AssignmentId=first, RequesterFeedback=REASON)
    fake.fail_next("move_submission", "drop")
    call_recruiters()
    call_recruiters()
    assert submission.status == "REJECTED"
    # Nobody is paid for the other one, which would have been approved by itself here.
    assert statuses() == {"Rejected"}
    mturk.approve_assignment(AssignmentId=first, OverrideRejection=True)
    call_recruiters()
    assert submission.status == "APPROVED"
    assert statuses() == {"Approved"}
    assert paid(fake, "reward") == [200]


def test_who_is_rejected_here_and_ran_out_of_time_there_holds_no_place(fake, mturk, posted):
    before = free_and_needed(posted)[0]
    submission, browser, _answer = arrive(fake, posted)
    work(browser, times=2)
    for assignment in assignments(submission):
        mturk.reject_assignment(AssignmentId=assignment, RequesterFeedback="x" * 120)
    fake.world.leave(submission, "TIMED-OUT")
    rejection = Intent.objects.get()
    for hours in (1, 22):  # a late code has it rejected there
        clock.advance(timedelta(hours=hours))
        call_recruiters()
        rejection.refresh_from_db()
        assert rejection.state == "written"
    clock.advance(timedelta(hours=2))
    for _minute in range(2):
        call_recruiters()
    rejection.refresh_from_db()
    assert (rejection.state, "ran out before" in rejection.problem) == ("refused", True)
    assert Session.objects.get().state == "rejected"
    assert free_and_needed(posted)[0] == before
    assert erasure_obstacles(Session.objects.get().worker) == []


def test_a_code_that_comes_days_after_a_rejection_is_rejected_there_then(fake, mturk, posted):
    submission, browser, _answer = arrive(fake, posted)
    work(browser, times=2)
    for assignment in assignments(submission):
        mturk.reject_assignment(AssignmentId=assignment, RequesterFeedback="x" * 120)
    fake.world.leave(submission, "TIMED-OUT")
    clock.advance(timedelta(days=2))
    for _minute in range(2):
        call_recruiters()
    assert "it is rejected there then" in Intent.objects.get().problem
    fake.world.enter(submission, Session.objects.get().code)
    for _minute in range(3):
        call_recruiters()
    assert (submission.status, Intent.objects.get().state) == ("REJECTED", "done")
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert (paid(fake, "reward"), Session.objects.get().state) == ([], "rejected")


def test_what_time_approved_there_before_our_rejection_is_approved_here(fake, mturk, posted):
    submission = hand_in(fake, posted)
    mturk.reject_assignment(AssignmentId=assignments(submission)[0], RequesterFeedback=REASON)
    fake.world.pass_time(timedelta(days=21))
    call_recruiters()
    intent = Intent.objects.get()
    assert (intent.state, "approved here, too" in intent.problem) == ("refused", True)
    assert Session.objects.get().state == "approved"
    assert set(Assignment.objects.values_list("status", flat=True)) == {"Approved"}


@pytest.mark.parametrize("fault", ["", "drop"])
def test_a_bonus_is_paid_once_though_its_answer_is_lost(fake, mturk, posted, connection, fault):
    submission = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, submission)
    if fault:
        fake.fail_next("pay_bonuses", fault)
    for _minute in range(3):
        call_recruiters()
    assert paid(fake, "bonus") == [200]
    assert fake.calls.count("pay_bonuses") == 1
    assert Intent.objects.get().state == "done"
    charge = RecruiterCharge.objects.get(kind="bonus")
    assert charge.amount == Decimal("2.00")


def test_what_a_refusal_says_of_a_participant_names_nobody(fake, mturk, posted, connection):
    """Whoever may read the study reads it."""
    submission = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, submission)
    submission.study = replace(submission.study)
    call_recruiters()
    refused = Intent.objects.get()
    assert (refused.state, refused.problem) == (
        "refused",
        "Prolific refused: … is not of this study.",
    )


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", ["submission", "prepare_bonuses", "submissions", "balance"])
def test_before_it_is_paid_a_bonus_may_be_asked_for_again(
    fake, mturk, posted, connection, operation, fault
):
    submission = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, submission)
    fake.fail_next(operation, *[fault] * 4)
    for _minute in range(6):
        call_recruiters()
    assert paid(fake, "bonus") == [200]
    assert Intent.objects.get().state == "done"


@pytest.mark.parametrize("fault", ["lose", "429", "500"])
def test_a_bonus_that_did_not_show_itself_is_a_persons_to_decide(
    fake, mturk, posted, connection, fault
):
    submission = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, submission)
    pay_in_pounds(mturk, connection, submission, amount="0.75", token="t2")
    fake.fail_next("pay_bonuses", fault)
    for _minute in range(3):
        call_recruiters()
    first, second = Intent.objects.order_by("pk")
    assert (first.state, second.state) == ("uncertain", "written")
    assert "shows in an hour" in first.problem
    clock.advance(timedelta(hours=1))
    call_recruiters()
    first.refresh_from_db()
    assert "not paid within an hour" in first.problem
    assert paid(fake, "bonus") == []
    assert "of 1.50 USD" in _told("--uncertain")
    decide_uncertain(intent=first, was_done=False)
    call_recruiters()
    call_recruiters()
    assert sorted(paid(fake, "bonus")) == [100, 200]
    with pytest.raises(InvalidParameter, match="it is done"):
        decide_uncertain(intent=first, was_done=False)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_bonus_that_shows_there_is_not_paid_again_whatever_was_said(
    fake, mturk, posted, connection, is_late
):
    """Its answer was lost, and whoever is asked in that minute says that it was not done."""
    submission = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, submission)
    fake.fail_next("pay_bonuses", "drop")
    call_recruiters()
    intent = Intent.objects.get()
    if is_late:  # nobody looked for an hour, the site itself neither
        clock.advance(timedelta(hours=1, minutes=1))
    else:
        with pytest.raises(InvalidParameter, match="Whether it was paid shows within an hour"):
            decide_uncertain(intent=intent, was_done=False)
        intent.refresh_from_db()
        Intent.objects.update(sent_at=intent.sent_at - timedelta(hours=2))
    decide_uncertain(intent=intent, was_done=False)
    for _minute in range(2):
        call_recruiters()
    assert paid(fake, "bonus") == [200]
    assert Intent.objects.get().state == "done"
    assert RecruiterCharge.objects.get(kind="bonus").amount == Decimal("2.00")


def _told(*options):
    out = StringIO()
    call_command("call_recruiters", *options, stdout=out)
    return out.getvalue()


def test_an_answer_that_tls_loses_is_no_call_that_never_left(
    fake, mturk, posted, connection, monkeypatch
):
    """The request was read and paid; what came back was no record of TLS."""
    submission = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, submission)
    call, broken = requests.request, SSLError(1, "[SSL] record layer failure")

    def lose(method, url, **options):
        answer = call(method, url, **options)
        if url.endswith("/pay/"):
            answer.close()
            reason = urllib3.exceptions.SSLError(broken)
            raise requests.exceptions.SSLError(urllib3.exceptions.MaxRetryError(None, url, reason))
        return answer

    monkeypatch.setattr("marketplace.recruiting.prolific.transport.requests.request", lose)
    for _minute in range(3):
        call_recruiters()
    assert paid(fake, "bonus") == [200]
    assert Intent.objects.get().state == "done"


def test_another_workspace_takes_no_name_of_one_with_studies(fake, requester, posted):
    facts = {"requester": requester, "name": "Prolific", "token": "token"}
    for connect in (connect_prolific, offer_prolific):
        with pytest.raises(InvalidParameter, match="has studies in another workspace"):
            connect(**facts, workspace="ab" * 12)
    connect_prolific(**facts, workspace=fake.world.workspace)
    with pytest.raises(InvalidParameter, match="A token is one word"):
        connect_prolific(**facts | {"token": "tök en"}, workspace=fake.world.workspace)


def test_a_link_of_another_study_and_a_text_for_an_id_are_not_repeated(fake, posted):
    page = Client().get(f"/join/{posted.token}/?PROLIFIC_PID=Please+call+555&SESSION_ID=b")
    assert "You work under a number" in page.content.decode()
    assert "Please call" not in page.content.decode()
    _submission, _browser, answer = arrive(fake, posted, STUDY_ID="c" * 24)
    assert answer.status_code == 400
    assert not Session.objects.exists()


def test_a_process_that_was_killed_over_a_bonus_leaves_it_to_be_looked_for(
    fake, mturk, posted, connection
):
    """Claimed and then nothing: of two, one was paid before the kill and one was not."""
    submission = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, submission)
    intent = Intent.objects.get()
    intent.basis = {"before": [], "prepared": "a" * 24, "total": "2.00"}
    intent.state, intent.sent_at = "sent", clock.now()
    intent.save()
    submission.bonuses.append(150)
    call_recruiters()
    assert Intent.objects.get().state == "sent"
    clock.advance(timedelta(minutes=11))
    call_recruiters()
    assert Intent.objects.get().state == "done"
    assert "pay_bonuses" not in fake.calls


def test_who_left_or_ran_out_of_time_there_gives_the_hits_free_here(fake, posted):
    left, _browser, _answer = arrive(fake, posted)
    late, _browser, _answer = arrive(fake, posted)
    fake.world.leave(left)
    fake.world.leave(late, "TIMED-OUT")
    call_recruiters()
    states = dict(Session.objects.values_list("submission_id", "state"))
    assert states == {left.id: "returned", late.id: "timed_out"}
    assert not Assignment.objects.filter(status=Assignment.Status.ACCEPTED).exists()


def test_a_message_is_sent_once_at_most(fake, mturk, posted):
    submission = hand_in(fake, posted)
    worker = Session.objects.get().worker.worker_id
    mturk.notify_workers(Subject="Thanks", MessageText="It helped.", WorkerIds=[worker])
    fake.fail_next("send_message", "drop")
    for _minute in range(3):
        call_recruiters()
    (message,) = fake.world.messages
    assert message["recipient_id"] == submission.participant
    intent = Intent.objects.get()
    assert (intent.state, intent.problem) == ("uncertain", "It may have been sent: no answer came.")
    assert "may have been sent" in _told("--uncertain")
    _told("--was-done", str(intent.pk))
    assert Intent.objects.get().state == "done"


def test_a_token_that_was_withdrawn_is_said_and_nothing_is_lost(fake, mturk, posted, connection):
    submission = hand_in(fake, posted)
    mturk.approve_assignment(AssignmentId=assignments(submission)[0])
    fake.token = "another"
    assert "does not accept the token" in _told()
    connection.refresh_from_db()
    assert "does not accept the token" in connection.problem
    assert "token " not in json.dumps(connection.problem).replace("the token ", "")
    fake.token = "token"
    call_recruiters()
    assert submission.status == "APPROVED"
    connection.refresh_from_db()
    assert connection.problem == ""


def test_the_commands_take_a_hit_type_to_a_published_study(
    fake, requester, hit_type, monkeypatch, capsys
):
    with pytest.raises(CommandError, match="PROLIFIC_TOKEN"):
        call_command("connect_prolific", requester.name, "--workspace", fake.world.workspace)
    monkeypatch.setenv("PROLIFIC_TOKEN", "token")
    place = ("--workspace", fake.world.workspace, "--project", fake.world.project)
    call_command("connect_prolific", requester.name, *place)
    assert "1000.00 GBP available" in capsys.readouterr().out
    pay = ("--reward", "1.50", "--json")
    terms = (*pay, "--minutes", "10", "--items", "2")
    call_command("recruit", "--hit-type", hit_type.public_id, *terms)
    facts = json.loads(capsys.readouterr().out)
    assert (facts["state"], Decimal(facts["cost"])) == ("draft", 8)
    with pytest.raises(CommandError, match=r"asks 8\.00"):
        call_command("recruit", "--study", facts["study"], *pay, "--confirm", "9")
    call_command("recruit", "--study", facts["study"], *pay, "--confirm", facts["cost"])
    call_command("recruit", "--study", facts["study"], "--stop")
    assert "is stopped" in capsys.readouterr().out


def test_a_process_that_looked_before_takes_back_no_call_of_another(
    fake, mturk, posted, connection
):
    """It read the bonus as one to pay; another paid it meanwhile, and the answer was lost."""
    submission = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, submission)
    seen_before = Intent.objects.get()
    fake.fail_next("pay_bonuses", "drop")
    call_recruiters()
    assert not note(seen_before, Intent.State.WRITTEN)
    assert Intent.objects.get().state == "uncertain"

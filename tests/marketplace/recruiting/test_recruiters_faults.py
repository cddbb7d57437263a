"""What a recruiter gets wrong, or keeps for itself, of one participant or study holds up no other:
answers that cannot be read, studies that always fail, accounts that are slow, tokens without a
right; and what was known here is not spent, paid or said twice."""

import json
import time
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection as db_connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.hits import lifecycle
from marketplace.models import (
    Assignment,
    AttachedHitType,
    Hit,
    Intent,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    Session,
)
from marketplace.people.erasure import erase_worker, erasure_obstacles
from marketplace.recruiting import attached as attached_studies
from marketplace.recruiting import groups, patience
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import (
    connect_prolific,
    disconnect,
    offer_prolific,
    try_offer,
)
from marketplace.recruiting.decisions import approve_overdue, request_bonus_in
from marketplace.recruiting.drafts import Posting, discard_draft, draft_study
from marketplace.recruiting.fake_prolific import operations
from marketplace.recruiting.files import join_file, participants_file
from marketplace.recruiting.needed_places import free_and_needed
from marketplace.recruiting.posting import pause_study, price_places, publish_study, stop_study
from marketplace.recruiting.problems import NotAuthorized, Uncertain, Unreachable
from marketplace.recruiting.prolific import transport
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.prolific.transport import Answer, Transport
from marketplace.recruiting.rules import end_rule
from marketplace.recruiting.settlements import decide_uncertain
from marketplace.recruiting.standing import calls_of, decisions_of, studies_of, withdrawn_of
from tests.marketplace.recruiting.test_participant_statuses import take_over
from tests.marketplace.recruiting.test_recruiters_turns import broken
from tests.marketplace.recruiting.test_recruiting_rules import HIT_HERE
from tests.marketplace.test_worker_site import text_of


def another_study(connection, hit_type, mturk, **facts):
    """A second study of the HITs, with work for its participants."""
    ask_for_more(mturk, hit_type, 2)
    return publish(connection, hit_type, places=2, **facts)


def answer_wrongly(monkeypatch, is_wanted, content):
    """Have the recruiter answer this, or what a function makes of its answer."""
    real = Transport._call

    def call(self, method, path, *, query=None, body=None):
        answer = real(self, method, path, query=query, body=body)
        if not is_wanted(path, query or {}):
            return answer
        return Answer(content(answer.content) if callable(content) else content, {})

    monkeypatch.setattr(Transport, "_call", call)


def is_price(path, _query):
    return "cost-calc" in path


def is_list(path, _query):
    return path == "/submissions/"


def third_price_is_lost(monkeypatch):
    real, prices = Prolific.cost, []

    def cost(self, reward, places):
        prices.append(places)
        if len(prices) == 3:
            raise Uncertain("Prolific did not answer.")
        return real(self, reward, places)

    monkeypatch.setattr(Prolific, "cost", cost)


def row_of(made, study):
    """The first row of a file of participants."""
    header, row, *_others = made(study, user=None)
    return dict(zip(header, row, strict=True))


@pytest.mark.parametrize(
    "row",
    [
        {"status": ["ACTIVE"]},
        {"status": None},
        {"id": None},
        {"id": "a\x00b"},
        {"id": "a" * 300},
        {"participant": {"id": "x"}, "participant_id": 5},
        {"started_at": 1700000000},
        {"entered_code": ["x"]},
        {"bonus_payments": ["abc"]},
        None,
        [],
    ],
)
def test_a_submission_that_cannot_be_read_holds_up_no_other(
    fake, mturk, connection, posted, monkeypatch, row
):
    good = hand_in(fake, posted)
    approve(mturk, good)
    strange = fake.world.arrive(fake.world.studies[posted.external_id])
    fake.world.enter(strange, "NOPE")

    def changed(page):
        rows = page["results"]
        told = [(one | row if row else row) if one["id"] == strange.id else one for one in rows]
        return page | {"results": told}

    answer_wrongly(monkeypatch, lambda path, _query: path == "/submissions/", changed)
    minutes()
    assert good.status == "APPROVED"
    assert RecruiterCharge.objects.filter(kind="reward").count() == 1


@pytest.mark.parametrize("reward", [None, "150", -1, True])
def test_a_draft_whose_reward_cannot_be_read_is_not_published(
    fake, connection, hit_type, monkeypatch, reward
):
    study, cost = draft(connection, hit_type)
    answer_wrongly(
        monkeypatch,
        lambda path, _query: path == f"/studies/{study.external_id}/",
        lambda said: said | {"reward": reward},
    )
    with pytest.raises(InvalidParameter, match=r"an amount that cannot be read, and here .* 1\.50"):
        publish_study(study=study, confirmed=cost.total)
    assert fake.world.studies[study.external_id].status == "UNPUBLISHED"
    minutes()  # and is followed as before
    study.refresh_from_db()
    assert (study.state, connection.problem) == ("draft", "")


@pytest.mark.parametrize("content", [None, [], "x", {}, {"id": 1}, {"results": {}}, [{}]])
@pytest.mark.parametrize("of", ["submissions", "submission", "study"])
def test_an_answer_that_cannot_be_read_is_of_one_study_alone(
    fake, mturk, connection, hit_type, posted, monkeypatch, of, content
):
    first = hand_in(fake, posted)
    approve(mturk, first)
    other = hand_in(fake, another_study(connection, hit_type, mturk))
    approve(mturk, other)

    def is_wanted(path, query):
        return {
            "submissions": path == "/submissions/" and query.get("study") == posted.external_id,
            "submission": path == f"/submissions/{first.id}/",
            "study": path == f"/studies/{posted.external_id}/",
        }[of]

    answer_wrongly(monkeypatch, is_wanted, content)
    minutes()
    assert other.status == "APPROVED"
    charges = RecruiterCharge.objects.filter(kind="reward", session__submission_id=other.id)
    assert charges.exists()


@pytest.mark.parametrize("cost", [0, -5, "abc", None, 10**20, "NaN", [1], True])
def test_a_price_that_cannot_be_is_nobodys_charge(fake, mturk, posted, monkeypatch, cost):
    one = hand_in(fake, posted)
    approve(mturk, one)
    answer_wrongly(monkeypatch, lambda path, _query: "cost-calc" in path, {"total_cost": cost})
    called = minutes()
    assert one.status == "APPROVED"
    assert not any("cannot be called" in problem for problem in called.problems)
    assert not RecruiterCharge.objects.filter(kind="reward").exists()


@pytest.mark.parametrize("content", [{}, [], None, {"id": 5}])
def test_who_arrives_on_an_answer_that_cannot_be_read_is_told_to_try_again(
    fake, posted, monkeypatch, content
):
    is_one = lambda path, _query: path.startswith("/submissions/") and len(path) > 15  # noqa: E731
    answer_wrongly(monkeypatch, is_one, content)
    _submission, _browser, answer = arrive(fake, posted)
    assert answer.status_code < 500
    assert "be asked at the moment" in text_of(answer)


def test_a_study_that_always_fails_and_a_slow_account_hold_up_no_decision(
    fake, mturk, connection, hit_type, posted, monkeypatch
):
    """Time that is spent on what succeeds is no time for what fails."""
    other = hand_in(fake, another_study(connection, hit_type, mturk))
    approve(mturk, other)
    monkeypatch.setattr(patience, "MOST_SECONDS", 0.3)
    is_of_first = lambda _world, body: body.get("study") == posted.external_id  # noqa: E731
    broken(monkeypatch, "submissions", is_of_first, 403)
    real = operations.submissions

    def slow(world, body):
        time.sleep(0.35)
        return real(world, body)

    monkeypatch.setattr(operations, "submissions", slow)
    minutes(7)  # by then the first is left out
    assert other.status == "APPROVED"


@pytest.mark.parametrize("what", ["send_message", "prepare_bonuses"])
def test_a_message_or_bonus_that_always_fails_holds_up_no_decision_on_the_work(
    fake, mturk, connection, posted, monkeypatch, what
):
    one = hand_in(fake, posted)
    if what == "send_message":
        ids = [Session.objects.get().worker.worker_id]
        mturk.notify_workers(Subject="Hello", MessageText="Thanks", WorkerIds=ids)
    else:
        pay_in_pounds(mturk, connection, one)
    broken(monkeypatch, what, lambda _world, _body: True, 403)
    minutes(6)
    approve(mturk, one)
    minutes(2)
    assert one.status == "APPROVED"


@pytest.mark.parametrize("problem", [Unreachable("away"), NotAuthorized("no right", status=403)])
def test_of_two_equal_bonuses_one_that_never_left_is_paid_too(
    fake, mturk, posted, connection, monkeypatch, problem
):
    one = hand_in(fake, posted)
    for token in ("t1", "t2"):
        pay_in_pounds(mturk, connection, one, token=token)
    real, tries = Prolific.bonus_pay, []

    def pay(self, prepared):
        tries.append(prepared)
        if len(tries) == 1:
            raise problem
        return real(self, prepared)

    monkeypatch.setattr(Prolific, "bonus_pay", pay)
    minutes(4)
    assert paid(fake, "bonus") == [200, 200]
    assert RecruiterCharge.objects.filter(kind="bonus").count() == 2


def test_whoever_pays_by_a_panels_file_is_told_of_bonuses(done, mturk):
    one = Assignment.objects.filter(status="Submitted").first()
    facts = {"WorkerId": one.worker.worker_id, "AssignmentId": one.public_id}
    mturk.send_bonus(**facts, BonusAmount="1.50", Reason="Careful", UniqueRequestToken="t")
    header, row, *_others = participants_file(done, user=None)
    assert dict(zip(header, row, strict=True))["bonus"] == "1.50"


def test_a_rejection_that_a_panel_did_not_follow_is_in_no_file(done, mturk):
    for one in Assignment.objects.filter(status="Submitted"):
        mturk.reject_assignment(AssignmentId=one.public_id, RequesterFeedback="No. " * 30)
    take_over(done, "submission_id,status\nx1,approved\n")
    header, row, *_others = join_file(done, user=None)
    told = dict(zip(header, row, strict=True))
    assert (told["state"], told["decision"]) == ("approved", "")


def approve_by_time():
    Assignment.objects.filter(status="Submitted").update(auto_approval_at="2020-01-01T00:00Z")
    Hit.objects.update(next_transition_at="2020-01-01T00:00Z")
    lifecycle.sweep(clock.now())
    approve_overdue()


def test_late_work_that_time_approves_is_approved_there(fake, mturk, posted):
    fake.world.now = clock.now()
    one, _browser, _answer = arrive(fake, posted)
    fake.world.pass_time(timedelta(minutes=40))
    call_recruiters()
    for assignment in assignments(one):
        submit_page(assignment)
    assert Session.objects.get().state == "timed_out"
    clock.advance(timedelta(days=2))
    fake.world.pass_time(timedelta(days=2))
    approve_by_time()
    minutes()
    assert one.status == "APPROVED"


@pytest.mark.parametrize("by", ["time", "person"])
def test_who_was_rejected_there_by_hand_is_not_paid_by_an_approval_that_knew_nothing_of_it(
    fake, mturk, posted, by
):
    one = hand_in(fake, posted)
    fake.world.reject(one)
    if by == "time":
        approve_by_time()
    else:
        approve(mturk, one)
    minutes()
    refused = Intent.objects.get(kind="approve", state="refused")
    assert (one.status, "send it again" in refused.problem) == ("REJECTED", True)


def test_a_rule_spends_no_more_where_a_price_was_not_heard(fake, mturk, rule, monkeypatch):
    """Two HIT types of 16.00 each, of a rule of 30.00."""
    for title in ("Dialogue one", "Dialogue two"):
        for _ in range(4):
            mturk.create_hit(**HIT_HERE | {"Title": title}, MaxAssignments=4)
    clock.advance(timedelta(minutes=2))
    real, prices = Prolific.cost, []

    def cost(self, reward, places):
        prices.append(places)
        if len(prices) == 3:
            raise Uncertain("Prolific did not answer.")
        return real(self, reward, places)

    monkeypatch.setattr(Prolific, "cost", cost)
    minutes(4)
    charged = RecruiterCharge.objects.filter(kind="study").values_list("amount", flat=True)
    assert [int(amount) for amount in charged] == [16]
    assert sorted(one.status for one in fake.world.studies.values()) == ["ACTIVE", "UNPUBLISHED"]


def test_work_that_was_withdrawn_and_decisions_are_told_though_all_else_is_erased(
    study, mturk, requester
):
    browser = came(study, "p1", "x9")
    work(browser, times=1)
    session = Session.objects.get(submission_id="x9")
    taken_back = Assignment.objects.get(session_item__session=session, status="Submitted").public_id
    leave(browser, session)
    work(came(study, "p2", "x10"), times=2)
    other = Session.objects.get(submission_id="x10")
    decided = list(other.items.values_list("assignment__public_id", flat=True))
    for assignment in decided:
        mturk.approve_assignment(AssignmentId=assignment)
    for worker in (session.worker, other.worker):
        erase_worker(worker)
    assert withdrawn_of(RecruitedStudy.objects.all()) == [taken_back]
    told, _after = decisions_of(requester, after="")
    assert {one["assignment_id"] for one in told} == set(decided)


@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_who_stops_after_a_page_was_decided_on_has_that_deleted_too(fake, mturk, posted, decision):
    submission, browser, _answer = arrive(fake, posted)
    work(browser)
    session = Session.objects.get()
    first = session.items.get(assignment__status="Submitted").assignment
    if decision == "approved":
        mturk.approve_assignment(AssignmentId=first.public_id)
    else:
        mturk.reject_assignment(AssignmentId=first.public_id, RequesterFeedback="x" * 120)
    page = text_of(browser.get(f"/worker/studies/{session.public_id}/leave/"))
    assert "The page that you have submitted is deleted here" in page
    leave(browser, session)
    first.refresh_from_db()
    assert (first.status, first.answer, first.approved_at) == ("Returned", "", None)
    assert first.hit.assignments.live().count() == 0
    assert withdrawn_of(RecruitedStudy.objects.all()) == [first.public_id]
    assert decisions_of(posted.requester, after="")[0] == []
    session.refresh_from_db()
    fake.world.enter(submission, session.code)
    minutes(2)
    assert fake.world.paid == []


def lapse(fake, posted):
    """Somebody does not consent, and lets the place run out instead of returning it."""
    fake.world.now = clock.now()
    one, browser, _answer = arrive(fake, posted)
    session = session_of(one)
    leave(browser, session)
    for waiting in (clock.advance, fake.world.pass_time):
        waiting(timedelta(hours=1))
    minutes()
    session.refresh_from_db()
    assert (one.status, session.state, session.outcome) == ("TIMED-OUT", "timed_out", "no_consent")
    return session


def test_a_place_that_lapsed_is_free_and_holds_up_no_erasure(fake, hit_type, posted):
    session = lapse(fake, posted)
    with pytest.raises(InvalidParameter, match="4 places of the study are free already"):
        price_places(study=posted, total=5)
    assert not erasure_obstacles(session.worker)
    stop_study(study=posted)
    minutes()
    for waiting in (clock.advance, fake.world.pass_time):
        waiting(timedelta(days=31))
    minutes()
    fake.calls.clear()
    minutes()
    assert "submissions" not in fake.calls


def test_places_of_another_study_of_the_hits_are_not_sold_again(fake, connection, hit_type, posted):
    values = Posting(reward=REWARD, minutes=10, items_per_session=2)
    said = "4 free places of other studies of these HITs are for them"
    with pytest.raises(InvalidParameter, match=said):
        draft_study(connection=connection, hit_type=hit_type, values=values)
    [told] = studies_of(RecruitedStudy.objects.filter(pk=posted.pk))
    assert (told["places"], told["needed"]) == (4, 4)
    hand_in(fake, posted)
    [told] = studies_of(RecruitedStudy.objects.filter(pk=posted.pk))
    assert told["needed"] == 3


def test_how_many_open_studies_stand_is_looked_up_as_that_of_one(
    fake, mturk, connection, hit_type, posted
):
    """Each has its own places that are free and needed, of the same HITs and of parts of them."""

    def looked_up(n):
        with CaptureQueriesContext(db_connection) as queries:
            rows = studies_of(RecruitedStudy.objects.all())
        assert len(rows) == n
        return len(queries), [(one["free"], one["needed"]) for one in rows]

    n_statements, of_one = looked_up(1)
    assert of_one == [(4, 4)]
    another_study(connection, hit_type, mturk)
    third = another_study(connection, hit_type, mturk)
    hand_in(fake, third)
    Hit.objects.filter(pk=Hit.objects.latest("pk").pk).update(requester_annotation="part:1")
    RecruitedStudy.objects.filter(pk=third.pk).update(annotation_prefix="part:")
    n_of_three, of_three = looked_up(3)
    assert of_three == [(4, 8), (2, 6), (1, 0)]
    assert of_three == [free_and_needed(one) for one in RecruitedStudy.objects.order_by("pk")]
    assert n_of_three == n_statements


@pytest.mark.parametrize("fault", ["500", "429", "drop"])
def test_who_holds_a_place_of_a_paused_study_is_not_sent_away_while_prolific_is(
    fake, posted, fault
):
    one = fake.world.arrive(fake.world.studies[posted.external_id])
    pause_study(study=posted)
    query = f"PROLIFIC_PID={one.participant}&STUDY_ID={posted.external_id}&SESSION_ID={one.id}"
    fake.fail_next("submission", fault)
    answer = Client().post(f"/join/{posted.token}/?{query}")
    assert "be asked at the moment" in text_of(answer)


def test_nothing_is_paid_after_a_disconnection_though_a_round_is_under_way(
    fake, mturk, posted, connection, monkeypatch
):
    one = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, one)
    real, n = Prolific.submissions, []

    def submissions(self, study):
        if not n:
            n.append(1)
            disconnect(connection=RecruiterConnection.objects.get())
        return real(self, study)

    monkeypatch.setattr(Prolific, "submissions", submissions)
    call_recruiters()
    assert paid(fake, "bonus") == []


def test_who_comes_after_an_erasure_is_left_out_of_later_studies_too(
    fake, mturk, connection, hit_type, posted
):
    first = hand_in(fake, posted)
    stop_study(study=another_study(connection, hit_type, mturk, excluded=(posted,)))
    approve(mturk, first)
    minutes()
    erase_worker(session_of(first).worker)
    second = hand_in(fake, posted)
    another_study(connection, hit_type, mturk, excluded=(posted,))
    minutes()
    posted.refresh_from_db()
    assert second.participant in fake.world.groups[posted.external_group_id]


def test_a_bonus_that_shows_late_is_not_paid_again_though_a_look_fails_meanwhile(
    fake, mturk, posted, connection
):
    """No answer came, and a person said too soon that it was not done."""
    one = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, one)
    fake.fail_next("pay_bonuses", "drop")
    call_recruiters()
    assert len(paid(fake, "bonus")) == 1
    uncertain = Intent.objects.get(kind="bonus", state="uncertain")
    Intent.objects.update(sent_at=clock.now() - timedelta(hours=2))
    uncertain.refresh_from_db()
    decide_uncertain(intent=uncertain, was_done=False)
    fake.fail_next("submission", "500", "500", "500")
    call_recruiters()
    assert Intent.objects.get(kind="bonus").state == "written"
    minutes()
    assert Intent.objects.get(kind="bonus").state == "done"
    assert len(paid(fake, "bonus")) == 1


def test_a_study_that_was_deleted_there_holds_nothing_of_its_rules_amount(
    fake, mturk, rule, monkeypatch
):
    for _ in range(4):
        mturk.create_hit(**HIT_HERE | {"Title": "Dialogue"}, MaxAssignments=4)
    clock.advance(timedelta(minutes=2))
    real, prices = Prolific.cost, []

    def cost(self, reward, places):
        prices.append(places)
        if len(prices) == 3:
            raise Uncertain("Prolific did not answer.")
        return real(self, reward, places)

    monkeypatch.setattr(Prolific, "cost", cost)
    call_recruiters()
    assert rule.attached.get().pending_cost
    there = dict(fake.world.studies)
    fake.world.studies.clear()
    minutes()
    fake.world.studies.update(there)
    assert rule.attached.get().pending_cost is None


def test_what_was_refused_there_holds_nothing_of_the_rules_amount(
    fake, mturk, created, monkeypatch
):
    """A draft that is refused its publication costs nothing, whatever else is to be bought."""
    clock.advance(timedelta(minutes=2))
    broken(monkeypatch, "move_study", lambda *_said: True, 400)
    call_recruiters()
    attached = AttachedHitType.objects.get()
    assert (attached.study.state, attached.pending_cost) == ("draft", None)
    assert attached.problem
    monkeypatch.undo()
    fake.fail_next("move_study", *["500"] * 6)  # of these nobody knows
    call_recruiters()
    assert AttachedHitType.objects.get().pending_cost == 8


def test_places_of_another_size_are_held_against_judgments(
    fake, mturk, connection, hit_type, posted
):
    """Two items a participant there, one here."""
    ask_for_more(mturk, hit_type, 1)
    with pytest.raises(InvalidParameter, match="12 judgments are left"):
        draft_study(
            connection=connection,
            hit_type=hit_type,
            values=Posting(reward=REWARD, minutes=10, items_per_session=1, places=5),
        )
    made = publish(connection, hit_type, items_per_session=1, places=4)


def test_of_two_equal_bonuses_one_that_shows_late_is_not_the_other(
    fake, mturk, connection, posted, monkeypatch
):
    """The first is paid, and shows some minutes later; the second never gets there at first."""
    hidden = []

    def pay(world, _body, key):
        for found, amount in world.find("bonuses", key).rows:
            world.pay("bonus", found, amount * (1 + operations.FEE))
            hidden.append((found, amount))
        return {"message": "The bonuses are being paid."}

    one = hand_in(fake, posted)
    with monkeypatch.context() as late:
        late.setattr(operations, "pay_bonuses", pay)
        pay_in_pounds(mturk, connection, one, token="t1")
        call_recruiters()
    pay_in_pounds(mturk, connection, one, token="t2")
    fake.fail_next("pay_bonuses", "lose")
    call_recruiters()
    for found, amount in hidden:
        found.bonuses.append(amount)
    minutes()
    assert len(paid(fake, "bonus")) == Intent.objects.filter(kind="bonus", state="done").count()
    clock.advance(timedelta(hours=2))
    decide_uncertain(intent=Intent.objects.get(state="uncertain"), was_done=False)
    minutes()
    assert (len(one.bonuses), len(paid(fake, "bonus"))) == (2, 2)


def test_nothing_more_is_paid_once_somebody_has_disconnected_within_a_step(
    fake, mturk, connection, posted, monkeypatch
):
    for n in range(4):
        pay_in_pounds(mturk, connection, hand_in(fake, posted), token=f"t{n}")
    real = Prolific.bonus_pay

    def pay(self, prepared):
        real(self, prepared)
        disconnect(connection=RecruiterConnection.objects.get())

    monkeypatch.setattr(Prolific, "bonus_pay", pay)
    call_recruiters()
    assert len(paid(fake, "bonus")) == 1
    waiting = Intent.objects.filter(kind="bonus", state="refused")
    assert (waiting.count(), "was disconnected" in waiting[0].problem) == (3, True)


def connect_again(fake, connection):
    connect_prolific(
        requester=connection.requester,
        name=connection.name,
        token="token",
        workspace=fake.world.workspace,
    )
    usd = RecruiterConnection.objects.get().settings | {"currency": "USD"}
    RecruiterConnection.objects.update(settings=usd)


def test_a_bonus_that_waited_when_an_account_was_disconnected_is_paid_once_it_is_asked_for_again(
    fake, mturk, connection, posted
):
    one = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, one)
    disconnect(connection=RecruiterConnection.objects.get())
    connect_again(fake, connection)
    minutes()
    assert paid(fake, "bonus") == []
    told = calls_of(RecruitedStudy.objects.all(), has_ids=False)
    assert [(call["state"], call["request_token"]) for call in told] == [("refused", "t1")]
    pay_in_pounds(mturk, connection, one)
    minutes()
    assert len(paid(fake, "bonus")) == 1


def test_a_bonus_that_is_written_as_an_account_is_disconnected_is_refused_when_it_is_connected(
    fake, mturk, connection, posted
):
    one = hand_in(fake, posted)
    approve(mturk, one)
    minutes()
    pay_in_pounds(mturk, connection, one)
    RecruiterConnection.objects.update(encrypted_token="")
    assert "bonus" in erasure_obstacles(Session.objects.get().worker)[0]
    connect_again(fake, connection)
    minutes()
    assert (paid(fake, "bonus"), Intent.objects.get(kind="bonus").state) == ([], "refused")
    assert not erasure_obstacles(Session.objects.get().worker)


def test_a_bonus_that_was_sent_before_a_disconnection_is_uncertain_after_it(
    fake, mturk, connection, posted
):
    one = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, one)
    fake.fail_next("pay_bonuses", "500")
    minutes(1)
    clock.advance(timedelta(hours=2))
    minutes(1)
    bonus = Intent.objects.get(kind="bonus")
    decide_uncertain(intent=bonus, was_done=False)
    disconnect(connection=RecruiterConnection.objects.get())
    bonus.refresh_from_db()
    assert (bonus.state, "disconnected" in bonus.problem) == ("uncertain", True)
    connect_again(fake, connection)
    minutes()
    bonus.refresh_from_db()
    assert (bonus.state, paid(fake, "bonus")) == ("uncertain", [])


def test_a_new_token_of_an_account_that_is_connected_holds_up_no_bonus(
    fake, mturk, connection, posted
):
    pay_in_pounds(mturk, connection, hand_in(fake, posted))
    connect_again(fake, connection)
    minutes()
    assert len(paid(fake, "bonus")) == 1


def test_a_bonus_at_an_account_that_is_disconnected_is_refused_with_the_reason(
    fake, mturk, connection, posted
):
    one = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, one, token="t1")
    disconnect(connection=RecruiterConnection.objects.get())
    for token in ("t1", "t2"):  # the one that waited then, and another
        with pytest.raises(mturk.exceptions.RequestError, match="Prolific is disconnected"):
            pay_in_pounds(mturk, connection, one, token=token)
    facts = {"worker_id": Session.objects.get().worker.worker_id, "reason": "Careful reasons."}
    with pytest.raises(InvalidParameter, match="Prolific is disconnected"):
        request_bonus_in(
            "USD",
            study=RecruitedStudy.objects.get(),
            bonus=Decimal("1.50"),
            token="t3",
            **facts,
        )
    assert Intent.objects.get(kind="bonus").state == "refused"


def test_a_hit_type_that_always_fails_holds_up_no_other_of_its_rule(fake, mturk, rule, monkeypatch):
    for title in ("Dialogue one", "Dialogue two"):
        mturk.create_hit(**HIT_HERE | {"Title": title}, MaxAssignments=1)
    clock.advance(timedelta(minutes=2))
    first = rule.attached.earliest("pk")
    real = attached_studies._follow

    def follow(attached, now):
        if attached.pk == first.pk:
            raise KeyError("id")
        real(attached, now)

    monkeypatch.setattr(attached_studies, "_follow", follow)
    minutes()
    assert [one.status for one in fake.world.studies.values()] == ["ACTIVE"]
    first.refresh_from_db()
    assert "KeyError" in first.problem


def test_a_rejection_that_was_taken_back_before_it_was_heard_of_is_not_sent(
    fake, mturk, posted, monkeypatch
):
    one, sent, real = hand_in(fake, posted), [], Transport._call

    def call(self, method, path, *, query=None, body=None):
        sent.extend([body["action"]] if "/submissions/" in path and body else [])
        return real(self, method, path, query=query, body=body)

    monkeypatch.setattr(Transport, "_call", call)
    reject(mturk, one)
    fake.fail_next("move_submission", "lose")
    call_recruiters()
    assert (sent, one.status) == (["REJECT"], "AWAITING REVIEW")
    approve(mturk, one, OverrideRejection=True)
    minutes()
    assert (sent, one.status) == (["REJECT", "APPROVE"], "APPROVED")
    assert not Intent.objects.filter(kind="reject").exists()


@pytest.mark.parametrize("content", [{}, [], None, {"results": [{"id": 5}]}, {"results": [None]}])
def test_a_token_is_tried_to_the_end_whatever_is_said_of_webhooks(
    fake, requester, monkeypatch, content
):
    answer_wrongly(monkeypatch, lambda path, _query: path.startswith("/hooks/"), content)
    offered = offer_prolific(
        requester=requester, name="Prolific", token="token", workspace=fake.world.workspace
    )
    try_offer(connection=offered)
    offered.refresh_from_db()
    assert (offered.encrypted_offer, bool(offered.encrypted_token)) == ("", True)
    minutes()


def test_a_token_that_cannot_be_tried_is_no_longer_being_tried(fake, requester, monkeypatch):
    def fail(*_args, **_facts):
        raise KeyError("id")

    offered = offer_prolific(
        requester=requester, name="Prolific", token="token", workspace=fake.world.workspace
    )
    monkeypatch.setattr("marketplace.recruiting.connections.connect_prolific", fail)
    with pytest.raises(KeyError):
        try_offer(connection=offered)
    offered.refresh_from_db()
    assert (offered.encrypted_offer, "KeyError" in offered.problem) == ("", True)


def test_a_price_beyond_all_amounts_is_none(fake, connection, hit_type, monkeypatch):
    cost = {"total_cost": 5 * 10**11}
    answer_wrongly(monkeypatch, lambda path, _query: "cost-calc" in path, cost)
    values = Posting(reward=REWARD, minutes=10, items_per_session=2)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        draft_study(connection=connection, hit_type=hit_type, values=values)


def test_ids_with_dashes_are_ids(fake, connection, hit_type, monkeypatch):
    real, key = Transport._call, "018f3c2e-aaaa-7bbb-8ccc-0123456789ab"

    def call(self, method, path, *, query=None, body=None):
        answer = real(self, method, path.replace(key, told.get("id", "")), query=query, body=body)
        if (method, path) == ("POST", "/studies/"):
            told["id"] = answer.content["id"]
            return Answer(answer.content | {"id": key}, {})
        return answer

    told = {}
    monkeypatch.setattr(Transport, "_call", call)
    study = publish(connection, hit_type)
    assert (study.external_id, study.state) == (key, "active")


def test_a_rejection_that_a_panel_has_taken_back_is_none_in_its_files(done, mturk):
    for one in Assignment.objects.filter(status="Submitted"):
        mturk.reject_assignment(AssignmentId=one.public_id, RequesterFeedback="No. " * 30)
    take_over(done, "submission_id,status\nx1,rejected\n")
    for _again in range(2):
        take_over(done, "submission_id,status\nx1,approved\n")
    for made in (join_file, participants_file):
        header, row, *_others = made(done, user=None)
        told = dict(zip(header, row, strict=True))
        assert (told["state"], told["decision"]) == ("approved", "approve")
    assert Intent.objects.filter(kind="approve").count() == 1


def test_somebody_whose_account_is_gone_keeps_nobody_else_out_of_a_group(
    fake, mturk, connection, hit_type, posted, monkeypatch
):
    another_study(connection, hit_type, mturk, excluded=(posted,))
    came = [hand_in(fake, posted) for _ in range(3)]
    is_gone = lambda _world, body, _key: came[1].participant in body["participant_ids"]  # noqa: E731
    broken(monkeypatch, "add_to_group", is_gone, 400)
    minutes()
    posted.refresh_from_db()
    group = fake.world.groups[posted.external_group_id]
    assert {came[0].participant, came[2].participant} <= group
    assert RecruiterConnection.objects.get().problem == ""


@pytest.mark.parametrize("most", [0, 50])
def test_a_group_that_takes_nobody_is_asked_again_a_minute_later(
    fake, mturk, connection, hit_type, posted, monkeypatch, most
):
    another_study(connection, hit_type, mturk, excluded=(posted,))
    came = [hand_in(fake, posted) for _ in range(2)]
    monkeypatch.setattr(groups, "MOST_REFUSED", most)
    with monkeypatch.context() as away:
        broken(away, "add_to_group", lambda *_said: True, 400)
        minutes()
        assert RecruiterConnection.objects.get().problem
    minutes()
    posted.refresh_from_db()
    assert {one.participant for one in came} <= fake.world.groups[posted.external_group_id]


def test_a_refused_rejection_leaves_the_place_as_it_is_there(fake, mturk, posted, monkeypatch):
    one = hand_in(fake, posted)
    broken(monkeypatch, "move_submission", lambda *_said: True, 400)
    reject(mturk, one)
    minutes()
    assert (one.status, Session.objects.get().state) == ("AWAITING REVIEW", "finished")
    assert free_and_needed(posted)[0] == posted.places - 1


def test_a_draft_that_was_discarded_holds_up_no_other_of_its_rule(fake, mturk, rule):
    for _ in range(2):
        mturk.create_hit(**HIT_HERE | {"Title": "Dialogue big"}, MaxAssignments=40)
    settle(3)
    discard_draft(study=rule.attached.get().study)  # it costs more than the rule has
    mturk.create_hit(**HIT_HERE | {"Title": "Dialogue big"}, MaxAssignments=41)
    mturk.create_hit(**HIT_HERE | {"Title": "Dialogue small"}, MaxAssignments=2)
    settle(3)
    assert [one.status for one in fake.world.studies.values()] == ["ACTIVE"]


def test_files_of_a_disconnected_recruiter_sum_what_it_has_paid_alone(
    fake, mturk, posted, connection
):
    one = hand_in(fake, posted)
    pay_in_pounds(mturk, connection, one, token="t1")
    call_recruiters()
    pay_in_pounds(mturk, connection, one, token="t2")
    disconnect(connection=RecruiterConnection.objects.get())
    header, row, *_others = participants_file(posted, user=None)
    assert dict(zip(header, row, strict=True))["bonus"] == "1.50"


def test_to_send_an_approval_again_takes_no_rejection_back_that_nobody_has_told_of(
    fake, mturk, posted
):
    one = hand_in(fake, posted)
    approve(mturk, one)
    fake.fail_next("move_submission", "400")  # as for want of money
    call_recruiters()
    fake.world.reject(one)
    minutes()
    approval = Intent.objects.get(kind="approve")
    decide_uncertain(intent=approval, was_done=False)
    minutes()
    approval.refresh_from_db()
    assert (one.status, approval.state) == ("REJECTED", "refused")
    assert "rejected there by hand" in approval.problem
    decide_uncertain(intent=approval, was_done=False)
    minutes()
    assert one.status == "APPROVED"


def test_hits_of_a_rule_whose_recruiter_is_disconnected_are_refused(fake, mturk, rule):
    """Else the ledger would pay for them, and the marketplace's own workers do them."""
    disconnect(connection=RecruiterConnection.objects.get())
    with pytest.raises(mturk.exceptions.RequestError, match="Connect it again, or end the rule"):
        mturk.create_hit(**HIT_HERE, MaxAssignments=1)
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"
    end_rule(rule=rule)
    assert mturk.create_hit(**HIT_HERE, MaxAssignments=1)


@pytest.mark.parametrize("lacks", ["a row that can be read", "a row"])
def test_from_a_list_that_lacks_somebody_nothing_follows_of_them(fake, posted, monkeypatch, lacks):
    submission, _browser, _answer = arrive(fake, posted)
    fake.world.enter(submission, completion_code(posted))
    call_recruiters()

    def partial_list(content):
        rows = [one for one in content["results"] if one["id"] != submission.id]
        return content | {"results": rows if lacks == "a row" else [*rows, {"id": 5}]}

    with monkeypatch.context() as away:
        answer_wrongly(away, lambda path, _query: path == "/submissions/", partial_list)
        minutes()
    assert Intent.objects.filter(kind="doubt", state="uncertain").count() == 1


def test_a_stopped_study_of_which_a_row_cannot_be_read_is_looked_at_again(
    fake, mturk, posted, monkeypatch
):
    """The row is of a stranger, who enters a code that was passed on."""
    approve(mturk, hand_in(fake, posted))
    minutes()
    stranger = fake.world.arrive(fake.world.studies[posted.external_id])
    stop_study(study=posted)

    def without_id(content):
        rows = [one | ({"id": 5} if one["id"] == stranger.id else {}) for one in content["results"]]
        return content | {"results": rows}

    with monkeypatch.context() as away:
        answer_wrongly(away, lambda path, _query: path == "/submissions/", without_id)
        minutes()
    fake.world.enter(stranger, completion_code(posted))
    minutes()
    assert Intent.objects.filter(kind="doubt", state="uncertain").count() == 1


def test_who_connects_again_within_a_draft_has_one_study(fake, mturk, rule, requester, monkeypatch):
    mturk.create_hit(**HIT_HERE, MaxAssignments=8)
    clock.advance(timedelta(minutes=2))
    real, tries = Prolific.draft, []

    def draft(self, values):
        tries.append(values)
        if len(tries) == 1:  # and the other process's minute comes
            disconnect(connection=RecruiterConnection.objects.get())
            connect_prolific(
                requester=requester,
                name="Prolific",
                token="token",
                workspace=fake.world.workspace,
                project=fake.world.project,
            )
            call_recruiters()
        return real(self, values)

    monkeypatch.setattr(Prolific, "draft", draft)
    minutes()
    study = RecruitedStudy.objects.get()
    assert fake.world.studies[study.external_id].status == "ACTIVE"
    assert [one.status for one in fake.world.studies.values()].count("ACTIVE") == 1


def test_to_connect_again_forgets_no_setting_of_the_connection(fake, requester, connection):
    facts = connection.settings | {"rejection_category": "LOW_EFFORT"}
    RecruiterConnection.objects.update(settings=facts)
    again = {"name": "Prolific", "token": "token", "workspace": fake.world.workspace}
    connect_prolific(requester=requester, project=fake.world.project, **again)
    assert RecruiterConnection.objects.get().settings == facts


@pytest.mark.parametrize("text", ["\ud800", "\x00"])
def test_a_refusal_is_written_down_whatever_its_text_is(fake, mturk, posted, monkeypatch, text):
    one = hand_in(fake, posted)
    approve(mturk, one)
    real = transport._said

    def said(content):
        return real(json.dumps({"error": {"detail": f"Too little{text} money."}}).encode())

    monkeypatch.setattr(transport, "_said", said)
    fake.fail_next("move_submission", "400")
    call_recruiters()
    approval = Intent.objects.get(kind="approve")
    assert (approval.state, "Too little" in approval.problem) == ("refused", True)


def test_a_token_of_a_refused_bonus_pays_nobody_else(fake, mturk, connection, posted):
    one, other = hand_in(fake, posted), hand_in(fake, posted)
    pay_in_pounds(mturk, connection, one, token="t1")
    fake.fail_next("prepare_bonuses", "400")
    call_recruiters()
    with pytest.raises(mturk.exceptions.RequestError, match="already"):
        pay_in_pounds(mturk, connection, other, token="t1")
    minutes()
    assert paid(fake, "bonus") == []


def test_a_bonus_is_of_the_participation_in_the_study_that_it_is_paid_in(
    fake, mturk, connection, hit_type, posted
):
    """The participant came to a later study of the HITs, too; in a third one the latest counts."""
    first = Session.objects.get(submission_id=hand_in(fake, posted).id)
    second, third = (another_study(connection, hit_type, mturk) for _ in range(2))
    later = Session.objects.create(
        connection=connection,
        study=second,
        submission_id="b" * 24,
        worker=first.worker,
        arrived_at=clock.now(),
        expires_at=clock.now(),
    )
    for paid_in, session in ((posted, first), (second, later), (third, later)):
        asked = request_bonus_in(
            "GBP",
            study=paid_in,
            worker_id=first.worker.worker_id,
            bonus=Decimal("0.50"),
            reason="Careful",
            token=f"t{paid_in.pk}",
        )
        assert asked.session == session


def test_a_study_can_exclude_one_whose_participants_accounts_are_all_gone(
    fake, mturk, connection, hit_type, posted, monkeypatch
):
    hand_in(fake, posted)
    broken(monkeypatch, "add_to_group", lambda *_said: True, 400)
    assert another_study(connection, hit_type, mturk, excluded=(posted,)).state == "active"


def test_a_blocked_worker_is_left_out_though_others_who_are_blocked_are_gone(
    fake, mturk, posted, monkeypatch
):
    came = [hand_in(fake, posted) for _ in range(3)]
    workers = [session_of(one).worker.worker_id for one in came]
    mturk.create_worker_block(WorkerId=workers[0], Reason="Careless")
    call_recruiters()
    is_gone = lambda _world, body, _key: came[1].participant in body["participant_ids"]  # noqa: E731
    broken(monkeypatch, "add_to_group", is_gone, 400)
    for worker in workers[1:]:
        mturk.create_worker_block(WorkerId=worker, Reason="Careless")
    call_recruiters()
    group = fake.world.groups[RecruiterConnection.objects.get().blocked_group_id]
    assert group == {came[0].participant, came[2].participant}
    assert RecruiterConnection.objects.get().problem == ""


def test_a_group_of_blocked_workers_that_was_deleted_there_is_made_anew(
    fake, mturk, connection, hit_type, posted
):
    one = hand_in(fake, posted)
    fake.world.groups.clear()  # somebody tidies up: it is empty
    worker = Session.objects.get().worker.worker_id
    mturk.create_worker_block(WorkerId=worker, Reason="Careless")
    assert "was deleted there, and is made anew" in call_recruiters().problems[0]
    assert list(fake.world.groups.values()) == [{one.participant}]
    made = RecruiterConnection.objects.get().blocked_group_id
    second = another_study(RecruiterConnection.objects.get(), hit_type, mturk)
    assert made in str(fake.world.studies[second.external_id].facts["filters"])
    for _minute in range(7):  # as long as a study is open that names the old one
        assert f"“{posted.name}” named the old one" in call_recruiters().problems[0]
    assert "is made anew" in RecruiterConnection.objects.get().problem
    stop_study(study=posted)
    assert call_recruiters().problems == ()
    assert RecruiterConnection.objects.get().problem == ""


def test_a_group_that_was_deleted_there_is_missed_though_nobody_is_added(fake, mturk, posted):
    """That of blocked workers may be empty, and is named by each study all the same."""
    minutes(2)
    before = RecruiterConnection.objects.get().blocked_group_id
    fake.world.groups.clear()
    assert minutes(2).problems == ()  # it was looked for a minute ago
    cache.clear()
    assert "is made anew" in call_recruiters().problems[0]
    after = RecruiterConnection.objects.get().blocked_group_id
    assert (before != after, list(fake.world.groups)) == (True, [after])
    fake.world.groups.clear()
    minutes(3)
    assert not fake.world.groups  # at most once a day


def test_a_group_whose_making_anew_failed_is_made_anew_a_minute_later(fake, mturk, posted):
    one = hand_in(fake, posted)
    fake.world.groups.clear()
    worker = Session.objects.get().worker.worker_id
    mturk.create_worker_block(WorkerId=worker, Reason="Careless")
    fake.fail_next("create_group", "500")
    minutes(3)
    assert list(fake.world.groups.values()) == [{one.participant}]


def test_a_group_that_is_never_found_is_made_anew_once_a_day(fake, mturk, posted, monkeypatch):
    hand_in(fake, posted)
    broken(monkeypatch, "add_to_group", lambda *_said: True, 404)
    worker = Session.objects.get().worker.worker_id
    mturk.create_worker_block(WorkerId=worker, Reason="Careless")
    minutes(4)
    assert len(fake.world.groups) == 2


def test_a_group_of_who_came_that_was_deleted_there_is_made_anew(
    fake, mturk, connection, hit_type, posted
):
    first = hand_in(fake, posted)
    another_study(connection, hit_type, mturk, excluded=(posted,))
    old = RecruitedStudy.objects.get(pk=posted.pk).external_group_id
    del fake.world.groups[old]
    second = hand_in(fake, posted)
    for _minute in range(2):
        assert "is made anew" in call_recruiters().problems[0]
    made = RecruitedStudy.objects.get(pk=posted.pk).external_group_id
    assert fake.world.groups[made] == {first.participant, second.participant}

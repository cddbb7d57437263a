"""What a recruiter gets wrong, or keeps for itself, of one participant or study holds up no other:
answers that cannot be read, studies that always fail, accounts that are slow, tokens without a
right; and what was known here is not spent, paid or said twice."""

import json
import time
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection as db_connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchmarks.fake_prolific import operations
from marketplace import clock, exceptions, hits
from marketplace.models import (
    Assignment,
    AttachedHitType,
    Hit,
    Intent,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    Requester,
    Session,
)
from marketplace.people.erasure import erase_worker, erasure_obstacles
from marketplace.recruiting import connections, dispatch, files, participants, posting, rules
from marketplace.recruiting.calls import CUT_OFF, call_recruiters, perform_action, request_action
from marketplace.recruiting.intents import approve_overdue, request_bonus_in
from marketplace.recruiting.places import free_and_needed
from marketplace.recruiting.prolific import transport
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import NotAuthorized, Uncertain, Unreachable
from marketplace.recruiting.standing import calls_of, decisions_of, studies_of, withdrawn_of
from tests.codes import codes_of, refused
from tests.marketplace.prolific import (
    REASON,
    REWARD,
    approve,
    arrive,
    ask_for_more,
    begun,
    broken,
    came,
    charges,
    completion_code,
    connect,
    create_hits,
    draft,
    hand_in,
    join,
    leave,
    minutes,
    numbers,
    paid,
    pay_in_pounds,
    publish,
    reject,
    reload,
    session_of,
    settle,
    take_over,
    work,
)
from tests.marketplace.recruiting.conftest import HIT_HERE
from work import execution, periodic
from work.models import Job


def another_study(connection, hit_type, mturk, **facts):
    ask_for_more(mturk, hit_type, 2)
    return publish(connection, hit_type, places=2, **facts)


def answer_wrongly(monkeypatch, is_wanted, content):
    real = transport.Transport.call

    def call(self, method, path, *, query=None, body=None):
        answer = real(self, method, path, query=query, body=body)
        if not is_wanted(path, query or {}):
            return answer
        return (content(answer[0]) if callable(content) else content), {}

    monkeypatch.setattr(transport.Transport, "call", call)


def third_price_is_lost(monkeypatch):
    real, prices = Prolific.cost, []

    def cost(self, reward, places):
        prices.append(places)
        if len(prices) == 3:
            raise Uncertain("Prolific did not answer.")
        return real(self, reward, places)

    monkeypatch.setattr(Prolific, "cost", cost)


def row_of(made, study):
    header, row, *_others = made(study, user=None)
    return dict(zip(header, row, strict=True))


STRANGE_ROWS = [
    *({"status": ["ACTIVE"]}, {"status": None}, {"id": None}, {"id": "a\x00b"}, {"id": "a" * 300}),
    *({"participant": {"id": "x"}, "participant_id": 5}, {"started_at": 1700000000}),
    *({"entered_code": ["x"]}, {"bonus_payments": ["abc"]}, None, []),
]


@pytest.mark.slow
def test_submissions_that_cannot_be_read_hold_up_no_other(
    fake, mturk, posted, monkeypatch, handed_in
):
    approve(mturk, handed_in)
    strange = fake.world.arrive(fake.world.studies[posted.external_id])
    fake.world.enter(strange, "NOPE")

    def changed(page):
        [real] = [one for one in page["results"] if one["id"] == strange.id]
        others = [one for one in page["results"] if one["id"] != strange.id]
        return page | {"results": [*(real | row if row else row for row in STRANGE_ROWS), *others]}

    answer_wrongly(monkeypatch, lambda path, _query: path == "/submissions/", changed)
    minutes()
    assert handed_in.status == "APPROVED"
    assert len(charges("reward")) == 1


def test_a_draft_with_no_readable_reward_waits(fake, connection, hit_type, monkeypatch):
    study, cost = draft(connection, hit_type)

    def is_study(path, _query):
        return path == f"/studies/{study.external_id}/"

    for reward in (None, "150", -1, True):
        with monkeypatch.context() as wrong:
            answer_wrongly(wrong, is_study, lambda one, reward=reward: one | {"reward": reward})
            with refused(exceptions.InvalidParameter, "reward_changed") as found:
                posting.publish_study(study=study, confirmed=cost.total)
            assert numbers(found.value) == ["1.50"]
            assert fake.world.studies[study.external_id].status == "UNPUBLISHED"
            call_recruiters()  # and is followed as before
        assert (reload(study).state, connection.problem) == ("draft", "")


UNREADABLE = [None, [], "x", {}, {"id": 1}, {"results": {}}, [{}]]


@pytest.mark.slow
@pytest.mark.parametrize("of", ["submissions", "submission", "study"])
def test_an_answer_that_cannot_be_read_is_of_one_study_alone(
    fake, mturk, connection, hit_type, posted, monkeypatch, of, handed_in
):
    approve(mturk, handed_in)
    ask_for_more(mturk, hit_type, len(UNREADABLE))
    second = publish(connection, hit_type, places=len(UNREADABLE))

    def is_wanted(path, query):
        return {
            "submissions": path == "/submissions/" and query.get("study") == posted.external_id,
            "submission": path == f"/submissions/{handed_in.id}/",
            "study": path == f"/studies/{posted.external_id}/",
        }[of]

    for content in UNREADABLE:
        other = hand_in(fake, second)
        approve(mturk, other)
        with monkeypatch.context() as wrong:
            answer_wrongly(wrong, is_wanted, content)
            call_recruiters()
        assert other.status == "APPROVED"
        minutes(1)
        charges = RecruiterCharge.objects.filter(kind="reward", session__submission_id=other.id)
        assert charges.exists()


@pytest.mark.slow
def test_a_price_that_cannot_be_is_nobodys_charge(mturk, monkeypatch, handed_in):
    approve(mturk, handed_in)
    for cost in (0, -5, "abc", None, 10**20, "NaN", [1], True):
        with monkeypatch.context() as wrong:
            answer_wrongly(wrong, lambda path, _query: "cost-calc" in path, {"total_cost": cost})
            called = call_recruiters()
        assert handed_in.status == "APPROVED"
        assert "cannot_be_called" not in codes_of(called.problems)
        assert charges("reward") == []


@pytest.mark.slow
def test_a_study_that_always_fails_and_a_slow_account_hold_up_no_decision(
    fake, mturk, connection, hit_type, posted, monkeypatch
):
    other = hand_in(fake, another_study(connection, hit_type, mturk))
    approve(mturk, other)
    monkeypatch.setattr(connections, "MOST_SECONDS", 0.3)
    is_of_first = lambda _world, body: body.get("study") == posted.external_id  # noqa: E731
    broken(monkeypatch, "submissions", is_of_first, 403)
    real = operations.submissions

    def slow(world, body):
        time.sleep(0.35)
        return real(world, body)

    monkeypatch.setattr(operations, "submissions", slow)
    minutes(7)  # by then the first is left out
    assert other.status == "APPROVED"


@pytest.mark.parametrize("problem", [Unreachable("away"), NotAuthorized("no right", status=403)])
def test_an_equal_bonus_that_never_left_is_paid(
    fake, mturk, connection, monkeypatch, problem, handed_in
):
    for token in ("t1", "t2"):
        pay_in_pounds(mturk, connection, handed_in, token=token)
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


def test_a_rejection_that_a_panel_has_taken_back_is_none_in_its_files(done, mturk):
    for one in Assignment.objects.filter(status="Submitted"):
        mturk.reject_assignment(AssignmentId=one.public_id, RequesterFeedback=REASON)
    for status in ("rejected", "approved", "approved"):
        take_over(done, f"submission_id,status\nx1,{status}\n")
    for made in (files.join_file, files.participants_file):
        row = row_of(made, done)
        assert (row["state"], row["decision"]) == ("approved", "approve")
    assert Intent.objects.filter(kind="approve").count() == 1


def approve_by_time():
    Assignment.objects.filter(status="Submitted").update(auto_approval_at="2020-01-01T00:00Z")
    Hit.objects.update(next_transition_at="2020-01-01T00:00Z")
    hits.lifecycle.sweep(clock.now())
    approve_overdue()


@pytest.mark.parametrize("by", ["time", "person"])
def test_who_was_rejected_there_by_hand_is_not_paid_by_an_earlier_approval(
    fake, mturk, by, handed_in
):
    fake.world.reject(handed_in)
    if by == "time":
        approve_by_time()
    else:
        approve(mturk, handed_in)
    minutes()
    approval = Intent.objects.get(kind="approve", state="refused")
    assert (handed_in.status, approval.problem) == ("REJECTED", str(dispatch.REJECTED_BY_HAND))


def test_a_rule_spends_no_more_where_a_price_was_not_heard(fake, mturk, rule, monkeypatch):
    """Two HIT types of 16.00 each, of a rule of 30.00."""
    for title in ("Dialogue one", "Dialogue two"):
        create_hits(mturk, max_assignments=4, Title=title)
    third_price_is_lost(monkeypatch)
    settle(4)
    assert charges() == [16]
    assert sorted(one.status for one in fake.world.studies.values()) == ["ACTIVE", "UNPUBLISHED"]


def test_withdrawn_work_and_decisions_are_listed_after_an_erasure(panel, mturk, requester):
    browser = came(panel, "p1", "x9")
    taken_back = work(browser)
    session = Session.objects.get()
    leave(browser, session)
    work(came(panel, "p2", "x10"), times=2)
    other = Session.objects.get(submission_id="x10")
    decided = list(other.items.values_list("assignment__public_id", flat=True))
    for public_id in decided:
        mturk.approve_assignment(AssignmentId=public_id)
    for worker in (session.worker, other.worker):
        erase_worker(worker)
    assert withdrawn_of(RecruitedStudy.objects.all()) == [taken_back]
    listed, _after = decisions_of(requester, after="")
    assert {one["assignment_id"] for one in listed} == set(decided)


@pytest.mark.slow
@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_who_stops_after_a_page_was_decided_on_has_that_deleted_too(fake, mturk, posted, decision):
    submission, browser = begun(fake, posted)
    session = Session.objects.get()
    first = session.items.get(assignment__status="Submitted").assignment
    if decision == "approved":
        mturk.approve_assignment(AssignmentId=first.public_id)
    else:
        mturk.reject_assignment(AssignmentId=first.public_id, RequesterFeedback=REASON)
    page = browser.get(f"/worker/studies/{session.public_id}/leave/")
    assert page.context["n_done"] == 1
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


@pytest.mark.slow
def test_a_place_that_lapsed_is_free_and_holds_up_no_erasure(fake, posted):
    fake.world.now = clock.now()
    one, browser, _answer = arrive(fake, posted)
    leave(browser)
    for wait in (clock.advance, fake.world.pass_time):
        wait(timedelta(hours=1))
    minutes()
    session = Session.objects.get()
    assert (one.status, session.state, session.outcome) == ("TIMED-OUT", "timed_out", "no_consent")
    with refused(exceptions.InvalidParameter, "too_many_places") as found:
        posting.price_places(study=posted, total=5)
    assert numbers(found.value)[-1] == "4"
    assert not erasure_obstacles(session.worker)
    posting.stop_study(study=posted)
    minutes()
    for wait in (clock.advance, fake.world.pass_time):
        wait(timedelta(days=31))
    minutes()
    fake.calls.clear()
    minutes()
    assert "submissions" not in fake.calls


@pytest.mark.slow
def test_many_studies_cost_as_many_queries_as_one(fake, mturk, connection, hit_type, posted):
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


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "n_paid"), [("submissions", 0), ("bonus_pay", 1)])
def test_nothing_more_is_paid_after_a_disconnection(
    fake, mturk, posted, connection, monkeypatch, operation, n_paid
):
    for n in range(3):
        pay_in_pounds(mturk, connection, hand_in(fake, posted), token=f"t{n}")
    real = getattr(Prolific, operation)

    def call(self, *given):
        answer = real(self, *given)
        if (present := RecruiterConnection.objects.get()).encrypted_token:
            connections.disconnect(connection=present)
        return answer

    monkeypatch.setattr(Prolific, operation, call)
    call_recruiters()
    assert len(paid(fake, "bonus")) == n_paid
    waiting = Intent.objects.filter(
        kind="bonus", state="refused", problem=str(connections.NEVER_SENT)
    )
    assert waiting.count() == 3 - n_paid


def test_a_study_that_was_deleted_there_holds_no_money(fake, mturk, rule, monkeypatch):
    create_hits(mturk, max_assignments=4, Title="Dialogue")
    third_price_is_lost(monkeypatch)
    settle()
    assert rule.attached.get().pending_cost
    there = dict(fake.world.studies)
    fake.world.studies.clear()
    minutes()
    fake.world.studies.update(there)
    assert rule.attached.get().pending_cost is None


def test_a_refused_publication_holds_no_money(fake, mturk, created, monkeypatch):
    clock.advance(timedelta(minutes=2))
    broken(monkeypatch, "move_study", status=400)
    call_recruiters()
    attached = AttachedHitType.objects.get()
    assert (attached.study.state, attached.pending_cost) == ("draft", None)
    assert attached.problem
    monkeypatch.undo()
    fake.fail_next("move_study", *["500"] * 6)  # of these nobody knows
    call_recruiters()
    assert AttachedHitType.objects.get().pending_cost == 8


@pytest.mark.slow
def test_a_bonus_that_shows_late_is_no_other_bonus(fake, mturk, connection, posted, monkeypatch):
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
    dispatch.decide_uncertain(intent=Intent.objects.get(state="uncertain"), was_done=False)
    minutes()
    assert (len(one.bonuses), len(paid(fake, "bonus"))) == (2, 2)


def connect_again(fake, connection):
    connect(fake, connection.requester)
    usd = RecruiterConnection.objects.get().settings | {"currency": "USD"}
    RecruiterConnection.objects.update(settings=usd)


@pytest.mark.slow
def test_a_bonus_at_a_disconnected_account_is_refused(fake, mturk, connection, posted, handed_in):
    pay_in_pounds(mturk, connection, handed_in)
    connections.disconnect(connection=RecruiterConnection.objects.get())
    for token in ("t1", "t2"):  # the one that waited, and another
        with pytest.raises(mturk.exceptions.RequestError) as found:
            pay_in_pounds(mturk, connection, handed_in, token=token)
        assert "Prolific" in str(found.value)
    facts = {"worker_id": session_of(handed_in).worker.worker_id, "token": "t3"}
    with refused(exceptions.InvalidParameter, "disconnected"):
        request_bonus_in("USD", study=reload(posted), bonus=REWARD, reason="Careful", **facts)
    connect_again(fake, connection)
    minutes()
    assert paid(fake, "bonus") == []
    listed = calls_of(RecruitedStudy.objects.all(), has_ids=False)
    assert [(call["state"], call["request_token"]) for call in listed] == [("refused", "t1")]
    pay_in_pounds(mturk, connection, handed_in)
    minutes()
    assert len(paid(fake, "bonus")) == 1


@pytest.mark.slow
def test_a_bonus_sent_before_a_disconnection_is_uncertain(fake, mturk, connection, handed_in):
    pay_in_pounds(mturk, connection, handed_in)
    fake.fail_next("pay_bonuses", "500")
    minutes(1)
    clock.advance(timedelta(hours=2))
    minutes(1)
    bonus = Intent.objects.get(kind="bonus")
    dispatch.decide_uncertain(intent=bonus, was_done=False)
    connections.disconnect(connection=RecruiterConnection.objects.get())
    bonus.refresh_from_db()
    assert (bonus.state, bonus.problem) == ("uncertain", str(connections.PERHAPS_PAID))
    connect_again(fake, connection)
    minutes()
    assert (reload(bonus).state, paid(fake, "bonus")) == ("uncertain", [])


@pytest.mark.slow
def test_a_rejection_taken_back_is_not_sent_again(fake, mturk, posted, monkeypatch):
    one, sent, real = hand_in(fake, posted), [], transport.Transport.call

    def call(self, method, path, *, query=None, body=None):
        sent.extend([body["action"]] if "/submissions/" in path and body else [])
        return real(self, method, path, query=query, body=body)

    monkeypatch.setattr(transport.Transport, "call", call)
    reject(mturk, one)
    fake.fail_next("move_submission", "lose")
    call_recruiters()
    assert (sent, one.status) == (["REJECT"], "AWAITING REVIEW")
    approve(mturk, one, OverrideRejection=True)
    minutes()
    assert (sent, one.status) == (["REJECT", "APPROVE"], "APPROVED")
    assert not Intent.objects.filter(kind="reject").exists()


@pytest.mark.slow
def test_an_unknown_member_spoils_no_group(fake, mturk, connection, hit_type, posted, monkeypatch):
    another_study(connection, hit_type, mturk, excluded=(posted,))
    came = [hand_in(fake, posted) for _ in range(3)]
    is_gone = lambda _world, body, _key: came[1].participant in body["participant_ids"]  # noqa: E731
    broken(monkeypatch, "add_to_group", is_gone, 400)
    minutes()
    posted.refresh_from_db()
    group = fake.world.groups[posted.external_group_id]
    assert {came[0].participant, came[2].participant} <= group
    assert RecruiterConnection.objects.get().problem == ""


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 50])
def test_a_refusing_group_is_retried(fake, mturk, connection, hit_type, posted, monkeypatch, most):
    another_study(connection, hit_type, mturk, excluded=(posted,))
    came = [hand_in(fake, posted) for _ in range(2)]
    monkeypatch.setattr(participants, "MOST_REFUSED", most)
    with monkeypatch.context() as away:
        broken(away, "add_to_group", status=400)
        minutes()
        assert RecruiterConnection.objects.get().problem
    minutes()
    assert {one.participant for one in came} <= fake.world.groups[reload(posted).external_group_id]


@pytest.mark.slow
def test_an_approval_sent_again_takes_no_unknown_rejection_back(fake, mturk, handed_in):
    approve(mturk, handed_in)
    fake.fail_next("move_submission", "400")  # as for want of money
    call_recruiters()
    fake.world.reject(handed_in)
    minutes()
    approval = Intent.objects.get(kind="approve")
    dispatch.decide_uncertain(intent=approval, was_done=False)
    minutes()
    approval.refresh_from_db()
    assert (handed_in.status, approval.state) == ("REJECTED", "refused")
    assert approval.problem == str(dispatch.REJECTED_BY_HAND)
    dispatch.decide_uncertain(intent=approval, was_done=False)
    minutes()
    assert handed_in.status == "APPROVED"


def test_hits_of_a_rule_whose_recruiter_is_disconnected_are_refused(fake, mturk, rule):
    """Else the ledger would pay for them, and the marketplace's own workers do them."""
    connections.disconnect(connection=RecruiterConnection.objects.get())
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.create_hit(**HIT_HERE, MaxAssignments=1)
    assert found.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.InvalidParameterValue"
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"
    rules.end_rule(rule=rule)
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


def test_to_connect_again_forgets_no_setting_of_the_connection(fake, requester, connection):
    facts = connection.settings | {"rejection_category": "LOW_EFFORT"}
    RecruiterConnection.objects.update(settings=facts)
    connect(fake, requester, project=fake.world.project)
    assert RecruiterConnection.objects.get().settings == facts


@pytest.mark.slow
@pytest.mark.parametrize("text", ["\ud800", "\x00"])
def test_a_refusal_is_written_down_whatever_its_text_is(fake, mturk, monkeypatch, text, handed_in):
    approve(mturk, handed_in)
    real = transport._said

    def said(content):
        return real(json.dumps({"error": {"detail": f"Too little{text} money."}}).encode())

    monkeypatch.setattr(transport, "_said", said)
    fake.fail_next("move_submission", "400")
    call_recruiters()
    approval = Intent.objects.get(kind="approve")
    assert (approval.state, "Too little" in approval.problem) == ("refused", True)


@pytest.mark.slow
def test_a_token_of_a_refused_bonus_pays_nobody_else(fake, mturk, connection, posted):
    one, other = hand_in(fake, posted), hand_in(fake, posted)
    pay_in_pounds(mturk, connection, one, token="t1")
    fake.fail_next("prepare_bonuses", "400")
    call_recruiters()
    with pytest.raises(mturk.exceptions.RequestError) as found:
        pay_in_pounds(mturk, connection, other, token="t1")
    assert found.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.DuplicateRequest"
    minutes()
    assert paid(fake, "bonus") == []


def test_a_bonus_is_of_the_study_that_it_is_paid_in(fake, mturk, connection, hit_type, posted):
    first = Session.objects.get(submission_id=hand_in(fake, posted).id)
    second, third = (another_study(connection, hit_type, mturk) for _ in range(2))
    facts = {"connection": connection, "worker": first.worker, "submission_id": "b" * 24}
    facts |= {"arrived_at": clock.now(), "expires_at": clock.now()}
    later = Session.objects.create(study=second, **facts)
    facts = {"worker_id": first.worker.worker_id, "bonus": Decimal("0.50"), "reason": "Careful"}
    for paid_in, session in ((posted, first), (second, later), (third, later)):
        asked = request_bonus_in("GBP", study=paid_in, token=f"t{paid_in.pk}", **facts)
        assert asked.session == session


@pytest.mark.slow
def test_a_deleted_group_of_blocked_workers_is_remade(fake, mturk, hit_type, posted, handed_in):
    fake.world.groups.clear()  # somebody tidies up: it is empty
    mturk.create_worker_block(WorkerId=Session.objects.get().worker.worker_id, Reason="Careless")
    assert codes_of(call_recruiters().problems) == ["group_deleted"]
    assert list(fake.world.groups.values()) == [{handed_in.participant}]
    made = RecruiterConnection.objects.get().blocked_group_id
    second = another_study(RecruiterConnection.objects.get(), hit_type, mturk)
    assert made in str(fake.world.studies[second.external_id].facts["filters"])
    for _minute in range(7):  # as long as a study is open that names the old one
        [problem] = call_recruiters().problems
        assert (problem.code, posted.name in problem) == ("group_deleted", True)
    assert posted.name in RecruiterConnection.objects.get().problem
    posting.stop_study(study=posted)
    assert call_recruiters().problems == ()
    assert RecruiterConnection.objects.get().problem == ""


UNHEARD = ("drop", "500", "500", "500")


def test_an_account_is_called_by_one_process_at_a_time(connection, posted):
    with connections.turn_at(connection) as turn:
        RecruiterConnection.objects.filter(pk=connection.pk).update(turn_token="another's")
        with pytest.raises(exceptions.RecruiterBusy):
            turn.go_on()
    connection.refresh_from_db()
    assert connection.turn_token == "another's"
    later = timezone.now() + timedelta(minutes=5)
    rows = RecruiterConnection.objects.filter(pk=connection.pk)
    rows.update(turn_until=later, turn_token="killed")
    assert call_recruiters().problems
    rows.update(turn_until=timezone.now() - timedelta(seconds=1))
    assert call_recruiters().problems == ()
    with connections.turn_at(connection):
        assert codes_of(call_recruiters().problems) == ["recruiter_busy"]
        request_action(study=posted, action="pause")
        with pytest.raises(exceptions.RecruiterBusy):
            perform_action(posted.pk, 1)
    assert reload(connection).turn_until is None
    perform_action(posted.pk, 1)
    assert reload(posted).state == "paused"


def test_an_action_whose_job_was_killed_each_time_is_in_the_way_of_no_other(posted):
    request_action(study=posted, action="pause")
    job = Job.objects.get(kind="act_on_recruited_study")
    for _ in range(job.max_attempts):
        execution.claim(job.pk)
        Job.objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(hours=1))
        periodic.recover(now=timezone.now(), last_at=timezone.now() - timedelta(seconds=1))
        Job.objects.filter(pk=job.pk).update(run_after=None)
    with refused(exceptions.InvalidParameter, "under_way"):
        request_action(study=posted, action="stop")
    cut_off = CUT_OFF.format(action=reload(posted).get_action_display())
    call_recruiters()
    posted.refresh_from_db()
    assert (posted.action, posted.problem) == ("", cut_off)
    request_action(study=posted, action="stop")
    call_recruiters()  # nothing ends what a job is still to do
    assert reload(posted).action == "stop"


def test_a_publication_that_nobody_heard_of_is_found_and_charged(fake, connection, hit_type):
    drafted, cost = draft(connection, hit_type)
    fake.fail_next("move_study", "drop")
    fake.fail_next("study", "", *UNHEARD[1:])
    with pytest.raises(exceptions.InvalidParameter):
        posting.publish_study(study=drafted, confirmed=cost.total)
    drafted.refresh_from_db()
    assert drafted.state == "draft"
    _submission, _browser, answer = arrive(fake, drafted)  # before the minute is over
    assert answer.status_code == 302
    assert (reload(drafted).state, charges()) == ("active", [cost.total])
    minutes()
    assert charges() == [cost.total]


@pytest.mark.slow
@pytest.mark.parametrize("is_by_arrival", [True, False])
def test_a_stopped_study_is_open_again_as_it_is_there(
    fake, posted, mturk, is_by_arrival, handed_in
):
    approve(mturk, handed_in)
    call_recruiters()
    posting.stop_study(study=posted)
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
    posting.stop_study(study=posted)
    call_recruiters()
    ask_for_more(mturk, hit_type)
    fake.fail_next("change_study", "drop")
    fake.fail_next("study", "", "", *UNHEARD[1:])
    with pytest.raises(exceptions.InvalidParameter):
        posting.set_places(study=posted, total=6)
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
    (posting.stop_study if is_stopped else posting.pause_study)(study=posted)
    assert join(posted, place).status_code == 302
    assert join(posted, place, SESSION_ID="5" * 24).status_code == 410
    assert session_of(place).items.count() == 2


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 500])
def test_unreadable_rows_stop_nothing(
    fake, posted, mturk, connection, hit_type, monkeypatch, status
):
    ask_for_more(mturk, hit_type, n=4)
    posting.set_places(study=posted, total=8)
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
    dispatch.decide_uncertain(intent=Intent.objects.get(kind="doubt"), was_done=False)
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
    posting.follow_study(posted, connections.required_recruiter(posted.connection))
    assert charges() == [*before, Decimal(2)]

"""Recruiting over signed HTTP: nothing is asked of the recruiter by a request, everything by the
job that it leaves behind; tokens are in no answer, and nobody reaches what is another's."""

import json
from decimal import Decimal

import pytest

from accounts.models import User
from benchmarks.fake_prolific.world import Denied
from marketplace.models import (
    Assignment,
    HitType,
    Intent,
    LedgerTransaction,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    Session,
)
from marketplace.money.reconciliation import store_audit
from marketplace.people.enrolment import issue_key
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.prolific.transport import TOKEN_REFUSED
from tests.marketplace.prolific import (
    approve,
    arrive,
    ask_for_more,
    caller,
    charges,
    completion_code,
    create_hits,
    hand_in,
    minutes,
    numbers,
    paid,
    session_of,
)
from work.execution import run_job
from work.models import Job

pytestmark = pytest.mark.django_db
HITS = {"annotation_prefix": "assay:one:"}


@pytest.fixture
def connected(fake, ask):
    status, answer = ask("/connect", name="Prolific", token="token", workspace=fake.world.workspace)
    assert (status, set(answer)) == (200, {"recruiter"})
    assert fake.calls == []
    do_jobs()
    return answer["recruiter"]


@pytest.fixture
def hit_type(mturk):
    for number in range(4):
        annotation = f"assay:{'one' if number < 3 else 'two'}:{number}"
        created = create_hits(mturk, n=1, Reward="0.00", RequesterAnnotation=annotation)
    return created.public_id


@pytest.fixture
def drafted(ask, connected, hit_type, fake):
    facts = {"recruiter": connected, "hit_type_id": hit_type, "reward": "1.50", "minutes": 10}
    for _press in range(2):
        status, answer = ask("/draft", request_token="r1", items=2, **facts, **HITS)
        assert status == 200, answer
    assert (answer["study"]["action"], len(fake.world.studies)) == ("draft", 0)
    do_jobs()
    return study_there(ask)["study"]


def do_jobs():
    for job in Job.objects.queued().order_by("pk"):
        run_job(job.pk)


def study_there(ask):
    [study] = ask("", **HITS)[1]["studies"]
    return study


def reason(answer):
    status, content = answer
    assert content["error"]
    return status, content["code"]


@pytest.fixture
def published(ask, drafted):
    act(ask, drafted, "publish", confirmed="6.00")
    return RecruitedStudy.objects.get()


def caller_of_a_colleague(requester):
    nora = User.objects.create_user("nora")
    requester.users.add(nora)
    key = issue_key(requester=requester, label="", user=nora)
    keys = {"access_key_id": key.access_key_id, "secret_access_key": key.secret_access_key}
    return nora, caller(keys)


def act(ask, study, action, **values):
    status, answer = ask("/act", study=study, action=action, **values)
    do_jobs()
    return status, answer


def test_a_token_is_tried_by_a_job_and_is_in_no_answer(ask, fake, connected):
    [recruiter] = ask("")[1]["recruiters"]
    assert (recruiter["is_connected"], recruiter["currency"]) == (True, "GBP")
    assert (recruiter["account"], recruiter["project"]) == ("A researcher", fake.world.project)
    assert "token" not in json.dumps(recruiter)
    ask("/connect", name="Prolific", token="mistyped", workspace=fake.world.workspace)
    assert ask("")[1]["recruiters"][0]["is_being_tried"]
    do_jobs()
    [recruiter] = ask("")[1]["recruiters"]
    assert recruiter["is_connected"]  # by the token of before
    assert TOKEN_REFUSED in recruiter["problem"]
    assert RecruiterConnection.objects.get().encrypted_offer == ""
    ask("/disconnect", recruiter=connected)
    assert not ask("")[1]["recruiters"][0]["is_connected"]


def test_a_draft_is_published_for_the_amount_that_is_confirmed(ask, fake, drafted, hit_type):
    study = study_there(ask)
    assert (study["state"], study["quoted_places"], study["quoted_cost"]) == ("draft", 3, "6.00")
    act(ask, drafted, "publish", confirmed="5.00")
    assert "6.00 GBP" in study_there(ask)["problem"]
    assert HitType.objects.get(public_id=hit_type).paid_by == "ledger"
    act(ask, drafted, "publish", confirmed="6")
    study = study_there(ask)
    assert (study["state"], study["problem"], study["action"]) == ("active", "", "")
    there = fake.world.studies[study["external_id"]]
    assert (there.status, there.places) == ("ACTIVE", 3)
    assert len(fake.world.studies) == 1


def test_only_the_hits_of_the_batch_are_reserved(fake, published):
    for _participant in range(3):
        hand_in(fake, published)
    annotations = set(
        Session.objects.values_list("items__assignment__hit__requester_annotation", flat=True)
    )
    assert annotations == {"assay:one:0", "assay:one:1", "assay:one:2"}


@pytest.mark.slow
def test_more_places_are_priced_and_then_paid_for_once(ask, fake, published, mturk):
    token = published.token
    act(ask, token, "price", places=5)
    assert numbers(study_there(ask)["problem"]) == ["6", "3", "3"]
    ask_for_more(mturk, published.hit_type, 2)
    act(ask, token, "price", places=5)
    study = study_there(ask)
    assert (study["places"], study["quoted_places"], study["quoted_cost"]) == (3, 5, "4.00")
    fake.fail_next("change_study", "drop")
    for _press in range(2):
        act(ask, token, "places", places=5, confirmed="4.00")
    study = study_there(ask)
    assert (study["places"], study["problem"]) == (5, "")
    assert sorted(charges()) == [4, 6]
    act(ask, token, "price", places=2)
    assert numbers(study_there(ask)["problem"]) == ["5"]


def test_it_is_paused_resumed_and_stopped_or_discarded_while_a_draft(ask, drafted):
    assert reason(act(ask, drafted, "pause")) == (400, "wrong_state")
    act(ask, drafted, "publish", confirmed="6.00")
    for action, state in (("pause", "paused"), ("resume", "active"), ("stop", "stopped")):
        act(ask, drafted, action)
        assert study_there(ask)["state"] == state
    assert reason(act(ask, drafted, "discard")) == (400, "wrong_state")


def test_a_draft_is_discarded_in_both_places(ask, fake, drafted):
    act(ask, drafted, "discard")
    assert (study_there(ask)["state"], fake.world.studies) == ("stopped", {})


def test_one_thing_is_under_way_at_a_time(ask, drafted):
    for _press in range(2):
        status, _answer = ask("/act", study=drafted, action="publish", confirmed="6.00")
        assert status == 200
    assert reason(ask("/act", study=drafted, action="discard")) == (400, "under_way")
    do_jobs()
    assert study_there(ask)["state"] == "active"


def test_what_was_done_under_a_token_is_not_done_again(ask, fake, drafted):
    for _press in range(2):
        status, answer = act(ask, drafted, "publish", confirmed="5.00", request_token="t1")
        assert status == 200
    assert "6.00" in study_there(ask)["problem"]  # it may be tried again
    for _press in range(3):
        status, answer = act(ask, drafted, "publish", confirmed="6.00", request_token="t2")
        assert (status, answer["study"]["problem"]) == (200, "")
    assert fake.calls.count("move_study") == 1


@pytest.mark.slow
def test_decisions_show_in_the_status_and_move_nothing(ask, fake, drafted, mturk, hit_type):
    status, _answer = ask("/hand-over", hit_type_id=hit_type)
    assert status == 200
    act(ask, drafted, "publish", confirmed="6.00")
    study = RecruitedStudy.objects.get()
    movements = LedgerTransaction.objects.count()
    done, returned = hand_in(fake, study), arrive(fake, study)[0]
    fake.world.leave(returned)
    for item in session_of(done).items.all():
        mturk.approve_assignment(AssignmentId=item.assignment.public_id)
    fake.world.enter(arrive(fake, study)[0], completion_code(study))
    study_now = study_there(ask)
    assert (study_now["n_waiting"], study_now["unsent"]) == (1, {"approved": 1})
    call_recruiters()
    study_now = study_there(ask)
    assert (study_now["n_entered"], study_now["unsent"]) == (1, {})
    stand = {"approved": 1, "returned": 1, "started": 1}
    assert study_now["sessions"] | stand == study_now["sessions"]
    assert (study_now["outcomes"], study_now["n_waiting"]) == ({"completed": 1}, 0)
    rows = ask("/sessions", study=drafted)[1]["sessions"]
    assert [(one["state"], one["n_handed_in"]) for one in rows] == [
        ("approved", 2),
        ("returned", 0),
        ("started", 0),
    ]
    assert done.participant not in json.dumps([rows, study_now])
    assert ask("/sessions", study=drafted, after=rows[0]["session"])[1]["sessions"] == rows[1:]
    assert LedgerTransaction.objects.count() == movements
    assert store_audit().n_problems == 0


def test_a_failed_draft_is_made_when_requested_again(ask, connected, hit_type, fake):
    facts = {"recruiter": connected, "hit_type_id": hit_type, "reward": "1.50", "minutes": 10}
    fake.fail_next("create_study", "400")
    studies = []
    for _press in range(3):
        status, answer = ask("/draft", request_token="r1", items=2, **facts, **HITS)
        assert status == 200, answer
        do_jobs()
        studies.append(study_there(ask))
    assert studies[0]["problem"]
    assert studies[1] == studies[2]
    assert (studies[1]["problem"], bool(studies[1]["external_id"])) == ("", True)
    assert len(fake.world.studies) == 1


def test_a_call_that_nobody_answered_is_settled_by_a_person(ask, fake, published):
    session = session_of(hand_in(fake, published))
    intent = Intent.objects.create(
        connection=session.connection,
        session=session,
        kind="message",
        key="message:1",
        state="uncertain",
        created_at=session.arrived_at,
        problem="No answer came.",
    )
    [call] = ask("", **HITS)[1]["calls"]
    assert (call["call"], call["kind"], call["state"]) == (intent.pk, "message", "uncertain")
    for _press in range(2):
        settled = ask("/settle", call=intent.pk, was_done=True)
        assert settled == (200, {"call": intent.pk, "state": "done"})
    assert ask("/settle", call=intent.pk, was_done=False)[0] == 400


@pytest.mark.slow
def test_owners_see_submissions_and_uncertain_calls_first(ask, fake, published, requester):
    session = session_of(hand_in(fake, published))
    facts = {"connection": session.connection, "session": session, "kind": "message"}
    facts |= {"created_at": session.arrived_at}
    first = Intent.objects.create(key="message:0", state="uncertain", **facts)
    for number in range(1, 220):
        Intent.objects.create(key=f"message:{number}", state="refused", **facts)
    bonus = facts | {"kind": "bonus", "amount": "0.50", "currency": "GBP"}
    bonus = Intent.objects.create(key="bonus:0", state="refused", **bonus)
    for number in range(220, 430):  # a bonus of which nothing is said would be taken for paid
        Intent.objects.create(key=f"message:{number}", state="refused", **facts)
    for number in range(430, 640):  # nobody need settle a message
        Intent.objects.create(key=f"message:{number}", state="uncertain", **facts)
    standing = ask("", **HITS)[1]
    calls = standing["calls"]
    assert [one["request_token"] for one in standing["refused_bonuses"]] == ["0"]
    assert (calls[0]["call"], len(calls)) == (first.pk, 200 + 1 + 200)
    assert bonus.pk in [one["call"] for one in calls]
    assert {one["submission_id"] for one in calls} == {session.submission_id}
    nora, colleague = caller_of_a_colleague(requester)
    calls = colleague("", **HITS)[1]["calls"]
    assert {one["submission_id"] for one in calls} == {""}
    assert session.submission_id not in json.dumps(calls)
    requester.owners.add(nora)
    assert colleague("", **HITS)[1]["calls"][0]["submission_id"] == session.submission_id


@pytest.mark.slow
def test_an_owners_key_erases_a_participant(ask, fake, published, requester, mturk):
    done = hand_in(fake, published)
    worker = session_of(done).worker
    facts = {"study": published.token, "worker_id": worker.worker_id}
    assert reason(ask("/erase", **facts)) == (400, "submitted_work")
    approve(mturk, done)
    call_recruiters()
    _nora, colleague = caller_of_a_colleague(requester)
    assert reason(colleague("/erase", **facts)) == (400, "not_an_owner")
    for _press in range(2):
        assert ask("/erase", **facts) == (200, {"study": published.token})
    assert not Session.objects.filter(worker=worker).exists()
    assert Assignment.objects.filter(worker=worker).exclude(answer="").count() == 2
    stranger = facts | {"worker_id": "A2STRANGER"}
    assert reason(ask("/erase", **stranger)) == (400, "unknown_participant")


@pytest.mark.slow
def test_a_later_round_excludes_earlier_participants(ask, fake, drafted, connected, hit_type):
    act(ask, drafted, "publish", confirmed="6.00")
    first = hand_in(fake, RecruitedStudy.objects.get())
    facts = {"recruiter": connected, "hit_type_id": hit_type, "reward": "1.00", "minutes": 5}
    status, answer = ask(
        "/draft", request_token="r2", places=2, excluded=[drafted], devices=["desktop"], **facts
    )
    assert (status, answer["study"]["excluded"]) == (200, [drafted])
    do_jobs()
    later = RecruitedStudy.objects.get(request_token="r2")
    there = fake.world.studies[later.external_id]
    [group, _blocked] = there.facts["filters"][0]["selected_values"]
    assert there.facts["filters"][0]["filter_id"] == "participant_group_blocklist"
    assert fake.world.groups[group] == {first.participant}
    act(ask, later.token, "publish", confirmed=str(later.quoted_cost))
    with pytest.raises(Denied):
        fake.world.arrive(there, first.participant)
    second = hand_in(fake, RecruitedStudy.objects.get(request_token="r1"))
    call_recruiters()
    assert fake.world.groups[group] == {first.participant, second.participant}


def test_what_cannot_be_is_refused(ask):
    for path, content, code in (
        ("/connect", {"name": "P", "token": ""}, "bad_text"),
        ("/draft", {"recruiter": "NONE"}, "unknown_recruiter"),
        ("/act", {"study": "x", "action": "burn"}, "unknown_choice"),
        ("/act", {"study": "x", "action": "publish", "confirmed": 6}, "bad_amount"),
        ("/act", {"study": "x", "action": "publish", "confirmed": "NaN"}, "bad_amount"),
        ("/act", {"study": "x", "action": "price", "places": True}, "bad_number"),
        ("/act", {"study": "x", "action": "stop"}, "channel_does_not_exist"),
        ("/settle", {"call": 1, "was_done": "yes"}, "bad_boolean"),
        ("/hand-over", {"hit_type_id": "NONE"}, "hit_type_does_not_exist"),
    ):
        assert reason(ask(path, **content)) == (400, code)


@pytest.mark.slow
def test_an_invalid_draft_is_refused(ask, connected, hit_type):
    for changed, code in (
        ({"reward": "0"}, "bad_reward"),
        ({"reward": "1.505"}, "bad_reward"),
        ({"minutes": 1440}, "bad_minutes"),
        ({"devices": ["fridge"]}, "bad_devices"),
        ({"filters": ["age"]}, "bad_filter"),
        ({"filters": ["age = 1\n2"]}, "bad_filter"),
        ({"filters": ["age = \x00"]}, "nul_character"),
        ({"excluded": ["\x00"]}, "nul_character"),
        ({"filters": ["age = 65..18"]}, "empty_range"),
        ({"filters": ["age = 18..", "age = ..65"]}, "repeated_filter"),
        ({"filters": ["custom_allowlist = 5b96601d3400a939f7c18c1f"]}, "listing_filter"),
        ({"filters": ["participant_group_blocklist = x"]}, "excluding_filter"),
        ({"labels": ["fridges"]}, "unknown_label"),
        ({"screen_out_reward": "0.10"}, "incomplete_screen_out"),
        ({"screen_out_places": 5}, "incomplete_screen_out"),
        ({"screen_out_reward": "1.50", "screen_out_places": 5}, "bad_screen_out"),
        ({"annotation_prefix": "assay:none:"}, "no_judgment_left"),
    ):
        facts = {"recruiter": connected, "hit_type_id": hit_type, "reward": "1.50", "minutes": 10}
        assert reason(ask("/draft", request_token="r1", **facts | changed)) == (400, code)
        assert not RecruitedStudy.objects.exists()


def test_another_requester_reaches_none_of_it(ask, drafted, connected, hit_type, make_keys):
    other = caller(make_keys("Other lab"))
    told = ("recruiters", "studies", "calls", "refused_bonuses", "participations", "withdrawn")
    assert other("")[1] == {name: [] for name in told}
    facts = {"reward": "1.50", "minutes": 10, "request_token": "r9"}
    tries = [
        other("/act", study=drafted, action="discard"),
        other("/sessions", study=drafted),
        other("/disconnect", recruiter=connected),
        other("/hand-over", hit_type_id=hit_type),
        other("/draft", recruiter=connected, hit_type_id=hit_type, **facts),
    ]
    assert [status for status, _answer in tries] == [400] * 5


@pytest.fixture
def facts(fake, published):
    submission = hand_in(fake, published)
    fake.world.approve(submission)
    call_recruiters()
    worker = session_of(submission).worker
    return {
        "study": published.token,
        "worker_id": worker.worker_id,
        "amount": "0.75",
        "currency": "GBP",
        "reason": "Careful reasons.",
        "request_token": "b1",
    }


@pytest.mark.slow
def test_a_bonus_in_pounds_is_paid_once_however_often_it_is_said(ask, facts, fake):
    movements = LedgerTransaction.objects.count()
    first = ask("/bonus", **facts)
    assert ask("/bonus", **facts) == first
    assert first[0] == 200
    minutes(3)
    assert paid(fake, "bonus") == [Decimal(100)]  # pence, with a fee of a third
    assert Intent.objects.get(kind="bonus").state == "done"
    assert RecruiterCharge.objects.filter(kind="bonus").count() == 1
    assert LedgerTransaction.objects.count() == movements
    status, answer = ask("/bonus", **facts | {"amount": "0.80"})
    assert (status, answer["code"]) == (400, "token_used")


@pytest.mark.slow
def test_a_bonus_that_cannot_be_is_refused(ask, facts):
    for changed, code in (
        ({"currency": "USD"}, "other_currency"),
        ({"amount": "0"}, "bad_amount"),
        ({"amount": "0.755"}, "bad_amount"),
        ({"worker_id": "NOBODY"}, "unknown_participant"),
        ({"study": "none"}, "channel_does_not_exist"),
        ({"reason": ""}, "bad_text"),
    ):
        status, answer = ask("/bonus", **facts | changed)
        assert (status, answer["code"]) == (400, code)
        assert not Intent.objects.filter(kind="bonus").exists()

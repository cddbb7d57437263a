"""Recruiting over signed HTTP: nothing is asked of the recruiter by a request, everything by the
job that it leaves behind; tokens are in no answer, and nobody reaches what is another's."""

import json
from decimal import Decimal

import pytest
from django.test import Client

from accounts.models import User
from hits.endpoints import AccessKey
from hits.requester_api import signed_headers
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
from marketplace.people.access_keys import issue_key
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.fake_prolific.server import FakeProlific
from tests.marketplace.conftest import HIT
from work.execution import run_job
from work.models import Job

pytestmark = pytest.mark.django_db
HITS = {"annotation_prefix": "assay:one:"}


@pytest.fixture
def fake(settings):
    with FakeProlific() as running:
        settings.PROLIFIC_URL = running.url
        yield running
        running.world.check()


def caller(keys):
    """Asks as whoever has these keys; returns the status and what was answered."""
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])

    def ask(path, **content):
        address = f"/marketplace-api/v1/recruiting{path}"
        body = json.dumps(content).encode()
        signed = signed_headers(key, f"http://testserver{address}", body) | {"host": "testserver"}
        answer = Client().post(address, body, content_type="application/json", headers=signed)
        return answer.status_code, answer.json()

    return ask


@pytest.fixture
def ask(keys):
    return caller(keys)


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
        fields = HIT | {"Reward": "0.00", "RequesterAnnotation": annotation}
        created = mturk.create_hit(**fields, MaxAssignments=2)["HIT"]
    return created["HITTypeId"]


@pytest.fixture
def drafted(ask, connected, hit_type, fake):
    """A study of the HITs of one batch, of those of its type."""
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
    """The study as the standing describes it."""
    [study] = ask("", **HITS)[1]["studies"]
    return study


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
    assert "does not accept the token" in recruiter["problem"]
    assert RecruiterConnection.objects.get().encrypted_offer == ""
    ask("/disconnect", recruiter=connected)
    assert not ask("")[1]["recruiters"][0]["is_connected"]


def test_a_draft_is_priced_and_published_for_the_amount_that_is_confirmed(
    ask, fake, drafted, hit_type
):
    study = study_there(ask)
    assert (study["state"], study["quoted_places"], study["quoted_cost"]) == ("draft", 3, "6.00")
    act(ask, drafted, "publish", confirmed="5.00")
    assert "asks 6.00 GBP" in study_there(ask)["problem"]
    assert HitType.objects.get(public_id=hit_type).paid_by == "ledger"
    act(ask, drafted, "publish", confirmed="6")
    study = study_there(ask)
    assert (study["state"], study["problem"], study["action"]) == ("active", "", "")
    there = fake.world.studies[study["external_id"]]
    assert (there.status, there.places) == ("ACTIVE", 3)
    assert len(fake.world.studies) == 1


def test_only_the_hits_of_the_batch_are_reserved(ask, fake, drafted):
    act(ask, drafted, "publish", confirmed="6.00")
    study = RecruitedStudy.objects.get()
    for _participant in range(3):
        hand_in(fake, study)
    annotations = set(
        Session.objects.values_list("items__assignment__hit__requester_annotation", flat=True)
    )
    assert annotations == {"assay:one:0", "assay:one:1", "assay:one:2"}


def test_more_places_are_priced_and_then_paid_for_once(ask, fake, drafted, mturk, hit_type):
    act(ask, drafted, "publish", confirmed="6.00")
    act(ask, drafted, "price", places=5)
    problem = study_there(ask)["problem"]
    assert "6 judgments are left to give, which need 3 places" in problem
    assert "3 places of the study are free already" in problem
    ask_for_more(mturk, HitType.objects.get(public_id=hit_type), 2)
    act(ask, drafted, "price", places=5)
    study = study_there(ask)
    assert (study["places"], study["quoted_places"], study["quoted_cost"]) == (3, 5, "4.00")
    fake.fail_next("change_study", "drop")
    act(ask, drafted, "places", places=5, confirmed="4.00")
    act(ask, drafted, "places", places=5, confirmed="4.00")
    study = study_there(ask)
    assert (study["places"], study["problem"]) == (5, "")
    assert sorted(RecruiterCharge.objects.values_list("amount", flat=True)) == [4, 6]
    act(ask, drafted, "price", places=2)
    assert "places can only grow" in study_there(ask)["problem"]


def test_it_is_paused_resumed_and_stopped_or_discarded_while_a_draft(ask, fake, drafted):
    status, answer = act(ask, drafted, "pause")
    assert (status, "not in a state for this" in answer["error"]) == (400, True)
    act(ask, drafted, "publish", confirmed="6.00")
    for action, state in (("pause", "paused"), ("resume", "active"), ("stop", "stopped")):
        act(ask, drafted, action)
        assert study_there(ask)["state"] == state
    status, answer = act(ask, drafted, "discard")
    assert status == 400


def test_a_draft_is_discarded_in_both_places(ask, fake, drafted):
    act(ask, drafted, "discard")
    assert (study_there(ask)["state"], fake.world.studies) == ("stopped", {})


def test_one_thing_is_under_way_at_a_time(ask, drafted):
    for _press in range(2):
        status, _answer = ask("/act", study=drafted, action="publish", confirmed="6.00")
        assert status == 200
    status, answer = ask("/act", study=drafted, action="discard")
    assert (status, "under way" in answer["error"]) == (400, True)
    do_jobs()
    assert study_there(ask)["state"] == "active"


def test_what_was_done_under_a_token_is_not_done_again(ask, fake, drafted):
    for _press in range(2):
        status, answer = act(ask, drafted, "publish", confirmed="5.00", request_token="t1")
        assert status == 200
    assert "asks 6.00" in study_there(ask)["problem"]  # it may be tried again
    for _press in range(3):
        status, answer = act(ask, drafted, "publish", confirmed="6.00", request_token="t2")
        assert (status, answer["study"]["problem"]) == (200, "")
    assert fake.calls.count("move_study") == 1


def test_what_is_decided_shows_in_the_standing_and_nothing_moves_here(
    ask, fake, drafted, mturk, hit_type
):
    status, _answer = ask("/hand-over", hit_type_id=hit_type)
    assert status == 200
    act(ask, drafted, "publish", confirmed="6.00")
    study = RecruitedStudy.objects.get()
    movements = LedgerTransaction.objects.count()
    done, returned = hand_in(fake, study), arrive(fake, study)[0]
    fake.world.leave(returned)
    session = session_of(done)
    for item in session.items.all():
        mturk.approve_assignment(AssignmentId=item.assignment.public_id)
    entered = arrive(fake, study)[0]
    fake.world.enter(entered, completion_code(study))
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


def test_a_draft_that_failed_is_made_when_it_is_requested_again_under_its_token(
    ask, connected, hit_type, fake
):
    facts = {"recruiter": connected, "hit_type_id": hit_type, "reward": "1.50", "minutes": 10}
    fake.fail_next("create_study", "400")
    studies = []
    for _press in range(3):
        status, answer = ask("/draft", request_token="r1", items=2, **facts, **HITS)
        assert status == 200, answer
        do_jobs()
        studies.append(study_there(ask))
    assert "A fault that" in studies[0]["problem"]
    assert studies[1] == studies[2]
    assert (studies[1]["problem"], bool(studies[1]["external_id"])) == ("", True)
    assert len(fake.world.studies) == 1


def test_a_call_that_nobody_answered_is_settled_by_a_person(ask, fake, drafted):
    act(ask, drafted, "publish", confirmed="6.00")
    session = Session.objects.get(submission_id=hand_in(fake, RecruitedStudy.objects.get()).id)
    intent = Intent.objects.create(
        connection=session.connection,
        session=session,
        kind="message",
        key="message:1",
        state="uncertain",
        created_at=session.arrived_at,
        problem="It may have been sent: no answer came.",
    )
    [call] = ask("", **HITS)[1]["calls"]
    assert (call["call"], call["kind"], call["state"]) == (intent.pk, "message", "uncertain")
    for _press in range(2):
        settled = ask("/settle", call=intent.pk, was_done=True)
        assert settled == (200, {"call": intent.pk, "state": "done"})
    assert ask("/settle", call=intent.pk, was_done=False)[0] == 400


def test_submissions_are_named_to_owners_keys_and_uncertain_calls_come_first(
    ask, fake, drafted, requester
):
    act(ask, drafted, "publish", confirmed="6.00")
    session = Session.objects.get(submission_id=hand_in(fake, RecruitedStudy.objects.get()).id)
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
    nora = User.objects.create_user("nora")
    requester.users.add(nora)
    key = issue_key(requester=requester, label="", user=nora)
    keys = {"access_key_id": key.access_key_id, "secret_access_key": key.secret_access_key}
    calls = caller(keys)("", **HITS)[1]["calls"]
    assert {one["submission_id"] for one in calls} == {""}
    assert session.submission_id not in json.dumps(calls)
    requester.owners.add(nora)
    assert caller(keys)("", **HITS)[1]["calls"][0]["submission_id"] == session.submission_id


def test_a_participant_who_asks_the_researchers_is_erased_with_an_owners_key(
    ask, fake, drafted, requester, mturk
):
    act(ask, drafted, "publish", confirmed="6.00")
    done = hand_in(fake, RecruitedStudy.objects.get())
    worker = session_of(done).worker
    facts = {"study": drafted, "worker_id": worker.worker_id}
    status, answer = ask("/erase", **facts)
    assert (status, "2 assignments wait for review" in answer["error"]) == (400, True)
    for one in Assignment.objects.filter(worker=worker):
        mturk.approve_assignment(AssignmentId=one.public_id)
    call_recruiters()
    nora = User.objects.create_user("nora")
    requester.users.add(nora)
    key = issue_key(requester=requester, label="", user=nora)
    keys = {"access_key_id": key.access_key_id, "secret_access_key": key.secret_access_key}
    assert "key of an owner" in caller(keys)("/erase", **facts)[1]["error"]
    for _press in range(2):
        assert ask("/erase", **facts) == (200, {"study": drafted})
    assert not Session.objects.filter(worker=worker).exists()
    assert Assignment.objects.filter(worker=worker).exclude(answer="").count() == 2
    stranger = facts | {"worker_id": "A2STRANGER"}
    assert "no participant" in ask("/erase", **stranger)[1]["error"]


def test_a_later_round_excludes_the_participants_of_an_earlier_one(
    ask, fake, drafted, connected, hit_type
):
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
    with pytest.raises(Exception, match="excludes"):
        fake.world.arrive(there, first.participant)
    second = hand_in(fake, RecruitedStudy.objects.get(request_token="r1"))
    call_recruiters()
    assert fake.world.groups[group] == {first.participant, second.participant}


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("/connect", {"name": "P", "token": ""}, "'token' must be a text"),
        ("/draft", {"recruiter": "NONE"}, "There is no recruiter"),
        ("/act", {"study": "x", "action": "burn"}, "must be one of"),
        ("/act", {"study": "x", "action": "publish", "confirmed": 6}, "amount as a text"),
        ("/act", {"study": "x", "action": "publish", "confirmed": "NaN"}, "amount as a text"),
        ("/act", {"study": "x", "action": "price", "places": True}, "whole number"),
        ("/act", {"study": "x", "action": "stop"}, "does not exist"),
        ("/settle", {"call": 1, "was_done": "yes"}, "true or false"),
        ("/hand-over", {"hit_type_id": "NONE"}, "does not exist"),
    ],
)
def test_what_cannot_be_is_refused_in_words(ask, path, content, said):
    status, answer = ask(path, **content)
    assert (status, said in answer["error"]) == (400, True), answer


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"reward": "0"}, "above 0"),
        ({"reward": "1.505"}, "whole pence"),
        ({"minutes": 1440}, "less than a day"),
        ({"devices": ["fridge"]}, "Devices are"),
        ({"filters": ["age"]}, "A filter is a name and its values"),
        ({"filters": ["age = 1\n2"]}, "A filter is a name and its values"),
        ({"filters": ["age = \x00"]}, "a NUL character"),
        ({"excluded": ["\x00"]}, "a NUL character"),
        ({"filters": ["age = 65..18"]}, "is empty"),
        ({"filters": ["age = 18..", "age = ..65"]}, "is there twice"),
        ({"filters": ["custom_allowlist = 5b96601d3400a939f7c18c1f"]}, "lists participants"),
        ({"filters": ["participant_group_blocklist = x"]}, "by naming those studies"),
        ({"labels": ["fridges"]}, "There is no label fridges"),
        ({"screen_out_reward": "0.10"}, "how many get it at most"),
        ({"screen_out_places": 5}, "how many get it at most"),
        ({"screen_out_reward": "1.50", "screen_out_places": 5}, "less than the reward"),
        ({"annotation_prefix": "assay:none:"}, "No judgment is left"),
    ],
)
def test_a_draft_that_cannot_be_is_refused_and_leaves_nothing(
    ask, connected, hit_type, changed, said
):
    facts = {"recruiter": connected, "hit_type_id": hit_type, "reward": "1.50", "minutes": 10}
    status, answer = ask("/draft", request_token="r1", **facts | changed)
    assert (status, said in answer["error"]) == (400, True), answer
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


def test_a_batch_kept_for_participants_holds_nothing(ask, mturk):
    fields = {
        name: value for name, value in HIT.items() if name not in ("LifetimeInSeconds", "Question")
    }
    created = mturk.create_hit_type(**fields)["HITTypeId"]
    assert ask("/hand-over", hit_type_id=created)[0] == 200
    mturk.create_hit_with_hit_type(
        HITTypeId=created,
        Question=HIT["Question"],
        LifetimeInSeconds=3600,
        MaxAssignments=5,
    )
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"
    assert Decimal(mturk.get_account_balance()["OnHoldBalance"]) == 0

"""Recruiting over signed HTTP: nothing is asked of the recruiter by a request, everything by the
job that it leaves behind; tokens are in no answer, and nobody reaches what is another's. And
programs that know nothing of recruiters, whose HITs a recruiter's participants do by a rule."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from benchmarks.fake_prolific.world import Denied
from marketplace import clock, exceptions, models
from marketplace.money.reconciliation import store_audit
from marketplace.people.enrolment import issue_key
from marketplace.recruiting import dispatch, posting, rules, sessions
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import disconnect
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.prolific.transport import TOKEN_REFUSED
from tests.codes import refused
from tests.marketplace import prolific
from tests.marketplace.conftest import HIT, make_type
from tests.marketplace.recruiting.conftest import HIT_HERE, RULE
from tests.marketplace.test_worker_site import require
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
        created = prolific.create_hits(mturk, n=1, Reward="0.00", RequesterAnnotation=annotation)
    return created.public_id


@pytest.fixture
def terms(connected, hit_type):
    return {"recruiter": connected, "hit_type_id": hit_type, "reward": "1.50", "minutes": 10}


@pytest.fixture
def drafted(ask, terms, fake):
    for _press in range(2):
        status, answer = ask("/draft", request_token="r1", items=2, **terms, **HITS)
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
    return models.RecruitedStudy.objects.get()


def caller_of_a_colleague(requester):
    nora = User.objects.create_user("nora")
    requester.users.add(nora)
    key = issue_key(requester=requester, label="", user=nora)
    keys = {"access_key_id": key.access_key_id, "secret_access_key": key.secret_access_key}
    return nora, prolific.caller(keys)


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
    assert models.RecruiterConnection.objects.get().encrypted_offer == ""


def test_only_the_hits_of_the_batch_are_reserved(fake, published):
    for _participant in range(3):
        prolific.hand_in(fake, published)
    name = "items__assignment__hit__requester_annotation"
    annotations = set(models.Session.objects.values_list(name, flat=True))
    assert annotations == {"assay:one:0", "assay:one:1", "assay:one:2"}


@pytest.mark.slow
def test_more_places_are_priced_and_then_paid_for_once(ask, fake, published, mturk):
    token = published.token
    act(ask, token, "price", places=5)
    assert prolific.numbers(study_there(ask)["problem"]) == ["6", "3", "3"]
    prolific.ask_for_more(mturk, published.hit_type, 2)
    act(ask, token, "price", places=5)
    study = study_there(ask)
    assert (study["places"], study["quoted_places"], study["quoted_cost"]) == (3, 5, "4.00")
    fake.fail_next("change_study", "drop")
    for _press in range(2):
        act(ask, token, "places", places=5, confirmed="4.00")
    study = study_there(ask)
    assert (study["places"], study["problem"]) == (5, "")
    assert sorted(prolific.charges()) == [4, 6]
    act(ask, token, "price", places=2)
    assert prolific.numbers(study_there(ask)["problem"]) == ["5"]


def test_one_action_is_taken_at_a_time_where_the_state_allows_it(ask, drafted):
    assert reason(act(ask, drafted, "pause")) == (400, "wrong_state")
    for _press in range(2):
        status, _answer = ask("/act", study=drafted, action="publish", confirmed="6.00")
        assert status == 200
    assert reason(ask("/act", study=drafted, action="discard")) == (400, "under_way")
    do_jobs()
    assert study_there(ask)["state"] == "active"
    assert reason(act(ask, drafted, "discard")) == (400, "wrong_state")


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
def test_decisions_show_in_the_status(ask, fake, drafted, mturk, hit_type):
    status, _answer = ask("/hand-over", hit_type_id=hit_type)
    assert status == 200
    act(ask, drafted, "publish", confirmed="6.00")
    study = models.RecruitedStudy.objects.get()
    done, returned = prolific.hand_in(fake, study), prolific.arrive(fake, study)[0]
    fake.world.leave(returned)
    for item in prolific.session_of(done).items.all():
        mturk.approve_assignment(AssignmentId=item.assignment.public_id)
    fake.world.enter(prolific.arrive(fake, study)[0], prolific.completion_code(study))
    study_now = study_there(ask)
    assert (study_now["n_waiting"], study_now["unsent"]) == (1, {"approved": 1})
    call_recruiters()
    study_now = study_there(ask)
    assert (study_now["n_entered"], study_now["unsent"]) == (1, {})
    stand = {"approved": 1, "returned": 1, "started": 1}
    assert study_now["sessions"] | stand == study_now["sessions"]
    assert (study_now["outcomes"], study_now["n_waiting"]) == ({"completed": 1}, 0)
    rows = ask("/sessions", study=drafted)[1]["sessions"]
    shown = [(one["state"], one["n_handed_in"]) for one in rows]
    assert shown == [("approved", 2), ("returned", 0), ("started", 0)]
    assert done.participant not in json.dumps([rows, study_now])
    assert ask("/sessions", study=drafted, after=rows[0]["session"])[1]["sessions"] == rows[1:]


def test_a_failed_draft_is_made_when_requested_again_and_discarded_in_both_places(ask, terms, fake):
    fake.fail_next("create_study", "400")
    studies = []
    for _press in range(3):
        status, answer = ask("/draft", request_token="r1", items=2, **terms, **HITS)
        assert status == 200, answer
        do_jobs()
        studies.append(study_there(ask))
    assert studies[0]["problem"]
    assert studies[1] == studies[2]
    assert (studies[1]["problem"], bool(studies[1]["external_id"])) == ("", True)
    assert len(fake.world.studies) == 1
    act(ask, studies[1]["study"], "discard")
    assert (study_there(ask)["state"], fake.world.studies) == ("stopped", {})


def test_a_call_that_nobody_answered_is_settled_by_a_person(ask, fake, published):
    session = prolific.session_of(prolific.hand_in(fake, published))
    facts = {"connection": session.connection, "session": session, "state": "uncertain"}
    facts |= {"created_at": session.arrived_at, "problem": "No answer came."}
    intent = models.Intent.objects.create(kind="message", key="message:1", **facts)
    [call] = ask("", **HITS)[1]["calls"]
    assert (call["call"], call["kind"], call["state"]) == (intent.pk, "message", "uncertain")
    for _press in range(2):
        settled = ask("/settle", call=intent.pk, was_done=True)
        assert settled == (200, {"call": intent.pk, "state": "done"})
    assert ask("/settle", call=intent.pk, was_done=False)[0] == 400


@pytest.mark.slow
def test_owners_see_submissions_and_uncertain_calls_first(ask, fake, published, requester):
    session = prolific.session_of(prolific.hand_in(fake, published))
    facts = {"connection": session.connection, "session": session, "kind": "message"}
    facts |= {"created_at": session.arrived_at}
    first = models.Intent.objects.create(key="message:0", state="uncertain", **facts)
    for number in range(1, 220):
        models.Intent.objects.create(key=f"message:{number}", state="refused", **facts)
    bonus = facts | {"kind": "bonus", "amount": "0.50", "currency": "GBP"}
    bonus = models.Intent.objects.create(key="bonus:0", state="refused", **bonus)
    for number in range(220, 430):  # a bonus of which nothing is said would be taken for paid
        models.Intent.objects.create(key=f"message:{number}", state="refused", **facts)
    for number in range(430, 640):  # nobody need settle a message
        models.Intent.objects.create(key=f"message:{number}", state="uncertain", **facts)
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


def test_links_of_an_own_lab_are_made_once_and_revoked_by_owners_alone(
    ask, hit_type, requester, make_keys
):
    terms = {"hit_type_id": hit_type, "items": 2, **HITS}
    tokens = [ask("/open", request_token="r1", **terms)[1]["study"]["study"] for _press in range(2)]
    assert (len(set(tokens)), models.RecruitedStudy.objects.get().items_per_session) == (1, 2)
    assert reason(ask("/open", request_token="r2", **terms | {"items": 101})) == (400, "bad_number")
    facts = {"study": tokens[0]}
    for _press in range(2):
        status, answer = ask("/links", **facts, labels=["Ann", "Bob"])
    assert (status, [one["label"] for one in answer["people"]]) == (200, ["Ann", "Bob"])
    assert (answer["shared_link"], answer["state"], len(invited())) == ("", "active", 2)
    _nora, colleague = caller_of_a_colleague(requester)
    assert reason(colleague("/links", **facts)) == (400, "not_an_owner")
    stranger = prolific.caller(make_keys("Another lab"))
    assert stranger("/links", **facts)[0] == 400
    assert stranger("/open", request_token="r1", **terms)[0] == 400
    number = answer["people"][0]["invitation"]
    for _press in range(2):
        answer = ask("/links", **facts, revoked=[number, 10**9], is_shared=True, is_open=False)[1]
    assert [one["is_revoked"] for one in answer["people"]] == [True, False]
    assert (answer["shared_link"].endswith(f"/join/{tokens[0]}/"), answer["state"]) == (
        True,
        "stopped",
    )
    # A new link for the same name is another one.
    answer = ask("/links", **facts, labels=["Ann"], is_open=True)[1]
    assert (len(answer["people"]), answer["state"]) == (3, "active")
    made = models.AuditEntry.objects.filter(action="study.revoke")
    assert made.count() == 1
    for wrong in ({"labels": "Ann"}, {"revoked": [True]}, {"is_open": "yes"}):
        assert ask("/links", **facts, **wrong)[0] == 400


def invited():
    return list(models.Invitation.objects.filter(revoked_at=None))


@pytest.mark.slow
def test_an_owners_key_erases_a_participant(ask, fake, published, requester, mturk):
    done = prolific.hand_in(fake, published)
    worker = prolific.session_of(done).worker
    facts = {"study": published.token, "worker_id": worker.worker_id}
    assert reason(ask("/erase", **facts)) == (400, "submitted_work")
    prolific.approve(mturk, done)
    call_recruiters()
    _nora, colleague = caller_of_a_colleague(requester)
    assert reason(colleague("/erase", **facts)) == (400, "not_an_owner")
    for _press in range(2):
        assert ask("/erase", **facts) == (200, {"study": published.token})
    assert not models.Session.objects.filter(worker=worker).exists()
    assert models.Assignment.objects.filter(worker=worker).exclude(answer="").count() == 2
    stranger = facts | {"worker_id": "A2STRANGER"}
    assert reason(ask("/erase", **stranger)) == (400, "unknown_participant")


@pytest.mark.slow
def test_a_later_round_excludes_earlier_participants(ask, fake, drafted, terms):
    act(ask, drafted, "publish", confirmed="6.00")
    first = prolific.hand_in(fake, models.RecruitedStudy.objects.get())
    facts = terms | {"reward": "1.00", "minutes": 5, "excluded": [drafted], "devices": ["desktop"]}
    status, answer = ask("/draft", request_token="r2", places=2, **facts)
    assert (status, answer["study"]["excluded"]) == (200, [drafted])
    do_jobs()
    later = models.RecruitedStudy.objects.get(request_token="r2")
    there = fake.world.studies[later.external_id]
    [group, _blocked] = there.facts["filters"][0]["selected_values"]
    assert there.facts["filters"][0]["filter_id"] == "participant_group_blocklist"
    assert fake.world.groups[group] == {first.participant}
    act(ask, later.token, "publish", confirmed=str(later.quoted_cost))
    with pytest.raises(Denied):
        fake.world.arrive(there, first.participant)
    second = prolific.hand_in(fake, models.RecruitedStudy.objects.get(request_token="r1"))
    call_recruiters()
    assert fake.world.groups[group] == {first.participant, second.participant}


@pytest.mark.slow
def test_an_invalid_draft_is_refused(ask, terms):
    for changed, code in (
        ({"reward": "0"}, "bad_reward"),
        ({"reward": "1.505"}, "bad_reward"),
        ({"minutes": 1440}, "bad_minutes"),
        ({"devices": ["fridge"]}, "bad_devices"),
        ({"filters": ["age"]}, "bad_filter"),
        ({"filters": ["age = 1\n2"]}, "bad_filter"),
        ({"filters": ["age = \x00"]}, "nul_character"),
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
        assert reason(ask("/draft", request_token="r1", **terms | changed)) == (400, code)
        assert not models.RecruitedStudy.objects.exists()


def test_another_requester_reaches_none_of_it_and_what_cannot_be_is_refused(
    ask, drafted, terms, make_keys
):
    other = prolific.caller(make_keys("Other lab"))
    told = ("recruiters", "studies", "calls", "refused_bonuses", "participations", "withdrawn")
    assert other("")[1] == {name: [] for name in told}
    tries = [
        other("/act", study=drafted, action="discard"),
        other("/sessions", study=drafted),
        other("/disconnect", recruiter=terms["recruiter"]),
        other("/hand-over", hit_type_id=terms["hit_type_id"]),
        other("/draft", request_token="r9", **terms),
    ]
    assert [status for status, _answer in tries] == [400] * 5
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


@pytest.fixture
def facts(fake, published):
    submission = prolific.hand_in(fake, published)
    fake.world.approve(submission)
    call_recruiters()
    facts = {
        "study": published.token,
        "worker_id": prolific.session_of(submission).worker.worker_id,
    }
    facts |= {"amount": "0.75", "currency": "GBP"}
    return facts | {"reason": "Careful reasons.", "request_token": "b1"}


@pytest.mark.slow
def test_a_bonus_in_pounds_is_paid_once_however_often_it_is_said(ask, facts, fake):
    movements = models.LedgerTransaction.objects.count()
    first = ask("/bonus", **facts)
    assert ask("/bonus", **facts) == first
    assert first[0] == 200
    prolific.minutes(3)
    assert prolific.paid(fake, "bonus") == [Decimal(100)]  # pence, with a fee of a third
    assert models.Intent.objects.get(kind="bonus").state == "done"
    assert models.RecruiterCharge.objects.filter(kind="bonus").count() == 1
    assert models.LedgerTransaction.objects.count() == movements
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
        assert not models.Intent.objects.filter(kind="bonus").exists()


# Rules


def expire_all():
    models.Hit.objects.update(expiration=clock.now())


def studies_there(fake):
    return [(one.status, one.places) for one in fake.world.studies.values()]


def places_there(fake):
    return [one.places for one in fake.world.studies.values()]


def over_budget(expected):
    found = prolific.numbers(models.AttachedHitType.objects.exclude(problem="").get().problem)
    return [Decimal(number) for number in found] == [Decimal(number) for number in expected]


@pytest.mark.slow
def test_what_matches_is_recruited_without_the_programs_doing(fake, mturk, created):
    assert created.paid_by == "recruiter"
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"
    call_recruiters()
    assert fake.world.studies == {}
    prolific.settle(2)
    (there,) = fake.world.studies.values()
    assert (there.status, there.places, there.facts["reward"]) == ("ACTIVE", 4, 150)
    submission = prolific.hand_in(fake, models.RecruitedStudy.objects.get())
    prolific.approve(mturk, submission)
    call_recruiters()
    assert submission.status == "APPROVED"
    assert models.LedgerTransaction.objects.filter(hit__isnull=False).count() == 0
    assert store_audit().n_problems == 0
    assert models.AuditEntry.objects.filter(action="recruiting_rule.attach").count() == 1


def test_what_does_not_match_or_was_there_before_is_the_marketplaces(mturk, connection):
    before = prolific.create_hits(mturk, n=1, **HIT_HERE).public_id
    rules.create_rule(connection=connection, values=RULE)
    again = prolific.create_hits(mturk, n=1, **HIT_HERE).public_id
    other = prolific.create_hits(mturk, n=1, **HIT | {"Title": "Photos", "Keywords": "x"})
    assert before == again
    paid_by = set(models.HitType.objects.values_list("public_id", "paid_by"))
    assert paid_by == {(before, "ledger"), (other.public_id, "ledger")}
    assert not models.AttachedHitType.objects.exists()


def test_hits_that_come_later_add_places_as_far_as_the_amount_goes(fake, mturk, ruled):
    prolific.create_hits(mturk, n=2, **HIT_HERE)
    fake.fail_next("change_study", "drop")
    prolific.settle(2)
    assert studies_there(fake) == [("ACTIVE", 6)]  # 2.00 each with fees: 12 of 30
    prolific.create_hits(mturk, n=1, max_assignments=40, **HIT_HERE)
    prolific.settle()
    assert studies_there(fake) == [("ACTIVE", 6)]
    assert over_budget([68, 18, 30])  # as many participants as one HIT wants judgments


def test_a_study_is_stopped_when_the_program_expires_its_hits(fake, mturk, ruled):
    for hit in models.Hit.objects.all():
        mturk.update_expiration_for_hit(HITId=hit.public_id, ExpireAt=clock.now())
    call_recruiters()
    assert (studies_there(fake), prolific.reload(ruled).state) == ([("COMPLETED", 4)], "stopped")
    # HITs that come after that have a study of their own.
    prolific.create_hits(mturk, n=1, max_assignments=3, **HIT_HERE)
    prolific.settle(2)
    assert studies_there(fake) == [("COMPLETED", 4), ("ACTIVE", 3)]
    attached = models.AttachedHitType.objects.get()
    assert [one.state for one in attached.studies.order_by("pk")] == ["stopped", "active"]
    assert attached.problem == ""


@pytest.mark.slow
def test_what_all_studies_of_a_rule_cost_is_held_against_its_amount(fake, mturk, ruled):
    """Four participants of the first were paid 8.00 with fees, of 30."""
    for submission in [prolific.hand_in(fake, ruled) for _ in range(4)]:
        fake.world.approve(submission)
    call_recruiters()
    expire_all()
    call_recruiters()
    prolific.create_hits(mturk, n=1, max_assignments=12, **HIT_HERE)
    prolific.settle()
    assert over_budget([24, 22, 30])


@pytest.mark.slow
def test_hits_that_come_as_others_expire_are_done(fake, mturk, ruled):
    """A program that has some open at any time: its new ones are not taken for the old."""
    for _ in range(4):
        prolific.hand_in(fake, ruled)
    expire_all()
    prolific.create_hits(mturk, n=1, **HIT_HERE)
    prolific.settle()
    assert studies_there(fake) == [("ACTIVE", 6)]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["a code without the work", "no consent"])
def test_no_places_are_bought_for_those_who_may_give_theirs_back(fake, ruled, how):
    """The one may be rejected, and the other, who was asked back, return."""
    submission, _browser, _answer = prolific.arrive(fake, ruled)
    if how == "no consent":
        sessions.end_session(session=models.Session.objects.get(), outcome="no_consent")
    else:
        fake.world.enter(submission, prolific.completion_code(ruled))
    for _ in range(3):
        prolific.hand_in(fake, ruled)
    prolific.minutes(2)
    assert places_there(fake) == [4]
    assert models.AttachedHitType.objects.get().problem == ""


def test_what_a_person_has_stopped_stays_so_while_its_hits_are_open(fake, mturk, ruled):
    posting.stop_study(study=ruled)
    prolific.create_hits(mturk, n=1, max_assignments=3, **HIT_HERE)
    prolific.settle()
    assert studies_there(fake) == [("COMPLETED", 4)]
    assert str(rules.STOPPED_EARLY) in models.AttachedHitType.objects.get().problem


@pytest.fixture
def too_dear(fake, mturk, rule):
    """A draft of 40.00, of a rule of 30.00, that is of 20 places; two are of another HIT."""
    hit_type = prolific.create_hits(mturk, n=1, max_assignments=20, **HIT_HERE)
    prolific.create_hits(mturk, n=1, **HIT_HERE)
    prolific.settle()
    assert over_budget([40, 30, 30])
    return hit_type.hits.earliest("pk")


@pytest.mark.parametrize("is_over", [True, False])
def test_a_draft_that_was_too_dear_is_drafted_anew_for_what_is_left(fake, mturk, too_dear, is_over):
    if is_over:
        expire_all()
        call_recruiters()
        prolific.create_hits(mturk, n=1, **HIT_HERE)
        prolific.settle()
    else:
        models.Hit.objects.filter(pk=too_dear.pk).update(expiration=clock.now())
        call_recruiters()
    assert studies_there(fake) == [("ACTIVE", 2)]


def test_a_draft_deleted_there_is_not_drafted_again_for_its_hits(fake, mturk, too_dear):
    fake.world.studies.clear()
    models.Hit.objects.filter(pk=too_dear.pk).update(expiration=clock.now())
    prolific.minutes(2)
    assert fake.world.studies == {}
    problem = rules.DRAFT_DELETED.format(recruiter="Prolific")
    assert models.AttachedHitType.objects.get().problem == problem
    expire_all()
    call_recruiters()
    prolific.create_hits(mturk, n=1, **HIT_HERE)
    prolific.settle()
    assert studies_there(fake) == [("ACTIVE", 2)]
    assert models.AttachedHitType.objects.get().problem == ""


def test_what_was_not_heard_to_be_spent_is_looked_after_though_all_hits_are_over(ruled):
    """Whoever was cut off between the publication and its charge holds the cost until it is seen
    what became of it."""
    expire_all()
    call_recruiters()
    models.AttachedHitType.objects.update(pending_cost=Decimal(8))
    call_recruiters()
    assert models.AttachedHitType.objects.get(ended_at__isnull=False).pending_cost is None


def test_what_another_hit_type_is_about_to_spend_is_not_spent_again(mturk, created):
    prolific.create_hits(mturk, n=1, **HIT_HERE | {"Title": "Rate a ninth response of a Dialogue"})
    models.AttachedHitType.objects.exclude(hit_type=created).update(pending_cost=Decimal(23))
    prolific.settle()
    assert over_budget([8, 7, 30])


@pytest.mark.slow
def test_money_that_came_back_is_the_rules_again(fake, mturk, ruled):
    """Nobody comes to four studies of 8.00, of 30."""
    for _round in range(3):
        expire_all()
        prolific.minutes(2)
        prolific.create_hits(mturk, n=1, max_assignments=4, **HIT_HERE)
        prolific.settle()
    assert models.AttachedHitType.objects.get().problem == ""
    assert studies_there(fake) == [("COMPLETED", 4)] * 3 + [("ACTIVE", 4)]


@pytest.mark.slow
def test_who_ran_out_of_time_holds_a_share_of_a_stopped_study_and_not_all_of_it(fake, mturk, ruled):
    """Of four places of 2.00 one is paid, another's time ran out, and nobody came to the others:
    a late code may have 2.00 more paid, of 30."""

    def is_left(left):
        prolific.create_hits(mturk, n=1, max_assignments=99, **HIT_HERE)
        prolific.settle()
        is_so = over_budget([198, left, 30])
        expire_all()
        call_recruiters()
        return is_so

    fake.world.now = clock.now()
    fake.world.approve(prolific.hand_in(fake, ruled))
    late, _browser, _answer = prolific.arrive(fake, ruled)
    call_recruiters()
    fake.world.leave(late, "TIMED-OUT")
    expire_all()
    prolific.minutes()
    assert is_left(26)
    fake.world.enter(late, prolific.completion_code(ruled))
    fake.world.approve(late)
    prolific.minutes(2)
    assert is_left(26)


@pytest.mark.slow
@pytest.mark.parametrize("is_left", [True, False])
def test_a_place_in_doubt_is_bought_again_if_time_pays_it(fake, mturk, rule, is_left):
    """Of four participants one does not consent, and enters the code all the same. The answer to
    the rejection is lost at first; once it is rejected the place is free."""
    prolific.create_hits(mturk, **HIT_HERE | {"LifetimeInSeconds": 86400 * 20})
    prolific.settle()
    ruled = models.RecruitedStudy.objects.get()
    submission, _browser, _answer = prolific.arrive(fake, ruled)
    session = sessions.end_session(session=models.Session.objects.get(), outcome="no_consent")
    fake.world.enter(submission, session.code)
    for _ in range(3):
        prolific.hand_in(fake, ruled)
    clock.advance(timedelta(hours=25))
    call_recruiters()
    assert places_there(fake) == [4]
    dispatch.decide_uncertain(intent=models.Intent.objects.get(kind="doubt"), was_done=is_left)
    if not is_left:
        fake.fail_next("move_submission", "lose")
    prolific.minutes()
    assert places_there(fake) == [5 if is_left else 4]
    assert submission.status == ("AWAITING REVIEW" if is_left else "REJECTED")


def test_a_rule_buys_nothing_of_a_study_whose_reward_was_raised_there(fake, mturk, ruled):
    there = fake.world.studies[ruled.external_id]
    fake.world.change_reward(there, 450)
    prolific.ask_for_more(mturk, ruled.hit_type)
    prolific.settle(2)
    assert there.places == 4
    assert prolific.numbers(models.AttachedHitType.objects.get().problem) == ["4.50", "1.50"]
    fake.world.change_reward(there, 150)
    call_recruiters()
    assert there.places > 4


def test_who_was_paid_there_without_having_come_here_is_charged_for(fake, ruled):
    stranger = fake.world.arrive(fake.world.studies[ruled.external_id])
    fake.world.enter(stranger, prolific.completion_code(ruled))
    fake.world.approve(stranger)
    prolific.minutes(2)
    assert prolific.charges("reward") == [2]


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["create_study", "move_study", "calculate_cost", "study"])
@pytest.mark.parametrize("fault", ["drop", "lose"])
def test_one_study_comes_of_it_whatever_is_lost(fake, created, operation, fault):
    fake.fail_next(operation, fault)
    prolific.settle(4)
    assert studies_there(fake) == [("ACTIVE", 4)]
    assert models.RecruitedStudy.objects.get().state == "active"


def test_what_has_no_counterpart_is_refused_and_a_repeated_token_is_one_hit(mturk, rule):
    adult = require("00000000000000000060", "EqualTo", IntegerValues=[1])
    policy = {
        "PolicyName": "ScoreMyKnownAnswers/2011-09-01",
        "Parameters": [{"Key": "AnswerKey", "MapEntries": [{"Key": "q", "Values": ["a"]}]}],
    }
    for facts in ({"QualificationRequirements": [adult]}, {"AssignmentReviewPolicy": policy}):
        with pytest.raises(mturk.exceptions.RequestError) as found:
            prolific.create_hits(mturk, n=1, **HIT_HERE | facts)
        assert found.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.InvalidParameterValue"
    assert not models.Hit.objects.exists()
    assert not models.HitType.objects.filter(paid_by="recruiter").exists()
    first = mturk.create_hit(**HIT_HERE, MaxAssignments=1, UniqueRequestToken="t")["HIT"]
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.create_hit(**HIT_HERE, MaxAssignments=1, UniqueRequestToken="t")
    assert first["HITId"] in str(found.value)
    assert models.Hit.objects.count() == models.AttachedHitType.objects.count() == 1


def test_blocks_and_qualifications_reach_participants_through_the_recruiter(fake, mturk, ruled):
    submission = prolific.hand_in(fake, ruled)
    worker = models.Session.objects.get().worker.worker_id
    (group,) = fake.world.groups
    assert fake.world.studies[ruled.external_id].facts["filters"] == [
        {"filter_id": "participant_group_blocklist", "selected_values": [group]}
    ]
    mturk.create_worker_block(WorkerId=worker, Reason="Careless")
    fake.fail_next("add_to_group", "drop")
    prolific.minutes(2)
    assert fake.world.groups[group] == {submission.participant}
    mturk.delete_worker_block(WorkerId=worker)
    call_recruiters()
    assert fake.world.groups[group] == set()
    ids = {"QualificationTypeId": make_type(mturk, "Trained"), "WorkerId": worker}
    mturk.associate_qualification_with_worker(**ids, IntegerValue=7, SendNotification=True)
    mturk.disassociate_qualification_from_worker(**ids, Reason="Too long ago.")
    call_recruiters()
    granted, revoked = [one["body"] for one in fake.world.messages]
    assert "Trained" in granted
    assert "Too long ago." in revoked
    assert not models.WorkerMessage.objects.exists()
    assert not models.Intent.objects.exclude(state="done").exists()


def test_a_rule_is_the_requesters_and_ends(mturk, connection, rule):
    for most_cost, reward, code in ((5, None, "reward_missing"), ("0.001", 1, "bad_amount")):
        values = rules.RuleValues(most_cost=Decimal(most_cost), minutes=5, reward=reward)
        with refused(exceptions.InvalidParameter, code):
            rules.create_rule(connection=connection, values=values)
    rules.end_rule(rule=rule)
    prolific.create_hits(mturk, n=1, **HIT_HERE)
    assert not models.AttachedHitType.objects.exists()


def test_rules_are_made_listed_and_ended_by_a_command(connection, requester, capsys):
    def listed(*terms):
        call_command("recruiting_rule", requester.name, *terms, "--json")
        (facts,) = json.loads(capsys.readouterr().out)["rules"]
        return facts

    facts = listed("--words", "x", "--minutes", "5", "--reward", "1.00", "--most-cost", "20")
    assert (facts["words"], facts["most_cost"], facts["is_open"]) == ("x", "20.00", True)
    assert not listed("--end", str(facts["rule"]))["is_open"]
    with pytest.raises(CommandError) as found:
        call_command("recruiting_rule", requester.name, "--end", "0")
    assert "0" in str(found.value)


def test_whoever_disconnects_while_places_are_priced_buys_none(fake, mturk, ruled, monkeypatch):
    real = Prolific.cost

    def cost(self, reward, places):
        disconnect(connection=models.RecruiterConnection.objects.get())
        return real(self, reward, places)

    prolific.create_hits(mturk, n=1, max_assignments=8, **HIT_HERE)
    monkeypatch.setattr(Prolific, "cost", cost)
    prolific.settle()
    assert studies_there(fake) == [("ACTIVE", 4)]

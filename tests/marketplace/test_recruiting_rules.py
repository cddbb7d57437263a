# ruff: noqa: F811 (fixtures)
"""Programs that know nothing of recruiters, whose HITs a recruiter's participants do by a rule."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
    Assignment,
    AttachedHitType,
    AuditEntry,
    Hit,
    HitType,
    Intent,
    LedgerTransaction,
    RecruitedStudy,
    RecruiterConnection,
    Session,
    WorkerMessage,
)
from marketplace.money.reconciliation import store_audit
from marketplace.people.erasure import erase_worker
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import connect_prolific, disconnect
from marketplace.recruiting.drafts import discard_draft
from marketplace.recruiting.needed_places import free_and_needed
from marketplace.recruiting.posting import stop_study
from marketplace.recruiting.problems import Unreachable
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.rules import RuleValues, create_rule, end_rule
from marketplace.recruiting.sessions import GRACE, end_session, settle_sessions
from marketplace.recruiting.settlements import decide_uncertain
from tests.marketplace.conftest import HIT
from tests.marketplace.prolific import arrive, ask_for_more, connection, fake, hand_in  # noqa: F401

RULE = RuleValues(
    most_cost=Decimal(30), minutes=10, items_per_session=2, reward=Decimal("1.50"), words="Dialogue"
)
HIT_HERE = HIT | {"Title": "Rate eight responses of a dialogue"}


@pytest.fixture
def rule(connection):
    return create_rule(connection=connection, values=RULE)


@pytest.fixture
def created(mturk, rule):
    """What a program makes: four HITs for two workers each."""
    hits = [mturk.create_hit(**HIT_HERE, MaxAssignments=2)["HIT"] for _ in range(4)]
    return HitType.objects.get(public_id=hits[0]["HITTypeId"])


@pytest.fixture
def study(created):
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    return RecruitedStudy.objects.get(hit_type=created)


def test_what_matches_is_recruited_without_the_programs_doing(fake, mturk, created):
    """Nothing is held, and a study is published once the program has made all of its HITs."""
    assert created.paid_by == "recruiter"
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"
    call_recruiters()
    assert fake.world.studies == {}
    clock.advance(timedelta(minutes=2))
    for _minute in range(2):
        call_recruiters()
    (there,) = fake.world.studies.values()
    assert (there.status, there.places, there.facts["reward"]) == ("ACTIVE", 4, 150)
    study = RecruitedStudy.objects.get()
    submission = hand_in(fake, study)
    done = Assignment.objects.filter(session_item__session__submission_id=submission.id)
    for assignment in done:
        mturk.approve_assignment(AssignmentId=assignment.public_id)
    call_recruiters()
    assert submission.status == "APPROVED"
    assert LedgerTransaction.objects.filter(hit__isnull=False).count() == 0
    assert store_audit().n_problems == 0
    assert AuditEntry.objects.filter(action="recruiting_rule.attach").count() == 1


def test_what_does_not_match_or_was_there_before_is_the_marketplaces(mturk, connection):
    before = mturk.create_hit(**HIT_HERE, MaxAssignments=1)["HIT"]["HITTypeId"]
    create_rule(connection=connection, values=RULE)
    again = mturk.create_hit(**HIT_HERE, MaxAssignments=1)["HIT"]["HITTypeId"]
    photos = HIT | {"Title": "Photos", "Keywords": "x"}
    other = mturk.create_hit(**photos, MaxAssignments=1)["HIT"]
    assert before == again
    paid_by = set(HitType.objects.values_list("public_id", "paid_by"))
    assert paid_by == {(before, "ledger"), (other["HITTypeId"], "ledger")}
    assert not AttachedHitType.objects.exists()


def test_hits_that_come_later_add_places_as_far_as_the_amount_goes(fake, mturk, study):
    there = fake.world.studies[study.external_id]
    for _ in range(2):
        mturk.create_hit(**HIT_HERE, MaxAssignments=2)
    clock.advance(timedelta(minutes=2))
    fake.fail_next("change_study", "drop")
    for _minute in range(2):
        call_recruiters()
    assert there.places == 6  # 2.00 each with fees: 12 of 30
    mturk.create_hit(**HIT_HERE, MaxAssignments=40)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    assert there.places == 6
    problem = AttachedHitType.objects.get().problem
    assert "It costs 68" in problem  # as many participants as one HIT wants judgments
    assert "18.00 of the rule's 30.00 are left" in problem


def test_a_study_is_stopped_when_the_program_expires_its_hits(fake, mturk, study):
    for hit in Hit.objects.all():
        mturk.update_expiration_for_hit(HITId=hit.public_id, ExpireAt=clock.now())
    call_recruiters()
    study.refresh_from_db()
    assert (fake.world.studies[study.external_id].status, study.state) == ("COMPLETED", "stopped")


def expire_all(mturk):
    for hit in Hit.objects.all():
        mturk.update_expiration_for_hit(HITId=hit.public_id, ExpireAt=clock.now())


def test_hits_that_come_after_the_first_are_over_have_a_study_of_their_own(fake, mturk, study):
    """Nobody came to the first."""
    expire_all(mturk)
    call_recruiters()
    mturk.create_hit(**HIT_HERE, MaxAssignments=3)
    clock.advance(timedelta(minutes=2))
    for _minute in range(2):
        call_recruiters()
    first, second = fake.world.studies.values()
    assert (first.status, first.places) == ("COMPLETED", 4)
    assert (second.status, second.places) == ("ACTIVE", 3)
    attached = AttachedHitType.objects.get()
    assert [one.state for one in attached.studies.order_by("pk")] == ["stopped", "active"]
    assert attached.problem == ""


def test_what_all_studies_of_a_rule_cost_is_held_against_its_amount(fake, mturk, study):
    """Four participants of the first were paid 8.00 with fees, of 30."""
    for submission in [hand_in(fake, study) for _ in range(4)]:
        fake.world.approve(submission)
    call_recruiters()
    expire_all(mturk)
    call_recruiters()
    mturk.create_hit(**HIT_HERE, MaxAssignments=12)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    problem = AttachedHitType.objects.get().problem
    assert "It costs 24" in problem
    assert "22.00 of the rule's 30.00 are left" in problem


def test_hits_that_come_as_others_expire_are_done(fake, mturk, study):
    """A program that has some open at any time: its new ones are not taken for the old."""
    for _ in range(4):
        hand_in(fake, study)
    late = mturk.create_hit(**HIT_HERE, MaxAssignments=2)["HIT"]["HITId"]
    for hit in Hit.objects.exclude(public_id=late):
        mturk.update_expiration_for_hit(HITId=hit.public_id, ExpireAt=clock.now())
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    (there,) = fake.world.studies.values()
    assert (there.status, there.places) == ("ACTIVE", 6)


@pytest.mark.parametrize("how", ["a code without the work", "no consent"])
def test_no_places_are_bought_for_those_who_may_give_theirs_back(fake, mturk, study, how):
    """The one may be rejected, and the other, who was asked back, return."""
    submission, _browser, _answer = arrive(fake, study)
    if how == "no consent":
        end_session(session=Session.objects.get(), outcome="no_consent")
    else:
        fake.world.enter(submission, study.codes.get(outcome="completed").code)
    for _ in range(3):
        hand_in(fake, study)
    for _minute in range(2):
        call_recruiters()
    (there,) = fake.world.studies.values()
    assert there.places == 4
    assert AttachedHitType.objects.get().problem == ""


def test_what_a_person_has_stopped_stays_so_while_its_hits_are_open(fake, mturk, study):
    stop_study(study=study)
    mturk.create_hit(**HIT_HERE, MaxAssignments=3)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    (there,) = fake.world.studies.values()
    assert there.status == "COMPLETED"
    assert "stopped while places were free" in AttachedHitType.objects.get().problem


def test_a_draft_of_hits_that_are_over_is_none_of_those_that_come_after(fake, mturk, rule):
    """It costs more than the rule has, and keeps none of the places."""
    mturk.create_hit(**HIT_HERE, MaxAssignments=20)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    assert "It costs 40" in AttachedHitType.objects.get().problem
    expire_all(mturk)
    call_recruiters()
    mturk.create_hit(**HIT_HERE, MaxAssignments=2)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    assert [(one.status, one.places) for one in fake.world.studies.values()] == [("ACTIVE", 2)]


def test_a_draft_that_was_too_dear_is_drafted_anew_for_what_is_left(fake, mturk, rule):
    first = mturk.create_hit(**HIT_HERE, MaxAssignments=20)["HIT"]["HITId"]
    mturk.create_hit(**HIT_HERE, MaxAssignments=2)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    mturk.update_expiration_for_hit(HITId=first, ExpireAt=clock.now())
    call_recruiters()
    assert [(one.status, one.places) for one in fake.world.studies.values()] == [("ACTIVE", 2)]


def test_a_draft_that_somebody_deleted_there_is_not_drafted_again_for_its_hits(fake, mturk, rule):
    """It was too dear; what is left of its HITs would not be."""
    first = mturk.create_hit(**HIT_HERE, MaxAssignments=20)["HIT"]["HITId"]
    mturk.create_hit(**HIT_HERE, MaxAssignments=2)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    fake.world.studies.clear()
    mturk.update_expiration_for_hit(HITId=first, ExpireAt=clock.now())
    for _minute in range(2):
        call_recruiters()
    assert fake.world.studies == {}
    assert "The draft was deleted at Prolific" in AttachedHitType.objects.get().problem
    expire_all(mturk)
    call_recruiters()
    mturk.create_hit(**HIT_HERE, MaxAssignments=2)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    assert [(one.status, one.places) for one in fake.world.studies.values()] == [("ACTIVE", 2)]
    assert AttachedHitType.objects.get().problem == ""


def test_what_was_not_heard_to_be_spent_is_looked_after_though_all_hits_are_over(
    fake, mturk, study
):
    """Whoever was cut off between the publication and its charge holds the cost until it is seen
    what became of it."""
    expire_all(mturk)
    call_recruiters()
    AttachedHitType.objects.update(pending_cost=Decimal(8))
    call_recruiters()
    assert AttachedHitType.objects.get(ended_at__isnull=False).pending_cost is None


def test_what_another_hit_type_is_about_to_spend_is_not_spent_again(fake, mturk, created):
    mturk.create_hit(**HIT_HERE | {"Title": "Rate a ninth response of a Dialogue"})
    other = AttachedHitType.objects.exclude(hit_type=created)
    other.update(pending_cost=Decimal(23))
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    problem = AttachedHitType.objects.get(hit_type=created).problem
    assert "It costs 8" in problem
    assert "7.00 of the rule's 30.00 are left" in problem


def test_money_that_came_back_is_the_rules_again(fake, mturk, study):
    """Nobody comes to four studies of 8.00, of 30."""
    for _round in range(3):
        expire_all(mturk)
        for _minute in range(2):
            call_recruiters()
        mturk.create_hit(**HIT_HERE, MaxAssignments=4)
        clock.advance(timedelta(minutes=2))
        call_recruiters()
    assert AttachedHitType.objects.get().problem == ""
    assert [one.status for one in fake.world.studies.values()] == ["COMPLETED"] * 3 + ["ACTIVE"]


def test_who_ran_out_of_time_holds_a_share_of_a_stopped_study_and_not_all_of_it(fake, mturk, study):
    """Of four places of 2.00 one is paid, another's time ran out, and nobody came to the others:
    a late code may have 2.00 more paid, of 30."""
    fake.world.now = clock.now()
    fake.world.approve(hand_in(fake, study))
    late, _browser, _answer = arrive(fake, study)
    call_recruiters()
    fake.world.leave(late, "TIMED-OUT")
    expire_all(mturk)
    for _minute in range(3):
        call_recruiters()
    assert left_of(mturk) == "26.00"
    fake.world.enter(late, study.codes.get(outcome="completed").code)
    fake.world.approve(late)
    for _minute in range(2):
        call_recruiters()
    assert left_of(mturk) == "26.00"


def left_of(mturk):
    """What the rule has left, as it says of HITs that are too dear."""
    mturk.create_hit(**HIT_HERE, MaxAssignments=99)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    problem = AttachedHitType.objects.get().problem
    expire_all(mturk)
    call_recruiters()
    return problem.split(", and ")[1].split(" of the rule")[0]


def test_a_discarded_draft_is_called_so(fake, mturk, rule):
    mturk.create_hit(**HIT_HERE, MaxAssignments=20)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    discard_draft(study=RecruitedStudy.objects.get())
    call_recruiters()
    assert AttachedHitType.objects.get().problem.startswith("The draft was discarded")


def test_of_two_rules_the_one_that_is_connected_has_what_comes(fake, mturk, connection):
    other, _account = connect_prolific(
        requester=connection.requester,
        name="Another",
        token="token",
        workspace=fake.world.workspace,
        project=fake.world.project,
    )
    for one in (other, connection):
        create_rule(connection=one, values=RULE)
    disconnect(connection=other)
    mturk.create_hit(**HIT_HERE, MaxAssignments=1)
    assert AttachedHitType.objects.get().rule.connection == connection


def asked_back_and_stayed(fake, mturk):
    """Of four participants of a rule one does not consent, and enters the code all the same."""
    for _ in range(4):
        mturk.create_hit(**HIT_HERE | {"LifetimeInSeconds": 86400 * 20}, MaxAssignments=2)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    study = RecruitedStudy.objects.get()
    submission, _browser, _answer = arrive(fake, study)
    session = end_session(session=Session.objects.get(), outcome="no_consent")
    fake.world.enter(submission, session.code)
    for _ in range(3):
        hand_in(fake, study)
    return submission


def test_a_place_that_is_left_to_be_paid_by_time_comes_back_no_more(fake, mturk, rule):
    asked_back_and_stayed(fake, mturk)
    (there,) = fake.world.studies.values()
    clock.advance(timedelta(hours=25))
    call_recruiters()
    assert there.places == 4
    decide_uncertain(intent=Intent.objects.get(kind="doubt"), was_done=True)
    call_recruiters()
    assert there.places == 5


def test_a_place_that_is_to_be_rejected_is_not_bought_again(fake, mturk, rule):
    """The answer is lost at first; once it is rejected the place is free."""
    submission = asked_back_and_stayed(fake, mturk)
    clock.advance(timedelta(hours=25))
    call_recruiters()
    decide_uncertain(intent=Intent.objects.get(kind="doubt"), was_done=False)
    fake.fail_next("move_submission", "lose")
    for _minute in range(3):
        call_recruiters()
    (there,) = fake.world.studies.values()
    assert (submission.status, there.places) == ("REJECTED", 4)


def test_a_draft_whose_places_somebody_has_lowered_there_is_published_as_it_is(fake, mturk, rule):
    mturk.create_hit(**HIT_HERE, MaxAssignments=20)
    clock.advance(timedelta(minutes=2))
    call_recruiters()
    (there,) = fake.world.studies.values()
    there.facts["total_available_places"] = 10
    RecruitedStudy.objects.update(places=10)
    for _minute in range(2):
        call_recruiters()
    (there,) = fake.world.studies.values()
    assert (there.status, there.places) == ("ACTIVE", 10)


@pytest.mark.parametrize("how", ["RETURNED", "TIMED-OUT"])
def test_no_place_is_bought_for_who_left_and_was_erased(fake, study, how):
    submission, _browser, _answer = arrive(fake, study)
    fake.world.leave(submission, how)
    call_recruiters()
    erase_worker(study.sessions.get().worker)
    for _minute in range(2):
        call_recruiters()
    assert fake.world.studies[study.external_id].places == 4


def test_a_rule_buys_nothing_of_a_study_whose_reward_was_raised_there(fake, mturk, study):
    there = fake.world.studies[study.external_id]
    fake.world.change_reward(there, 450)
    ask_for_more(mturk, study.hit_type)
    clock.advance(timedelta(minutes=2))
    for _minute in range(2):
        call_recruiters()
    assert there.places == 4
    problem = AttachedHitType.objects.get().problem
    assert "The reward of the study at Prolific is 4.50 GBP" in problem
    fake.world.change_reward(there, 150)
    call_recruiters()
    assert there.places > 4


def test_who_was_paid_there_without_having_come_here_is_charged_for(fake, study):
    stranger = fake.world.arrive(fake.world.studies[study.external_id])
    fake.world.enter(stranger, study.codes.get(outcome="completed").code)
    fake.world.approve(stranger)
    for _minute in range(2):
        call_recruiters()
    assert [one.amount for one in study.charges.filter(kind="reward")] == [2]


def test_who_entered_a_code_after_the_time_holds_the_place(fake, mturk, study):
    submission, _browser, _answer = arrive(fake, study)
    clock.advance(timedelta(seconds=study.maximum_seconds) + GRACE + timedelta(seconds=1))
    settle_sessions(clock.now())
    fake.world.enter(submission, study.codes.get(outcome="completed").code)
    call_recruiters()
    assert Session.objects.get().state == "timed_out"
    assert free_and_needed(study) == (3, 4)


@pytest.mark.parametrize("operation", ["create_study", "move_study", "calculate_cost", "study"])
@pytest.mark.parametrize("fault", ["drop", "lose", "500"])
def test_one_study_comes_of_it_whatever_is_lost(fake, created, operation, fault):
    clock.advance(timedelta(minutes=2))
    fake.fail_next(operation, fault)
    for _minute in range(4):
        call_recruiters()
    (there,) = fake.world.studies.values()
    assert (there.status, there.places) == ("ACTIVE", 4)
    assert RecruitedStudy.objects.get().state == "active"


def test_what_has_no_counterpart_is_refused_with_a_reason(mturk, rule):
    adult = {
        "QualificationTypeId": "00000000000000000060",
        "Comparator": "EqualTo",
        "IntegerValues": [1],
    }
    with pytest.raises(mturk.exceptions.RequestError, match="none could do these HITs"):
        mturk.create_hit(**HIT_HERE, MaxAssignments=1, QualificationRequirements=[adult])
    policy = {
        "PolicyName": "ScoreMyKnownAnswers/2011-09-01",
        "Parameters": [
            {"Key": "AnswerKey", "MapEntries": [{"Key": "q", "Values": ["a"]}]},
        ],
    }
    with pytest.raises(mturk.exceptions.RequestError, match="decided at once"):
        mturk.create_hit(**HIT_HERE, MaxAssignments=1, AssignmentReviewPolicy=policy)
    assert not Hit.objects.exists()
    assert not HitType.objects.filter(paid_by="recruiter").exists()


def test_a_repeated_token_is_one_hit(mturk, rule):
    first = mturk.create_hit(**HIT_HERE, MaxAssignments=1, UniqueRequestToken="t")["HIT"]
    with pytest.raises(mturk.exceptions.RequestError, match=first["HITId"]):
        mturk.create_hit(**HIT_HERE, MaxAssignments=1, UniqueRequestToken="t")
    assert Hit.objects.count() == AttachedHitType.objects.count() == 1


def test_blocks_and_qualifications_reach_participants_through_the_recruiter(fake, mturk, study):
    submission = hand_in(fake, study)
    worker = Session.objects.get().worker.worker_id
    (group,) = fake.world.groups
    there = fake.world.studies[study.external_id]
    assert there.facts["filters"] == [
        {"filter_id": "participant_group_blocklist", "selected_values": [group]}
    ]
    mturk.create_worker_block(WorkerId=worker, Reason="Careless")
    fake.fail_next("add_to_group", "drop")
    for _minute in range(2):
        call_recruiters()
    assert fake.world.groups[group] == {submission.participant}
    mturk.delete_worker_block(WorkerId=worker)
    call_recruiters()
    assert fake.world.groups[group] == set()
    made = mturk.create_qualification_type(
        Name="Trained", Description="Has trained", QualificationTypeStatus="Active"
    )["QualificationType"]["QualificationTypeId"]
    mturk.associate_qualification_with_worker(
        QualificationTypeId=made, WorkerId=worker, IntegerValue=7, SendNotification=True
    )
    mturk.disassociate_qualification_from_worker(
        QualificationTypeId=made, WorkerId=worker, Reason="Too long ago."
    )
    call_recruiters()
    granted, revoked = [one["body"] for one in fake.world.messages]
    assert granted.startswith("You were granted a qualification")
    assert "Too long ago." in revoked
    assert not WorkerMessage.objects.exists()
    assert not Intent.objects.exclude(state="done").exists()


def test_a_rule_is_the_requesters_and_ends(mturk, connection, rule):
    with pytest.raises(InvalidParameter, match="say a reward"):
        create_rule(connection=connection, values=RuleValues(most_cost=Decimal(5), minutes=5))
    with pytest.raises(InvalidParameter, match="whole pence"):
        create_rule(
            connection=connection,
            values=RuleValues(most_cost=Decimal("0.001"), minutes=5, reward=Decimal(1)),
        )
    end_rule(rule=rule)
    mturk.create_hit(**HIT_HERE, MaxAssignments=1)
    assert not AttachedHitType.objects.exists()


def test_rules_are_made_listed_and_ended_by_a_command(connection, requester, capsys):
    terms = ("--words", "x", "--minutes", "5", "--reward", "1.00", "--most-cost", "20")
    call_command("recruiting_rule", requester.name, *terms, "--json")
    (facts,) = json.loads(capsys.readouterr().out)["rules"]
    assert (facts["words"], facts["most_cost"], facts["is_open"]) == ("x", "20.00", True)
    call_command("recruiting_rule", requester.name, "--end", str(facts["rule"]))
    assert "(ended): HIT types with “x”" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no rule 0"):
        call_command("recruiting_rule", requester.name, "--end", "0")


def test_whoever_disconnects_while_places_are_priced_buys_none(fake, mturk, study, monkeypatch):
    real = Prolific.cost

    def cost(self, reward, places):
        disconnect(connection=RecruiterConnection.objects.get())
        return real(self, reward, places)

    mturk.create_hit(**HIT_HERE, MaxAssignments=8)
    clock.advance(timedelta(minutes=2))
    monkeypatch.setattr(Prolific, "cost", cost)
    call_recruiters()
    (there,) = fake.world.studies.values()
    assert there.places == 4


def test_a_recruiter_that_is_away_is_asked_about_a_rule_less_often(fake, mturk, rule, monkeypatch):
    mturk.create_hit(**HIT_HERE, MaxAssignments=1)
    clock.advance(timedelta(minutes=2))
    asked = []

    def cost(*_said):
        asked.append(None)
        raise Unreachable("Prolific is away.")

    monkeypatch.setattr(Prolific, "cost", cost)
    for _minute in range(9):
        call_recruiters()
    assert len(asked) == 5
    assert "away" in RecruiterConnection.objects.get().problem
    assert "away" in AttachedHitType.objects.get().problem

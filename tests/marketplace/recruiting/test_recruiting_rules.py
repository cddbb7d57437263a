"""Programs that know nothing of recruiters, whose HITs a recruiter's participants do by a rule."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
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
from marketplace.recruiting import rules
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import disconnect
from marketplace.recruiting.dispatch import decide_uncertain
from marketplace.recruiting.posting import stop_study
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.rules import RuleValues, create_rule, end_rule
from marketplace.recruiting.sessions import end_session
from tests.codes import refused
from tests.marketplace.conftest import HIT
from tests.marketplace.prolific import (
    approve,
    arrive,
    ask_for_more,
    charges,
    completion_code,
    create_hits,
    hand_in,
    minutes,
    numbers,
    settle,
)
from tests.marketplace.recruiting.conftest import HIT_HERE, RULE


@pytest.fixture
def study(ruled):
    return ruled


def expire_all():
    Hit.objects.update(expiration=clock.now())


def studies_there(fake):
    return [(one.status, one.places) for one in fake.world.studies.values()]


def places_there(fake):
    return [one.places for one in fake.world.studies.values()]


def over_budget(expected):
    found = numbers(AttachedHitType.objects.exclude(problem="").get().problem)
    return [Decimal(number) for number in found] == [Decimal(number) for number in expected]


@pytest.mark.slow
def test_what_matches_is_recruited_without_the_programs_doing(fake, mturk, created):
    assert created.paid_by == "recruiter"
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"
    call_recruiters()
    assert fake.world.studies == {}
    settle(2)
    (there,) = fake.world.studies.values()
    assert (there.status, there.places, there.facts["reward"]) == ("ACTIVE", 4, 150)
    submission = hand_in(fake, RecruitedStudy.objects.get())
    approve(mturk, submission)
    call_recruiters()
    assert submission.status == "APPROVED"
    assert LedgerTransaction.objects.filter(hit__isnull=False).count() == 0
    assert store_audit().n_problems == 0
    assert AuditEntry.objects.filter(action="recruiting_rule.attach").count() == 1


def test_what_does_not_match_or_was_there_before_is_the_marketplaces(mturk, connection):
    before = create_hits(mturk, n=1, **HIT_HERE).public_id
    create_rule(connection=connection, values=RULE)
    again = create_hits(mturk, n=1, **HIT_HERE).public_id
    other = create_hits(mturk, n=1, **HIT | {"Title": "Photos", "Keywords": "x"})
    assert before == again
    paid_by = set(HitType.objects.values_list("public_id", "paid_by"))
    assert paid_by == {(before, "ledger"), (other.public_id, "ledger")}
    assert not AttachedHitType.objects.exists()


def test_hits_that_come_later_add_places_as_far_as_the_amount_goes(fake, mturk, study):
    create_hits(mturk, n=2, **HIT_HERE)
    fake.fail_next("change_study", "drop")
    settle(2)
    assert studies_there(fake) == [("ACTIVE", 6)]  # 2.00 each with fees: 12 of 30
    create_hits(mturk, n=1, max_assignments=40, **HIT_HERE)
    settle()
    assert studies_there(fake) == [("ACTIVE", 6)]
    assert over_budget([68, 18, 30])  # as many participants as one HIT wants judgments


def test_a_study_is_stopped_when_the_program_expires_its_hits(fake, mturk, study):
    for hit in Hit.objects.all():
        mturk.update_expiration_for_hit(HITId=hit.public_id, ExpireAt=clock.now())
    call_recruiters()
    study.refresh_from_db()
    assert (studies_there(fake), study.state) == ([("COMPLETED", 4)], "stopped")
    # HITs that come after that have a study of their own.
    create_hits(mturk, n=1, max_assignments=3, **HIT_HERE)
    settle(2)
    assert studies_there(fake) == [("COMPLETED", 4), ("ACTIVE", 3)]
    attached = AttachedHitType.objects.get()
    assert [one.state for one in attached.studies.order_by("pk")] == ["stopped", "active"]
    assert attached.problem == ""


@pytest.mark.slow
def test_what_all_studies_of_a_rule_cost_is_held_against_its_amount(fake, mturk, study):
    """Four participants of the first were paid 8.00 with fees, of 30."""
    for submission in [hand_in(fake, study) for _ in range(4)]:
        fake.world.approve(submission)
    call_recruiters()
    expire_all()
    call_recruiters()
    create_hits(mturk, n=1, max_assignments=12, **HIT_HERE)
    settle()
    assert over_budget([24, 22, 30])


@pytest.mark.slow
def test_hits_that_come_as_others_expire_are_done(fake, mturk, study):
    """A program that has some open at any time: its new ones are not taken for the old."""
    for _ in range(4):
        hand_in(fake, study)
    expire_all()
    create_hits(mturk, n=1, **HIT_HERE)
    settle()
    assert studies_there(fake) == [("ACTIVE", 6)]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["a code without the work", "no consent"])
def test_no_places_are_bought_for_those_who_may_give_theirs_back(fake, study, how):
    """The one may be rejected, and the other, who was asked back, return."""
    submission, _browser, _answer = arrive(fake, study)
    if how == "no consent":
        end_session(session=Session.objects.get(), outcome="no_consent")
    else:
        fake.world.enter(submission, completion_code(study))
    for _ in range(3):
        hand_in(fake, study)
    minutes(2)
    assert places_there(fake) == [4]
    assert AttachedHitType.objects.get().problem == ""


def test_what_a_person_has_stopped_stays_so_while_its_hits_are_open(fake, mturk, study):
    stop_study(study=study)
    create_hits(mturk, n=1, max_assignments=3, **HIT_HERE)
    settle()
    assert studies_there(fake) == [("COMPLETED", 4)]
    assert str(rules.STOPPED_EARLY) in AttachedHitType.objects.get().problem


@pytest.fixture
def too_dear(fake, mturk, rule):
    """A draft of 40.00, of a rule of 30.00, that is of 20 places; two are of another HIT."""
    hit_type = create_hits(mturk, n=1, max_assignments=20, **HIT_HERE)
    create_hits(mturk, n=1, **HIT_HERE)
    settle()
    assert over_budget([40, 30, 30])
    return hit_type.hits.earliest("pk")


@pytest.mark.parametrize("is_over", [True, False])
def test_a_draft_that_was_too_dear_is_drafted_anew_for_what_is_left(fake, mturk, too_dear, is_over):
    if is_over:
        expire_all()
        call_recruiters()
        create_hits(mturk, n=1, **HIT_HERE)
        settle()
    else:
        Hit.objects.filter(pk=too_dear.pk).update(expiration=clock.now())
        call_recruiters()
    assert studies_there(fake) == [("ACTIVE", 2)]


def test_a_draft_deleted_there_is_not_drafted_again_for_its_hits(fake, mturk, too_dear):
    fake.world.studies.clear()
    Hit.objects.filter(pk=too_dear.pk).update(expiration=clock.now())
    minutes(2)
    assert fake.world.studies == {}
    problem = rules.DRAFT_DELETED.format(recruiter="Prolific")
    assert AttachedHitType.objects.get().problem == problem
    expire_all()
    call_recruiters()
    create_hits(mturk, n=1, **HIT_HERE)
    settle()
    assert studies_there(fake) == [("ACTIVE", 2)]
    assert AttachedHitType.objects.get().problem == ""


def test_what_was_not_heard_to_be_spent_is_looked_after_though_all_hits_are_over(study):
    """Whoever was cut off between the publication and its charge holds the cost until it is seen
    what became of it."""
    expire_all()
    call_recruiters()
    AttachedHitType.objects.update(pending_cost=Decimal(8))
    call_recruiters()
    assert AttachedHitType.objects.get(ended_at__isnull=False).pending_cost is None


def test_what_another_hit_type_is_about_to_spend_is_not_spent_again(mturk, created):
    create_hits(mturk, n=1, **HIT_HERE | {"Title": "Rate a ninth response of a Dialogue"})
    AttachedHitType.objects.exclude(hit_type=created).update(pending_cost=Decimal(23))
    settle()
    assert over_budget([8, 7, 30])


@pytest.mark.slow
def test_money_that_came_back_is_the_rules_again(fake, mturk, study):
    """Nobody comes to four studies of 8.00, of 30."""
    for _round in range(3):
        expire_all()
        minutes(2)
        create_hits(mturk, n=1, max_assignments=4, **HIT_HERE)
        settle()
    assert AttachedHitType.objects.get().problem == ""
    assert studies_there(fake) == [("COMPLETED", 4)] * 3 + [("ACTIVE", 4)]


@pytest.mark.slow
def test_who_ran_out_of_time_holds_a_share_of_a_stopped_study_and_not_all_of_it(fake, mturk, study):
    """Of four places of 2.00 one is paid, another's time ran out, and nobody came to the others:
    a late code may have 2.00 more paid, of 30."""

    def is_left(left):
        create_hits(mturk, n=1, max_assignments=99, **HIT_HERE)
        settle()
        is_so = over_budget([198, left, 30])
        expire_all()
        call_recruiters()
        return is_so

    fake.world.now = clock.now()
    fake.world.approve(hand_in(fake, study))
    late, _browser, _answer = arrive(fake, study)
    call_recruiters()
    fake.world.leave(late, "TIMED-OUT")
    expire_all()
    minutes()
    assert is_left(26)
    fake.world.enter(late, completion_code(study))
    fake.world.approve(late)
    minutes(2)
    assert is_left(26)


@pytest.mark.slow
@pytest.mark.parametrize("is_left", [True, False])
def test_a_place_in_doubt_is_bought_again_if_time_pays_it(fake, mturk, rule, is_left):
    """Of four participants one does not consent, and enters the code all the same. The answer to
    the rejection is lost at first; once it is rejected the place is free."""
    create_hits(mturk, **HIT_HERE | {"LifetimeInSeconds": 86400 * 20})
    settle()
    study = RecruitedStudy.objects.get()
    submission, _browser, _answer = arrive(fake, study)
    session = end_session(session=Session.objects.get(), outcome="no_consent")
    fake.world.enter(submission, session.code)
    for _ in range(3):
        hand_in(fake, study)
    clock.advance(timedelta(hours=25))
    call_recruiters()
    assert places_there(fake) == [4]
    decide_uncertain(intent=Intent.objects.get(kind="doubt"), was_done=is_left)
    if not is_left:
        fake.fail_next("move_submission", "lose")
    minutes()
    assert places_there(fake) == [5 if is_left else 4]
    assert submission.status == ("AWAITING REVIEW" if is_left else "REJECTED")


def test_a_rule_buys_nothing_of_a_study_whose_reward_was_raised_there(fake, mturk, study):
    there = fake.world.studies[study.external_id]
    fake.world.change_reward(there, 450)
    ask_for_more(mturk, study.hit_type)
    settle(2)
    assert there.places == 4
    assert numbers(AttachedHitType.objects.get().problem) == ["4.50", "1.50"]
    fake.world.change_reward(there, 150)
    call_recruiters()
    assert there.places > 4


def test_who_was_paid_there_without_having_come_here_is_charged_for(fake, study):
    stranger = fake.world.arrive(fake.world.studies[study.external_id])
    fake.world.enter(stranger, completion_code(study))
    fake.world.approve(stranger)
    minutes(2)
    assert charges("reward") == [2]


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["create_study", "move_study", "calculate_cost", "study"])
@pytest.mark.parametrize("fault", ["drop", "lose"])
def test_one_study_comes_of_it_whatever_is_lost(fake, created, operation, fault):
    fake.fail_next(operation, fault)
    settle(4)
    assert studies_there(fake) == [("ACTIVE", 4)]
    assert RecruitedStudy.objects.get().state == "active"


def test_what_has_no_counterpart_is_refused(mturk, rule):
    adult = {
        "QualificationTypeId": "00000000000000000060",
        "Comparator": "EqualTo",
        "IntegerValues": [1],
    }
    policy = {
        "PolicyName": "ScoreMyKnownAnswers/2011-09-01",
        "Parameters": [{"Key": "AnswerKey", "MapEntries": [{"Key": "q", "Values": ["a"]}]}],
    }
    for facts in ({"QualificationRequirements": [adult]}, {"AssignmentReviewPolicy": policy}):
        with pytest.raises(mturk.exceptions.RequestError) as found:
            create_hits(mturk, n=1, **HIT_HERE | facts)
        code = found.value.response["TurkErrorCode"]
        assert code == "AWS.MechanicalTurk.InvalidParameterValue"
    assert not Hit.objects.exists()
    assert not HitType.objects.filter(paid_by="recruiter").exists()


def test_a_repeated_token_is_one_hit(mturk, rule):
    first = mturk.create_hit(**HIT_HERE, MaxAssignments=1, UniqueRequestToken="t")["HIT"]
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.create_hit(**HIT_HERE, MaxAssignments=1, UniqueRequestToken="t")
    assert first["HITId"] in str(found.value)
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
    minutes(2)
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
    assert "Trained" in granted
    assert "Too long ago." in revoked
    assert not WorkerMessage.objects.exists()
    assert not Intent.objects.exclude(state="done").exists()


def test_a_rule_is_the_requesters_and_ends(mturk, connection, rule):
    for most_cost, reward, code in ((5, None, "reward_missing"), ("0.001", 1, "bad_amount")):
        values = RuleValues(most_cost=Decimal(most_cost), minutes=5, reward=reward)
        with refused(InvalidParameter, code):
            create_rule(connection=connection, values=values)
    end_rule(rule=rule)
    create_hits(mturk, n=1, **HIT_HERE)
    assert not AttachedHitType.objects.exists()


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


def test_whoever_disconnects_while_places_are_priced_buys_none(fake, mturk, study, monkeypatch):
    real = Prolific.cost

    def cost(self, reward, places):
        disconnect(connection=RecruiterConnection.objects.get())
        return real(self, reward, places)

    create_hits(mturk, n=1, max_assignments=8, **HIT_HERE)
    monkeypatch.setattr(Prolific, "cost", cost)
    settle()
    assert studies_there(fake) == [("ACTIVE", 4)]

"""HITs and HIT types: the operations, their refusals and the states they ask for."""

from datetime import timedelta

import pytest

from marketplace import clock
from marketplace.hits.assignments import return_assignment
from marketplace.models import Assignment
from tests.boto_clients import in_process_client
from tests.marketplace.conformance.refusals import (
    accept,
    all_pages,
    balances,
    error_of,
    hand_in,
    publish,
    status_of,
    turk_code,
)
from tests.marketplace.conftest import HIT, HIT_TYPE, HTML_QUESTION, submit

DAY = timedelta(days=1)
LIVE = {"LifetimeInSeconds": 86_400, "Question": HTML_QUESTION}


@pytest.fixture
def other(make_keys):
    return in_process_client(make_keys("Other lab"))


def expire(mturk, hit):
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=0)


# CreateHITType, CreateHIT, CreateHITWithHITType


def test_requirements_are_part_of_a_hit_type(mturk):
    masters = [
        {"QualificationTypeId": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "Comparator": "Exists"},
    ]
    plain = mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]
    guarded = mturk.create_hit_type(**HIT_TYPE, QualificationRequirements=masters)["HITTypeId"]
    assert plain != guarded
    again = mturk.create_hit_type(**HIT_TYPE, QualificationRequirements=masters)
    assert again["HITTypeId"] == guarded
    hit = mturk.create_hit_with_hit_type(HITTypeId=guarded, **LIVE)["HIT"]
    assert hit["QualificationRequirements"] == [
        masters[0] | {"ActionsGuarded": "Accept", "RequiredToPreview": False}
    ]


def test_a_layout_does_not_exist_because_none_do(mturk):
    without = {name: value for name, value in HIT.items() if name != "Question"}
    assert turk_code(mturk.create_hit, **without, HITLayoutId="3ABC") == "HITLayoutDoesNotExist"
    assert turk_code(mturk.create_hit, **without) == "InvalidParameterValue"
    assert mturk.list_hits()["NumResults"] == 0


@pytest.mark.parametrize("operation", ["create_hit", "create_hit_with_hit_type"])
def test_a_repeated_token_names_the_hit_that_exists(mturk, operation):
    parameters = dict(HIT)
    if operation == "create_hit_with_hit_type":
        parameters = {"HITTypeId": mturk.create_hit_type(**HIT_TYPE)["HITTypeId"], **LIVE}
    call = getattr(mturk, operation)
    first = call(**parameters, UniqueRequestToken="t")["HIT"]["HITId"]
    before = balances(mturk)
    response = error_of(call, **parameters, UniqueRequestToken="t")
    assert response["TurkErrorCode"] == "AWS.MechanicalTurk.HitAlreadyExists"
    assert first in response["Error"]["Message"]
    assert balances(mturk) == before
    assert mturk.list_hits()["NumResults"] == 1


# ListHITs, ListReviewableHITs, UpdateHITReviewStatus


def test_lists_are_read_until_a_page_is_empty(mturk):
    hits = [publish(mturk) for _ in range(5)]
    listed = all_pages(mturk.list_hits, "HITs", MaxResults=2)
    assert [hit["HITId"] for hit in listed] == hits[::-1]


def test_reviewable_hits_are_listed_by_status_and_type(mturk, make_worker):
    reviewable, done, expired = publish(mturk), publish(mturk), publish(mturk, Title="Another type")
    submit(make_worker("bea"), done)
    expire(mturk, expired)
    listed = all_pages(mturk.list_reviewable_hits, "HITs", MaxResults=1)
    assert {hit["HITId"] for hit in listed} == {done, expired}
    hit_type = mturk.get_hit(HITId=done)["HIT"]["HITTypeId"]
    of_type = mturk.list_reviewable_hits(HITTypeId=hit_type)["HITs"]
    assert [hit["HITId"] for hit in of_type] == [done]
    assert mturk.list_reviewable_hits(Status="Reviewing")["HITs"] == []
    assert status_of(mturk, reviewable) == "Assignable"
    assert turk_code(mturk.list_reviewable_hits, HITTypeId="NONE") == "HITTypeDoesNotExist"


def test_a_hit_is_taken_into_review_and_put_back(mturk, worker):
    hit = publish(mturk)
    assert turk_code(mturk.update_hit_review_status, HITId=hit) == "InvalidHITState"
    submit(worker, hit)
    code = turk_code(mturk.update_hit_review_status, HITId=hit, Revert=True)
    assert code == "InvalidHITState"
    mturk.update_hit_review_status(HITId=hit)
    assert status_of(mturk, hit) == "Reviewing"
    assert [each["HITId"] for each in mturk.list_reviewable_hits(Status="Reviewing")["HITs"]] == [
        hit
    ]
    assert mturk.list_reviewable_hits()["HITs"] == []
    mturk.update_hit_review_status(HITId=hit, Revert=True)
    assert status_of(mturk, hit) == "Reviewable"


def test_a_hit_under_review_can_be_deleted_and_stays_so_while_it_is_decided(mturk, worker):
    hit = publish(mturk)
    assignment = submit(worker, hit)
    mturk.update_hit_review_status(HITId=hit)
    mturk.approve_assignment(AssignmentId=assignment)
    assert status_of(mturk, hit) == "Reviewing"
    mturk.delete_hit(HITId=hit)
    assert status_of(mturk, hit) == "Disposed"


# CreateAdditionalAssignmentsForHIT


def test_assignments_are_added_and_paid_for(mturk, worker):
    hit = publish(mturk)
    submit(worker, hit)
    assert status_of(mturk, hit) == "Reviewable"
    mturk.create_additional_assignments_for_hit(HITId=hit, NumberOfAdditionalAssignments=2)
    stored = mturk.get_hit(HITId=hit)["HIT"]
    assert (stored["HITStatus"], stored["MaxAssignments"]) == ("Assignable", 3)
    assert stored["NumberOfAssignmentsAvailable"] == 2
    assert balances(mturk) == ("98.11", "1.89")


def test_an_expired_hit_gets_assignments_that_cost_nothing_until_it_lives_again(mturk):
    hit = publish(mturk)
    expire(mturk, hit)
    mturk.create_additional_assignments_for_hit(HITId=hit, NumberOfAdditionalAssignments=2)
    assert (status_of(mturk, hit), balances(mturk)) == ("Reviewable", ("100.00", "0.00"))
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=clock.now() + DAY)
    assert (status_of(mturk, hit), balances(mturk)) == ("Assignable", ("98.11", "1.89"))


@pytest.mark.parametrize(("before", "more", "is_allowed"), [
    (1, 8, True), (1, 9, False), (9, 1, False), (10, 1, True), (10, 50, True),
])  # fmt: skip
def test_a_hit_does_not_grow_across_ten_assignments(mturk, before, more, is_allowed):
    hit = publish(mturk, MaxAssignments=before)
    parameters = {"HITId": hit, "NumberOfAdditionalAssignments": more}
    if is_allowed:
        mturk.create_additional_assignments_for_hit(**parameters)
        assert mturk.get_hit(HITId=hit)["HIT"]["MaxAssignments"] == before + more
    else:
        code = turk_code(mturk.create_additional_assignments_for_hit, **parameters)
        assert code == "InvalidMaximumAssignmentsIncrease"


def test_a_repeated_token_does_not_add_assignments_again(mturk):
    hit = publish(mturk)
    more = {"HITId": hit, "NumberOfAdditionalAssignments": 1, "UniqueRequestToken": "t"}
    mturk.create_additional_assignments_for_hit(**more)
    response = error_of(mturk.create_additional_assignments_for_hit, **more)
    assert response["TurkErrorCode"] == "AWS.MechanicalTurk.DuplicateRequest"
    assert "request ID" in response["Error"]["Message"]
    assert mturk.get_hit(HITId=hit)["HIT"]["MaxAssignments"] == 2


def test_assignments_are_not_added_without_the_money(mturk):
    hit = publish(mturk)
    parameters = {"HITId": hit, "NumberOfAdditionalAssignments": 8}
    publish(mturk, MaxAssignments=150)
    code = turk_code(mturk.create_additional_assignments_for_hit, **parameters)
    assert code == "InsufficientFunds"
    assert mturk.get_hit(HITId=hit)["HIT"]["MaxAssignments"] == 1
    assert turk_code(
        mturk.create_additional_assignments_for_hit, **parameters, UniqueRequestToken="t"
    ) == ("InsufficientFunds")


def test_a_hit_has_at_most_a_billion_assignments(mturk):
    hit = publish(mturk, MaxAssignments=10**9, Reward="0")
    code = turk_code(
        mturk.create_additional_assignments_for_hit, HITId=hit, NumberOfAdditionalAssignments=1
    )
    assert code == "InvalidParameterValue"


# UpdateHITTypeOfHIT


def test_a_hit_takes_on_another_types_values(mturk):
    hit = publish(mturk, MaxAssignments=2)
    hit_type = mturk.create_hit_type(**HIT_TYPE | {"Title": "Rate nine", "Reward": "1.00"})
    mturk.update_hit_type_of_hit(HITId=hit, HITTypeId=hit_type["HITTypeId"])
    stored = mturk.get_hit(HITId=hit)["HIT"]
    assert (stored["Title"], stored["Reward"]) == ("Rate nine", "1.00")
    assert stored["HITTypeId"] == hit_type["HITTypeId"]
    assert balances(mturk) == ("98.00", "2.00")


def test_who_has_accepted_is_paid_what_was_promised(mturk, make_worker):
    bea, cleo = make_worker("bea"), make_worker("cleo")
    hit = publish(mturk, MaxAssignments=2)
    assignment = accept(bea, hit)
    cheaper = mturk.create_hit_type(**HIT_TYPE | {"Reward": "0.10"})["HITTypeId"]
    mturk.update_hit_type_of_hit(HITId=hit, HITTypeId=cheaper)
    assert balances(mturk) == ("99.27", "0.73")
    hand_in(assignment)
    mturk.approve_assignment(AssignmentId=assignment)
    mturk.approve_assignment(AssignmentId=submit(cleo, hit))
    assert balances(mturk) == ("99.27", "0.00")


def test_a_assignment_returned_never_needs_money_that_is_not_there(mturk, worker):
    hit = publish(mturk)
    assignment = accept(worker, hit)
    dearer = mturk.create_hit_type(**HIT_TYPE | {"Reward": "60.00"})["HITTypeId"]
    mturk.update_hit_type_of_hit(HITId=hit, HITTypeId=dearer)
    assert balances(mturk) == ("40.00", "60.00")
    publish(mturk, Reward="40.00")
    return_assignment(assignment=Assignment.objects.get(public_id=assignment))
    assert balances(mturk) == ("0.00", "100.00")


def test_the_type_is_not_changed_without_the_money_nor_of_a_hit_that_is_gone(mturk):
    hit = publish(mturk, MaxAssignments=2)
    dear = mturk.create_hit_type(**HIT_TYPE | {"Reward": "60.00"})["HITTypeId"]
    change = {"HITId": hit, "HITTypeId": dear}
    assert turk_code(mturk.update_hit_type_of_hit, **change) == "InsufficientFunds"
    assert mturk.get_hit(HITId=hit)["HIT"]["Reward"] == "0.63"
    code = turk_code(mturk.update_hit_type_of_hit, HITId=hit, HITTypeId="NONE")
    assert code == "HITTypeDoesNotExist"
    expire(mturk, hit)
    mturk.delete_hit(HITId=hit)
    assert turk_code(mturk.update_hit_type_of_hit, **change) == "InvalidHITState"
    assert turk_code(
        mturk.create_additional_assignments_for_hit, HITId=hit, NumberOfAdditionalAssignments=1
    ) == ("InvalidHITState")


def test_a_hit_and_a_type_of_another_requester_do_not_exist(mturk, other):
    hit = publish(mturk)
    hit_type = mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]
    more = {"HITId": hit, "NumberOfAdditionalAssignments": 1}
    assert turk_code(other.create_additional_assignments_for_hit, **more) == "HITDoesNotExist"
    assert turk_code(other.update_hit_review_status, HITId=hit) == "HITDoesNotExist"
    change = {"HITId": hit, "HITTypeId": other.create_hit_type(**HIT_TYPE)["HITTypeId"]}
    assert turk_code(other.update_hit_type_of_hit, **change) == "HITDoesNotExist"
    assert turk_code(other.list_reviewable_hits, HITTypeId=hit_type) == "HITTypeDoesNotExist"
    assert turk_code(other.list_review_policy_results_for_hit, HITId=hit) == "HITDoesNotExist"
    assert turk_code(other.list_bonus_payments, HITId=hit) == "HITDoesNotExist"


# Assignments


def test_a_file_was_never_uploaded(mturk, worker):
    assignment = submit(worker, publish(mturk))
    ask = {"AssignmentId": assignment, "QuestionIdentifier": "photo"}
    assert turk_code(mturk.get_file_upload_url, **ask) == "InvalidParameterValue"
    missing = ask | {"AssignmentId": "NONE"}
    assert turk_code(mturk.get_file_upload_url, **missing) == "AssignmentDoesNotExist"


def test_a_rejection_is_overridden_within_thirty_days_and_before_the_hit_is_deleted(mturk, worker):
    assignment = submit(worker, publish(mturk))
    mturk.reject_assignment(AssignmentId=assignment, RequesterFeedback="Empty")
    override = {"AssignmentId": assignment, "OverrideRejection": True}
    assert turk_code(mturk.approve_assignment, AssignmentId=assignment) == "InvalidAssignmentState"
    clock.advance(30 * DAY + timedelta(seconds=1))
    assert turk_code(mturk.approve_assignment, **override) == "InvalidAssignmentState"


def test_an_overridden_rejection_is_paid_from_the_balance(mturk, worker):
    hit = publish(mturk)
    assignment = submit(worker, hit)
    mturk.reject_assignment(AssignmentId=assignment, RequesterFeedback="Empty")
    assert balances(mturk) == ("100.00", "0.00")
    override = {"AssignmentId": assignment, "OverrideRejection": True}
    mturk.approve_assignment(**override)
    assert balances(mturk) == ("99.37", "0.00")
    assert turk_code(mturk.approve_assignment, **override) == "InvalidAssignmentState"
    assert turk_code(mturk.reject_assignment, AssignmentId=assignment, RequesterFeedback="No") == (
        "InvalidAssignmentState"
    )


def test_what_is_not_submitted_cannot_be_read_or_decided(mturk, worker):
    assignment = accept(worker, publish(mturk))
    response = error_of(mturk.approve_assignment, AssignmentId=assignment)
    assert "This operation can be called with a status of: Submitted (" in response["Message"]
    response = error_of(mturk.get_assignment, AssignmentId=assignment)
    assert "with a status of: Reviewable,Approved,Rejected (" in response["Message"]


def test_assignments_are_listed_page_by_page(mturk, make_worker):
    hit = publish(mturk, MaxAssignments=5)
    submitted = [submit(make_worker(f"worker{number}"), hit) for number in range(5)]
    assignments = all_pages(mturk.list_assignments_for_hit, "Assignments", HITId=hit, MaxResults=2)
    assert [each["AssignmentId"] for each in assignments] == submitted

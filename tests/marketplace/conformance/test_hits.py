"""HITs and HIT types, through an unmodified boto3 client, and in the ways of known programs."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from marketplace import clock
from marketplace.api import dispatch
from marketplace.hits.assignments import return_assignment
from marketplace.models import Assignment, Hit, HitType
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
from tests.marketplace.conftest import EXTERNAL_QUESTION, HIT, HIT_TYPE, HTML_QUESTION, submit
from tests.marketplace.test_worker_site import COUNTRY, require

DAY = timedelta(days=1)
LIVE = {"LifetimeInSeconds": 86_400, "Question": HTML_QUESTION}
MASTERS = {"QualificationTypeId": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "Comparator": "Exists"}
FROM_THE_US = require(COUNTRY, "EqualTo", LocaleValues=[{"Country": "US"}])


def expire(mturk, hit):
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=0)


def stored_hit(mturk, hit):
    return mturk.get_hit(HITId=hit)["HIT"]


# CreateHITType, CreateHIT, CreateHITWithHITType


def test_a_new_hit_of_a_new_type_is_described_as_it_is_afterwards(mturk):
    masters = {"QualificationTypeId": "000000000000000000L0", "Comparator": "Exists"}
    places = [{"Country": "NZ"}, {"Country": "US", "Subdivision": "CA"}]
    lasting = {"QualificationTypeId": COUNTRY, "Comparator": "In", "LocaleValues": places}
    values = HIT | {"Reward": "0.5", "QualificationRequirements": [lasting, masters]}
    hit = mturk.create_hit(**values)["HIT"]
    assert hit["Reward"] == "0.50"
    assert stored_hit(mturk, hit["HITId"]) == hit
    again = mturk.create_hit_with_hit_type(
        HITTypeId=hit["HITTypeId"], LifetimeInSeconds=60, Question=EXTERNAL_QUESTION
    )["HIT"]
    assert (again["Title"], again["HITTypeId"]) == (HIT["Title"], hit["HITTypeId"])
    assert again["QualificationRequirements"] == hit["QualificationRequirements"]
    assert stored_hit(mturk, again["HITId"]) == again


@pytest.mark.parametrize("requirements", [[], [FROM_THE_US]])
def test_a_hit_takes_eight_statements_whatever_its_type_requires(
    mturk, requirements, django_assert_num_queries
):
    values = HIT_TYPE | {"QualificationRequirements": requirements}
    hit = {"HITTypeId": mturk.create_hit_type(**values)["HITTypeId"]} | LIVE
    mturk.create_hit_with_hit_type(**hit)
    # The test's own transaction turns the HIT's into a savepoint, which is two more.
    with django_assert_num_queries(8 + 2):
        mturk.create_hit_with_hit_type(**hit, UniqueRequestToken="batch-1-item-7")


def test_the_same_values_are_the_same_hit_type(mturk):
    first = mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]
    assert mturk.create_hit_type(**HIT_TYPE | {"Reward": "00.63"})["HITTypeId"] == first
    assert mturk.create_hit_type(**HIT_TYPE | {"Reward": "0.64"})["HITTypeId"] != first
    assert mturk.create_hit(**HIT)["HIT"]["HITTypeId"] == first
    guarded = mturk.create_hit_type(**HIT_TYPE, QualificationRequirements=[MASTERS])["HITTypeId"]
    assert guarded != first
    again = mturk.create_hit_type(**HIT_TYPE, QualificationRequirements=[MASTERS])
    assert again["HITTypeId"] == guarded
    assert HitType.objects.count() == 3
    hit = mturk.create_hit_with_hit_type(HITTypeId=guarded, **LIVE)["HIT"]
    stored = MASTERS | {"ActionsGuarded": "Accept", "RequiredToPreview": False}
    assert hit["QualificationRequirements"] == [stored]


@pytest.mark.parametrize("operation", ["create_hit", "create_hit_with_hit_type"])
def test_a_repeated_token_names_the_hit_whatever_else_is_wrong(mturk, other_lab, operation):
    parameters = dict(HIT)
    if operation == "create_hit_with_hit_type":
        parameters = {"HITTypeId": mturk.create_hit_type(**HIT_TYPE)["HITTypeId"], **LIVE}
    call = getattr(mturk, operation)
    first = call(**parameters, UniqueRequestToken="t")["HIT"]["HITId"]
    before = balances(mturk)
    for change in ({}, {"Question": "<HTMLQuestion"}, {"MaxAssignments": 100_000}):
        response = error_of(call, **parameters | change, UniqueRequestToken="t")
        assert response["TurkErrorCode"] == "AWS.MechanicalTurk.HitAlreadyExists"
        assert first in response["Error"]["Message"]
    assert balances(mturk) == before
    assert mturk.list_hits()["NumResults"] == 1
    assert other_lab.create_hit(**HIT, UniqueRequestToken="t")["HIT"]["HITStatus"] == "Assignable"


def test_without_a_question_that_can_be_shown_or_the_money_nothing_is_created(mturk):
    for question in (
        "<HTMLQuestion/>",
        "not xml",
        HTML_QUESTION.replace("2011-11-11", "2011-11-12"),
        HTML_QUESTION.replace("<FrameHeight>450</FrameHeight>", ""),
    ):
        assert turk_code(mturk.create_hit, **HIT | {"Question": question}) == "XMLParseError"
        assert not Hit.objects.exists()
    without = {name: value for name, value in HIT.items() if name != "Question"}
    assert turk_code(mturk.create_hit, **without, HITLayoutId="3ABC") == "HITLayoutDoesNotExist"
    assert turk_code(mturk.create_hit, **without) == "InvalidParameterValue"
    assert mturk.list_hits()["NumResults"] == 0
    code = turk_code(mturk.create_hit, **HIT, MaxAssignments=159, UniqueRequestToken="dear")
    assert code == "InsufficientFunds"
    assert not Hit.objects.exists()
    assert not HitType.objects.exists()
    assert balances(mturk) == ("100.00", "0.00")
    assert mturk.create_hit(**HIT, MaxAssignments=158, UniqueRequestToken="dear")


# ListHITs, ListReviewableHITs, UpdateHITReviewStatus


def test_the_list_has_everything_once_the_newest_first(mturk, other_lab, make_worker):
    hits = [publish(mturk) for _ in range(5)]
    pages = list(mturk.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": 2}))
    assert [page["NumResults"] for page in pages] == [2, 2, 1, 0]
    assert [hit["HITId"] for page in pages for hit in page["HITs"]] == hits[::-1]
    assert [hit["HITId"] for hit in all_pages(mturk.list_hits, "HITs", MaxResults=2)] == hits[::-1]
    first = mturk.list_hits(MaxResults=2)
    for _ in range(6):
        publish(mturk)
    token = first["NextToken"]
    second = mturk.list_hits(MaxResults=2, NextToken=token)
    assert [hit["HITId"] for hit in second["HITs"]] == hits[::-1][2:4]
    assert mturk.list_hits()["NumResults"] == 10
    ask = {"HITId": hits[0], "NextToken": token}
    assert turk_code(other_lab.list_hits, NextToken=token) == "InvalidParameterValue"
    assert turk_code(mturk.list_assignments_for_hit, **ask) == "InvalidParameterValue"
    for made_up in ("x", "a:b", "é" * 10):
        assert turk_code(mturk.list_hits, NextToken=made_up) == "InvalidParameterValue"


def test_reviewable_hits_are_listed_and_assignments_in_the_order_of_their_submission(
    mturk, make_worker
):
    reviewable, done, expired = publish(mturk), publish(mturk), publish(mturk, Title="Another type")
    submit(make_worker("bea"), done)
    expire(mturk, expired)
    listed = all_pages(mturk.list_reviewable_hits, "HITs", MaxResults=1)
    assert {hit["HITId"] for hit in listed} == {done, expired}
    of_type = mturk.list_reviewable_hits(HITTypeId=stored_hit(mturk, done)["HITTypeId"])["HITs"]
    assert [hit["HITId"] for hit in of_type] == [done]
    assert mturk.list_reviewable_hits(Status="Reviewing")["HITs"] == []
    assert status_of(mturk, reviewable) == "Assignable"
    hit = publish(mturk, MaxAssignments=5)
    none = mturk.list_assignments_for_hit(HITId=hit)
    assert (none["NumResults"], none["Assignments"], "NextToken" in none) == (0, [], False)
    submitted = [submit(make_worker(f"w{number}"), hit) for number in range(5)]
    listed = all_pages(mturk.list_assignments_for_hit, "Assignments", HITId=hit, MaxResults=2)
    assert [each["AssignmentId"] for each in listed] == submitted
    token = mturk.list_assignments_for_hit(HITId=hit, MaxResults=2)["NextToken"]
    assert len(token) <= 255  # what the protocol allows


def test_a_hit_is_taken_into_review_put_back_and_deleted(mturk, worker):
    hit = publish(mturk)
    assert turk_code(mturk.update_hit_review_status, HITId=hit) == "InvalidHITState"
    assignment = submit(worker, hit)
    assert turk_code(mturk.update_hit_review_status, HITId=hit, Revert=True) == "InvalidHITState"
    mturk.update_hit_review_status(HITId=hit)
    assert status_of(mturk, hit) == "Reviewing"
    reviewing = mturk.list_reviewable_hits(Status="Reviewing")["HITs"]
    assert [each["HITId"] for each in reviewing] == [hit]
    assert mturk.list_reviewable_hits()["HITs"] == []
    mturk.update_hit_review_status(HITId=hit, Revert=True)
    assert status_of(mturk, hit) == "Reviewable"
    mturk.update_hit_review_status(HITId=hit)
    mturk.approve_assignment(AssignmentId=assignment)
    assert status_of(mturk, hit) == "Reviewing"
    mturk.delete_hit(HITId=hit)
    assert status_of(mturk, hit) == "Disposed"


# UpdateExpirationForHIT, DeleteHIT


def test_an_expiration_can_be_put_off_but_not_brought_forward(mturk):
    hit = mturk.create_hit(**HIT)["HIT"]
    later = hit["Expiration"] + DAY
    mturk.update_expiration_for_hit(HITId=hit["HITId"], ExpireAt=later)
    assert abs(stored_hit(mturk, hit["HITId"])["Expiration"] - later) <= timedelta(seconds=1)
    for wrong in (timedelta(hours=1), timedelta(days=366)):
        change = {"HITId": hit["HITId"], "ExpireAt": datetime.now(UTC) + wrong}
        assert turk_code(mturk.update_expiration_for_hit, **change) == "InvalidParameterValue"
    for at in (0, datetime(2015, 1, 1, tzinfo=UTC), "2015-01-01"):
        hit = publish(mturk)
        mturk.update_expiration_for_hit(HITId=hit, ExpireAt=at)
        assert mturk.get_hit(HITId=hit)["HIT"]["HITStatus"] == "Reviewable"


def test_only_a_hit_that_is_over_and_decided_is_deleted(mturk, worker):
    hit = publish(mturk)
    assert turk_code(mturk.delete_hit, HITId=hit) == "InvalidHITState"
    assignment = accept(worker, hit)
    assert turk_code(mturk.delete_hit, HITId=hit) == "InvalidHITState"
    hand_in(assignment)
    assert turk_code(mturk.delete_hit, HITId=hit) == "InvalidHITState"
    mturk.approve_assignment(AssignmentId=assignment)
    mturk.delete_hit(HITId=hit)
    assert mturk.list_hits()["HITs"] == []
    assert status_of(mturk, hit) == "Disposed"
    assert "'Disposed'" in error_of(mturk.delete_hit, HITId=hit)["Message"]
    parameters = {"HITId": hit, "ExpireAt": clock.now() + DAY}
    assert turk_code(mturk.update_expiration_for_hit, **parameters) == "InvalidHITState"


# CreateAdditionalAssignmentsForHIT


def test_assignments_are_added_and_paid_for(mturk, worker):
    hit = publish(mturk)
    photo = {"AssignmentId": submit(worker, hit), "QuestionIdentifier": "photo"}  # never uploaded
    assert turk_code(mturk.get_file_upload_url, **photo) == "InvalidParameterValue"
    assert status_of(mturk, hit) == "Reviewable"
    mturk.create_additional_assignments_for_hit(HITId=hit, NumberOfAdditionalAssignments=2)
    stored = stored_hit(mturk, hit)
    assert (stored["HITStatus"], stored["MaxAssignments"]) == ("Assignable", 3)
    assert stored["NumberOfAssignmentsAvailable"] == 2
    assert balances(mturk) == ("98.11", "1.89")


def test_an_expired_hit_and_what_it_gets_cost_nothing_until_it_lives_again(mturk):
    hit = publish(mturk)
    expire(mturk, hit)
    assert (status_of(mturk, hit), balances(mturk)) == ("Reviewable", ("100.00", "0.00"))
    more = {"HITId": hit, "NumberOfAdditionalAssignments": 2, "UniqueRequestToken": "t"}
    mturk.create_additional_assignments_for_hit(**more)
    assert turk_code(mturk.create_additional_assignments_for_hit, **more) == "DuplicateRequest"
    assert (status_of(mturk, hit), balances(mturk)) == ("Reviewable", ("100.00", "0.00"))
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=clock.now() + DAY)
    assert (status_of(mturk, hit), balances(mturk)) == ("Assignable", ("98.11", "1.89"))
    hit = publish(mturk, MaxAssignments=100)
    expire(mturk, hit)
    publish(mturk, MaxAssignments=100)
    parameters = {"HITId": hit, "ExpireAt": clock.now() + DAY}
    assert turk_code(mturk.update_expiration_for_hit, **parameters) == "InsufficientFunds"
    assert status_of(mturk, hit) == "Reviewable"


@pytest.mark.parametrize(
    ("before", "more", "reward", "code"),
    [
        (1, 8, "0.63", None),
        (1, 9, "0.63", "InvalidMaximumAssignmentsIncrease"),
        (9, 1, "0.63", "InvalidMaximumAssignmentsIncrease"),
        (10, 1, "0.63", None),
        (1, 8, "20.00", "InsufficientFunds"),
        (10**9, 1, "0", "InvalidParameterValue"),  # the most that a HIT can have
    ],
)
def test_a_hit_grows_within_its_size_and_its_requesters_money(mturk, before, more, reward, code):
    hit = publish(mturk, MaxAssignments=before, Reward=reward)
    grow = mturk.create_additional_assignments_for_hit
    parameters = {"HITId": hit, "NumberOfAdditionalAssignments": more}
    if code is None:
        grow(**parameters)
    else:
        assert turk_code(grow, **parameters) == code
        assert turk_code(grow, **parameters, UniqueRequestToken="t") == code
    grown = before if code else before + more
    assert stored_hit(mturk, hit)["MaxAssignments"] == grown


# UpdateHITTypeOfHIT


def with_type(mturk, hit, **changed):
    hit_type = mturk.create_hit_type(**HIT_TYPE | changed)["HITTypeId"]
    mturk.update_hit_type_of_hit(HITId=hit, HITTypeId=hit_type)
    return hit_type


def test_who_has_accepted_a_hit_of_another_type_is_paid_what_was_promised(mturk, make_worker):
    bea, cleo = make_worker("bea"), make_worker("cleo")
    hit = publish(mturk, MaxAssignments=2)
    hit_type = with_type(mturk, hit, Title="Rate nine", Reward="1.00")
    stored = stored_hit(mturk, hit)
    assert (stored["Title"], stored["Reward"]) == ("Rate nine", "1.00")
    assert stored["HITTypeId"] == hit_type
    assert balances(mturk) == ("98.00", "2.00")
    with_type(mturk, hit)
    assignment = accept(bea, hit)
    with_type(mturk, hit, Reward="0.10")
    assert balances(mturk) == ("99.27", "0.73")
    hand_in(assignment)
    mturk.approve_assignment(AssignmentId=assignment)
    mturk.approve_assignment(AssignmentId=submit(cleo, hit))
    assert balances(mturk) == ("99.27", "0.00")
    # An assignment returned never needs money that is not there.
    hit = publish(mturk)
    assignment = accept(bea, hit)
    with_type(mturk, hit, Reward="59.00")
    assert balances(mturk) == ("40.27", "59.00")
    publish(mturk, Reward="40.27")
    return_assignment(assignment=Assignment.objects.get(public_id=assignment))
    assert balances(mturk) == ("0.00", "99.27")


def test_the_type_is_not_changed_without_the_money_nor_of_a_hit_that_is_gone(mturk):
    hit = publish(mturk, MaxAssignments=2)
    dear = mturk.create_hit_type(**HIT_TYPE | {"Reward": "60.00"})["HITTypeId"]
    change = {"HITId": hit, "HITTypeId": dear}
    assert turk_code(mturk.update_hit_type_of_hit, **change) == "InsufficientFunds"
    assert stored_hit(mturk, hit)["Reward"] == "0.63"
    expire(mturk, hit)
    mturk.delete_hit(HITId=hit)
    assert turk_code(mturk.update_hit_type_of_hit, **change) == "InvalidHITState"
    more = {"HITId": hit, "NumberOfAdditionalAssignments": 1}
    assert turk_code(mturk.create_additional_assignments_for_hit, **more) == "InvalidHITState"


def test_a_fault_of_ours_is_a_service_fault(mturk, monkeypatch, caplog):
    def fail(requester, parameters):
        raise RuntimeError("no-disk")

    monkeypatch.setitem(dispatch.OPERATIONS, "GetAccountBalance", fail)
    with pytest.raises(mturk.exceptions.ServiceFault) as caught:
        mturk.get_account_balance()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert "no-disk" not in str(caught.value)
    assert "no-disk" in caplog.text


# The beginning of a text of Amazon's that programs look for.
WRONG_STATUS = "This operation can be called with a status of:"


def test_a_second_approval_and_a_missing_hit_are_told_by_their_text(mturk, worker):
    """Mephisto reads the state out of the message to make approving idempotent; Dallinger reads
    of a missing HIT."""
    assignment = submit(worker, publish(mturk))
    mturk.approve_assignment(AssignmentId=assignment)
    message = error_of(mturk.approve_assignment, AssignmentId=assignment)["Error"]["Message"]
    assert message.startswith(f"{WRONG_STATUS} Submitted (")
    message = error_of(mturk.get_hit, HITId="XYZ")["Error"]["Message"]
    assert re.fullmatch(r"Hit XYZ does not exist\. \(\d{13}\)", message)

"""HITs, through an unmodified boto3 client."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from marketplace import clock
from marketplace.api import dispatch
from marketplace.hits.assignments import accept_hit
from marketplace.models import Hit, HitType
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import EXTERNAL_QUESTION, HIT, HIT_TYPE, HTML_QUESTION, submit

DAY = timedelta(days=1)
FROM_THE_US = {
    "QualificationTypeId": "00000000000000000071",
    "Comparator": "EqualTo",
    "LocaleValues": [{"Country": "US"}],
}


def turk_code(call, **parameters):
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response = caught.value.response
    assert response["Error"]["Code"] == "RequestError"
    assert re.search(r" \(\d{13}\)$", response["Error"]["Message"])
    return response["TurkErrorCode"].removeprefix("AWS.MechanicalTurk.")


def test_a_new_hit_is_described_in_full(mturk):
    hit = mturk.create_hit(**HIT, MaxAssignments=3, RequesterAnnotation="item 7")["HIT"]
    assert re.fullmatch("[A-Z0-9]{30}", hit["HITId"])
    assert hit["Question"] == HTML_QUESTION
    assert hit["HITStatus"] == "Assignable"
    assert hit["Expiration"] - hit["CreationTime"] == DAY
    assert hit["RequesterAnnotation"] == "item 7"
    assert (hit["Reward"], hit["MaxAssignments"]) == ("0.63", 3)
    counts = ("Pending", "Available", "Completed")
    assert [hit[f"NumberOfAssignments{count}"] for count in counts] == [0, 3, 0]
    assert mturk.get_hit(HITId=hit["HITId"])["HIT"] == hit


def test_a_new_hit_of_a_new_type_is_described_as_it_is_afterwards(mturk):
    masters = {"QualificationTypeId": "000000000000000000L0", "Comparator": "Exists"}
    lasting = {
        "QualificationTypeId": "00000000000000000071",
        "Comparator": "In",
        "LocaleValues": [{"Country": "NZ"}, {"Country": "US", "Subdivision": "CA"}],
    }
    values = HIT | {"Reward": "0.5", "QualificationRequirements": [lasting, masters]}
    hit = mturk.create_hit(**values)["HIT"]
    assert hit["Reward"] == "0.50"
    assert mturk.get_hit(HITId=hit["HITId"])["HIT"] == hit
    again = mturk.create_hit_with_hit_type(
        HITTypeId=hit["HITTypeId"], LifetimeInSeconds=60, Question=HTML_QUESTION
    )["HIT"]
    assert again["QualificationRequirements"] == hit["QualificationRequirements"]
    assert mturk.get_hit(HITId=again["HITId"])["HIT"] == again


@pytest.mark.parametrize("requirements", [[], [FROM_THE_US]])
def test_a_hit_takes_eight_statements_whatever_its_type_requires(
    mturk, requirements, django_assert_num_queries
):
    values = HIT_TYPE | {"QualificationRequirements": requirements}
    hit_type = mturk.create_hit_type(**values)["HITTypeId"]
    hit = {"HITTypeId": hit_type, "LifetimeInSeconds": 60, "Question": HTML_QUESTION}
    mturk.create_hit_with_hit_type(**hit)
    # The test's own transaction turns the HIT's into a savepoint, which is two more.
    with django_assert_num_queries(8 + 2):
        mturk.create_hit_with_hit_type(**hit, UniqueRequestToken="batch-1-item-7")


def test_the_same_values_are_the_same_hit_type(mturk):
    first = mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]
    assert mturk.create_hit_type(**HIT_TYPE | {"Reward": "00.63"})["HITTypeId"] == first
    assert mturk.create_hit_type(**HIT_TYPE | {"Reward": "0.64"})["HITTypeId"] != first
    assert mturk.create_hit(**HIT)["HIT"]["HITTypeId"] == first
    assert HitType.objects.count() == 2


def test_a_hit_of_a_hit_type_has_its_values(mturk):
    hit_type = mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]
    hit = mturk.create_hit_with_hit_type(
        HITTypeId=hit_type, LifetimeInSeconds=60, Question=EXTERNAL_QUESTION
    )["HIT"]
    assert (hit["Title"], hit["HITTypeId"]) == (HIT["Title"], hit_type)


def test_a_hit_type_nobody_made_does_not_exist(mturk):
    code = turk_code(
        mturk.create_hit_with_hit_type,
        HITTypeId="NONE",
        LifetimeInSeconds=60,
        Question=HTML_QUESTION,
    )
    assert code == "HITTypeDoesNotExist"


def test_a_repeated_token_names_the_hit_that_exists(mturk):
    first = mturk.create_hit(**HIT, UniqueRequestToken="batch-1-item-7")["HIT"]["HITId"]
    before = mturk.get_account_balance()["AvailableBalance"]
    with pytest.raises(mturk.exceptions.RequestError) as caught:
        mturk.create_hit(**HIT, UniqueRequestToken="batch-1-item-7")
    response = caught.value.response
    assert response["TurkErrorCode"] == "AWS.MechanicalTurk.HitAlreadyExists"
    assert first in response["Error"]["Message"]
    assert mturk.get_account_balance()["AvailableBalance"] == before
    assert Hit.objects.count() == 1


def test_a_repetition_is_named_as_one_whatever_else_is_wrong_with_it(mturk):
    first = mturk.create_hit(**HIT, UniqueRequestToken="batch-1-item-7")["HIT"]["HITId"]
    for wrong in ({"Question": "<HTMLQuestion"}, {"MaxAssignments": 100_000}):
        with pytest.raises(ClientError, match=first) as caught:
            mturk.create_hit(**HIT | wrong, UniqueRequestToken="batch-1-item-7")
        assert caught.value.response["TurkErrorCode"].endswith("HitAlreadyExists")
    assert Hit.objects.count() == 1


def test_a_token_is_its_requesters_own(mturk, make_keys):
    mturk.create_hit(**HIT, UniqueRequestToken="1")
    other = in_process_client(make_keys("Other lab"))
    assert other.create_hit(**HIT, UniqueRequestToken="1")["HIT"]["HITStatus"] == "Assignable"


def test_without_the_money_nothing_is_created(mturk):
    code = turk_code(mturk.create_hit, **HIT, MaxAssignments=159, UniqueRequestToken="dear")
    assert code == "InsufficientFunds"
    assert not Hit.objects.exists()
    assert not HitType.objects.exists()
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"
    assert mturk.create_hit(**HIT, MaxAssignments=158, UniqueRequestToken="dear")


def test_publishing_holds_what_it_will_cost(mturk):
    mturk.create_hit(**HIT, MaxAssignments=3)
    balance = mturk.get_account_balance()
    assert (balance["AvailableBalance"], balance["OnHoldBalance"]) == ("98.11", "1.89")


@pytest.mark.parametrize(
    "question",
    [
        "<HTMLQuestion/>",
        "not xml",
        HTML_QUESTION.replace("2011-11-11", "2011-11-12"),
        HTML_QUESTION.replace("<FrameHeight>450</FrameHeight>", ""),
        HTML_QUESTION.replace("450", "tall"),
        '<!DOCTYPE q [<!ENTITY a "b">]>' + EXTERNAL_QUESTION,
        EXTERNAL_QUESTION.replace("https://study.example", "javascript:alert(1)//"),
        HTML_QUESTION.replace("Task", "é" * 32_768),
    ],
)
def test_a_question_that_cannot_be_shown_is_refused(mturk, question):
    assert turk_code(mturk.create_hit, **HIT | {"Question": question}) == "XMLParseError"
    assert not Hit.objects.exists()


def test_another_requesters_hit_does_not_exist(mturk, make_keys, worker):
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    assignment = submit(worker, hit)
    other = in_process_client(make_keys("Other lab"))
    for call in (other.get_hit, other.delete_hit, other.list_assignments_for_hit):
        assert turk_code(call, HITId=hit) == "HITDoesNotExist"
    assert turk_code(other.update_expiration_for_hit, HITId=hit, ExpireAt=0) == "HITDoesNotExist"
    assert turk_code(other.get_assignment, AssignmentId=assignment) == "AssignmentDoesNotExist"
    assert turk_code(other.approve_assignment, AssignmentId=assignment) == "AssignmentDoesNotExist"
    code = turk_code(other.reject_assignment, AssignmentId=assignment, RequesterFeedback="no")
    assert code == "AssignmentDoesNotExist"
    assert other.list_hits()["HITs"] == []
    assert mturk.get_assignment(AssignmentId=assignment)["Assignment"]["AssignmentStatus"] == (
        "Submitted"
    )


def test_another_requesters_hit_type_does_not_exist(mturk, make_keys):
    hit_type = mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]
    other = in_process_client(make_keys("Other lab"))
    parameters = {"HITTypeId": hit_type, "LifetimeInSeconds": 60, "Question": HTML_QUESTION}
    assert turk_code(other.create_hit_with_hit_type, **parameters) == "HITTypeDoesNotExist"


def test_a_missing_hit_is_reported_as_amazon_does(mturk):
    with pytest.raises(ClientError, match=r"Hit NONE does not exist\. \(\d+\)"):
        mturk.get_hit(HITId="NONE")


def test_an_expiration_in_the_past_expires_the_hit_now_and_frees_the_money(mturk):
    hit = mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]["HITId"]
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=0)
    assert mturk.get_hit(HITId=hit)["HIT"]["HITStatus"] == "Reviewable"
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"


def test_an_expiration_can_be_put_off_but_not_brought_forward(mturk):
    hit = mturk.create_hit(**HIT)["HIT"]
    later = hit["Expiration"] + DAY
    mturk.update_expiration_for_hit(HITId=hit["HITId"], ExpireAt=later)
    put_off = mturk.get_hit(HITId=hit["HITId"])["HIT"]["Expiration"]
    assert abs(put_off - later) <= timedelta(seconds=1)
    sooner = datetime.now(UTC) + timedelta(hours=1)
    code = turk_code(mturk.update_expiration_for_hit, HITId=hit["HITId"], ExpireAt=sooner)
    assert code == "InvalidParameterValue"
    far = datetime.now(UTC) + timedelta(days=366)
    code = turk_code(mturk.update_expiration_for_hit, HITId=hit["HITId"], ExpireAt=far)
    assert code == "InvalidParameterValue"


def test_an_expired_hit_that_lives_again_holds_its_money_again(mturk):
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=0)
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=clock.now() + DAY)
    assert mturk.get_hit(HITId=hit)["HIT"]["HITStatus"] == "Assignable"
    assert mturk.get_account_balance()["OnHoldBalance"] == "0.63"


def test_an_expired_hit_lives_again_only_with_the_money(mturk):
    hit = mturk.create_hit(**HIT, MaxAssignments=100)["HIT"]["HITId"]
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=0)
    mturk.create_hit(**HIT, MaxAssignments=100)
    parameters = {"HITId": hit, "ExpireAt": clock.now() + DAY}
    assert turk_code(mturk.update_expiration_for_hit, **parameters) == "InsufficientFunds"
    assert mturk.get_hit(HITId=hit)["HIT"]["HITStatus"] == "Reviewable"


def test_only_a_hit_that_is_over_and_decided_can_be_deleted(mturk, worker):
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    assert turk_code(mturk.delete_hit, HITId=hit) == "InvalidHITState"
    accept_hit(worker=worker, hit=Hit.objects.get())
    assert turk_code(mturk.delete_hit, HITId=hit) == "InvalidHITState"


def test_a_hit_with_undecided_work_cannot_be_deleted(mturk, worker):
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    assignment = submit(worker, hit)
    assert turk_code(mturk.delete_hit, HITId=hit) == "InvalidHITState"
    mturk.approve_assignment(AssignmentId=assignment)
    mturk.delete_hit(HITId=hit)


def test_a_deleted_hit_is_listed_no_more_and_answers_disposed(mturk):
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=0)
    mturk.delete_hit(HITId=hit)
    assert mturk.list_hits()["HITs"] == []
    assert mturk.get_hit(HITId=hit)["HIT"]["HITStatus"] == "Disposed"
    with pytest.raises(ClientError, match="currently in the state 'Disposed'"):
        mturk.delete_hit(HITId=hit)
    parameters = {"HITId": hit, "ExpireAt": clock.now() + DAY}
    assert turk_code(mturk.update_expiration_for_hit, **parameters) == "InvalidHITState"


def test_a_fault_of_ours_is_a_service_fault(mturk, monkeypatch, caplog):
    def fail(requester, parameters):
        raise RuntimeError("the disk is gone")

    monkeypatch.setitem(dispatch.OPERATIONS, "GetAccountBalance", fail)
    with pytest.raises(mturk.exceptions.ServiceFault) as caught:
        mturk.get_account_balance()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert "the disk is gone" not in str(caught.value)
    assert "the disk is gone" in caplog.text

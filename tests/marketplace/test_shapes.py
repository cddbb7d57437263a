"""Constraints of requests, and their messages."""

import json

import pytest
from botocore.exceptions import ClientError
from django.test import Client

from marketplace.api.inputs import INPUTS
from marketplace.api.shapes import Integer, Member, Text, read_request
from marketplace.exceptions import ProtocolError
from tests.marketplace.conftest import HIT


def message_of(call, **parameters):
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return f"{caught.value.response['Error']['Code']}: {caught.value.response['Error']['Message']}"


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"Title": "t" * 129}, "at 'title' failed to satisfy constraint: Member must have length "
         "less than or equal to 128"),
        ({"Description": "d" * 2001}, "less than or equal to 2000"),
        ({"Keywords": "k" * 1001}, "less than or equal to 1000"),
        ({"Reward": "0.055"}, "Value '0.055' at 'reward' failed to satisfy constraint: Member must "
         r"satisfy regular expression pattern: ^[0-9]+(\.)?[0-9]{0,2}$"),
        ({"Reward": ".50"}, "Member must satisfy regular expression pattern"),
        ({"Reward": "99999999999"}, "at 'reward'"),
        ({"LifetimeInSeconds": 29}, "Value '29' at 'lifetimeInSeconds' failed to satisfy "
         "constraint: Member must have value greater than or equal to 30"),
        ({"LifetimeInSeconds": 31_536_001}, "less than or equal to 31536000"),
        ({"AssignmentDurationInSeconds": 29}, "greater than or equal to 30"),
        ({"AssignmentDurationInSeconds": 31_536_001}, "less than or equal to 31536000"),
        ({"AutoApprovalDelayInSeconds": 2_592_001}, "less than or equal to 2592000"),
        ({"MaxAssignments": 0}, "greater than or equal to 1"),
        ({"RequesterAnnotation": "a" * 256}, "less than or equal to 255"),
        ({"UniqueRequestToken": "u" * 65}, "less than or equal to 64"),
    ],
)  # fmt: skip
def test_a_hit_outside_the_protocols_ranges_is_refused(mturk, change, constraint):
    message = message_of(mturk.create_hit, **HIT | change)
    assert message.startswith("ValidationException: 1 validation error detected: Value ")
    assert constraint in message
    assert mturk.list_hits()["NumResults"] == 0


def test_the_ends_of_the_ranges_are_accepted(mturk):
    edges = {"Title": "t" * 128, "Reward": "0.", "LifetimeInSeconds": 30, "MaxAssignments": 10**9}
    hit = mturk.create_hit(**HIT | edges)["HIT"]
    assert (hit["Reward"], hit["MaxAssignments"]) == ("0.00", 10**9)


def test_an_absent_member_is_null(keys):
    with pytest.raises(ProtocolError) as caught:
        read_request(INPUTS["RejectAssignment"], {"AssignmentId": "A1"})
    assert str(caught.value) == (
        "1 validation error detected: Value null at 'requesterFeedback' failed to satisfy "
        "constraint: Member must not be null"
    )


def test_several_violations_are_reported_together():
    members = {"Title": Member(Text(max_length=2)), "Count": Member(Integer(1, 2))}
    with pytest.raises(ProtocolError) as caught:
        read_request(members, {"Title": "abc", "Count": 3})
    assert str(caught.value) == (
        "2 validation errors detected: "
        "Value 'abc' at 'title' failed to satisfy constraint: "
        "Member must have length less than or equal to 2; "
        "Value '3' at 'count' failed to satisfy constraint: "
        "Member must have value less than or equal to 2"
    )


def test_ids_page_sizes_and_statuses_are_checked(mturk):
    assert "regular expression pattern: ^[A-Z0-9]+$" in message_of(mturk.get_hit, HITId="abc")
    assert "less than or equal to 100" in message_of(mturk.list_hits, MaxResults=101)
    message = message_of(
        mturk.list_assignments_for_hit, HITId="A1", AssignmentStatuses=["Submitted", "Nope"]
    )
    assert "Value '[Submitted, Nope]' at 'assignmentStatuses'" in message
    assert "[Member must satisfy enum value set: [Submitted, Approved, Rejected]]" in message


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"MaxResults": "10"}, "STRING_VALUE can not be converted to Integer"),
        ({"MaxResults": True}, "BOOLEAN_VALUE can not be converted to Integer"),
        ({"MaxResults": 10.5}, "NUMBER_VALUE can not be converted to Integer"),
        ({"NextToken": ["a"]}, "LIST_VALUE can not be converted to String"),
        ({"NextToken": {}}, "STRUCTURE_VALUE can not be converted to String"),
        ({"NextToken": "a\0"}, "not text"),
        ({"NextToken": "\ud800"}, "not text"),
    ],
)
def test_a_value_of_the_wrong_type_cannot_be_read(payload, message):
    with pytest.raises(ProtocolError, match=message) as caught:
        read_request(INPUTS["ListHITs"], payload)
    assert caught.value.code == "SerializationException"


@pytest.mark.parametrize("at", ["soon", True, 1e300, 10**20])
def test_what_is_no_time_cannot_be_read(at):
    with pytest.raises(ProtocolError) as caught:
        read_request(INPUTS["UpdateExpirationForHIT"], {"HITId": "A", "ExpireAt": at})
    assert caught.value.code == "SerializationException"


def test_null_is_absent_and_unknown_members_are_ignored():
    values = read_request(INPUTS["ListHITs"], {"MaxResults": None, "Colour": "green"})
    assert values == {"NextToken": None, "MaxResults": 10}


@pytest.mark.parametrize("body", [b"not json", b"[1]", b'{"MaxResults": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(mturk, body):
    def replace(request, **kwargs):
        request.data = body

    mturk.meta.events.register("before-sign.mturk.*", replace)
    assert message_of(mturk.list_hits).startswith("SerializationException")


def test_a_body_beyond_the_limit_is_refused(mturk, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    with pytest.raises(ClientError) as caught:
        mturk.create_hit(**HIT | {"Description": "d" * 1000})
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413


@pytest.mark.parametrize("target", ["0117.PayEverybody", "0118.ListHITs", "0117ListHITs", ""])
def test_an_operation_that_does_not_exist_is_unknown(mturk, target):
    def replace(request, **kwargs):
        del request.headers["X-Amz-Target"]
        request.headers["X-Amz-Target"] = f"MTurkRequesterServiceV2017{target}"

    mturk.meta.events.register("before-sign.mturk.*", replace)
    assert message_of(mturk.list_hits).startswith("UnknownOperationException")


def test_only_a_post_is_a_call(db):
    assert Client().get("/requester").status_code == 405


def test_a_call_without_a_signature_is_answered_in_the_protocol(db):
    response = Client().post("/requester/", b"{}", content_type="application/x-amz-json-1.1")
    assert response.status_code == 400
    assert json.loads(response.content)["__type"] == "MissingAuthenticationTokenException"

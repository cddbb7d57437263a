"""Constraints of requests, and how AWS reports them."""

import json

import pytest
from botocore.exceptions import ClientError
from django.test import Client

from marketplace.api.inputs import INPUTS
from marketplace.api.shapes import Integer, Member, Text, read_request
from marketplace.exceptions import ProtocolError
from tests.codes import refused
from tests.marketplace.conformance.refusals import error_of
from tests.marketplace.conftest import HIT


@pytest.mark.parametrize(
    ("change", "bound"),
    [
        ({"Title": "t" * 129}, "128"),
        ({"Description": "d" * 2001}, "2000"),
        ({"Keywords": "k" * 1001}, "1000"),
        ({"Reward": "0.055"}, r"^[0-9]+(\.)?[0-9]{0,2}$"),
        ({"Reward": ".50"}, r"^[0-9]+(\.)?[0-9]{0,2}$"),
        ({"Reward": "99999999999"}, "99999999999"),
        ({"LifetimeInSeconds": 29}, "30"),
        ({"LifetimeInSeconds": 31_536_001}, "31536000"),
        ({"AssignmentDurationInSeconds": 29}, "30"),
        ({"AssignmentDurationInSeconds": 31_536_001}, "31536000"),
        ({"AutoApprovalDelayInSeconds": 2_592_001}, "2592000"),
        ({"MaxAssignments": 0}, "1"),
        ({"RequesterAnnotation": "a" * 256}, "255"),
        ({"UniqueRequestToken": "u" * 65}, "64"),
    ],
)
def test_a_hit_outside_the_protocols_ranges_is_refused(mturk, change, bound):
    error = error_of(mturk.create_hit, **HIT | change)["Error"]
    ((name, _),) = change.items()
    assert error["Code"] == "ValidationException"
    assert f"'{name[0].lower()}{name[1:]}'" in error["Message"]
    assert f" {bound}" in error["Message"] or f"'{bound}'" in error["Message"]
    assert mturk.list_hits()["NumResults"] == 0


def test_the_ends_of_the_ranges_are_accepted(mturk):
    edges = {"Title": "t" * 128, "Reward": "0.", "LifetimeInSeconds": 30, "MaxAssignments": 10**9}
    hit = mturk.create_hit(**HIT | edges)["HIT"]
    assert (hit["Reward"], hit["MaxAssignments"]) == ("0.00", 10**9)


def test_violations_are_reported_together_and_an_absent_member_is_null():
    members = {
        "Title": Member(Text(max_length=2)),
        "Count": Member(Integer(1, 2)),
        "Reason": Member(Text(), is_required=True),
    }
    with refused(ProtocolError, "ValidationException") as caught:
        read_request(members, {"Title": "abc", "Count": 3})
    begin, *reported = str(caught.value).split("Value ")
    assert begin.startswith("3 ")
    for text, parts in zip(
        reported,
        (["'abc'", "'title'", " 2"], ["'3'", "'count'", " 2"], ["null", "'reason'"]),
        strict=True,
    ):
        assert [part for part in parts if part not in text] == []


def test_ids_page_sizes_and_statuses_are_checked(mturk):
    statuses = ["Submitted", "Nope"]
    for call, parameters, parts in (
        (mturk.get_hit, {"HITId": "abc"}, ["^[A-Z0-9]+$"]),
        (mturk.list_hits, {"MaxResults": 101}, [" 100"]),
        (
            mturk.list_assignments_for_hit,
            {"HITId": "A1", "AssignmentStatuses": statuses},
            ["'[Submitted, Nope]'", "'assignmentStatuses'", "[Submitted, Approved, Rejected]"],
        ),
    ):
        error = error_of(call, **parameters)["Error"]
        assert error["Code"] == "ValidationException"
        assert [part for part in parts if part not in error["Message"]] == []


@pytest.mark.parametrize(
    ("operation", "payload", "named"),
    [
        ("ListHITs", {"MaxResults": "10"}, "STRING_VALUE"),
        ("ListHITs", {"MaxResults": True}, "BOOLEAN_VALUE"),
        ("ListHITs", {"MaxResults": 10.5}, "NUMBER_VALUE"),
        ("ListHITs", {"NextToken": ["a"]}, "LIST_VALUE"),
        ("ListHITs", {"NextToken": {}}, "STRUCTURE_VALUE"),
        ("ListHITs", {"NextToken": "a\0"}, ""),
        ("ListHITs", {"NextToken": "\ud800"}, ""),
        *(
            ("UpdateExpirationForHIT", {"HITId": "A", "ExpireAt": at}, "")
            for at in ("soon", True, 1e300, 10**20)
        ),
    ],
)
def test_a_value_of_the_wrong_type_cannot_be_read(operation, payload, named):
    with refused(ProtocolError, "SerializationException") as caught:
        read_request(INPUTS[operation], payload)
    assert named in str(caught.value)


def test_null_is_absent_and_unknown_members_are_ignored():
    values = read_request(INPUTS["ListHITs"], {"MaxResults": None, "Colour": "green"})
    assert values == {"NextToken": None, "MaxResults": 10}


@pytest.mark.parametrize("body", [b"not json", b"[1]", b'{"MaxResults": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(mturk, body):
    def replace(request, **kwargs):
        request.data = body

    mturk.meta.events.register("before-sign.mturk.*", replace)
    assert error_of(mturk.list_hits)["Error"]["Code"] == "SerializationException"


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
    assert error_of(mturk.list_hits)["Error"]["Code"] == "UnknownOperationException"


def test_only_a_signed_post_is_a_call(db):
    assert Client().get("/requester").status_code == 405
    response = Client().post("/requester/", b"{}", content_type="application/x-amz-json-1.1")
    assert response.status_code == 400
    assert json.loads(response.content)["__type"] == "MissingAuthenticationTokenException"

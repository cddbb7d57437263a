"""Paging, as the clients that exist loop over it."""

import pytest
from botocore.exceptions import ClientError

from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, submit


@pytest.fixture
def hit_ids(mturk):
    return [mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(5)]


def test_the_paginator_sees_everything_once_the_newest_first(mturk, hit_ids):
    pages = list(mturk.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": 2}))
    assert [page["NumResults"] for page in pages] == [2, 2, 1, 0]
    seen = [hit["HITId"] for page in pages for hit in page["HITs"]]
    assert seen == hit_ids[::-1]


def test_a_loop_that_takes_the_token_of_every_page_ends_at_an_empty_one(mturk, hit_ids):
    seen, response = [], mturk.list_hits(MaxResults=5)
    while response["HITs"]:
        seen += response["HITs"]
        response = mturk.list_hits(MaxResults=5, NextToken=response["NextToken"])
    assert len(seen) == 5
    assert "NextToken" not in response


def test_a_page_has_ten_unless_asked_otherwise(mturk):
    for _ in range(11):
        mturk.create_hit(**HIT)
    assert mturk.list_hits()["NumResults"] == 10


def test_a_hit_published_between_two_pages_moves_nothing(mturk, hit_ids):
    first = mturk.list_hits(MaxResults=2)
    mturk.create_hit(**HIT)
    second = mturk.list_hits(MaxResults=2, NextToken=first["NextToken"])
    assert [hit["HITId"] for hit in second["HITs"]] == hit_ids[::-1][2:4]


def test_assignments_come_in_the_order_of_their_submission(mturk, make_worker):
    hit = mturk.create_hit(**HIT, MaxAssignments=5)["HIT"]["HITId"]
    submitted = [submit(make_worker(f"w{number}"), hit) for number in range(5)]
    paginator = mturk.get_paginator("list_assignments_for_hit")
    pages = list(paginator.paginate(HITId=hit, PaginationConfig={"PageSize": 2}))
    assert [page["NumResults"] for page in pages] == [2, 2, 1, 0]
    assert [each["AssignmentId"] for page in pages for each in page["Assignments"]] == submitted


def test_a_hit_without_work_has_one_empty_page(mturk):
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    response = mturk.list_assignments_for_hit(HITId=hit)
    assert (response["NumResults"], response["Assignments"]) == (0, [])
    assert "NextToken" not in response


def test_a_token_belongs_to_its_list_and_its_requester(mturk, hit_ids, make_keys):
    token = mturk.list_hits(MaxResults=1)["NextToken"]
    other = in_process_client(make_keys("Other lab"))
    with pytest.raises(ClientError, match="not a token of this list"):
        other.list_hits(NextToken=token)
    with pytest.raises(ClientError, match="not a token of this list"):
        mturk.list_assignments_for_hit(HITId=hit_ids[0], NextToken=token)


@pytest.mark.parametrize("token", ["x", "a:b", "é" * 10])
def test_a_made_up_token_is_refused(mturk, token):
    with pytest.raises(ClientError) as caught:
        mturk.list_hits(NextToken=token)
    assert caught.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.InvalidParameterValue"


def test_a_token_fits_the_protocols_length(mturk, worker):
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    submit(worker, hit)
    assert len(mturk.list_assignments_for_hit(HITId=hit)["NextToken"]) <= 255

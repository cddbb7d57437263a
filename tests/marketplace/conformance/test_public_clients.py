"""Ways in which programs written for Amazon use the API: loops until a page is empty, boto3's
paginators, errors distinguished by code and text. Each test names whose way it is; none of their
code is here."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from marketplace.models import WorkerAccount
from tests.boto_clients import in_process_client, network_client
from tests.marketplace.conformance.refusals import error_of, publish
from tests.marketplace.conformance.test_qualification_types import CHESS
from tests.marketplace.conftest import HIT, HIT_TYPE, HTML_QUESTION, submit

# Texts of Amazon's that these programs look for.
TEXTS = {
    "name taken": "already created a QualificationType with this name",
    "wrong status": "This operation can be called with a status of:",
    "no score": "You requested a Qualification that does not exist",
    "missing": "does not exist",
}


def test_a_loop_that_indexes_the_token_of_every_page_that_is_not_empty(mturk, make_worker):
    """OTree's: `until not Assignments`, and then `response['NextToken']` without a look."""
    hit = publish(mturk, MaxAssignments=4)
    submitted = {submit(make_worker(f"worker{number}"), hit) for number in range(4)}
    parameters, unique, calls = {"HITId": hit, "MaxResults": 4}, set(), 0
    while True:
        response = mturk.list_assignments_for_hit(**parameters)
        calls += 1
        if not response["Assignments"]:
            break
        unique |= {each["AssignmentId"] for each in response["Assignments"]}
        parameters["NextToken"] = response["NextToken"]
    assert (unique, calls) == (submitted, 2)


def test_boto3s_own_paginators_come_to_an_end(mturk, worker):
    hit = publish(mturk)
    assignment = submit(worker, hit)
    type_id = mturk.create_qualification_type(**CHESS)["QualificationType"]["QualificationTypeId"]
    mturk.associate_qualification_with_worker(
        QualificationTypeId=type_id, WorkerId=worker.worker_id
    )
    required = {"QualificationTypeId": type_id, "Comparator": "DoesNotExist"}
    publish(mturk, QualificationRequirements=[required])
    mturk.create_worker_block(WorkerId=worker.worker_id, Reason="Bots")
    mturk.send_bonus(
        WorkerId=worker.worker_id, AssignmentId=assignment, BonusAmount="0.10", Reason="Quick"
    )
    of_type, of_hit = {"QualificationTypeId": type_id}, {"HITId": hit}
    for operation, member, parameters, least in (
        ("list_hits", "HITs", {}, 2),
        ("list_reviewable_hits", "HITs", {}, 1),
        ("list_assignments_for_hit", "Assignments", of_hit, 1),
        ("list_bonus_payments", "BonusPayments", of_hit, 1),
        ("list_qualification_types", "QualificationTypes", {"MustBeRequestable": False}, 2),
        ("list_qualification_requests", "QualificationRequests", {}, 0),
        ("list_worker_blocks", "WorkerBlocks", {}, 1),
        ("list_workers_with_qualification_type", "Qualifications", of_type, 1),
        ("list_hits_for_qualification_type", "HITs", of_type, 1),
    ):
        paginator = mturk.get_paginator(operation)
        pages = list(paginator.paginate(**parameters, PaginationConfig={"PageSize": 1}))
        rows = [str(row) for page in pages for row in page[member]]
        assert len(set(rows)) == len(rows) >= least, operation
        assert (pages[-1]["NumResults"], "NextToken" in pages[-1]) == (0, False), operation


def test_hits_are_found_by_their_annotation(mturk):
    """Dallinger's way to find its own: read every HIT, compare RequesterAnnotation."""
    publish(mturk, RequesterAnnotation="another experiment")
    mine = publish(mturk, RequesterAnnotation="experiment-7")
    pages = mturk.get_paginator("list_hits").paginate()
    hits = [
        hit["HITId"]
        for page in pages
        for hit in page["HITs"]
        if hit.get("RequesterAnnotation") == "experiment-7"
    ]
    assert hits == [mine]


def test_a_qualification_is_made_once_and_found_by_name_afterwards(mturk):
    """Dallinger's and Mephisto's: create, and on that very text look it up."""
    created = mturk.create_qualification_type(**CHESS)["QualificationType"]
    refused = error_of(mturk.create_qualification_type, **CHESS)
    assert TEXTS["name taken"] in refused["Message"]
    types = mturk.list_qualification_types(
        Query=CHESS["Name"], MustBeRequestable=True, MustBeOwnedByCaller=True, MaxResults=2
    )["QualificationTypes"]
    assert [each["QualificationTypeId"] for each in types] == [created["QualificationTypeId"]]


def test_a_score_is_raised_by_reading_it_and_granting_it_anew(mturk, worker):
    """Dallinger's `increment_qualification_score`: no score is an error that is caught."""
    type_id = mturk.create_qualification_type(**CHESS)["QualificationType"]["QualificationTypeId"]
    ids = {"QualificationTypeId": type_id, "WorkerId": worker.worker_id}
    for expected in (1, 2, 3):
        try:
            score = mturk.get_qualification_score(**ids)["Qualification"]["IntegerValue"]
        except mturk.exceptions.RequestError as error:
            score = 0 if TEXTS["no score"] in str(error) else 99
        mturk.associate_qualification_with_worker(
            **ids, IntegerValue=score + 1, SendNotification=False
        )
        value = mturk.get_qualification_score(**ids)["Qualification"]["IntegerValue"]
        assert value == expected


def test_a_hit_is_extended_in_number_and_time_at_once(mturk):
    """Dallinger's `extend_hit`, with a datetime in another zone."""
    hit = mturk.create_hit(**HIT)["HIT"]
    mturk.create_additional_assignments_for_hit(
        HITId=hit["HITId"], NumberOfAdditionalAssignments=2, UniqueRequestToken="17"
    )
    until = hit["Expiration"] + timedelta(hours=2)
    mturk.update_expiration_for_hit(HITId=hit["HITId"], ExpireAt=until)
    stored = mturk.get_hit(HITId=hit["HITId"])["HIT"]
    assert stored["MaxAssignments"] == 3
    assert abs(stored["Expiration"] - until) < timedelta(seconds=1)


@pytest.mark.parametrize("at", [0, datetime(2015, 1, 1, tzinfo=UTC), "2015-01-01"])
def test_a_hit_is_expired_with_whatever_moment_of_the_past(mturk, at):
    """Scripts send 0, datetime(2015, 1, 1) or a string."""
    hit = publish(mturk)
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=at)
    assert mturk.get_hit(HITId=hit)["HIT"]["HITStatus"] == "Reviewable"


def test_a_second_approval_is_distinguished_from_other_errors_by_its_text(mturk, worker):
    """Mephisto reads the state out of the message to make approving idempotent."""
    assignment = submit(worker, publish(mturk))
    mturk.approve_assignment(AssignmentId=assignment)
    message = error_of(mturk.approve_assignment, AssignmentId=assignment)["Error"]["Message"]
    assert message.startswith(f"{TEXTS['wrong status']} Submitted (")


def test_the_existing_hit_is_read_out_of_the_error(mturk):
    """The way to publish so that a crash does no harm: a token, and this message."""
    hit = mturk.create_hit(**HIT, UniqueRequestToken="item-7")["HIT"]["HITId"]
    refused = error_of(mturk.create_hit, **HIT, UniqueRequestToken="item-7")
    assert hit in re.findall(r"[A-Z0-9]{30}", refused["Error"]["Message"])


def test_a_missing_hit_is_an_error_of_the_service_and_says_so(mturk):
    """Dallinger reads the text."""
    message = error_of(mturk.get_hit, HITId="XYZ")["Error"]["Message"]
    assert re.fullmatch(rf"Hit XYZ {TEXTS['missing']}\. \(\d{{13}}\)", message)


def test_requirements_as_scripts_write_them(mturk):
    """Approval rate, number approved and country, as in nearly every published script."""
    requirements = [
        {
            "QualificationTypeId": "000000000000000000L0",
            "Comparator": "GreaterThanOrEqualTo",
            "IntegerValues": [95],
            "RequiredToPreview": True,
        },
        {
            "QualificationTypeId": "00000000000000000040",
            "Comparator": "GreaterThan",
            "IntegerValues": [100],
        },
        {
            "QualificationTypeId": "00000000000000000071",
            "Comparator": "In",
            "LocaleValues": [{"Country": "US"}, {"Country": "CA"}],
            "ActionsGuarded": "DiscoverPreviewAndAccept",
        },
    ]
    hit = mturk.create_hit(**HIT, QualificationRequirements=requirements)["HIT"]
    guards = [each["ActionsGuarded"] for each in hit["QualificationRequirements"]]
    assert guards == ["PreviewAndAccept", "Accept", "DiscoverPreviewAndAccept"]


def test_a_whole_study_over_the_network(live_server, keys, make_worker):
    """Publish, qualify, collect, decide, pay, tell and clean up, through an ordinary socket."""
    client = network_client(f"{live_server.url}/requester", keys)
    lab = client.create_qualification_type(**CHESS)["QualificationType"]["QualificationTypeId"]
    required = [{"QualificationTypeId": lab, "Comparator": "EqualTo", "IntegerValues": [7]}]
    hit_type = client.create_hit_type(**HIT_TYPE, QualificationRequirements=required)["HITTypeId"]
    hit = client.create_hit_with_hit_type(
        HITTypeId=hit_type, LifetimeInSeconds=3600, MaxAssignments=2, Question=HTML_QUESTION
    )["HIT"]["HITId"]
    workers: list[WorkerAccount] = [make_worker(name) for name in ("bea", "cleo")]
    for worker in workers:
        client.associate_qualification_with_worker(
            QualificationTypeId=lab, WorkerId=worker.worker_id, IntegerValue=7
        )
        submit(worker, hit)
    assert [each["HITId"] for each in client.list_reviewable_hits()["HITs"]] == [hit]
    first, second = client.list_assignments_for_hit(HITId=hit)["Assignments"]
    client.approve_assignment(AssignmentId=first["AssignmentId"])
    client.reject_assignment(AssignmentId=second["AssignmentId"], RequesterFeedback="Empty")
    client.send_bonus(
        WorkerId=first["WorkerId"],
        AssignmentId=first["AssignmentId"],
        BonusAmount="1.00",
        Reason="Thorough",
    )
    answer = client.notify_workers(
        Subject="Thanks", MessageText="Done.", WorkerIds=[first["WorkerId"]]
    )
    assert answer["NotifyWorkersFailureStatuses"] == []
    client.create_worker_block(WorkerId=second["WorkerId"], Reason="Empty")
    client.delete_hit(HITId=hit)
    balance = client.get_account_balance()
    assert (balance["AvailableBalance"], balance["OnHoldBalance"]) == ("98.37", "0.00")
    other = in_process_client(keys)
    assert other.get_hit(HITId=hit)["HIT"]["HITStatus"] == "Disposed"

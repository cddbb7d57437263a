"""What a requester's HITs came to, and which workers share a device, over signed HTTP."""

from datetime import timedelta
from decimal import Decimal

import pytest
import requests
from django.test import Client
from django.urls import reverse

from accounts import models, teams
from hits import endpoints, exceptions
from hits.connections import client_of, connect_this_site, post, signed_headers
from marketplace import clock
from marketplace.hits import assignments, same_person
from marketplace.models import Assignment, DevicePrint, Hit, Requester
from marketplace.people.enrolment import create_worker, issue_access_key

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def connection(live_server, settings):
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_TEST_FUNDS = True
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    ada = models.User.objects.create_user("ada")
    team = teams.create_team(name="Lab", owner=ada)
    return connect_this_site(team=team, name="Here", actor=ada, test_funds_usd=Decimal(50))


def create_hit(client, annotation, **changes):
    question = (
        '<HTMLQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
        '2011-11-11/HTMLQuestion.xsd"><HTMLContent><![CDATA[<form></form>]]></HTMLContent>'
        "<FrameHeight>0</FrameHeight></HTMLQuestion>"
    )
    fields = {
        "Title": "T",
        "Description": "D",
        "Reward": "0.63",
        "AssignmentDurationInSeconds": 600,
        "LifetimeInSeconds": 3600,
        "MaxAssignments": 3,
        "Question": question,
        "RequesterAnnotation": annotation,
    }
    return client.create_hit(**fields | changes)["HIT"]["HITId"]


@pytest.mark.slow
def test_money_and_assignments_are_summed_over_the_hits_of_a_prefix(connection):
    client = client_of(connection)
    hit = Hit.objects.get(public_id=create_hit(client, "assay:one:1"))
    create_hit(client, "assay:other:1")
    workers = [create_worker(username=name, password="a-long-and-winding-one") for name in "ab"]
    done, returned = [assignments.accept_hit(worker=worker, hit=hit) for worker in workers]
    assignments.submit_assignment(public_id=done.public_id, fields=[("value", ["5"])])
    assignments.return_assignment(assignment=returned)
    client.approve_assignment(AssignmentId=done.public_id)
    client.send_bonus(
        WorkerId=workers[0].worker_id,
        AssignmentId=done.public_id,
        BonusAmount="0.20",
        Reason="Careful",
        UniqueRequestToken="once",
    )
    assert post(connection, "/statement", {"annotation_prefix": "assay:one:"}) == {
        "rewards_usd": "0.63",
        "fees_usd": "0.13",  # 20 % of 0.63 is 0.126
        "bonuses_usd": "0.20",
        "bonus_fees_usd": "0.04",
        "held_usd": "1.52",  # two places left, 0.76 each
        "assignments": {
            "accepted": 0,
            "submitted": 0,
            "approved": 1,
            "rejected": 0,
            "returned": 1,
            "abandoned": 0,
        },
    }


def test_it_is_of_ones_own_hits_of_a_prefix_and_signed(connection, live_server):
    create_hit(client_of(connection), "assay:one:1")
    other = teams.create_team(name="Other", owner=models.User.objects.get(username="ada"))
    elsewhere = connect_this_site(team=other, name="Here", actor=models.User.objects.get())
    answer = post(elsewhere, "/statement", {"annotation_prefix": "assay:"})
    assert answer is not None
    assert (answer["held_usd"], set(answer["assignments"].values())) == ("0.00", {0})
    for content in ({}, {"annotation_prefix": ""}, {"annotation_prefix": 7}):
        with pytest.raises(exceptions.MarketplaceRefused) as caught:
            post(connection, "/statement", content)
        assert "annotation_prefix" in str(caught.value)
    address = f"{live_server.url}/marketplace-api/v1/statement"
    body = b'{"annotation_prefix": "assay:"}'
    key = endpoints.AccessKey(connection.access_key_id, "not the secret")
    for headers in (signed_headers(key, address, body), {}):
        assert requests.post(address, data=body, headers=headers, timeout=10).status_code == 403
    connection.marketplace = "production"
    assert post(connection, "/statement", {"annotation_prefix": "assay:"}) is None


HOME, CAFE = "192.0.2.7", "198.51.100.9"
FIREFOX, SAFARI = "Mozilla/5.0 Firefox/140", "Mozilla/5.0 Safari/605"


def send(worker, hit_id: str, address: str, browser: str) -> Assignment:
    assignment = assignments.accept_hit(worker=worker, hit=Hit.objects.get(public_id=hit_id))
    device = Client(headers={"user-agent": browser}, REMOTE_ADDR=address)
    form = {"assignmentId": assignment.public_id, "rating": "4"}
    for _twice in range(2):
        assert device.post(reverse("marketplace:external_submit"), form).status_code == 200
    return assignment


def test_accounts_of_one_device_are_counted_and_nothing_of_it_is_given_out(connection):
    client = client_of(connection)
    ann, bob, cleo = (
        create_worker(username=name, password="a-long-and-winding-one") for name in "abc"
    )
    first, second = (create_hit(client, f"assay:one:{n}") for n in range(2))
    for worker in (ann, bob):
        send(worker, first, HOME, FIREFOX)
    send(ann, second, CAFE, FIREFOX)
    send(cleo, first, HOME, SAFARI)
    send(cleo, create_hit(client, "assay:other:1"), HOME, FIREFOX)

    assert post(connection, "/devices", {"annotation_prefix": "assay:one:"}) == {
        "shared_devices": [
            {"worker_id": one.worker_id, "n_shared": 1, "n": n, "n_others": 1, "others": [other]}
            for one, n, other in sorted(
                [(ann, 2, bob.worker_id), (bob, 1, ann.worker_id)], key=lambda row: row[0].worker_id
            )
        ]
    }
    assert DevicePrint.objects.count() == 5
    stored = DevicePrint.objects.values_list("digest", flat=True)
    assert not any(HOME in digest or "Mozilla" in digest for digest in stored)
    same_person.delete_old_prints(clock.now() + timedelta(days=89))
    assert DevicePrint.objects.count() == 5
    same_person.delete_old_prints(clock.now() + timedelta(days=91))
    assert not DevicePrint.objects.exists()
    with pytest.raises(exceptions.MarketplaceRefused) as refused:
        post(connection, "/devices", {})
    assert "annotation_prefix" in str(refused.value)


def test_two_requesters_prints_of_one_device_differ(connection):
    client = client_of(connection)
    worker = create_worker(username="a", password="a-long-and-winding-one")
    own = send(worker, create_hit(client, "assay:one:1"), HOME, FIREFOX)
    digest = own.device_print.digest
    DevicePrint.objects.all().delete()
    issue_access_key(name="Another lab")
    own.hit.requester = Requester.objects.get(name="Another lab")
    same_person.note_device(own, address=HOME, browser=FIREFOX)
    assert DevicePrint.objects.get().digest != digest

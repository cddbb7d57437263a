"""Worker accounts that submitted from one device: counted by hashes, over signed HTTP."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.teams import create_team
from hits.connections import client_of, connect_this_site
from hits.exceptions import MarketplaceRefused
from hits.requester_api import post
from marketplace import clock
from marketplace.hits.assignments import accept_hit
from marketplace.hits.devices import delete_old_prints, note_device
from marketplace.models import Assignment, DevicePrint, Hit, Requester
from marketplace.people.enrolment import create_worker, issue_access_key
from tests.marketplace.test_statement import create_hit

pytestmark = pytest.mark.django_db(transaction=True)
HOME, CAFE = "192.0.2.7", "198.51.100.9"
FIREFOX, SAFARI = "Mozilla/5.0 Firefox/140", "Mozilla/5.0 Safari/605"


@pytest.fixture
def connection(live_server, settings):
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_TEST_FUNDS = True
    ada = User.objects.create_user("ada")
    team = create_team(name="Lab", owner=ada)
    return connect_this_site(team=team, name="Here", actor=ada, test_funds_usd=Decimal(50))


def send(worker, hit_id: str, address: str, browser: str) -> Assignment:
    assignment = accept_hit(worker=worker, hit=Hit.objects.get(public_id=hit_id))
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

    answer = post(connection, "/devices", {"annotation_prefix": "assay:one:"})
    assert answer == {
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
    delete_old_prints(clock.now() + timedelta(days=89))
    assert DevicePrint.objects.count() == 5
    delete_old_prints(clock.now() + timedelta(days=91))
    assert not DevicePrint.objects.exists()
    with pytest.raises(MarketplaceRefused) as refused:
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
    note_device(own, address=HOME, browser=FIREFOX)
    assert DevicePrint.objects.get().digest != digest

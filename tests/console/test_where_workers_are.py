"""Launch and Collect say where workers find what is published, and what has not come in."""

from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.teams import create_team
from annotation.access import give_to_team
from hits.collect import collect_batch
from hits.connections import client_of, connect_this_site
from hits.models import Batch, Connection
from marketplace.people.enrolment import create_worker
from tests.annotation.studies import rating_study
from tests.codes import codes_on
from tests.hits.work import hand_in, hit_on, published_batch

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def batch(live_server, settings, researcher) -> Batch:
    """Two items of three, published at this site for one worker each."""
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_TEST_FUNDS = True
    team = create_team(name="Dialogue lab", owner=researcher)
    study = rating_study("ratings", n_items=3, owner=researcher)
    give_to_team(study=study, team=team, actor=researcher)
    here = connect_this_site(team=team, name="Here", actor=researcher, test_funds_usd=Decimal(20))
    return published_batch(
        study, client_of(here), connection=here, max_assignments=1, selection={"n": 2, "seed": 7}
    )


def do_all(batch: Batch) -> None:
    worker = create_worker(username="ann", password="a-long-and-winding-one")
    for hit in batch.hits.all():
        hand_in(worker, hit_on(batch, hit.item.key), {"alpha": 10, "beta": 20})
    collect_batch(batch=batch, client=client_of(batch.connection))


def content(browser, name: str) -> str:
    return browser.get(reverse(f"console:{name}", args=["ratings"])).content.decode()


def sends_people(browser, name: str) -> bool:
    """Whether a page links to this site's marketplace, where workers find the HITs."""
    return f'href="{reverse("marketplace:groups")}"' in content(browser, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["launch", "answers"])
def test_pages_link_to_the_marketplace_while_hits_are_on_offer_here(rosa, batch, name):
    assert sends_people(rosa, name)
    Connection.objects.update(marketplace="mturk")
    assert not sends_people(rosa, name)
    Connection.objects.update(marketplace="local")
    Batch.objects.update(closed_at=timezone.now())
    assert not sends_people(rosa, name)
    Batch.objects.update(closed_at=None)
    do_all(batch)
    assert not sends_people(rosa, name)


@pytest.mark.slow
def test_the_rest_is_not_proposed_without_saying_that_the_pilot_is_not_in(rosa, batch):
    page = rosa.get(reverse("console:launch", args=["ratings"]))
    assert page.context["progress"].n_awaited == 2
    assert "assignments_awaited" in codes_on(page.content.decode())
    do_all(batch)
    assert "assignments_awaited" not in codes_on(content(rosa, "launch"))

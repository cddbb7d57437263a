"""No GET request changes data: links and pages of other sites can make a browser send them."""

import pytest
from django.test import Client
from django.urls import get_resolver, reverse

from marketplace.models import Assignment, Session
from marketplace.urls import urlpatterns
from marketplace.web.worker.continuation import AUTO_ACCEPT
from tests.config.test_headers import names
from tests.marketplace.conftest import HIT
from tests.marketplace.recruiting.test_recruited_studies import came, create_hits, open_panel
from tests.marketplace.test_role_matrix import addresses, hit, people
from tests.stored_changes import changed_tables

__all__ = ["hit", "people"]
pytestmark = pytest.mark.django_db


def test_a_post_that_accepts_a_hit_is_seen_to_change_data(people, hit):
    accept = f"/worker/hits/{hit.public_id}/accept/"
    assert "marketplace_assignment" in changed_tables(people["other_worker"].post, accept)


def changes_by_get(browser: Client, places) -> dict[str, set[str]]:
    """The tables that a browser with auto-accept on changes, by address."""
    session = browser.session
    session[AUTO_ACCEPT] = True
    session.save()
    changes = {where: changed_tables(browser.get, where) for where in places}
    return {where: tables for where, tables in changes.items() if tables}


@pytest.mark.parametrize("name", ["worker", "other_worker", "requester", "operator", "anonymous"])
def test_no_address_of_the_marketplace_changes_data_by_get(people, hit, mturk, name):
    mturk.create_hit(**HIT)
    patterns = get_resolver().namespace_dict["marketplace"][1].reverse_dict
    known = {pattern for pattern in patterns if isinstance(pattern, str)}
    places = [where for _name, where in addresses(known, hit)]
    queries = (f"?groupId={hit.hit_type.public_id}", f"?hitId={hit.public_id}")
    places += [place + query for place in places if "/mturk/" in place for query in queries]
    assert changes_by_get(people[name], places) == {}
    assert Assignment.objects.count() == 1


def test_no_page_of_a_participant_changes_data_by_get(mturk):
    study = open_panel(create_hits(mturk), name="Three", items_per_session=3)
    browser = came(study, "p1", "x1")
    assignment = Assignment.objects.order_by("pk").first()
    known = {
        "session_id": Session.objects.get().public_id,
        "assignment_id": assignment.public_id,
        "hit_id": assignment.hit.public_id,
        "hit_type_id": study.hit_type.public_id,
        "token": study.token,
    }
    places = [
        reverse(f"marketplace:{name}", kwargs={part: known[part] for part in parts})
        for name, parts in names(urlpatterns)
        if set(parts) <= known.keys() and not name.endswith("None") and name != "recruited_file"
    ]
    assert len(places) > 30
    assert changes_by_get(browser, places) == {}

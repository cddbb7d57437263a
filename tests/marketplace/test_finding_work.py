"""The list of HITs: filters, order, and why a worker can't have one."""

import re

import pytest
from django.urls import reverse

from marketplace.models import Hit
from tests.codes import codes_on
from tests.marketplace.conftest import HIT
from tests.marketplace.test_worker_site import text_of

COUNTRY = "00000000000000000071"
APPROVED = "00000000000000000040"


def titles(ada, **query):
    return [group.title for group in ada.get("/worker/", query).context["page"]]


def unmet(ada):
    return [each for _, lacking, _ in ada.get("/worker/").context["rows"] for each in lacking]


def require(type_id, comparator, guard="Accept", **values):
    return {
        "QualificationTypeId": type_id,
        "Comparator": comparator,
        "ActionsGuarded": guard,
        **values,
    }


FROM_CANADA = {"LocaleValues": [{"Country": "CA"}]}


@pytest.fixture
def groups(mturk):
    mturk.create_hit(**HIT | {"Title": "Lamps", "Reward": "0.10"})
    for _ in range(2):
        mturk.create_hit(
            **HIT | {"Title": "Chairs", "Reward": "0.50", "AssignmentDurationInSeconds": 60}
        )
    mturk.create_hit(**HIT | {"Title": "Tables", "Reward": "2.00", "LifetimeInSeconds": 3600})


def test_the_order_is_in_the_address(ada, groups):
    for sort, order in (
        ("", ["Tables", "Chairs", "Lamps"]),
        ("newest", ["Tables", "Chairs", "Lamps"]),
        ("reward", ["Tables", "Chairs", "Lamps"]),
        ("hits", ["Chairs", "Tables", "Lamps"]),
        ("shortest", ["Chairs", "Tables", "Lamps"]),
        ("expires", ["Tables", "Lamps", "Chairs"]),
        ("no such order", ["Tables", "Chairs", "Lamps"]),
    ):
        assert titles(ada, sort=sort) == order


def test_a_least_reward_can_be_asked_for(ada, groups):
    for least, left in (
        ("0.50", 2),
        ("$1", 1),
        ("3", 0),
        ("", 3),
        ("lots", 3),
        ("-1", 3),
        ("NaN", 3),
        ("1e9", 3),
    ):
        assert len(titles(ada, min_reward=least)) == left


def test_one_requester_can_be_asked_for_and_filters_combined(other_lab, ada, groups, requester):
    other_lab.create_hit(**HIT | {"Title": "Other"})
    assert len(titles(ada)) == 4
    assert "Other" not in titles(ada, requester=requester.public_id)
    page = text_of(ada.get("/worker/", {"requester": requester.public_id, "sort": "reward"}))
    assert 'href="?sort=reward"' in page  # without the requester
    assert f"?requester={requester.public_id}" in text_of(ada.get("/worker/"))
    combined = {"q": "s", "min_reward": "0.2", "requester": requester.public_id}
    assert titles(ada, **combined, sort="hits") == ["Chairs", "Tables"]


def test_what_a_worker_lacks_is_said_in_the_list(mturk, ada, worker, groups):
    wants = [
        require(COUNTRY, "EqualTo", **FROM_CANADA),
        require(APPROVED, "GreaterThan", IntegerValues=[9]),
    ]
    mturk.create_hit(**HIT | {"Title": "Canada"}, QualificationRequirements=wants)
    assert "Canada" in titles(ada)
    assert titles(ada, qualified="on") == ["Tables", "Chairs", "Lamps"]
    profile = f'<a href="{reverse("marketplace:profile")}">'
    n_links = text_of(ada.get("/worker/dashboard/")).count(profile)
    for country, codes, is_asked in (
        ("", ["not_held", "wrong_value"], True),
        ("GB", ["wrong_value", "wrong_value"], False),
        ("CA", ["wrong_value"], False),
    ):
        worker.country = country
        worker.save()
        lacking = unmet(ada)
        assert [each.code for each in lacking] == codes
        page = text_of(ada.get("/worker/"))
        assert codes_on(page) == codes
        assert page.count(profile) == n_links + is_asked
    assert re.findall("[0-9]+", lacking[0].reason) == ["9", "0"]


def test_a_blocked_worker_is_informed_and_never_why(mturk, ada, worker):
    mturk.create_hit(**HIT)
    mturk.create_worker_block(WorkerId=worker.worker_id, Reason="Too slow")
    assert [each.code for each in unmet(ada)] == ["blocked"]
    assert "Too slow" not in text_of(ada.get("/worker/"))
    assert titles(ada, qualified="on") == []


@pytest.mark.parametrize(
    ("guard", "is_listed", "preview_status"),
    [
        ("Accept", True, 200),
        ("PreviewAndAccept", True, 403),
        ("DiscoverPreviewAndAccept", False, 403),
    ],
)
def test_what_a_requirement_guards(mturk, ada, worker, guard, is_listed, preview_status):
    wants = [require(COUNTRY, "EqualTo", guard, **FROM_CANADA)]
    hit = mturk.create_hit(**HIT, QualificationRequirements=wants)["HIT"]
    assert (len(titles(ada)) == 1) == is_listed
    for path in (f"/worker/groups/{hit['HITTypeId']}/", f"/worker/hits/{hit['HITId']}/"):
        response = ada.get(path)
        assert response.status_code == preview_status
        assert codes_on(text_of(response)) == ["not_held"]
        assert '<form class="accept"' not in text_of(response)
        refused = ada.post(path + "accept/")
        assert (refused.status_code, refused.context["code"]) == (403, "not_held")
    assert Hit.objects.get().assignments.count() == 0
    worker.country = "CA"
    worker.save()
    assert titles(ada) == [HIT["Title"]]
    assert ada.get(path).status_code == 200
    assert ada.post(path + "accept/").status_code == 302

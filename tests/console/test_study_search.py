"""One search over a study finds texts, systems and people, as far as the role may know them."""

import pytest
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from annotation.access import set_study_role
from annotation.models import Item
from console.study_search import MOST_FOUND
from tests.annotation.studies import rated_study
from tests.console.filled import add_assignment, add_batch
from tests.console.pages import words_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def study(researcher):
    study = rated_study(owner=researcher)
    add_assignment(add_batch(study).hits.first(), "A1WANDA")
    return study


@pytest.fixture
def find(rosa, study):
    def search(words, browser=rosa):
        answer = browser.get(reverse("console:search", args=[study.slug]), {"q": words})
        assert answer.status_code == 200
        return words_of(answer.content.decode())

    return search


def guest(study, role, signed_in):
    user = User.objects.create_user(role)
    set_study_role(study=study, user=user, role=role, actor=None)
    return signed_in(user)


def test_items_candidates_systems_annotators_and_workers_are_found(find):
    assert "Items d1 Context 1" in find("context 1")
    assert "Candidates d0 / alpha alpha on d0" in find("ALPHA on d0")
    assert "Systems beta 3 candidates" in find("beta")
    assert "Annotators Ann 3 submissions" in find("ann")
    assert "Workers A1WANDA 1 assignment" in find("wanda")
    assert "Nothing in this study contains “zebra”." in find("zebra")
    assert "Type two characters or more." in find("a")


def test_who_only_adjudicates_finds_no_system_and_nobody_finds_workers_unless_allowed(
    find, study, signed_in
):
    study.items.first().candidates.update(text="The same words.")
    adjudicator = guest(study, Role.ADJUDICATOR, signed_in)
    assert "Systems" not in find("beta", adjudicator)
    assert "alpha" not in find("same words", adjudicator)
    assert "d0 / response" in find("same words", adjudicator)
    for role in (Role.ANALYST, Role.AUDITOR):
        page = find("wanda", guest(study, role, signed_in))
        assert "Nothing in this study contains" in page


def test_a_search_is_bounded_and_stays_in_its_study(find, study, researcher):
    other = rated_study("other", owner=researcher)
    Item.objects.filter(study=other).update(context="Elsewhere only")
    assert "Nothing in this study contains" in find("elsewhere")
    Item.objects.bulk_create(
        Item(study=study, key=f"plenty{at}", position=10 + at) for at in range(MOST_FOUND + 1)
    )
    page = find("plenty")
    assert page.count("plenty") == MOST_FOUND
    assert "All of them, among the items" in page

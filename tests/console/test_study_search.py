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
        return answer

    return search


def guest(study, role, signed_in):
    user = User.objects.create_user(role)
    set_study_role(study=study, user=user, role=role, actor=None)
    return signed_in(user)


def found(answer):
    """How many rows of each kind were found, without the kinds of which none were."""
    names = ("items", "candidates", "systems", "annotators", "workers")
    matches = {name: answer.context.get(name) for name in names}
    return {name: len(one.rows) for name, one in matches.items() if one and one.rows}


def test_items_candidates_systems_annotators_and_workers_are_found(find):
    for words, kind, shown, n in [
        ("context 1", "items", "Context 1", None),
        ("ALPHA on d0", "candidates", "d0 / alpha", None),
        ("beta", "systems", "beta", 3),
        ("ann", "annotators", "Ann", 3),
        ("wanda", "workers", "A1WANDA", 1),
    ]:
        answer = find(words)
        assert kind in found(answer), words
        assert shown in answer.content.decode()
        if n is not None:
            row = answer.context[kind].rows[0]
            assert (row["n"] if isinstance(row, dict) else row.n) == n
    assert found(find("zebra")) == {}
    assert not find("a").context["search"].is_long_enough


def test_who_only_adjudicates_finds_no_system_and_nobody_finds_workers_unless_allowed(
    find, study, signed_in
):
    study.items.first().candidates.update(text="The same words.")
    adjudicator = guest(study, Role.ADJUDICATOR, signed_in)
    assert "systems" not in found(find("beta", adjudicator))
    answer = find("same words", adjudicator)
    assert found(answer) == {"candidates": 2}
    assert "alpha" not in answer.content.decode()
    for role in (Role.ANALYST, Role.AUDITOR):
        assert found(find("wanda", guest(study, role, signed_in))) == {}


def test_a_search_is_bounded_and_stays_in_its_study(find, study, researcher):
    other = rated_study("other", owner=researcher)
    Item.objects.filter(study=other).update(context="Elsewhere only")
    assert found(find("elsewhere")) == {}
    Item.objects.bulk_create(
        Item(study=study, key=f"plenty{at}", position=10 + at) for at in range(MOST_FOUND + 1)
    )
    answer = find("plenty")
    assert found(answer) == {"items": MOST_FOUND}
    assert answer.context["items"].has_more
    assert f"{reverse('console:items', args=[study.slug])}?q=plenty" in answer.content.decode()

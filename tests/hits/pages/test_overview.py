"""A study's Overview: its panels by state, and who sees which."""

from datetime import date
from decimal import Decimal

import pytest
from django.urls import reverse

from accounts.roles import Role, permissions_of
from annotation.flags import store_evidence
from annotation.new_studies import copy_for_rehearsal
from annotation.pages.stages import stage_permission
from annotation.protocols.versions import current_document
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, RESULTS
from hits.pages.overview import daily_progress, pay_strip
from tests.annotation.studies import rate, rating_study
from tests.codes import codes_on

pytestmark = pytest.mark.django_db
N_ITEMS = 6


def answered_study(owner, slug="answered", *, n_items=N_ITEMS, systems=("alpha", "beta")):
    study = rating_study(slug, owner=owner, n_items=n_items, systems=systems)
    answer(study)
    return study


def answer(study):
    """Two people rate everything, and results are computed."""
    for n, person in enumerate(("Ann", "Bob")):
        for at, item in enumerate(study.items.all()):
            systems = item.candidates.values_list("system", flat=True)
            values = {name: 20 + 9 * rank + (7 * at + n) % 5 for rank, name in enumerate(systems)}
            rate(study, person, item.key, values)
    for page in (RESULTS, AGREEMENT):
        find_study_kind(page).compute_now(study)
    store_evidence(study)


def rehearse(study):
    keys = list(study.items.values_list("key", flat=True))
    slug, document = f"{study.slug}-rehearsal-000001", current_document(study)
    copy = copy_for_rehearsal(source=study, slug=slug, document=document, keys=keys)
    answer(copy)
    return copy


@pytest.fixture
def look(rosa):
    def open_page(study):
        answer = rosa.get(reverse("console:study", args=[study.slug]))
        assert answer.status_code == 200
        return answer

    return open_page


def states(answer):
    return {one.panel.name: one.state for one in answer.context["panels"]}


def test_apps_register_the_panels_and_each_leads_to_its_page(look, researcher):
    panels = look(rating_study(owner=researcher)).context["panels"]
    apps = {one.panel.describe.__module__.partition(".")[0] for one in panels}
    assert {"annotation", "hits", "validation"} <= apps
    assert [one.panel.name for one in panels] == [
        *("ranking", "progress", "agreement", "metrics", "ratings", "money", "quality"),
    ]
    assert panels[0].url == reverse("console:results", args=["ratings"])


def test_before_answers_panels_are_outlines_and_a_rehearsal_is_offered(look, researcher):
    page = look(rating_study(owner=researcher))
    assert set(states(page).values()) == {"empty"}
    assert page.context["figures"] == []
    assert f'action="{reverse("console:rehearsal", args=["ratings"])}"' in page.text
    assert page.text.count('class="outline"') == len(page.context["panels"])


def test_a_study_without_answers_shows_those_of_its_rehearsal_as_such(look, researcher):
    study = rating_study(owner=researcher, n_items=N_ITEMS)
    copy = rehearse(study)
    page = look(study)
    assert "rehearsal" in codes_on(page.text)
    filled = [one for one in page.context["panels"] if one.view]
    assert {"ranking", "agreement", "quality"} <= {one.panel.name for one in filled}
    assert page.text.count("rehearsed") == 1 + len(filled)
    assert filled[0].url == reverse("console:results", args=[copy.slug])
    # What may be done is of the study itself.
    assert f'href="{reverse("console:rename", args=[study.slug])}"' in page.text
    rate(study, "Ann", "d0", {"alpha": 1})
    assert look(study).context["shown"].slug == study.slug


def test_few_items_have_no_interval_and_later_submissions_are_counted(look, researcher):
    few, study = answered_study(researcher, "few", n_items=4), answered_study(researcher)
    page = look(few)
    assert (states(page)["ranking"], states(page)["agreement"]) == ("few", "few")
    assert not any(one in page.text for one in ('class="limits"', 'data-code="checking"'))
    page = look(study)
    assert (states(page)["ranking"], states(page)["agreement"]) == ("shown", "shown")
    for n, person in enumerate(("Eve", "Dan"), 1):
        rate(study, person, "d0", {"alpha": 3})
        page = look(study)
        stale = [one for one in page.context["panels"] if one.state == "stale"]
        assert [one.panel.name for one in stale] == ["ranking", "agreement", "ratings"]
        assert {one.view["n_since"] for one in stale} == {n}
    assert "checking" in codes_on(page.text)
    # Their pages request what is out of date, after this one is shown.
    assert page.text.count("hx-select") == sum(one.is_awaited for one in page.context["panels"])
    assert find_study_kind(RESULTS).list_results(study).count() == 1


def test_of_many_systems_the_best_five_and_the_worst_are_open(look, researcher):
    for n, hidden in ((8, 0), (9, 3)):
        systems = tuple(f"s{at}" for at in range(n))
        text = look(answered_study(researcher, f"of-{n}", systems=systems)).text
        folded = text.partition("<details><summary>")[2].partition("</details>")[0]
        assert folded.count("<li class") == hidden


def test_progress_ends_when_the_pace_of_the_last_week_reaches_the_plan():
    days = [(date(2026, 3, 1), 4, 4), (date(2026, 3, 2), 2, 0)]
    daily = daily_progress(days, 12)
    expected = {"n_submitted": 6, "n_approved": 4, "expected_end": date(2026, 3, 4)}
    assert expected.items() <= daily.items()
    assert daily["submitted_points"] == "0.00,100.00 25.00,66.67 50.00,50.00"
    assert [value for value, _y in daily["ticks"]] == [0, 6, 12]
    assert daily["start"] == date(2026, 3, 1)
    assert daily_progress(days, 6)["expected_end"] is None


def test_annotators_are_dots_of_hourly_pay_above_each_other_if_they_are_near():
    strip = pay_strip([16.0, 10.1, 10.0], Decimal(12))
    assert [(y, is_low) for _x, y, is_low in strip["dots"]] == [(0, True), (10, True), (0, False)]
    assert (strip["n_low"], strip["axis"].labels) == (2, ["10", "12", "14", "16", "18"])
    assert strip["floor_x"] == strip["axis"].x(12)
    assert pay_strip([16.0], None)["floor_x"] == ""


def test_money_and_systems_are_only_in_panels_of_those_who_may_see_them(signed_in, users, study):
    for role in Role:
        page = signed_in(users[role.value]).get(reverse("console:study", args=[study.slug]))
        permissions = permissions_of(role)
        panels = {one.panel.name: one.panel for one in page.context["panels"]}
        for panel in panels.values():
            assert {panel.permission, stage_permission(panel.page)} <= permissions
        assert ("money" in panels) == ("view_money" in permissions)
        assert ("ranking" in panels) == ("view_systems" in permissions)
        assert ("$" in page.text) == ("view_money" in permissions)

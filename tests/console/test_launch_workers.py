"""What the Launch page says of its workers: who may work, and how many for an item."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.urls import reverse

from accounts.teams import create_team
from annotation.access import give_to_team
from annotation.protocols.versions import current_document, save_draft
from console.launch_workers import workers_text
from hits.connections import connect_this_site
from hits.models import Batch
from hits.qualifications import country_name, language_name, requirements
from tests.annotation.studies import rating_study
from tests.console.filled import add_batch
from tests.console.pages import words_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def study(researcher, live_server, settings):
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_TEST_FUNDS = True
    team = create_team(name="Dialogue lab", owner=researcher)
    study = rating_study("ratings", n_items=4, owner=researcher)
    give_to_team(study=study, team=team, actor=researcher)
    connect_this_site(team=team, name="Here", actor=researcher, test_funds_usd=Decimal(20))
    return study


def launch_page(browser, study, **query):
    answer = browser.get(reverse("console:launch", args=[study.slug]), query)
    assert answer.status_code == 200
    return answer


def unfolded(answer):
    """What the page displays while nothing is opened."""
    before, _, rest = answer.content.decode().partition('<details class="more"')
    return before + rest.partition("</details>")[2]


def ask(study, *, assignments, **qualifications):
    """A protocol that asks so many workers, with these qualifications, for an item."""
    document = current_document(study)
    who = replace(document.qualifications, **qualifications)
    completion = replace(document.completion, assignments_per_item=assignments)
    save_draft(study=study, document=replace(document, qualifications=who, completion=completion))


def warning_codes(answer):
    return [one.code for one in answer.context["view"].warnings]


def test_who_may_work_is_said_beside_the_pay(rosa, study):
    ask(study, assignments=3, countries=("US",), least_approval_percent=95)
    answer = launch_page(rosa, study)
    assert answer.context["view"].workers in words_of(unfolded(answer))
    assert {"United", "95"} <= set(answer.context["view"].workers.split())
    assert "one_worker" not in warning_codes(answer)


def test_one_worker_for_an_item_is_warned_of_unless_another_round_has_another(rosa, study):
    ask(study, assignments=1)
    answer = launch_page(rosa, study)
    assert "one_worker" in warning_codes(answer)
    assert not answer.context["view"].faults
    batch = add_batch(study)
    Batch.objects.filter(pk=batch.pk).update(round=2, max_assignments=1)
    answer = launch_page(rosa, study, round=1, max_assignments=1)
    assert "one_worker" not in warning_codes(answer)


def test_every_requirement_of_workers_is_in_the_sentence(study):
    rows = requirements(countries=["DE", "AT", "CH"], languages=["de", "gsw"], min_approved=1000)
    draft = Batch(study=study, requirements=rows, needs_masters=True)
    text = workers_text(draft)
    names = ("Germany", "Austria", "Switzerland", "Swiss German", "1,000")
    assert [name for name in names if name not in text] == []
    assert text.count(";") == 3
    assert workers_text(Batch(study=study, is_recruited=True)) == ""


def test_countries_and_languages_have_names():
    assert [country_name(code) for code in ("US", "TW", "XX")] == ["United States", "Taiwan", "XX"]
    assert [language_name(code) for code in ("de", "deu", "zz")] == ["German", "German", "zz"]

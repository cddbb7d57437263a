import re
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from django.core.cache import cache
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import models, teams
from annotation.access import give_to_team
from annotation.models import Candidate, Item, Picture, Study, Submission
from annotation.protocols import records, templates
from annotation.protocols.versions import current_document, save_draft
from annotation.study_facts import PUBLISH, jobs_of
from hits import collect, costs, exceptions, plans, readiness, wages
from hits.connections import balance_usd, client_of, connect_this_site
from hits.models import Batch, Budget, Connection, Hit, PracticeAnswer, PracticeHit, Worker
from hits.pages import findings, pricing, sections
from hits.pages.terms import THE_REST
from hits.requirements import country_name, language_name, listed_workers, requirements
from marketplace.models import Hit as MarketplaceHit
from marketplace.people.enrolment import create_worker
from tests.annotation.studies import add_candidates, rate, rating_study
from tests.codes import codes_on, message_codes, refused
from tests.console.filled import add_assignment, add_batch
from tests.console.pages import words_of
from tests.console.work import work_off
from tests.hits.work import hand_in, published_batch
from work.models import Job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("funded_site")]
# The form's prices, pay, budgets and checks, beside what every page of a study asks.
MOST_STATEMENTS = 15
RIGHT = {"appropriateness": 80.0}


@pytest.fixture
def team(researcher):
    return teams.create_team(name="Dialogue lab", owner=researcher)


@pytest.fixture
def study(researcher, team):
    study = rating_study("ratings", n_items=12, owner=researcher)
    give_to_team(study=study, team=team, actor=researcher)
    return study


@pytest.fixture
def connection(team, researcher):
    return connect_this_site(team=team, name="Here", actor=researcher, test_funds_usd=Decimal(20))


def page_of(browser, study, **query) -> Any:
    answer = browser.get(reverse("console:launch", args=[study.slug]), query)
    assert answer.status_code == 200
    return answer


def check_page(browser, study, **query) -> Any:
    page_of(browser, study, **query)
    work_off()
    return page_of(browser, study, **query)


def form_of(answer, **changes) -> dict[str, Any]:
    view = answer.context["view"]
    content = {name: view.form[name].value() for name in view.form.fields}
    content = {name: value for name, value in content.items() if value not in (None, False)}
    total = f"{view.cost.total_usd:.2f}" if view.cost else ""
    return content | {"total": total, "offer": view.offer} | changes


def press(browser, study, form) -> Any:
    return browser.post(reverse("console:publish", args=[study.slug]), form)


def redraft(study, **changes):
    save_draft(study=study, document=replace(current_document(study), **changes))


def fault_fields(answer) -> set[str]:
    return {each.field for each in answer.context["view"].faults}


def fault_codes(answer) -> list[str]:
    return [each.code for each in answer.context["view"].faults]


def launch_codes(browser, study, **query) -> list[str]:
    return codes_on(page_of(browser, study, **query).content.decode())


def test_a_study_of_ones_own_is_first_given_to_a_team(rosa, researcher):
    study = rating_study("mine", owner=researcher)
    assert page_of(rosa, study).context["team_form"].initial["name"].count("rosa") == 1
    rosa.post(reverse("console:launch-team", args=["mine"]), {"team": "", "name": "Rosa's lab"})
    study.refresh_from_db()
    assert study.team.name == "Rosa's lab"
    assert "team_form" not in page_of(rosa, study).context


def test_this_sites_marketplace_is_connected_from_the_page(rosa, study, team):
    rosa.post(reverse("console:launch-connect", args=["ratings"]))
    assert not Connection.objects.of(team).exists()
    connecting = reverse("console:connecting", args=[team.slug])
    assert connecting in page_of(rosa, study).content.decode()

    def poll() -> tuple[bool, bool]:
        answer = rosa.get(connecting, headers={"HX-Request": "true"})
        return answer.headers.get("HX-Refresh") == "true", b"hx-get" in answer.content

    assert poll() == (False, True)
    work_off()
    # The notice follows no more, and the page is updated at once.
    assert poll() == (True, False)
    assert Connection.objects.of(team).get().is_on_this_site
    assert "$100.00" in words_of(check_page(rosa, study).content.decode())


def test_a_pilot_is_chosen_first_and_each_choice_has_its_price(rosa, study, connection):
    Connection.objects.update(fees="mturk")
    view = check_page(rosa, study, **BASE | {"connection": connection.pk}).context["view"]
    # 3 items x 2 x (0.05 + 0.01) and 12 x 2 x 0.06
    prices = {each.value: each.cost and str(each.cost.total_usd) for each in view.choices}
    assert prices == {"sample": "0.36", "rest": "1.44", "listed": None}
    assert (view.choice.value, view.later.cost.total_usd) == ("sample", Decimal("1.08"))


BASE = {
    **{"how": "sample", "n_items": 3, "reward_usd": "0.05", "max_assignments": 2, "seed": 7},
    **{"title": "Rate", "description": "Read and rate.", "round": 1, "part": 1},
    **{"minutes": 60, "days": 7, "approval_days": 3},
}


@pytest.mark.slow
def test_a_pilot_is_published_once_in_the_background(rosa, study, connection, researcher, team):
    answer = check_page(rosa, study)
    assert answer.context["view"].faults == []
    form = form_of(answer)
    assert press(rosa, study, form).status_code == 302
    batch = Batch.objects.get()
    assert (batch.selection, batch.launched_by) == ({"n": 3, "seed": 7}, researcher)
    entry = models.AuditEntry.objects.of(team).get(action="batch.launch")
    assert (entry.actor_name, entry.subject) == ("rosa", "ratings")
    assert Decimal(entry.details["total_usd"]) > 0
    assert not MarketplaceHit.objects.exists()
    assert "publishing" not in launch_codes(rosa, study)
    for _press in range(2):
        assert press(rosa, study, form).status_code == 302
    assert message_codes(page_of(rosa, study)) == ["publishing"] * 2
    work_off()
    assert press(rosa, study, form).status_code == 302
    page = page_of(rosa, study)
    assert message_codes(page) == ["published"]
    [published] = page.context["view"].batches
    assert (published.n_published, published.n_hits) == (3, 3)
    [message] = [job.message for job in jobs_of(study).of_kind(PUBLISH)]
    assert message in words_of(page.content.decode())
    assert ("9 " in message, "$0.72 " in message) == (True, True)
    assert (Batch.objects.count(), MarketplaceHit.objects.count()) == (1, 3)


@pytest.mark.slow
def test_something_else_launched_meanwhile_is_said(rosa, study, connection):
    first = check_page(rosa, study)
    rest = page_of(rosa, study, **form_of(first, how="rest"))
    press(rosa, study, form_of(first))
    refusal = press(rosa, study, form_of(rest))
    assert fault_codes(refusal) == ["launched_meanwhile"]
    assert Hit.objects.count() == 3
    assert_nothing_is_chosen(refusal)


def assert_nothing_is_chosen(answer) -> None:
    content = answer.content.decode()
    assert answer.context["view"].choice is None
    assert not re.search(r'name="how"[^>]*checked', content)
    assert not re.search(r'<button[^>]* form="launch-form"', content)


def chosen_page(browser, study, how, **changes) -> Any:
    return page_of(browser, study, **form_of(check_page(browser, study), how=how, **changes))


@pytest.mark.slow
def test_after_a_pilot_nothing_more_is_published_before_somebody_chose_it(rosa, study, connection):
    press(rosa, study, form_of(check_page(rosa, study)))
    work_off()
    answer = check_page(rosa, study)
    assert_nothing_is_chosen(answer)
    assert fault_fields(press(rosa, study, form_of(answer))) == {"how"}
    assert Batch.objects.count() == 1
    # Without scripts, a button shows the price of what was chosen, and launches nothing.
    priced = press(rosa, study, form_of(answer, how=THE_REST, price="1"))
    assert (priced.context["view"].choice.n_items, Batch.objects.count()) == (9, 1)
    press(rosa, study, form_of(priced))
    assert Batch.objects.count() == 2


@pytest.mark.slow
def test_a_page_from_before_a_launch_is_refused(rosa, study, connection, team, researcher):
    other = connect_this_site(team=team, name="Too", actor=researcher, test_funds_usd=Decimal(20))
    page_of(rosa, study, **BASE | {"connection": other.pk})
    work_off()
    there = page_of(rosa, study, **BASE | {"connection": other.pk})
    press(rosa, study, form_of(check_page(rosa, study, **BASE | {"connection": connection.pk})))
    refusal = press(rosa, study, form_of(there))
    assert fault_codes(refusal) == ["offer_changed"]
    assert Batch.objects.count() == 1
    assert_nothing_is_chosen(refusal)


@pytest.mark.slow
def test_fewer_items_than_there_are_now_are_refused_at_the_same_cost(rosa, study, connection):
    form = form_of(chosen_page(rosa, study, THE_REST, reward_usd="0.00"))
    item = Item.objects.create(study=study, key="later", position=99)
    add_candidates(item, ["alpha", "beta"], are_systems=True)
    check_page(rosa, study)
    refusal = press(rosa, study, form)
    [fault] = refusal.context["view"].faults
    assert fault.code == "offer_changed"
    assert " 13)" in fault.message
    assert_nothing_is_chosen(refusal)
    assert not Batch.objects.exists()


def test_items_imported_in_the_moment_of_the_press_are_not_launched_unseen(rosa, study, connection):
    draft = chosen_page(rosa, study, THE_REST).context["view"].draft
    with refused(exceptions.LaunchedMeanwhile):
        plans.plan_batch(draft=draft, part=1, n_items=11)
    assert not Batch.objects.exists()


@pytest.mark.slow
def test_the_rest_follows_the_pilot_with_the_pilots_terms(rosa, study, connection):
    who = {"countries": "DE, AT", "min_approval": 95, "min_approved": 10}
    who |= {"excluded_workers": "A1WORKER\nA2WORKER"}
    press(rosa, study, form_of(check_page(rosa, study), reward_usd="0.12", total="1.08", **who))
    work_off()
    answer = chosen_page(rosa, study, THE_REST)
    view = answer.context["view"]
    assert (view.choice.value, view.choice.n_items) == ("rest", 9)
    assert str(view.draft.reward_usd) == "0.12"
    press(rosa, study, form_of(answer))
    work_off()
    assert MarketplaceHit.objects.count() == 12
    pilot, rest = Batch.objects.order_by("pk")
    assert rest.requirements == pilot.requirements != []
    assert listed_workers(rest) == listed_workers(pilot) == ["A1WORKER", "A2WORKER"]
    done = page_of(rosa, study)
    assert done.context["view"].is_all_launched
    assert "all_launched" in codes_on(done.content.decode())
    assert 'form="launch-form"' not in done.content.decode()
    assert page_of(rosa, study, elsewhere=1).context["view"].n_left == 0


@pytest.mark.slow
def test_a_second_round_is_of_a_sample_of_the_items_and_other_workers(rosa, study, connection):
    press(rosa, study, form_of(check_page(rosa, study), reward_usd="0.12", total="1.08"))
    work_off()
    pilot = Batch.objects.get()
    address = reverse("console:batch", args=[study.slug, pilot.pk])
    assert f"again={pilot.pk}" in rosa.get(address).content.decode()
    places = [reverse(f"console:{name}", args=[study.slug]) for name in ("launch", "answers")]
    first_page = reverse("console:study", args=[study.slug])
    assert "further_round_offered" not in codes_on(rosa.get(first_page).content.decode())
    assert_second_round(rosa, places, [])
    add_assignment(pilot.hits.first())
    assert_second_round(rosa, places, [f"/studies/ratings/launch/?again={pilot.pk}"])
    assert "further_round_offered" in codes_on(rosa.get(first_page).content.decode())
    answer = check_page(rosa, study, again=pilot.pk)
    view = answer.context["view"]
    assert "further_round" in launch_codes(rosa, study, again=pilot.pk)
    assert {choice.value: choice.n_items for choice in view.choices}["rest"] == 3
    assert set(view.open_folds) >= {"who", "rounds"}
    assert view.draft.excluded_rounds == [1]
    assert (view.draft.round, str(view.draft.reward_usd), view.n_left) == (2, "0.12", 3)
    press(rosa, study, form_of(page_of(rosa, study, **form_of(answer, n_items=2))))
    work_off()
    second = Batch.objects.get(round=2)
    question = set(Hit.objects.of(pilot).values_list("item", flat=True))
    assert set(Hit.objects.of(second).values_list("item", flat=True)) < question
    assert MarketplaceHit.objects.count() == 5
    # The rest of the first round comes before that of the second.
    draft = check_page(rosa, study).context["view"].draft
    assert (draft.round, draft.selection, draft.excluded_rounds) == (1, {"rest": True}, [])


def assert_second_round(browser, addresses, links):
    for address in addresses:
        content = browser.get(address).content.decode()
        assert re.findall(r'href="([^"]*\?again=[^"]*)"', content) == links
        assert codes_on(content).count("further_round_offered") == len(links)


@pytest.mark.slow
def test_items_to_buy_are_drawn_at_random_from_those_without_a_hit(rosa, study, connection):
    press(rosa, study, form_of(chosen_page(rosa, study, "sample", reward_usd="0.12", n_items=1)))
    work_off()
    question = set(Hit.objects.values_list("item__key", flat=True))
    every = set(study.items.values_list("key", flat=True))
    answer = check_page(rosa, study, buy=2)
    draft = answer.context["view"].draft
    assert (draft.selection["n"], str(draft.reward_usd)) == (2, "0.12")
    assert check_page(rosa, study, buy=2).context["view"].draft.selection == draft.selection
    most = check_page(rosa, study, buy=10**9).context["view"].draft.selection["n"]
    assert most == len(every - question)
    assert check_page(rosa, study, buy="x").context["view"].choice is None
    press(rosa, study, form_of(answer))
    work_off()
    bought = set(Hit.objects.order_by("pk").values_list("item__key", flat=True)[1:])
    assert len(bought) == 2
    assert bought < every - question
    # so that estimates know with which chance each came
    sample = Batch.objects.latest("pk").item_sample
    assert set(sample.items.values_list("probability", flat=True)) == {2 / most}


def test_an_archived_study_and_a_closed_connection_offer_no_launch(rosa, study, connection, team):
    Study.objects.update(archived_at=timezone.now())
    assert not page_of(rosa, study).context["has_form"]
    assert "archived" in launch_codes(rosa, study)
    Study.objects.update(archived_at=None)
    assert page_of(rosa, study).context["has_form"]
    rosa.post(reverse("console:connection-close", args=[team.slug, connection.pk]))
    assert not page_of(rosa, study).context["has_form"]


def test_a_changed_price_and_then_a_budget_hold_the_launch(rosa, study, connection, team):
    before = form_of(check_page(rosa, study))
    refusal = press(rosa, study, before | {"reward_usd": "0.99", "days": "9"})
    view = refusal.context["view"]
    assert ([one.code for one in view.faults], view.holding_faults) == (["price_changed"], [])
    # The old and the new sum are shown; choices are kept, and one more press publishes.
    assert all(usd in view.faults[0].message for usd in (before["total"], "8.91"))
    again = form_of(refusal)
    assert (again["how"], again["n_items"], again["days"]) == (
        "sample",
        str(before["n_items"]),
        "9",
    )
    assert again["total"] == "8.91"
    for name, slug in (("team-budget", team.slug), ("study-budget", study.slug)):
        rosa.post(reverse(f"console:{name}", args=[slug]), {"cap_usd": "0.10"})
    assert Budget.objects.filter(cap_usd=Decimal("0.10")).count() == 2
    assert fault_fields(press(rosa, study, form_of(check_page(rosa, study)))) == {"budget_usd"}
    assert not Batch.objects.exists()


@pytest.mark.slow
def test_what_the_account_lacks_and_an_untyped_amount_hold_the_launch(rosa, study, connection):
    answer = check_page(rosa, study, **BASE | {"connection": connection.pk, "reward_usd": "4"})
    [fault] = answer.context["view"].faults
    assert (fault.code, "$20.00" in fault.message) == ("low_balance", True)
    assert fault_fields(press(rosa, study, form_of(answer))) == {"connection"}
    Connection.objects.update(marketplace="marketplace.example.org")
    form = form_of(check_page(rosa, study))
    for amount in ("", "1", "yes"):
        assert fault_fields(press(rosa, study, form | {"amount": amount})) == {"amount"}
    assert not Batch.objects.exists()
    assert press(rosa, study, form | {"amount": form["total"]}).status_code == 302
    assert Batch.objects.count() == 1


def test_every_fault_of_every_field_and_page_is_listed_at_once(rosa, study, connection):
    Item.objects.filter(key="d1").update(context="long " * 20_000)
    Item.objects.create(study=study, key="bare", position=99)
    wrong = {"title": "x" * 129, "description": "", "keywords": "k" * 1001, "countries": "UK, XX"}
    wrong |= {"reward_usd": "0.005", "max_assignments": "0", "max_per_worker": "0"}
    wrong |= {"minutes": "0", "days": "366", "approval_days": "31", "min_approval": "101"}
    wrong |= {"excluded_rounds": "9" * 5000, "excluded_workers": "ann@example.org"}
    refusal = press(rosa, study, form_of(check_page(rosa, study)) | wrong)
    assert fault_fields(refusal) - {""} == set(wrong)
    pages = {each.item_id for each in refusal.context["view"].faults if each.item_id}
    assert pages == set(Item.objects.filter(key__in=["d1", "bare"]).values_list("pk", flat=True))
    assert any("GB" in one.message for one in refusal.context["view"].faults)
    assert not Batch.objects.exists()


@pytest.mark.slow
def test_languages_hold_the_launch_where_the_marketplace_has_none(rosa, study, connection):
    form = form_of(check_page(rosa, study), languages="de, en")
    assert fault_fields(press(rosa, study, form | {"languages": "de, xx"})) == {"languages"}
    readiness.forget_funds(connection.pk)
    with patch("hits.requirements.ANY_LANGUAGE", "ASSAYLANGUAGEQQQ"):
        check_page(rosa, study)
        assert fault_fields(press(rosa, study, form)) == {"languages"}
    readiness.forget_funds(connection.pk)
    check_page(rosa, study)
    press(rosa, study, form)
    types = [row["QualificationTypeId"] for row in Batch.objects.get().requirements]
    assert types == ["ASSAYLANGUAGEDEU", "ASSAYLANGUAGEENG"]


@pytest.mark.slow
def test_tests_to_pass_first_are_said_and_one_too_long_holds_the_launch(rosa, study, connection):
    def codes_with(*cases):
        test = records.QualificationTest(cases)
        redraft(
            study, qualifications=replace(current_document(study).qualifications, tests=(test,))
        )
        return {each.code: each.level for each in check_page(rosa, study).context["view"].findings}

    scores = {"appropriateness": 80}
    assert codes_with(records.GradedCase("It fits.", scores=scores))["tests_first"] == "pass"
    assert (
        codes_with(*[records.GradedCase("word " * 790, scores=scores)] * 20)["test_too_long"]
        == "fault"
    )


@pytest.mark.slow
def test_what_the_protocols_form_refuses_holds_the_launch_in_its_words(rosa, study, connection):
    study.questions.update(low_label="")
    answer = check_page(rosa, study)
    (one,) = answer.context["view"].faults
    editor = rosa.get(reverse("console:protocol", args=[study.slug])).context["view"]
    assert [(one.protocol_field, one.message)] == [
        (each["field"], each["text"]) for each in editor.field_faults
    ]
    link = reverse("console:protocol", args=[study.slug]) + "#q0-low_label"
    assert f'href="{link}"' in answer.content.decode()
    assert press(rosa, study, form_of(answer)).context["view"].is_held
    assert not Batch.objects.exists()
    study.questions.update(low_label="bad")
    assert not check_page(rosa, study).context["view"].faults


@pytest.mark.slow
def test_the_rest_of_another_version_is_launched_with_a_warning(rosa, study, connection):
    press(rosa, study, form_of(check_page(rosa, study, **BASE | {"connection": connection.pk})))
    document = current_document(study)
    redraft(study, instructions="Read twice.")
    (warning,) = check_page(rosa, study).context["view"].warnings
    assert warning.code == "other_version"
    assert re.findall(r"\d+", warning.message) == ["2", str(Batch.objects.get().pk), "1"]
    save_draft(study=study, document=document)
    assert not check_page(rosa, study).context["view"].warnings


@pytest.mark.slow
def test_pages_are_looked_at_again_once_the_protocol_has_changed(rosa, study, connection):
    assert check_page(rosa, study).context["view"].pages.n_faults == 0
    redraft(study, instructions="word " * 13_500)
    assert page_of(rosa, study).context["view"].pages is None
    assert check_page(rosa, study).context["view"].pages.n_faults == 12


def test_pay_under_the_floor_is_a_warning_with_what_meets_it(rosa, study, connection, team):
    models.Team.objects.update(wage_floor_usd=Decimal(15))
    answer = check_page(rosa, study, **BASE | {"connection": connection.pk, "reward_usd": "0.01"})
    [warning] = [each for each in answer.context["view"].warnings if each.reward_usd]
    assert not answer.context["view"].faults
    # Labels of the scale that would overlap are left out.
    assert [mark.name for mark in answer.context["view"].wage_marks] == ["typical"]
    raised = press(rosa, study, form_of(answer, enough_usd=str(warning.reward_usd)))
    assert raised.context["view"].draft.reward_usd == warning.reward_usd
    assert not [each for each in raised.context["view"].warnings if each.reward_usd]
    names = [mark.name for mark in raised.context["view"].wage_marks]
    assert names[:3] == ["typical", "slow", "fast"]
    assert not Batch.objects.exists()


@pytest.mark.parametrize(
    ("shares", "numbers"),
    [([], []), ([0.2], [1, 20]), ([0.2, 0.2], [2, 20]), ([0.5, 0.1], [2, 10, 50])],
)
def test_the_closed_line_of_attention_checks_has_their_number_and_share(shares, numbers):
    line = sections.summarize_checks(
        [records.Check(kind="repeat", share=share) for share in shares]
    )
    assert [int(number) for number in re.findall(r"\d+", line)] == numbers


def test_time_that_is_nobodys_measures_no_pay(rosa, study, connection):
    add_batch(study, n_published=5)
    for number in range(5):
        submission = rate(study, "crowd", f"d{number}", {"alpha": 1, "beta": 2})
        Submission.objects.filter(pk=submission.pk).update(seconds=0.11)
    page = page_of(rosa, study, **BASE | {"connection": connection.pk, "reward_usd": "0.50"})
    view = page.context["view"]
    assert (view.n_implausible, view.duration.is_measured) == (5, False)
    assert "$1,800" not in words_of(page.content.decode())  # fifty cents a second


def test_waves_of_nine_are_priced_with_what_they_save(rosa, study, connection):
    Connection.objects.update(fees="mturk")
    query = BASE | {"connection": connection.pk, "max_assignments": 20, "reward_usd": "0.50"}
    undivided = check_page(rosa, study, **query).context["view"]
    assert {each.field for each in undivided.warnings} == {"wave_size"}
    waves = page_of(rosa, study, **query | {"wave_size": "9"}).context["view"]
    # 60 assignments: a fee of 0.20 each, or 0.10 in waves.
    assert (undivided.cost.fees_usd, waves.cost.fees_usd) == (Decimal(12), Decimal(6))
    assert waves.saving_usd == Decimal(6)


def test_a_key_is_tried_and_never_displayed(rosa, team, connection, live_server):
    key = {"access_key_id": "AKIAWRONG", "secret_access_key": "s3cret-key"}
    terms = {"name": "There", "endpoint_url": f"{live_server.url}/requester", "fees": "none"}
    rosa.post(reverse("console:connect", args=[team.slug]), key | terms)
    assert "s3cret-key" not in str(Job.objects.values_list("arguments", flat=True))
    work_off()
    answer = rosa.get(reverse("console:connections", args=[team.slug])).content.decode()
    assert "s3cret-key" not in answer
    assert Connection.objects.of(team).count() == 1


@pytest.mark.slow
def test_the_page_asks_as_little_of_a_large_study(rosa, study, connection, researcher, team):
    large = rating_study("large", n_items=60, owner=researcher)
    give_to_team(study=large, team=team, actor=researcher)
    costs.set_budget(team=team, cap_usd=Decimal(50), actor=researcher)
    counts = []
    for each in (study, large):
        check_page(rosa, each)
        with CaptureQueriesContext(database) as queries:
            page_of(rosa, each)
        counts.append(len(queries))
        assert most_repeated(queries) <= 2
    assert counts[0] == counts[1] <= MOST_STATEMENTS


def most_repeated(queries: CaptureQueriesContext) -> int:
    values = re.compile(r"'[^']*'|\b\d+\b")
    texts = [values.sub("?", query["sql"]) for query in queries.captured_queries]
    return max(map(texts.count, texts))


def test_test_funds_are_given_once_however_often_this_site_is_connected(rosa, team):
    for _press in range(2):
        rosa.post(reverse("console:connect-site", args=[team.slug]))
        work_off()
    first = Connection.objects.of(team).get()
    rosa.post(reverse("console:connection-close", args=[team.slug, first.pk]))
    rosa.post(reverse("console:connect-site", args=[team.slug]))
    work_off()
    second = Connection.objects.of(team).usable().get()
    assert second.name != first.name
    assert balance_usd(client_of(second)) == 100


@pytest.mark.slow
def test_practice_paid_under_the_floor_is_warned_of_with_its_pay_an_hour(rosa, study, connection):
    models.Team.objects.update(wage_floor_usd=Decimal(15))
    feedback = dict.fromkeys(RIGHT, "word " * 200)
    candidates = (records.PracticeCandidate(text="Trains.", scores=RIGHT, feedback=feedback),)

    def view(reward_usd: float) -> pricing.LaunchView:
        items = (records.PracticeItem(candidates=candidates),)
        ask(study, practice=records.Practice(reward_usd=reward_usd, items=items))
        return check_page(rosa, study).context["view"]

    low = view(0.01)
    seconds = wages.duration_of(study).typical_seconds + 60 * 1000 / 6 / 238
    hourly = (Decimal("0.01") * 3600 / Decimal(seconds)).quantize(Decimal("0.01"))
    assert (low.practice["reward_usd"], low.practice["hourly_usd"]) == (Decimal("0.01"), hourly)
    [warning] = [one for one in low.warnings if one.code == "practice_under_floor"]
    assert f"${hourly} " in warning.message
    assert "$15.00" in warning.message
    for reward_usd, codes in ((50, set()), (0, {"unpaid_practice", "practice_under_floor"})):
        warnings = {one.code for one in view(reward_usd).warnings}
        assert warnings & {"unpaid_practice", "practice_under_floor"} == codes


@pytest.mark.slow
def test_practice_comes_first_and_its_price_is_in_the_amount(rosa, study, connection):
    items = (
        records.PracticeItem(
            item="d0", candidates=(records.PracticeCandidate("alpha", scores=RIGHT),)
        ),
        records.PracticeItem(candidates=(records.PracticeCandidate(text="Trains.", scores=RIGHT),)),
    )
    ask(study, practice=records.Practice(reward_usd=0.07, most_workers=5, items=items))
    check_page(rosa, study)
    with CaptureQueriesContext(database) as queries:
        answer = page_of(rosa, study)
    assert len(queries) <= MOST_STATEMENTS
    view = answer.context["view"]
    facts = {"n_hits": 2, "n_workers": 5, "reward_usd": Decimal("0.07")}
    assert {name: view.practice[name] for name in facts} == facts
    cost = view.cost
    assert cost.practice_usd == view.later.cost.practice_usd == Decimal("0.70")
    assert view.pages.n_pages == study.items.count() - 1
    assert "practice_first" in [each.code for each in view.passes]
    assert cost.total_usd == cost.rewards_usd + cost.fees_usd + Decimal("0.70")
    form = form_of(page_of(rosa, study, **form_of(answer, how=THE_REST)))
    for _press in range(2):
        assert press(rosa, study, form).status_code == 302
    batch = Batch.objects.get()
    assert PracticeHit.objects.of(batch).count() == 2
    # The item of the study that workers practise on is not judged in it.
    judged = set(Hit.objects.values_list("item__key", flat=True))
    assert set(study.items.values_list("key", flat=True)) - judged == {"d0"}
    work_off()
    batch.refresh_from_db()
    worker = Worker.objects.create(marketplace=batch.connection.marketplace, worker_id="A1")
    now = timezone.now()
    PracticeAnswer.objects.create(
        hit=PracticeHit.objects.first(), worker=worker, assignment_id="3X", status="Approved",
        answer_xml="", accepted_at=now, submitted_at=now,
    )  # fmt: skip
    report = rosa.get(reverse("console:batch", args=[study.slug, batch.pk])).context["practice"]
    assert (report.n_workers, report.n_passed, report.n_failed) == (1, 0, 0)
    assert (report.n_undecided, report.n_answers) == (1, 1)


def test_two_products_of_one_title_are_two_where_their_pictures_differ(rosa, study, connection):
    red, blue = (
        Picture.objects.create(sha256=digit * 64, media_type="image/svg+xml", content=b"<svg/>")
        for digit in "12"
    )
    items = list(study.items.all()[:2])
    for item, pictures in zip(items, ((red, blue), (red, red)), strict=True):
        for candidate, picture in zip(item.candidates.all(), pictures, strict=True):
            Candidate.objects.filter(pk=candidate.pk).update(text="Shoe", picture=picture)
    warnings = check_page(rosa, study).context["view"].warnings
    assert [one.item_id for one in warnings if one.code == "repeated_response"] == [items[1].pk]


@pytest.mark.slow
def test_an_empty_page_holds_the_launch_and_a_response_without_text_not(rosa, study, connection):
    def view_with(**item):
        Item.objects.filter(key="d1").update(**item)
        # Counts of texts stand for what they are: the check that is kept is of others.
        cache.clear()
        return check_page(rosa, study).context["view"]

    Candidate.objects.filter(item__key="d1").update(text="")
    blank = view_with(context="")
    d1 = Item.objects.get(key="d1").pk
    assert [(each.code, each.item_id) for each in blank.faults] == [("empty_page", d1)]
    one_warning = view_with(context="USER: Hello")
    assert not one_warning.faults
    [warning] = one_warning.warnings
    assert (warning.code, warning.item_id) == ("empty_responses", d1)
    assert "2 " in warning.message
    Candidate.objects.filter(item__key="d1").update(text="Yes.")
    assert "filled_responses" in [each.code for each in view_with().passes]
    Candidate.objects.update(text="")
    cache.clear()
    answer = check_page(rosa, study)
    assert fault_codes(answer) == ["nothing_to_judge"]
    assert press(rosa, study, form_of(answer)).context["view"].is_held
    assert not Batch.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["condition", "reference"])
def test_a_wording_that_names_what_no_item_has_holds_the_launch(rosa, study, connection, name):
    [first] = current_document(study).questions
    redraft(study, questions=(replace(first, wording=f"How near is it to {{{name}}}?"),))
    Item.objects.update(condition="polite", reference="Hello.")
    assert not fault_codes(check_page(rosa, study))
    Item.objects.filter(key__in=["d1", "d2"]).update(**{name: ""})
    view = check_page(rosa, study).context["view"]
    assert not view.faults
    [lacking] = [each for each in view.warnings if each.protocol_field == "q0-wording"]
    assert lacking.code == "name_lacking"
    assert " 2 " in lacking.message
    Item.objects.update(**{name: ""})
    answer = check_page(rosa, study)
    [fault] = answer.context["view"].faults
    assert fault.code == "name_of_nothing"
    assert f"{{{name}}}" in fault.message
    assert press(rosa, study, form_of(answer)).context["view"].is_held
    page = words_of(rosa.get(reverse("console:protocol", args=[study.slug])).content.decode())
    assert fault.message in page


def test_instructions_have_no_items_own_text_in_them(rosa, study, connection):
    redraft(study, instructions="Compare with {reference}.")
    [warning] = check_page(rosa, study).context["view"].warnings
    assert warning.code == "name_in_instructions"
    page = words_of(rosa.get(reverse("console:protocol", args=[study.slug])).content.decode())
    assert warning.message in page


@pytest.mark.slow
def test_a_preference_among_other_than_two_responses_is_said_first(rosa, study, connection):
    save_draft(study=study, document=templates.read_protocol("preference"))
    view = check_page(rosa, study).context["view"]
    assert not [each for each in view.warnings if each.protocol_field == "q0-kind"]
    add_candidates(study.items.get(key="d3"), ["gamma", "delta"], are_systems=True)
    view = check_page(rosa, study).context["view"]
    assert not view.faults
    [said] = [each for each in view.warnings if each.protocol_field == "q0-kind"]
    assert said.code == "not_two_responses"
    assert {"2", "4"} <= set(re.findall(r"\d+", said.message))


def test_what_is_out_at_another_marketplace_is_said_before_it_is_bought(rosa, study, connection):
    other = Connection.objects.create(
        name="other", endpoint_url="https://marketplace.example.org/", access_key_id="AKIA"
    )
    add_batch(study, n_published=2)

    def codes_out() -> set[str]:
        codes = set(warning_codes(page_of(rosa, study)))
        return {"out_elsewhere", "out_at_same_marketplace"} & codes

    Batch.objects.update(connection=connection)
    assert codes_out() == set()
    Batch.objects.update(connection=other)
    assert codes_out() == {"out_elsewhere"}
    Connection.objects.filter(pk=other.pk).update(marketplace=connection.marketplace)
    assert codes_out() == {"out_at_same_marketplace"}


# Where workers find what is published, and what has not come in.


@pytest.fixture
def batch(study, connection) -> Batch:
    selection = {"n": 2, "seed": 7}
    return published_batch(
        study, client_of(connection), connection=connection, max_assignments=1, selection=selection
    )


@pytest.mark.slow
def test_pages_link_to_the_marketplace_while_hits_are_on_offer_here(rosa, batch):
    def content(name: str) -> str:
        return rosa.get(reverse(f"console:{name}", args=["ratings"])).content.decode()

    def link() -> list[bool]:
        address = f"{reverse('marketplace:groups')}</code>"
        return [address in content(name) for name in ("launch", "answers")]

    assert link() == [True, True]
    page = rosa.get(reverse("console:launch", args=["ratings"]))
    assert page.context["progress"].n_awaited == 2
    assert "assignments_awaited" in codes_on(page.content.decode())
    Connection.objects.update(marketplace="mturk")
    assert link() == [False, False]
    Connection.objects.update(marketplace="local")
    Batch.objects.update(closed_at=timezone.now())
    assert link() == [False, False]
    Batch.objects.update(closed_at=None)
    worker = create_worker(username="ann", password="a-long-and-winding-one")
    for hit in batch.hits.all():
        hand_in(worker, hit, {"alpha": 10, "beta": 20})
    collect.collect_batch(batch=batch, client=client_of(batch.connection))
    assert link() == [False, False]
    assert "assignments_awaited" not in codes_on(content("launch"))


# Who may work, and how many for an item.


def ask(study, *, assignments=3, **requirements):
    document = current_document(study)
    who = replace(document.qualifications, **requirements)
    completion = replace(document.completion, assignments_per_item=assignments)
    redraft(study, qualifications=who, completion=completion)


def warning_codes(answer) -> list[str]:
    return [one.code for one in answer.context["view"].warnings]


def test_who_may_work_is_said_and_whether_it_is_one_worker_for_an_item(rosa, study, connection):
    ask(study, assignments=3, countries=("US",), least_approval_percent=95)
    answer = page_of(rosa, study)
    summary = answer.content.decode().partition('id="told-who">')[2].partition("</summary>")[0]
    workers = answer.context["view"].workers
    assert workers in words_of(summary)
    assert {"United", "95"} <= set(workers.split())
    assert "one_worker" not in warning_codes(answer)
    ask(study, assignments=1)
    answer = page_of(rosa, study)
    assert "one_worker" in warning_codes(answer)
    assert not answer.context["view"].faults
    # Another round may have another worker.
    Batch.objects.filter(pk=add_batch(study).pk).update(round=2, max_assignments=1)
    answer = page_of(rosa, study, round=1, max_assignments=1)
    assert "one_worker" not in warning_codes(answer)


def test_every_requirement_is_in_the_sentence_of_who_may_work_by_name(study):
    rows = requirements(countries=["DE", "AT", "CH"], languages=["de", "gsw"], min_approved=1000)
    text = findings.workers_text(Batch(study=study, requirements=rows, needs_masters=True))
    names = ("Germany", "Austria", "Switzerland", "Swiss German", "1,000")
    assert [name for name in names if name not in text] == []
    assert text.count(";") == 3
    assert findings.workers_text(Batch(study=study, is_recruited=True)) == ""
    assert [country_name(code) for code in ("US", "TW", "XX")] == ["United States", "Taiwan", "XX"]
    assert [language_name(code) for code in ("de", "deu", "zz")] == ["German", "German", "zz"]

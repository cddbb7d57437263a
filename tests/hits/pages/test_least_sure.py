import csv
import io
import json
from decimal import Decimal

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse
from playwright.sync_api import expect

from accounts import models, roles, teams
from annotation import access, study_facts
from annotation.models import ItemSample
from annotation.result_kinds.base import find_study_kind
from hits.connections import connect_this_site
from hits.models import Batch, Hit
from metrics.models import ScoringRun
from metrics.stored_scores import write_scores
from stats.inference.looks import confidence_at_look
from tests.annotation import importing, studies
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.work import work_off
from tests.hits.pages import test_launch_in_a_browser
from tests.hits.pages.test_launch import check_page, fault_fields, form_of, press
from validation.analysis.records import EstimatedDifferenceRecord, EstimatedMeanRecord
from validation.versions import StoredResults, list_validations

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("funded_site")]
N_ITEMS = 60


@pytest.fixture
def study(researcher):
    team = teams.create_team(name="Dialogue lab", owner=researcher)
    study = studies.rating_study("ratings", n_items=N_ITEMS, systems=("alpha",), owner=researcher)
    access.give_to_team(study=study, team=team, actor=researcher)
    connect_this_site(team=team, name="Here", actor=researcher, test_funds_usd=Decimal(50))
    for metric, sign in (("judge", 1), ("other", -1)):
        values = {(f"d{n}", "alpha"): rating(n) + sign * off(n) for n in range(N_ITEMS)}
        write_scores(study=study, metric=metric, signature=f"{metric}|v:1", values=values)
    return study


def newest_results(study) -> StoredResults:
    return StoredResults(list_validations(study).first(), with_variants=True)


def rating(n: int) -> float:
    return 50 + 20 * float(np.sin(1.7 * n))


def off(n: int) -> float:
    return (30 if n % 3 == 0 else 3) * float(np.cos(2.9 * n))


def launch(rosa, study, **changes) -> Batch:
    form = form_of(check_page(rosa, study), reward_usd="0.12", max_assignments=1, **changes)
    press(rosa, study, form_of(check_page(rosa, study, **form)))
    work_off()
    return Batch.objects.latest("pk")


def answer_all(study, batch):
    for key in Hit.objects.of(batch).values_list("item__key", flat=True):
        studies.rate(study, "Ann", key, {"alpha": rating(int(key[1:]))})


def of_judge(study, **more):
    run = ScoringRun.objects.of(study).get(metric="judge").pk
    return {"how": "unsure", "judge": run, "about": study.questions.get().pk, **more}


@pytest.mark.slow
def test_a_second_batch_is_drawn_where_the_judge_errs_and_weighed(rosa, study, tmp_path):
    first = launch(rosa, study, how="sample", n_items=20)
    assert set(chances_of(first).values()) == {20 / 60}
    answer_all(study, first)
    second = launch(rosa, study, **of_judge(study, n_unsure=12))
    sample = second.item_sample
    assert (sample.number, sample.method, sample.seed) == (2, "unsure", second.selection["seed"])
    assert (sample.judge, sample.n_available) == ("judge|v:1", 40)
    chances = chances_of(second)
    assert len(chances) == 12
    assert not set(chances) & set(chances_of(first))
    assert min(chances.values()) >= 0.2 * 12 / 40 * 0.9
    erring = [chance for key, chance in chances.items() if int(key[1:]) % 3 == 0]
    others = [chance for key, chance in chances.items() if int(key[1:]) % 3]
    assert np.mean(erring) > 1.3 * np.mean(others)
    answer_all(study, second)
    find_study_kind(study_facts.VALIDATION).compute_now(study)
    [row] = newest_results(study).rows(EstimatedMeanRecord, metric="judge")
    assert (row.look, row.n_labelled, row.n) == (2, 32, 60)
    assert row.confidence == pytest.approx(confidence_at_look(2, 5))
    assert row.ci_low < np.mean([rating(n) for n in range(N_ITEMS)]) < row.ci_high
    assert row.ci_high - row.ci_low < row.people_high - row.people_low
    [estimate] = command_answer(rosa, study, tmp_path, "judge", look=2)["estimates"]
    for name in ("value", "ci_low", "ci_high", "effective_n"):
        assert estimate[name] == pytest.approx(getattr(row, name)), name
    assert estimate["people_only"]["ci_low"] == pytest.approx(row.people_low)
    page = rosa.get(reverse("console:validation", args=[study.slug])).content.decode()
    assert 'id="estimated-mean"' in page
    assert f"[{row.ci_low:.2f}, {row.ci_high:.2f}]" in page
    assert "?where=unsure" in page


@pytest.mark.slow
def test_systems_are_compared_over_all_scored_items_as_the_command_does(rosa, study, tmp_path):
    for item in study.items.all():
        studies.add_candidates(item, ["beta"], are_systems=True)
    values = {}
    for n in range(N_ITEMS):
        for name, better in (("alpha", 0), ("beta", 6)):
            values[f"d{n}", name] = rating(n) + better + off(n + better)
    write_scores(study=study, metric="both", signature="both|v:1", values=values)
    batch = launch(rosa, study, how="sample", n_items=20)
    for key in Hit.objects.of(batch).values_list("item__key", flat=True):
        n = int(key[1:])
        studies.rate(study, "Ann", key, {"alpha": rating(n), "beta": rating(n) + 6 + n % 3})
    find_study_kind(study_facts.VALIDATION).compute_now(study)
    [row] = newest_results(study).rows(EstimatedDifferenceRecord, metric="both")
    assert (row.a, row.b, row.n_labelled, row.n) == ("alpha", "beta", 20, 60)
    assert row.ci_low < -7 < row.ci_high < 0
    difference = command_answer(rosa, study, tmp_path, "both", look=1)["differences"][0]
    for name in ("value", "ci_low", "ci_high", "p", "p_adjusted"):
        assert difference[name] == pytest.approx(getattr(row, name)), name
    address = reverse("console:validation-table", args=[study.slug, "estimated-differences"])
    page = rosa.get(address).content.decode().replace("−", "-")
    assert f"[{row.ci_low:.2f}, {row.ci_high:.2f}]" in page


def chances_of(batch) -> dict[str, float]:
    rows = batch.item_sample.items.values_list("item__key", "probability")
    assert {key for key, _ in rows} == set(batch.hits.values_list("item__key", flat=True))
    return dict(rows)


def command_answer(rosa, study, folder, metric, *, look):
    answer = rosa.get(reverse("console:download", args=[study.slug, "sampled.csv"]))
    text = b"".join(answer.streaming_content).decode()
    assert {row["metric"] for row in list(csv.DictReader(io.StringIO(text)))} >= {"judge", "other"}
    path = folder / "sampled.csv"
    path.write_text(text)
    columns = ("human", "judge", "item", "batch", "probability", "system")
    words = [word for name in columns for word in (f"--{name}", name)]
    words += ["--where", f"metric={metric}", "--looks", "5", "--look", str(look), "--json"]
    return json.loads(importing.command_output("prediction_powered", path, *words))


@pytest.mark.slow
def test_the_offer_is_held_until_enough_items_are_rated(rosa, study):
    answer_all(study, launch(rosa, study, how="sample", n_items=9))
    answer = check_page(rosa, study, where="unsure")
    assert (answer.context["view"].choice.value, fault_fields(answer)) == ("unsure", {"judge"})
    assert press(rosa, study, form_of(answer)).status_code == 200
    assert Batch.objects.count() == 1


@pytest.mark.slow
def test_the_offer_has_its_price_and_names_what_it_is_drawn_by(rosa, study):
    answer_all(study, launch(rosa, study, how="sample", n_items=12))
    page = check_page(rosa, study, buy=8, where="unsure")
    view = page.context["view"]
    assert (view.choice.value, view.draft.selection["n"]) == ("unsure", 8)
    assert view.cost.rewards_usd == 8 * Decimal("0.12")
    # the same press again is the same batch, whatever came in meanwhile
    form = form_of(page)
    press(rosa, study, form)
    press(rosa, study, form)
    assert Batch.objects.count() == ItemSample.objects.count() == 2


@pytest.mark.slow
def test_who_may_not_spend_sees_the_mean_and_no_launch(rosa, study, signed_in):
    answer_all(study, launch(rosa, study, how="sample", n_items=20))
    find_study_kind(study_facts.VALIDATION).compute_now(study)
    analyst = models.User.objects.create_user("ana")
    access.set_study_role(study=study, user=analyst, role=roles.Role.ANALYST, actor=None)
    page = reverse("console:validation", args=[study.slug])
    assert "?where=unsure" in rosa.get(page).content.decode()
    answer = signed_in(analyst).get(page).content.decode()
    assert ('id="estimated-mean"' in answer, "?where=" in answer) == (True, False)
    ScoringRun.objects.all().delete()  # without scores there is no such choice
    view = check_page(rosa, study, where="unsure").context["view"]
    assert "unsure" not in [choice.value for choice in view.choices]
    assert view.is_held


@pytest.mark.slow
def test_launching_a_scored_study_takes_few_statements(rosa, study, django_assert_max_num_queries):
    answer_all(study, launch(rosa, study, how="sample", n_items=20))
    # One asks which connections have a recruiter; one more looks whether enough items are rated to
    # learn where the judge errs.
    for query, most in (("", 16), ("?buy=10", 16), ("?buy=10&where=unsure", 17)):
        address = reverse("console:launch", args=[study.slug]) + query
        rosa.get(address)
        work_off()
        rosa.get(address)
        with django_assert_max_num_queries(most):
            assert rosa.get(address).status_code == 200


@pytest.mark.browser
@pytest.mark.parametrize(
    "width", [test_launch_in_a_browser.DESK, test_launch_in_a_browser.TELEPHONE]
)
def test_a_least_sure_sample_is_launched_at_its_price(width, chromium, live_server, rosa, study):
    answer_all(study, launch(rosa, study, how="sample", n_items=20))
    find_study_kind(study_facts.VALIDATION).compute_now(study)
    call_command("run_worker", until_empty=True)
    viewport = {"width": width, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto(f"/studies/{study.slug}/validation/")
        page.locator("#estimated-mean summary").click()
        test_launch_in_a_browser.assert_in_order(page)
        page.locator("#estimated-mean a[href$='?where=unsure']").click()
        with test_launch_in_a_browser.background_worker():
            expect(page.locator("[name=how][value=unsure]")).to_be_checked()
            page.locator("#id_n_unsure").fill("7")
            # 7 HITs of one assignment at 0.12, without a fee here
            expect(page.locator("#price-unsure")).to_have_text("$0.84")
            test_launch_in_a_browser.assert_in_order(page)
            page.locator("button[form=launch-form].btn-primary").click()
            expect(page.locator("td a[href*='/batches/']")).to_have_count(2)
    batch = Batch.objects.latest("pk")
    assert (batch.item_sample.method, batch.item_sample.items.count()) == ("unsure", 7)

import csv
import json
import re
from dataclasses import replace
from io import BytesIO, StringIO
from types import SimpleNamespace
from zipfile import ZipFile

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import AuditEntry
from simulation import models, stored_catalogues
from simulation.pages.forms import RunForm, initial_of
from simulation.pages.view import ExperimentAnswer
from simulation.stored_experiments import request_run
from tests.codes import field_codes, message_codes
from tests.console import addresses, pages
from tests.retrieval.collections import sent
from tests.simulation.stored import RULES, saved

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
MOST_STATEMENTS = 15
FORM = {
    "name": "Shoes again",
    "recommenders": ["random", "embedding"],
    **{"kinds": ["tol", "prob"], "tolerances": "2, 3", "p_switch": "0.75", "n_turns": "5"},
    **{"seeds": "0", "measures": ["nDCG@10", "RR@10", "Success@1"], "mode": "paper"},
    **{"target_among": "on", "leave_hazard": "0", "qrels": "target and alternatives"},
    **{"relevant_from": "1", "carry": "same list"},
    **{"catalogue": "stand-in", "n_items": "5000", "catalogue_seed": "0"},
}


def test_the_page_says_what_may_be_concluded_and_what_its_charts_show(rosa, shoes):
    page = rosa.get(addresses.address("experiment"))
    view = page.context["view"]
    first = view.answer.first_sentence
    assert first.code == "best"
    assert "embedding" in first
    with_stand_ins = replace(view.answer, is_stand_in=True).first_sentence
    assert with_stand_ins.removesuffix(first) not in ("", with_stand_ins)
    causes = [one for one in view.answer.details if getattr(one, "code", "")]
    # nDCG's ideal gain grows with alternatives
    assert [one.code for one in causes if "embedding" in one] == ["overestimates"]
    assert any("random" in one for one in causes)
    for name in ("every-turn", "causes", "switches", "comparisons", "sensitivity"):
        assert f'id="{name}"' in page.content.decode()
    assert pages.rows_alike(page.content.decode()) == []
    last = [row for row in view.run.last.values() if row.measure == view.measure]
    for chart in view.figures.values():
        assert view.measure in chart.summary
        assert re.search(r"random ⟦?0\.", chart.summary)
    highest = max(row.mean for row in last if row.recommender == "embedding")
    assert f" {highest:.3f}" in view.figures["turns"].summary


@pytest.mark.parametrize(
    "name", ["experiment", "experiment-progress", "experiment-delete", "experiment-download"]
)
def test_a_page_asks_the_database_a_few_things(rosa, shoes, name):
    where = addresses.address(name)
    rosa.get(where)
    with CaptureQueriesContext(connection) as queries:
        assert rosa.get(where).getvalue() is not None
    assert len(queries) <= MOST_STATEMENTS + 3 * (name == "experiment-download")


@pytest.mark.parametrize("name", sorted(addresses.EXPERIMENTS))
def test_a_list_or_a_form_asks_the_database_a_few_things(rosa, shoes, recommender, name):
    where = reverse(f"console:{name}")
    with CaptureQueriesContext(connection) as queries:
        assert rosa.get(where).status_code == 200
    assert len(queries) <= MOST_STATEMENTS


def test_pictures_have_the_rows_that_they_show(rosa, shoes):
    def picture(chart, form="csv"):
        return rosa.get(addresses.address("experiment-picture", chart=chart, form=form))

    for chart, n_rows in (("turns", 2 * 5 * 7), ("tolerance", 2 * 4), ("p-switch", 2 * 2)):
        assert len(picture(chart).content.splitlines()) == n_rows + 1, chart
        assert "facet" in picture(chart, "json").json()
    assert picture("nonsense").status_code == 404


def test_files_hold_what_the_page_shows(rosa, shoes):
    def content(name):
        return rosa.get(addresses.address("experiment-download", name=name)).getvalue().decode()

    rows = [json.loads(line) for line in content("turns.jsonl").splitlines()]
    assert len(rows) == 2 * 5 * 3 * 7
    assert {row["tolerance"] for row in rows} == {0, 3, 5}
    record = json.loads(content("experiment.json"))
    assert record["settings"] == RULES
    assert len(record["tables"]["results"]) == 5 + 3
    assert len(content("targets.csv").splitlines()) == 2 * 5 * 3 * 30 + 1
    choices = [json.loads(line) for line in content("sensitivity.jsonl").splitlines()]
    assert len(choices) == 2 * 5 * 3 * (4 + 4 + 7 + 3 + 4)
    own = [row for row in choices if (row["choice"], row["value"]) == ("turn", "7")]
    assert {row["tau"] for row in own} == {1.0}
    assert "tabular" in content("results.tex")
    dialogues = [json.loads(line) for line in content("dialogues.jsonl").splitlines()]
    ends = {(row["recommender"], row["user"], row["seed"], row["target"]) for row in dialogues}
    assert len(ends) == 2 * 5 * 2 * 30
    assert {row["turn"] for row in dialogues} == set(range(8))
    assert AuditEntry.objects.filter(action="export").count() == 6
    assert rosa.get(addresses.address("experiment-download", name="nothing.csv")).status_code == 404


def test_checking_another_run_refuses_what_running_would(rosa, shoes):
    where = addresses.address("experiment")
    refused = rosa.post(where, FORM | {"check": "1", "relevant_from": "2"})
    assert pages.refused_fields(refused) == {"__all__": ["experiment_unfit"]}
    # A control that accepts more and never switches may be run, and is named.
    control = {"kinds": ["tol"], "tolerances": "2, 5"}
    checked = rosa.post(where, FORM | control | {"check": "1"}).context
    assert checked["seconds"] > 0
    assert checked["form"].controls == ["MetaSimTol tolerance 5"]
    assert shoes.versions.count() == 1
    assert rosa.post(where, FORM | control).url == f"{where}?version=2"
    assert shoes.versions.get(number=2).finished_at is not None


def test_a_catalogue_is_sent_listed_and_deleted_while_nothing_rests_on_it(rosa, team, shoes):
    where = reverse("console:catalogues")
    page = rosa.get(where).content.decode()
    used = reverse("console:catalogue-delete", args=[shoes.catalogue_id])
    assert used not in page  # an experiment rests on it
    file = stored_catalogues.packed({"ids.txt": b"a\nb\nc\n", "embeddings.npy": saved(np.eye(3))})
    data = {"team": team.pk, "file": sent("boots.zip", file)}
    assert rosa.post(where, data).status_code == 302
    row = models.StoredCatalogue.objects.get(name="boots.zip")
    delete = reverse("console:catalogue-delete", args=[row.pk])
    assert delete in rosa.get(where).content.decode()
    assert (rosa.get(delete).status_code, row.n_items) == (200, 3)
    assert models.StoredCatalogue.objects.filter(pk=row.pk).exists()
    rosa.post(delete)
    assert not models.StoredCatalogue.objects.filter(pk=row.pk).exists()
    assert "catalogue_unfit" in message_codes(rosa.post(used, follow=True))
    assert models.StoredCatalogue.objects.filter(pk=shoes.catalogue_id).exists()
    answer = rosa.post(where, {"team": team.pk, "file": sent("boots.zip", "nothing")})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["file"])


def test_a_drawn_catalogue_gives_ids_and_pictures_for_a_study_that_judges_it(rosa, team):
    where = reverse("console:catalogues")
    answer = rosa.post(where, {"draw": "1", "team": team.pk, "n_items": "60", "seed": "3"})
    row = models.StoredCatalogue.objects.get(n_items=60)
    assert answer.url == reverse("console:catalogue", args=[row.pk])
    page = rosa.get(f"{answer.url}?page=2").content.decode()
    items = stored_catalogues.read_stored(row)
    assert ("shoe-000059" in page, "shoe-000049" in page) == (True, False)
    assert items.words(59) in page

    def content(name):
        return rosa.get(reverse("console:catalogue-download", args=[row.pk, name])).getvalue()

    table = list(csv.DictReader(StringIO(content("items.csv").decode("utf-8-sig"))))
    assert [one["id"] for one in table] == list(items.ids)
    assert table[7]["heel"] == items.attributes.describe(7)["heel"]
    with ZipFile(BytesIO(content("pictures.zip"))) as pictures:
        assert pictures.namelist() == [f"{one}.svg" for one in items.ids]
        assert pictures.read("shoe-000007.svg") == items.picture(7)
    exports = AuditEntry.objects.filter(action="export").order_by("pk")
    assert [one.details["file"] for one in exports] == ["items.csv", "pictures.zip"]
    assert rosa.get(reverse("console:catalogue-download", args=[row.pk, "else"])).status_code == 404
    refused = rosa.post(where, {"draw": "1", "team": team.pk, "n_items": "1", "seed": "3"})
    assert pages.refused_fields(refused, "drawn_form") == {"n_items": ["min_value"]}


@pytest.mark.slow
def test_another_run_begins_with_the_settings_of_the_one_before(rosa, shoes):
    where = reverse("console:experiment", args=["shoes"])
    initial = rosa.get(where).context["form"].initial
    assert (initial["tolerances"], initial["p_switch"]) == ("3, 5", "0.5, 0.75")
    # A probability may be named by its effect size.
    answer = rosa.post(where, FORM | {"p_switch": "d=0.62, .5"})
    assert answer.url == f"{where}?version=2"
    version = shoes.versions.get(number=2)
    assert version.finished_at is not None
    probabilities = [f"prob:{tolerance}:{p}" for tolerance in (2, 3) for p in ("d=0.62", "0.5")]
    assert version.settings["users"] == ["base", "tol:2", "tol:3", *probabilities]
    page = rosa.get(answer.url)
    assert "P 0.755" in page.content.decode()
    assert 'value="d=0.62, 0.5"' in page.content.decode()
    assert not page.context["other_users"]
    answer = rosa.post(where, FORM | {"p_switch": "d=much"})
    assert field_codes(answer.context["form"]) == {"p_switch": ["not_a_number"]}


def test_a_form_names_the_choices_of_the_article(rosa, shoes):
    form = rosa.get(reverse("console:experiment", args=["shoes"])).context["form"]
    assert form.initial["target_among"] is True
    first = {name: form.fields[name].choices[0][0] for name in ("qrels", "carry", "mode")}
    assert first == {"qrels": "accepted", "carry": "one", "mode": "paper"}
    assert initial_of(RULES, form=3)["target_among"] is False
    assert initial_of(RULES | {"mode": "released"}, form=3)["target_among"] is True
    bound = RunForm((), {name: value for name, value in FORM.items() if name != "target_among"})
    bound.is_valid()
    assert bound.users() == [
        "base",
        *(f"tol:{t},target_among=no" for t in (2, 3)),
        *(f"prob:{t}:0.75,target_among=no" for t in (2, 3)),
    ]


def test_the_page_of_a_mixed_table_has_the_articles_improvement(rosa, users, shoes):
    rules = RULES | {"qrels": "accepted", "carry": "one", "users": ["base", "tol:2"]}
    version = request_run(experiment=shoes, rules=rules, actor=users["owner"])
    where = reverse("console:experiment", args=["shoes"])
    view = rosa.get(f"{where}?version={version.number}").context["view"]
    assert (view.run.is_mixed, view.run.is_articles) == (True, True)
    assert "users_differ_mixed" in {getattr(each, "code", "") for each in view.answer.details}
    assert view.run.rows("improvements")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users_of_run", "again"),
    [
        (["base,leave_hazard=0.1", "tol:2,leave_hazard=0.1,sticky=yes"], ""),
        (["base", "prob:2:0.5,turn_base=1"], ""),
        (
            ["base", "prob:2:0.5", "prob:3:0.75"],
            "base; prob:2:0.5; prob:2:0.75; prob:3:0.5; prob:3:0.75",
        ),
        (["base", "prob:2:0.5,turn_base=0"], "base; prob:2:0.5"),
        (["base", "tol:2,mode=released", "tol:3,sticky=yes"], "base; tol:2,sticky=yes; tol:3"),
    ],
)
def test_users_that_the_settings_cannot_say_are_named(rosa, users, shoes, users_of_run, again):
    request_run(experiment=shoes, rules=RULES | {"users": users_of_run}, actor=users["owner"])
    page = rosa.get(addresses.address("experiment"))
    assert "; ".join(page.context["other_users"]).startswith(again)
    assert bool(page.context["other_users"]) == bool(again)
    assert not again or "; ".join(users_of_run) in page.content.decode()


def test_an_experiment_is_deleted_when_its_short_name_is_typed(rosa, shoes):
    where = reverse("console:experiment-delete", args=["shoes"])
    assert rosa.post(where, {"name": "x"}).status_code == 422
    assert rosa.post(where, {"name": "shoes"}).status_code == 302
    assert not models.StoredExperiment.objects.exists()


def test_no_more_is_said_of_a_change_than_its_interval_allows():
    for low, high, code in (
        (0.1, 0.3, "underestimates"),
        (-0.3, -0.1, "overestimates"),
        (-0.1, 0.3, "not_different"),
    ):
        means = {"base_target": 0.3, "meta_all": 0.5, "qrels_delta": 0.15, "user_delta": 0.05}
        total = {"total_delta": 0.2, "total_ci_low": low, "total_ci_high": high}
        row = SimpleNamespace(recommender="embedding", user="MetaSimTol", **means, **total)
        said = ExperimentAnswer("nDCG@10", False, [], [], [row], []).details[0]
        assert said.code == code
        assert said.index("0.300") < said.index("0.500")

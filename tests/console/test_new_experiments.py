"""Experiments that are made on pages, and recommenders: of which judgments, what is refused."""

from io import BytesIO

import pytest
from django.urls import reverse

from accounts.models import AuditEntry, User
from annotation.label_sets import Rule, make_label_set
from annotation.models import Study
from simulation.models import (
    StoredCatalogue,
    StoredExperiment,
    StoredRecommender,
)
from simulation.stored_experiments import request_run
from tests.annotation.studies import rate, rating_study
from tests.console.test_experiments import FORM
from tests.retrieval.collections import filled_collection
from tests.simulation.stored import RULES, stored_experiment, trained_recommender

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def users(team_users: dict[str, User]) -> dict[str, User]:
    return team_users


@pytest.fixture
def team(users):
    return users["owner"].memberships.get().team


def judged_study(team, owner) -> Study:
    """Shoes in the place of others, by three annotators."""
    study = rating_study("judged", owner=owner, n_items=12, team=team)
    for person in ("Ann", "Bob", "Cyd"):
        for position in range(12):
            rate(study, person, f"d{position}", {"alpha": 90, "beta": 20})
    Study.objects.filter(pk=study.pk).update(kind=Study.Kind.ALTERNATIVES)
    make_label_set(question=study.questions.get(), rule=Rule("mean"))
    return study


def test_a_studys_labels_lead_to_an_experiment_that_is_made_of_them(rosa, users, team):
    study = judged_study(team, users["owner"])
    page = rosa.get(reverse("console:labels", args=["judged"])).content.decode()
    where = f"{reverse('console:new-experiment')}?study=judged"
    assert where in page
    form = rosa.get(where).context["form"]
    chosen = form.sources[form.initial["judgments"]]
    assert (chosen.study, chosen.label_set is not None) == (study, True)
    answer = rosa.post(where, FORM | {"judgments": form.initial["judgments"]})
    row = StoredExperiment.objects.get()
    assert (answer.status_code, answer.url) == (302, reverse("console:experiment", args=[row.slug]))
    assert (row.study, row.n_targets, row.catalogue.kind) == (study, 12, "stand-in")
    version = row.versions.get()
    assert version.finished_at is not None
    page = rosa.get(answer.url).content.decode()
    assert "The embeddings are stand-ins" in page
    assert AuditEntry.objects.filter(action="experiment.create").exists()


def test_a_collections_qrels_lead_to_one_too(rosa, users, team):
    filled_collection(team, users["owner"])
    page = rosa.get(reverse("console:collection-judgments", args=["tracks"])).content.decode()
    where = f"{reverse('console:new-experiment')}?collection=tracks"
    assert where in page
    form = rosa.get(where).context["form"]
    rosa.post(where, FORM | {"judgments": form.initial["judgments"]})
    row = StoredExperiment.objects.get()
    assert (row.collection, row.made_of) == ("tracks", "Tracks: qrels.txt")
    assert row.versions.get().finished_at is not None


def test_checking_says_how_long_it_takes_and_starts_nothing(rosa, users, team):
    judged_study(team, users["owner"])
    where = reverse("console:new-experiment")
    form = rosa.get(where).context["form"]
    data = FORM | {"judgments": form.initial["judgments"], "check": "1"}
    page = rosa.post(where, data).content.decode()
    assert "on one core" in page
    assert not StoredExperiment.objects.exists()
    impossible = rosa.post(where, data | {"tolerances": "3, 9"})
    assert impossible.status_code == 422
    assert "neither has another item in mind within 5 turns" in impossible.content.decode()
    lacking = rosa.post(where, data | {"catalogue": "drawn", "n_items": "60"})
    assert "are not in the catalogue" in lacking.content.decode()
    assert not StoredCatalogue.objects.exists()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tolerances": "2, many"}, "many is not a whole number from 0 to"),
        ({"tolerances": "40000"}, "40000 is not a whole number from 0 to 1,000."),
        ({"tolerances": " , "}, "MetaSimTol needs a number here"),
        ({"tolerances": "", "kinds": ["prob"]}, "MetaSimProb needs a number here"),
        ({"p_switch": ""}, "MetaSimProb needs a number here"),
        ({"p_switch": "0"}, "would have the same row"),
        ({"p_switch": "1.5"}, "1.5 is not a number from 0 to 1."),
        ({"relevant_from": "99"}, "No target has an alternative of grade 99 or above"),
        ({"seeds": ""}, "required"),
        ({"catalogue": "sent"}, "Choose the file of the catalogue"),
        ({"catalogue": "drawn", "n_items": "60"}, "are not in the catalogue"),
    ],
)
def test_a_form_that_cannot_be_run_says_why(rosa, users, team, changes, problem):
    judged_study(team, users["owner"])
    where = reverse("console:new-experiment")
    form = rosa.get(where).context["form"]
    answer = rosa.post(where, FORM | {"judgments": form.initial["judgments"]} | changes)
    assert answer.status_code == 422
    assert problem in answer.content.decode()
    assert not StoredExperiment.objects.exists()
    assert not StoredCatalogue.objects.exists()


def test_a_run_that_is_refused_leaves_no_experiment(rosa, users, team):
    judged_study(team, users["owner"])
    recommender = trained_recommender(team, users["owner"])
    where = reverse("console:new-experiment")
    data = FORM | {"judgments": rosa.get(where).context["form"].initial["judgments"]}
    data |= {"recommenders": ["random", f"trained:{recommender.pk}"]}
    for _try in range(2):
        answer = rosa.post(where, data)
        assert answer.status_code == 422
        assert "GRU-SL (400 drawn shoes, seed 0) must have been" in answer.content.decode()
    assert not StoredExperiment.objects.exists()
    assert [row.pk for row in StoredCatalogue.objects.all()] == [recommender.catalogue_id]
    assert not AuditEntry.objects.filter(action="experiment.create").exists()


def test_a_form_that_is_sent_twice_makes_one_experiment(rosa, users, team):
    judged_study(team, users["owner"])
    where = reverse("console:new-experiment")
    data = FORM | {"judgments": rosa.get(where).context["form"].initial["judgments"]}
    first, again = rosa.post(where, data), rosa.post(where, data)
    assert (first.status_code, again.url) == (302, first.url)
    assert StoredExperiment.objects.get().versions.count() == 1
    assert AuditEntry.objects.filter(action="experiment.create").count() == 1
    other = rosa.post(where, data | {"name": "Others"})
    assert other.url == reverse("console:experiment", args=["others"])


def test_a_zip_that_is_no_catalogue_is_refused(rosa, users, team):
    judged_study(team, users["owner"])
    where = reverse("console:new-experiment")
    file = BytesIO(b"nothing")
    file.name = "shop.zip"
    form = rosa.get(where).context["form"]
    data = FORM | {"judgments": form.initial["judgments"], "catalogue": "sent", "file": file}
    assert "not a zip that can be unpacked" in rosa.post(where, data).content.decode()


def test_a_recommender_is_trained_and_then_used(rosa, users, team):
    shoes = stored_experiment(team, users["owner"])
    request_run(experiment=shoes, rules=RULES, actor=users["owner"])
    where = reverse("console:new-recommender")
    opened = rosa.get(where)
    form = opened.context["form"]
    assert all(f'name="{field.name}"' in opened.content.decode() for field in form)
    data = {
        "name": "Mine",
        "kind": "gru-sl",
        "team": team.pk,
        "catalogue": form["catalogue"].initial or f"stored:{shoes.catalogue_id}",
        "n_items": "5000",
        "start_from": "",
        "width": "8",
        "epochs": "2",
        "seed": "0",
    }
    answer = rosa.post(where, data)
    row = StoredRecommender.objects.get()
    assert answer.url == reverse("console:recommender", args=[row.pk])
    page = rosa.get(answer.url).content.decode()
    assert "Its best epoch is" in page
    assert "must be" not in page
    assert "Choose the GRU-SL" in rosa.post(where, data | {"kind": "gru-rl"}).content.decode()
    assert "is called Mine" in rosa.post(where, data).content.decode()
    run = reverse("console:experiment", args=["shoes"])
    rosa.post(run, FORM | {"recommenders": ["random", f"trained:{row.pk}"]})
    version = shoes.versions.get(number=2)
    assert version.finished_at is not None
    names = version.recommenders.values_list("name", "sha256")
    assert list(names) == [("random", ""), ("Mine", row.sha256)]
    texts = " ".join(version.notes.values_list("text", flat=True))
    assert "Mine is evaluated with the critic it was trained with" in texts
    asked = rosa.get(reverse("console:recommender-delete", args=[row.pk])).content.decode()
    assert "With it go 2 epochs of training" in asked
    answer = rosa.post(reverse("console:recommender-delete", args=[row.pk]), follow=True)
    assert "Mine is in use" in answer.content.decode()
    assert StoredRecommender.objects.exists()

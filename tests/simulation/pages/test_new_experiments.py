from html import escape
from unittest.mock import ANY

import pytest
from django.urls import reverse, reverse_lazy

from accounts.models import AuditEntry
from annotation import label_sets, models
from simulation.models import StoredCatalogue, StoredExperiment, StoredRecommender
from simulation.stored_experiments import request_run
from tests.annotation.studies import rate, rating_study
from tests.retrieval.collections import filled_collection, sent
from tests.simulation.pages.test_experiments import FORM
from tests.simulation.stored import RULES, stored_experiment, trained_recommender

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture(scope="module")
def stored_judged(stored_users):
    owner = stored_users["owner"]
    study = rating_study("judged", owner=owner, n_items=12, team=owner.memberships.get().team)
    for person in ("Ann", "Bob", "Cyd"):
        for position in range(12):
            rate(study, person, f"d{position}", {"alpha": 90, "beta": 20})
    models.Study.objects.filter(pk=study.pk).update(kind=models.Study.Kind.ALTERNATIVES)
    label_sets.make_label_set(question=study.questions.get(), rule=label_sets.Rule("mean"))
    return study


@pytest.fixture
def judged(stored_judged, db):
    return models.Study.objects.get(pk=stored_judged.pk)


NEW = reverse_lazy("console:new-experiment")


@pytest.fixture
def chosen(rosa, judged):
    return FORM | {"judgments": rosa.get(NEW).context["form"].initial["judgments"]}


@pytest.mark.slow
def test_a_studys_labels_lead_to_an_experiment_that_is_made_once(rosa, judged):
    page = rosa.get(reverse("console:labels", args=["judged"])).content.decode()
    where = f"{NEW}?study=judged"
    assert where in page
    form = rosa.get(where).context["form"]
    chosen = form.sources[form.initial["judgments"]]
    assert (chosen.study, chosen.label_set is not None) == (judged, True)
    data = FORM | {"judgments": form.initial["judgments"]}
    answer, again = rosa.post(where, data), rosa.post(where, data)
    row = StoredExperiment.objects.get()
    assert (answer.status_code, answer.url) == (302, reverse("console:experiment", args=[row.slug]))
    assert again.url == answer.url
    assert (row.study, row.n_targets, row.catalogue.kind) == (judged, 12, "stand-in")
    assert row.versions.get().finished_at is not None
    assert AuditEntry.objects.filter(action="experiment.create").count() == 1
    other = rosa.post(where, data | {"name": "Others"})
    assert other.url == reverse("console:experiment", args=["others"])


@pytest.mark.slow
def test_a_collections_qrels_lead_to_one_too(rosa, users, team):
    filled_collection(team, users["owner"])
    page = rosa.get(reverse("console:collection-judgments", args=["tracks"])).content.decode()
    where = f"{NEW}?collection=tracks"
    assert where in page
    rosa.post(where, FORM | {"judgments": rosa.get(where).context["form"].initial["judgments"]})
    row = StoredExperiment.objects.get()
    assert (row.collection, row.made_of) == ("tracks", "Tracks: qrels.txt")
    assert row.versions.get().finished_at is not None


def test_checking_says_how_long_it_takes_and_starts_nothing(rosa, chosen):
    assert rosa.post(NEW, chosen | {"check": "1"}).context["seconds"] > 0
    assert not StoredExperiment.objects.exists()


def test_a_form_that_cannot_be_run_says_why(rosa, chosen):
    file = sent("shop.zip", "nothing")
    for changes, field, named in (
        ({"tolerances": "2, many"}, "tolerances", "many"),
        ({"tolerances": "40000"}, "tolerances", "40000"),
        ({"tolerances": " , "}, "tolerances", "MetaSimTol"),
        ({"tolerances": "", "kinds": ["prob"]}, "tolerances", "MetaSimProb"),
        ({"tolerances": "3, 9", "n_turns": "5"}, "__all__", "5"),
        ({"p_switch": ""}, "p_switch", "MetaSimProb"),
        ({"p_switch": "0"}, "__all__", "MetaSimProb tolerance"),
        ({"p_switch": "1.5"}, "p_switch", "1.5"),
        ({"relevant_from": "99"}, "__all__", "99"),
        ({"seeds": ""}, "seeds", ""),
        ({"catalogue": "sent"}, "file", ""),
        ({"catalogue": "sent", "file": file}, "__all__", ""),
        ({"catalogue": "drawn", "n_items": "60"}, "__all__", "d0"),
    ):
        for more in ({}, {"check": "1"}):
            file.seek(0)
            answer = rosa.post(NEW, chosen | changes | more)
            assert answer.status_code == 422
            [(at, [error])] = answer.context["form"].errors.items()
            assert (at, named in error) == (field, True)
            assert escape(error) in answer.content.decode()
    assert not StoredExperiment.objects.exists()
    assert not StoredCatalogue.objects.exists()


def test_a_run_that_is_refused_leaves_no_experiment(rosa, users, team, chosen):
    recommender = trained_recommender(team, users["owner"])
    data = chosen | {"recommenders": ["random", f"trained:{recommender.pk}"]}
    for _try in range(2):
        answer = rosa.post(NEW, data)
        assert answer.status_code == 422
        [error] = answer.context["form"].non_field_errors()
        assert str(recommender) in error
    assert not StoredExperiment.objects.exists()
    assert [row.pk for row in StoredCatalogue.objects.all()] == [recommender.catalogue_id]
    assert not AuditEntry.objects.filter(action="experiment.create").exists()


@pytest.mark.slow
def test_a_recommender_is_trained_and_then_used(rosa, users, team):
    shoes = stored_experiment(team, users["owner"])
    request_run(experiment=shoes, rules=RULES, actor=users["owner"])
    where = reverse("console:new-recommender")
    opened = rosa.get(where)
    form = opened.context["form"]
    assert all(f'name="{field.name}"' in opened.content.decode() for field in form)
    data = {"name": "Mine", "kind": "gru-sl", "team": team.pk, "n_items": "5000", "start_from": ""}
    data |= {"catalogue": form["catalogue"].initial or f"stored:{shoes.catalogue_id}"}
    data |= {"width": "8", "epochs": "2", "seed": "0"}
    answer = rosa.post(where, data)
    row = StoredRecommender.objects.get()
    assert answer.url == reverse("console:recommender", args=[row.pk])
    page = rosa.get(answer.url)
    assert (page.context["best"].epoch, page.context["standing"].is_finished) == (ANY, True)
    refused = rosa.post(where, data | {"kind": "gru-rl"}).context["form"].errors
    assert [*refused] == ["start_from"]
    [error] = rosa.post(where, data).context["form"].non_field_errors()
    assert "Mine" in error
    run = reverse("console:experiment", args=["shoes"])
    rosa.post(run, FORM | {"recommenders": ["random", f"trained:{row.pk}"]})
    version = shoes.versions.get(number=2)
    assert version.finished_at is not None
    names = [(one["name"], one["sha256"]) for one in version.facts["recommenders"]]
    assert names == [("random", ""), ("Mine", row.sha256)]
    assert "Mine" in " ".join(version.record["notes"])
    asked = rosa.get(reverse("console:recommender-delete", args=[row.pk]))
    assert asked.context["n_epochs"] == 2
    answer = rosa.post(reverse("console:recommender-delete", args=[row.pk]), follow=True)
    [message] = answer.context["messages"]
    assert (message.level_tag, "Mine" in str(message)) == ("error", True)
    assert StoredRecommender.objects.exists()

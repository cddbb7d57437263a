import pytest

from accounts import models, roles
from annotation.label_sets import Rule, make_label_set
from results.models import Result
from simulation.models import StoredCatalogue, StoredExperiment
from simulation.pages.forms import RunForm
from simulation.stored_catalogues import drawn_products
from tests.annotation.studies import alternatives_study, tick
from tests.console.api.conftest import program_of
from tests.retrieval.collections import filled_collection
from tests.simulation.api.test_experiments import ALL, SHORT

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def alternatives(team, users):
    study = alternatives_study("pools", team=team, owner=users["owner"])
    for person in ("Ann", "Bob"):
        tick(study, person, "boot", ["clog", "pump"])
        tick(study, person, "gown", ["coat"])
    make_label_set(question=study.questions.get(), rule=Rule("majority"))
    return study


def test_an_experiment_is_made_of_labels_of_a_round_or_of_qrels(reader, team, users, alternatives):
    filled_collection(team, users["owner"])
    of = [
        {"study": "pools", "label_set": 1},
        {"study": "pools"},
        {"collection": "tracks", "qrels": "qrels.txt"},
    ]
    made = []
    for number, judgments in enumerate(of):
        answer = reader.send("post", ALL, {"name": f"Of {number}"} | judgments)
        assert answer.status_code == 201, answer.json()
        made.append(reader.get(answer["Location"]).json())
        run = reader.send("post", f"{answer['Location']}runs/", SHORT)
        assert run.status_code == 202, run.json()
        assert reader.get(run["Location"]).json()["is_finished"]
    assert [row["made_of"].partition(": ")[2] for row in made] == [
        "label set 1, majority",
        "round 1, by majority",
        "qrels.txt",
    ]
    assert made[0]["sha256"] == made[1]["sha256"]
    assert [row["study"] for row in made] == ["pools", "pools", None]
    assert reader.get(ALL).json()["count"] == 3
    assert StoredCatalogue.objects.filter(kind="stand-in").count() == 2


def test_one_key_makes_one_experiment_whose_settings_are_as_the_page_begins(reader, alternatives):
    body = {"name": "Pools", "study": "pools"}
    answers = [reader.send("post", ALL, body, **{"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert StoredExperiment.objects.count() == 1
    reader.send("post", f"{ALL}pools/runs/", {})
    form = RunForm(
        [],
        {
            name: "paper" if name == "mode" else "" if field.initial is None else field.initial
            for name, field in RunForm.base_fields.items()
        }
        | {"qrels": "accepted", "carry": "one"},
    )
    assert form.is_valid(), form.errors
    assert Result.objects.get().settings == form.rules
    # The same settings make one run.
    runs = [reader.send("post", f"{ALL}pools/runs/", SHORT).json()["number"] for _ in range(2)]
    assert runs == [2, 2]
    assert models.AuditEntry.objects.filter(action="experiment.run").count() == 2


def test_judgments_that_are_not_there_are_refused_by_field(reader, alternatives):
    for body, field in (
        ({"study": "pools"}, "name"),
        ({"name": "x\u200by", "study": "pools"}, "name"),
        ({"name": "x"}, "errors"),
        ({"name": "x", "study": "pools", "collection": "c"}, "errors"),
        ({"name": "x", "collection": "c"}, "qrels"),
        ({"name": "x", "study": "pools", "qrels": "q"}, "qrels"),
        ({"name": "x", "study": "pools", "label_set": 9}, "label_set"),
        ({"name": "x", "study": "pools", "round": 4}, "study"),
        ({"name": "x", "study": "pools", "label_set": 1, "round": 1}, "round"),
        ({"name": "x", "study": "pools", "catalogue": "shoes"}, "catalogue"),
        ({"name": "x", "study": "pools", "catalog": "1"}, "catalog"),
    ):
        answer = reader.send("post", ALL, body)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, [field]), body
    assert not StoredExperiment.objects.exists()


def test_only_who_may_analyse_makes_an_experiment_and_on_no_other_teams_catalogue(
    alternatives, team, users
):
    other = drawn_products(
        team=users["other_team"].memberships.get().team, n_items=100, actor=users["other_team"]
    )
    body = {"name": "x", "study": "pools"}
    for role in roles.Role:
        answer = program_of(users[role.value], *roles.Scope).send("post", ALL, body)
        permissions = roles.PERMISSIONS[role]
        if roles.Permission.ANALYSE in permissions and roles.Permission.VIEW_SYSTEMS in permissions:
            assert answer.status_code == 201, role
        else:
            assert answer.status_code in (403, 404), role
    answer = program_of(users["other_team"], *roles.Scope).send("post", ALL, body)
    assert answer.status_code == 404
    answer = program_of(users["owner"], *roles.Scope).send(
        "post", ALL, body | {"catalogue": str(other.pk)}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "catalogue_unfit")
    answer = program_of(users["owner"], *roles.Scope).send(
        "post", ALL, body | {"catalogue": "99999999999999999999"}
    )
    assert answer.status_code == 400

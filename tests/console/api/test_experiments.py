"""Experiments over the API: made of judgments, run, stopped, read as rows; by whom."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry, User
from accounts.roles import PERMISSIONS, SCOPES, Permission, Role, Scope, is_blind
from accounts.teams import create_team, set_role
from annotation.label_sets import Rule, make_label_set
from annotation.models import Study
from console.experiments.forms import RunForm
from simulation.models import ExperimentVersion, StoredCatalogue, StoredExperiment
from simulation.stored_catalogues import drawn_products
from simulation.stored_experiments import request_run
from tests.annotation.studies import alternatives_study, tick
from tests.console.api.conftest import program_of
from tests.console.api.operations import OF_AN_EXPERIMENT
from tests.console.test_role_matrix import browser
from tests.retrieval.collections import filled_collection
from tests.simulation.stored import RULES, stored_experiment
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
ALL = "/api/v1/experiments/"
SHOES = f"{ALL}shoes/"
SHORT = {"users": ["base", "tol:2"], "n_turns": 3}
STRETCHES = {"turns": 2 * 5 * 3 * 7, "targets": 2 * 5 * 3 * 30, "choices": 2 * 5 * 3 * 21}


@pytest.fixture
def people(researcher: User) -> dict[str, User]:
    team = create_team(name="Lab", owner=researcher)
    people = {"owner": researcher}
    for role in set(Role) - {Role.OWNER}:
        people[role.value] = User.objects.create_user(role.value)
        set_role(team=team, user=people[role.value], role=role, actor=researcher)
    people["stranger"] = User.objects.create_user("stranger")
    create_team(name="Other", owner=people["stranger"])
    return people


@pytest.fixture
def team(people):
    return people["owner"].memberships.get().team


@pytest.fixture
def shoes(people, team):
    row = stored_experiment(team, people["owner"])
    request_run(experiment=row, rules=RULES, actor=people["owner"])
    return row


@pytest.fixture
def alternatives(team, people) -> Study:
    """Two judged targets by two annotators, with a label set."""
    study = alternatives_study("pools", team=team, owner=people["owner"])
    for person in ("Ann", "Bob"):
        tick(study, person, "boot", ["clog", "pump"])
        tick(study, person, "gown", ["coat"])
    make_label_set(question=study.questions.get(), rule=Rule("majority"))
    return study


@pytest.fixture
def reader(people):
    return program_of(people["owner"], *Scope)


def rows_of(reader: Any, where: str) -> list[dict[str, Any]]:
    rows, address = [], f"{where}?limit=1000"
    while address:
        content = reader.get(address).json()
        rows += content["results"]
        address = content["next"]
    return rows


def test_a_finished_run_says_what_its_page_says(reader, rosa, shoes):
    [row] = reader.get(f"{SHOES}runs/").json()["results"]
    one = reader.get(f"{SHOES}runs/1/").json()
    assert row["settings"] == one["settings"] == RULES
    assert (one["n_done"], one["is_finished"], one["is_under_way"]) == (one["n_total"], True, False)
    page = rosa.get("/simulations/shoes/").content.decode()
    assert one["answer"] in page
    whole = json.loads(rosa.get("/simulations/shoes/experiment.json").getvalue())
    assert one["fingerprint"] == whole["fingerprint"]
    assert len(one["tables"]["results"]) == 2 * 5 * 3
    first = one["tables"]["results"][0]
    assert (first["recommender"], first["user"]) == ("random", "SimBase")
    assert first["turn"] == 7
    for name in ("comparisons", "causes", "switches", "improvements"):
        assert one["tables"][name], name


@pytest.mark.parametrize(("name", "n"), STRETCHES.items())
def test_every_row_of_a_run_is_read_in_stretches(reader, shoes, name, n):
    rows = rows_of(reader, f"{SHOES}runs/1/{name}/")
    assert len(rows) == n
    assert {row["recommender"] for row in rows} == {"random", "embedding"}
    assert len({row["user"] for row in rows}) == 5


def test_an_experiment_is_made_of_labels_of_a_round_or_of_qrels(reader, team, people, alternatives):
    filled_collection(team, people["owner"])
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


def test_the_same_key_makes_one_experiment_and_the_same_settings_one_run(reader, alternatives):
    body = {"name": "Pools", "study": "pools"}
    answers = [reader.send("post", ALL, body, **{"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert StoredExperiment.objects.count() == 1
    runs = [reader.send("post", f"{ALL}pools/runs/", SHORT).json()["number"] for _ in range(2)]
    assert runs == [1, 1]
    assert AuditEntry.objects.filter(action="experiment.run").count() == 1


def test_what_is_left_out_is_as_the_page_begins(reader, alternatives):
    reader.send("post", ALL, {"name": "Pools", "study": "pools"})
    reader.send("post", f"{ALL}pools/runs/", {})
    form = RunForm(
        [],
        {
            name: "paper" if name == "mode" else "" if field.initial is None else field.initial
            for name, field in RunForm.base_fields.items()
        }
        | {"qrels": "target and alternatives", "carry": "same list"},
    )
    assert form.is_valid(), form.errors
    assert ExperimentVersion.objects.get().rules == form.rules


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"study": "pools"}, "name", "required"),
        ({"name": "x\u200by", "study": "pools"}, "name", "an invisible character (U+200B)"),
        ({"name": "x"}, "errors", "Name a study, or a collection"),
        ({"name": "x", "study": "pools", "collection": "c"}, "errors", "Name a study"),
        ({"name": "x", "collection": "c"}, "qrels", "Name the file"),
        ({"name": "x", "study": "pools", "qrels": "q"}, "qrels", "of collections"),
        ({"name": "x", "study": "pools", "label_set": 9}, "label_set", "no judgments there"),
        ({"name": "x", "study": "pools", "round": 4}, "study", "no judgments there"),
        ({"name": "x", "study": "pools", "label_set": 1, "round": 1}, "round", "its own round"),
        ({"name": "x", "study": "pools", "catalogue": "shoes"}, "catalogue", "neither drawn nor"),
        ({"name": "x", "study": "pools", "catalog": "1"}, "catalog", "no such field"),
    ],
)
def test_judgments_that_are_not_there_are_refused_by_field(reader, alternatives, body, field, said):
    answer = reader.send("post", ALL, body)
    assert answer.status_code == 400
    assert said in answer.json()["errors"][field][0]
    assert not StoredExperiment.objects.exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"users": ["base", "tol:12", "prob:2:0"]}, "would have the same row"),
        ({"users": ["tol:2"]}, "The first user must be SimBase"),
        ({"users": ["base", "prob:2:nan"]}, "between 0 and 1"),
        ({"users": ["base", "lazy:2"]}, "it must be one of"),
        ({"users": []}, "Choose a user"),
        ({"measures": ["nCDG@10"]}, "measure must be one of"),
        ({"measures": ["P@50"]}, "looks further than the 10 items"),
        ({"recommenders": ["trained:99"]}, "must have been trained on this catalogue"),
        ({"recommenders": ["/etc/passwd"]}, "/etc/passwd is no recommender"),
        ({"recommenders": ["random", "random"]}, "named twice"),
        ({"seeds": []}, "Name a seed"),
        ({"seeds": [0, 0]}, "Seed 0 is named twice"),
        ({"users": ["base", "tol:40000"]}, "a tolerance of at most 1,000 turns"),
        ({"n_turns": 51}, "less than or equal to 50"),
    ],
)
def test_a_design_that_cannot_be_is_refused_with_the_reason(reader, shoes, body, said):
    answer = reader.send("post", f"{SHOES}runs/", body)
    assert answer.status_code == 400
    assert said in answer.json()["detail"]
    assert shoes.versions.count() == 1


def test_a_run_is_stopped_and_goes_on(reader, shoes, settings):
    settings.TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}
    run = reader.send("post", f"{SHOES}runs/", SHORT).json()
    assert (run["number"], run["is_finished"], run["is_under_way"]) == (2, False, True)
    assert run["tables"] == {}
    stopped = reader.send("post", f"{SHOES}runs/2/stop/").json()
    assert not stopped["is_under_way"]
    assert not Job.objects.about(f"experiment:{shoes.pk}").unfinished().exists()
    answer = reader.send("post", f"{SHOES}runs/2/resume/")
    assert (answer.status_code, answer.json()["is_under_way"]) == (202, True)


def addresses() -> Any:
    for (name, method), permission in OF_AN_EXPERIMENT.items():
        where = {"slug": "shoes"} | ({"number": 1} if name.startswith("run-") else {})
        where |= {"number": 1} if name == "run" else {}
        yield reverse(f"console:api:{name}", kwargs=where), method, permission


def status_of(client: Client, where: str, method: str) -> int:
    if method == "get":
        return int(client.get(where).status_code)
    return int(client.post(where, SHORT, content_type="application/json").status_code)


def test_a_role_may_what_it_may_on_the_pages(shoes, people):
    for role in Role:
        permissions = PERMISSIONS[role]
        for client in (browser(people[role.value]), program_of(people[role.value], *Scope)):
            for where, method, permission in addresses():
                status = status_of(client, where, method)
                if is_blind(permissions):
                    assert status == 404, (role, where)
                else:
                    allowed = permission in permissions
                    assert (status in (200, 202)) == allowed, (role, where, status)
                    assert allowed or status == 403, (role, where, status)


def test_scopes_strangers_and_nobody(shoes, people):
    for scope in Scope:
        allowed = SCOPES[scope] | SCOPES[Scope.READ]
        client = program_of(people["owner"], scope)
        for where, method, permission in addresses():
            assert (status_of(client, where, method) in (200, 202)) == (permission in allowed)
    for where, method, _permission in addresses():
        assert status_of(program_of(people["stranger"], *Scope), where, method) == 404
        assert status_of(browser(None), where, method) == 401


@pytest.mark.parametrize("name", ["experiments", "catalogues", "recommenders"])
def test_lists_hold_what_ones_teams_have(shoes, people, name):
    for person in people:
        content = program_of(people[person], *Scope).get(f"/api/v1/{name}/").json()
        role = Role(person) if person in set(Role) else None
        is_sighted = role is not None and not is_blind(PERMISSIONS[role])
        assert content["count"] == (is_sighted and name != "recommenders"), person


def test_only_who_may_analyse_makes_an_experiment_and_on_no_other_teams_catalogue(
    alternatives, team, people
):
    other = drawn_products(
        team=people["stranger"].memberships.get().team, n_items=100, actor=people["stranger"]
    )
    body = {"name": "x", "study": "pools"}
    for role in Role:
        answer = program_of(people[role.value], *Scope).send("post", ALL, body)
        permissions = PERMISSIONS[role]
        if Permission.ANALYSE in permissions and not is_blind(permissions):
            assert answer.status_code == 201, role
        else:
            assert answer.status_code in (403, 404), role
    answer = program_of(people["stranger"], *Scope).send("post", ALL, body)
    assert answer.status_code == 404
    answer = program_of(people["owner"], *Scope).send(
        "post", ALL, body | {"catalogue": str(other.pk)}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "catalogue_unfit")
    answer = program_of(people["owner"], *Scope).send(
        "post", ALL, body | {"catalogue": "99999999999999999999"}
    )
    assert answer.status_code == 400

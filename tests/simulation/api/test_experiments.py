import json

import pytest

from accounts.roles import PERMISSIONS, Permission, Role, Scope
from tests.console.api.conftest import program_of
from tests.simulation.stored import RULES
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
ALL = "/api/v1/experiments/"
SHOES = f"{ALL}shoes/"
SHORT = {"users": ["base", "tol:2"], "n_turns": 3}
STRETCHES = {"turns": 2 * 5 * 3 * 7, "targets": 2 * 5 * 3 * 30, "choices": 2 * 5 * 3 * 22}


def rows_of(reader, where, *, limit=1000):
    rows, address = [], f"{where}?limit={limit}"
    while address:
        content = reader.get(address).json()
        rows += content["results"]
        address = content["next"]
    return rows


@pytest.mark.slow
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


def test_every_row_of_a_run_is_read_in_stretches(reader, shoes):
    for name, n in STRETCHES.items():
        rows = rows_of(reader, f"{SHOES}runs/1/{name}/")
        assert len(rows) == n
        assert {row["recommender"] for row in rows} == {"random", "embedding"}
        assert len({row["user"] for row in rows}) == 5


def test_a_design_that_cannot_be_is_refused(reader, shoes):
    for body in (
        {"users": ["tol:2"]},
        {"users": ["base", "lazy:2"]},
        {"users": []},
        {"recommenders": ["/etc/passwd"]},
        {"n_turns": 51},
    ):
        answer = reader.send("post", f"{SHOES}runs/", body)
        assert (answer.status_code, bool(answer.json()["detail"])) == (400, True), body
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


@pytest.mark.slow
def test_lists_have_what_ones_teams_have(shoes, users):
    for name in ("experiments", "catalogues", "recommenders"):
        for person in users:
            content = program_of(users[person], *Scope).get(f"/api/v1/{name}/").json()
            role = Role(person) if person in set(Role) else None
            is_sighted = role is not None and Permission.VIEW_SYSTEMS in PERMISSIONS[role]
            assert content["count"] == (is_sighted and name != "recommenders"), person

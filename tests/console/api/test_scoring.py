"""Scoring over the API: metrics with settings, judges estimated, capped, confirmed, resumed.

The judge is a real HTTP server of ours, over real sockets.
"""

from decimal import Decimal

import pytest

from accounts.roles import Scope
from metrics import models, scoring_requests
from tests.console.api.conftest import program_of
from tests.console.api.test_writing import done
from tests.metrics.conftest import foreign  # noqa: F401 -- a fixture
from tests.metrics.pages.test_scoring import KEY, answers
from work.execution import run_job
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
REQUESTS = "/api/v1/studies/mine/scoring-requests/"
PRICES = {"usd_per_million_input": "10", "usd_per_million_output": 20}


@pytest.fixture(autouse=True)
def _nothing_else_waits(study):
    """Done at once is whatever has its turn; the study's own job would have it first."""
    for job in list(Job.objects.queued().values_list("pk", flat=True)):
        run_job(job)


@pytest.fixture
def judge(foreign, settings, tmp_path):  # noqa: F811
    settings.JUDGE, settings.JUDGE_PROBES = {}, tmp_path / "probes"
    foreign.answer = answers
    return foreign


@pytest.fixture
def connection(study, users, judge):
    return scoring_requests.connect_judge(
        team=study.team,
        name="Ours",
        base_url=judge.base_url,
        api_key=KEY,
        length_field="max_tokens",
        actor=users["owner"],
    )


def ask(program, metric, **settings):
    return program.send("post", REQUESTS, {"metric": metric, "settings": settings})


def ask_judge(program, over, /, **settings):
    known = {"connection": over.pk, "model": "tiny", "prompt": "default", "max_usd": "1.00"}
    return ask(program, "judge", **known | PRICES | settings)


def confirm(program, row, key="score"):
    return program.send("post", f"{REQUESTS}{row['id']}/confirm/", **{"Idempotency-Key": key})


def test_metrics_are_listed_with_their_settings_and_confirmed_once_estimated(study, program, users):
    rows = {row["name"]: row for row in done(program.get("/api/v1/studies/mine/metrics/"))}
    [n] = [each for each in rows["distinct_n"]["settings"] if each["name"] == "n"]
    assert (n["kind"], n["is_required"]) == ("integer", False)
    assert rows["judge"]["is_judge"]
    analyst = program_of(users["analyst"], *Scope)
    names = {row["name"] for row in done(analyst.get("/api/v1/studies/mine/metrics/"))}
    assert "distinct_n" in names
    assert not names & {"judge", "geval"}
    row = models.ScoringRequest.objects.create(study=study, metric="rouge1")
    assert confirm(program, {"id": row.pk}).status_code == 409


@pytest.mark.slow
def test_a_judge_is_asked_once_it_is_confirmed_and_once_for_a_key(program, judge, connection):
    row = done(ask_judge(program, connection), 202)
    assert Decimal(row["estimate"]["estimate"]["usd"]) > 0
    assert (judge.bodies, row["spent_usd"], row["connection"]) == ([], "0.000000", "Ours")
    unkeyed = program.send("post", f"{REQUESTS}{row['id']}/confirm/")
    assert list(unkeyed.json()["errors"]) == ["Idempotency-Key"]
    scored = [done(confirm(program, row), 202) for _ in range(2)]
    assert scored[0] == scored[1]
    n = models.Score.objects.filter(run__metric="judge").count()
    assert len(judge.bodies) == scored[0]["n_requests"] == n
    assert Decimal(scored[0]["spent_usd"]) == n * Decimal("0.03")
    confirm(program, row, key="another")
    assert len(judge.bodies) == n
    assert KEY not in str(scored)


@pytest.mark.slow
def test_what_a_judge_may_cost_is_said_to_who_may_see_money_alone(program, users, connection):
    row = done(ask_judge(program, connection, max_usd="0.07"), 202)
    job = done(confirm(program, row), 202)["job"]
    cap = "0.07 "
    assert cap in job["message"]
    for where in [
        f"/api/v1/studies/mine/{part}" for part in ("scores/", "jobs/", f"jobs/{job['id']}/")
    ]:
        assert cap in program.get(where).content.decode(), where
        for user, scopes in ((users["analyst"], list(Scope)), (users["owner"], [Scope.WRITE])):
            assert cap not in program_of(user, *scopes).get(where).content.decode(), where


@pytest.mark.slow
def test_what_is_wrong_with_a_judge_is_said_at_its_setting(program, connection):
    for wanted, field in (
        ({"max_usd": None}, "settings.max_usd"),
        ({"model": ""}, "settings.model"),
        ({"connection": 999999}, "settings.connection"),
        ({"prompt": "/etc/passwd"}, "settings.prompt"),
        ({"temperature": 9}, "settings.temperature"),
        ({"temperature": 10**400}, "settings.temperature"),
        ({"connection": True}, "settings.connection"),
        ({"api_key": "x"}, "settings"),
    ):
        answer = ask_judge(program, connection, **wanted)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert not models.ScoringRequest.objects.exclude(connection=None).exists()


@pytest.mark.slow
def test_who_may_not_spend_neither_asks_sees_nor_resumes_a_judge(users, program, connection):
    row = done(ask_judge(program, connection), 202)
    for small in (
        program_of(users["analyst"], *Scope),
        program_of(users["owner"], Scope.WRITE, Scope.MONEY),
    ):
        assert ask_judge(small, connection).status_code == 403
        assert small.get(f"{REQUESTS}{row['id']}/").status_code == 403
        assert confirm(small, row).status_code == 403
        assert row["id"] not in [each["id"] for each in done(small.get(REQUESTS))["results"]]
        job = Job.objects.get(arguments__request=row["id"])
        assert small.send("post", f"/api/v1/studies/mine/jobs/{job.pk}/resume/").status_code == 403
        assert done(ask(small, "length"), 202)["spent_usd"] in (None, "0.000000")


def test_amounts_are_kept_from_who_may_spend_and_see_no_money(users, program, judge, connection):
    row = done(ask_judge(program, connection), 202)
    spender = program_of(users["owner"], Scope.READ, Scope.WRITE, Scope.SPEND)
    seen = done(spender.get(f"{REQUESTS}{row['id']}/"))
    assert (seen["max_usd"], seen["spent_usd"]) == (None, None)
    assert seen["estimate"]["estimate"]["usd"] is None
    assert seen["estimate"]["n_texts"] == row["estimate"]["n_texts"]

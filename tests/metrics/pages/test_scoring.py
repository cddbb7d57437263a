"""Scoring by any metric from the pages: parameters, judges, estimates, caps.

The judge is a real HTTP server of ours, over real sockets.
"""

import re
from decimal import Decimal
from typing import Any
from unittest.mock import ANY

import pytest
from django.core.management import call_command
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import models, roles
from accounts.teams import create_team, set_role
from annotation.models import Study
from annotation.study_facts import SCORE
from encryption import decrypt
from metrics.models import JudgeConnection, JudgeVersion, Score, ScoringRequest, ScoringRun
from tests.annotation.studies import rating_study
from tests.codes import field_codes
from tests.console.work import request_for_later
from tests.foreign_names import NAME, PUBLIC, resolve
from tests.metrics.conftest import foreign  # noqa: F401 -- a fixture
from tests.metrics.scorers.judges.foreign import Foreign, Says, chat
from work.models import Job
from work.tasks import stop_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
KEY = "sk-very-secret"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 1000}


def answers(number: int, body: dict[str, Any]) -> Says:
    """Several replies where they are asked for, and a use of tokens."""
    if "at random" in str(body):
        return chat(f"Cat {number}", usage=USAGE)
    return chat(*["3"] * int(body.get("n", 1)), usage=USAGE)


@pytest.fixture
def team(researcher: models.User) -> models.Team:
    return create_team(name="Lab", owner=researcher)


@pytest.fixture
def study(team: models.Team) -> Study:
    return rating_study(n_items=2, team=team)


@pytest.fixture
def judge(foreign: Foreign, settings: Any, tmp_path: Any) -> Foreign:  # noqa: F811
    settings.JUDGE, settings.JUDGE_PROBES = {}, tmp_path / "probes"
    foreign.answer = answers
    return foreign


@pytest.fixture
def connection(rosa: Client, team: models.Team, judge: Foreign) -> JudgeConnection:
    form = {"name": "Ours", "base_url": judge.base_url, "api_key": KEY}
    where = reverse("console:judge-connections", args=[team.slug])
    answer = rosa.post(where, form | {"length_field": "max_tokens"})
    assert answer.status_code == 302, answer.content.decode()
    return JudgeConnection.objects.get()


def ask(browser: Client, study: Study, metric: str, **fields: Any) -> Any:
    where = reverse("console:scoring", args=[study.slug]) + f"?metric={metric}"
    return browser.post(where, fields)


def ask_judge(browser: Client, study: Study, metric: str = "judge", **fields: Any) -> Any:
    form = {"connection": JudgeConnection.objects.get().pk, "model": "tiny", "prompt": "default"}
    form |= {"usd_per_million_input": "10", "usd_per_million_output": "20", "max_usd": "1.00"}
    return ask(browser, study, metric, **form | fields)


def confirm(browser: Client, study: Study) -> Any:
    row = ScoringRequest.objects.get()
    return browser.post(reverse("console:scoring-confirm", args=[study.slug, row.pk]))


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)


def job_message(kind: str = "score") -> str:
    message: str = Job.objects.get(kind=kind).message
    return message


def test_a_metric_is_scored_with_the_parameters_of_the_form(rosa, study):
    answer = ask(rosa, study, "distinct_n", n="3")
    assert rosa.get(answer.url).status_code == 200
    estimate = ScoringRequest.objects.get().estimate
    assert (estimate["n_texts"], estimate["n_candidates"]) == (4, 4)
    assert not Score.objects.exists()
    confirm(rosa, study)
    assert Score.objects.count() == 4
    assert "n:3" in ScoringRun.objects.get().signature
    details = {"metric": "distinct_n", "parameters": {"n": 3}}
    assert models.AuditEntry.objects.get(action="scores.compute").details == details
    # Another click has nothing done twice.
    confirm(rosa, study)
    assert Job.objects.filter(kind="score").count() == 1
    # A parameter that does not fit is named.
    answer = ask(rosa, study, "rougeL", tokenizer="latin")
    job = rosa.get(answer.url).context["job"]
    assert (job.state, "tokenizer" in job.message) == ("failed", True)


def test_a_judge_is_estimated_before_it_is_asked(rosa, study, judge, connection):
    answer = ask_judge(rosa, study)
    text = rosa.get(answer.url).content.decode()
    assert judge.bodies == []
    row = ScoringRequest.objects.get()
    assert row.estimate["estimate"]["requests"] == 4
    most = Decimal(row.estimate["estimate"]["usd"])
    assert f"${most:.4f}" in text
    assert "$1.00" in text
    assert KEY not in text
    assert not ScoringRun.objects.exists()
    with CaptureQueriesContext(connections["default"]) as queries:
        confirm(rosa, study)
    updates = [one["sql"] for one in queries if re.search("UPDATE .*spent_usd", one["sql"])]
    # Before the batch is sent it counts at its highest price, then at what it came to.
    written = [re.findall(r"\d+\.\d+|\d+", sql.partition("WHERE")[0])[:2] for sql in updates]
    counted = [(int(n), Decimal(usd)) for n, usd in written]
    assert (counted[0], counted[-1]) == ((4, most), (4, Decimal("0.12")))
    assert len(judge.bodies) == 4
    assert {body["model"] for body in judge.bodies} == {"tiny"}
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers in judge.headers)
    assert sorted(score.value for score in Score.objects.all()) == [3, 3, 3, 3]
    row.refresh_from_db()
    # 1,000 tokens sent and received, at $10 and $20 a million.
    assert (row.n_requests, row.spent_usd) == (4, Decimal("0.12"))
    details = {"metric": "judge", "parameters": {}, "connection": "Ours", "model": "tiny"}
    details["max_usd"] = "1.00"
    assert models.AuditEntry.objects.get(action="scores.compute").details == details
    assert KEY not in repr(list(Job.objects.values())) + repr(ScoringRun.objects.get().judge)


def test_the_cap_stops_the_run_and_holds_when_it_is_taken_up_again(
    rosa, study, judge, connection, settings
):
    settings.JUDGE = {"JUDGE_CONCURRENCY": "1"}
    ask_judge(rosa, study, max_usd="", max_requests="3", usd_per_million_input="0")
    assert ScoringRequest.objects.count() == 0
    free = {"usd_per_million_input": "0", "usd_per_million_output": "0"}
    ask_judge(rosa, study, max_usd="", max_requests="3", **free)
    confirm(rosa, study)
    job = Job.objects.get(kind="score")
    assert job.state == "failed"
    assert "3" in numbers(job.message)
    assert len(judge.bodies) == 3
    assert Score.objects.count() == 3
    rosa.post(reverse("console:again", args=[study.slug, job.pk]))
    assert len(judge.bodies) == 3
    assert ScoringRequest.objects.get().n_requests == 3
    said = numbers(job_message())
    assert ("3", "3", "0") in zip(said, said[1:], said[2:], strict=False)


@pytest.mark.parametrize(("max_usd", "spent"), [("0.01", "0"), ("0.10", "0.095")])
def test_money_is_never_spent_past_the_cap(rosa, study, judge, connection, max_usd, spent):
    ask_judge(rosa, study, max_usd=max_usd)
    # What an earlier run spent.
    ScoringRequest.objects.update(spent_usd=Decimal(spent), n_requests=3)
    confirm(rosa, study)
    left = Decimal(max_usd) - Decimal(spent)
    said = [Decimal(number) for number in numbers(job_message())]
    assert {Decimal(max_usd), left} <= set(said)
    assert ScoringRequest.objects.get().spent_usd == Decimal(spent)
    assert not judge.bodies


def test_replies_longer_than_allowed_for_pass_the_cap_once_and_are_reported(
    rosa, study, judge, connection, settings
):
    settings.JUDGE = {"JUDGE_CONCURRENCY": "1"}
    # Each reply costs 0.03, whatever length it was allowed.
    answer = ask_judge(rosa, study, max_usd="0.05")
    estimate = ScoringRequest.objects.get().estimate["estimate"]
    assert Decimal(estimate["usd"]) / estimate["requests"] < Decimal("0.01")
    assert rosa.get(answer.url).context["n_under_way"] == 1
    confirm(rosa, study)
    row = ScoringRequest.objects.get()
    assert (row.n_requests, row.spent_usd) == (len(judge.bodies), Decimal("0.03") * row.n_requests)
    assert Decimal("0.05") < row.spent_usd <= Decimal("0.05") + Decimal("0.03")
    assert [one for one in numbers(job_message()) if "." in one] == ["0.05", "0.01", "0.06"]


def test_a_question_of_ones_own_is_kept_with_the_study(rosa, study, judge, connection):
    own = {"aspect": "Tone", "criteria": "Is it kind?", "low": "1", "high": "5", "n": "2"}
    answer = ask_judge(rosa, study, "geval", prompt="own", **own)
    version = JudgeVersion.objects.get()
    assert (str(version), version.content["n"]) == ("tone@1", 2)
    # What the endpoint does is found out first, and counts.
    assert ScoringRequest.objects.get().n_requests == len(judge.bodies) == 6
    assert "tone@1" in rosa.get(answer.url).content.decode()
    confirm(rosa, study)
    assert {score.value for score in Score.objects.all()} == {3}
    assert "aspect:Tone" in ScoringRun.objects.get().signature
    page = rosa.get(reverse("console:scoring", args=[study.slug]), {"metric": "geval"})
    assert "tone@1" in page.content.decode()


def test_a_form_says_what_is_missing_and_offers_no_other_teams_connection(
    rosa, study, connection, colleague
):
    free = {"usd_per_million_input": "0", "usd_per_million_output": "0"}
    for fields, codes in (
        ({"max_usd": ""}, {"max_usd": ["required"]}),
        (free, {"max_requests": ["required"]}),
        ({"prompt": "/etc/passwd"}, {"prompt": ["invalid_choice"]}),
        ({"prompt": "own", "user": ""}, {"user": ["required"]}),
        ({"prompt": "own", "user": "$nothing"}, {"__all__": ANY}),
    ):
        answer = ask_judge(rosa, study, **fields)
        assert field_codes(answer.context["form"]) == codes
    assert not ScoringRequest.objects.exists()
    # A metric that needs references is not offered where there are none.
    where = reverse("console:scoring", args=[study.slug])
    for reference in ("", "A reference."):
        study.items.update(reference=reference)
        answer = rosa.get(where, {"metric": "rouge1"})
        assert answer.context["lacks_references"] is not bool(reference)
    other = create_team(name="Other", owner=colleague)
    JudgeConnection.objects.filter(pk=connection.pk).update(team=other)
    assert not rosa.get(where, {"metric": "judge"}).context["has_connection"]
    assert ask_judge(rosa, study).status_code == 200
    assert not ScoringRequest.objects.exists()


def test_a_judge_is_asked_where_its_name_led_when_it_was_checked(
    rosa, study, judge, connection, settings, monkeypatch
):
    """A name that leads into the site's network a moment later leads nobody there."""
    settings.OWN_MACHINE = False
    answer = ask_judge(rosa, study)  # at an address inside the site's network
    assert rosa.get(answer.url).context["job"].state == "failed"
    assert judge.bodies == []
    ScoringRequest.objects.all().delete()
    base_url = f"http://{NAME}:{judge.server_port}/v1"
    JudgeConnection.objects.filter(pk=connection.pk).update(base_url=base_url)
    resolver = resolve(monkeypatch, PUBLIC, PUBLIC)  # for the estimate, and for the run
    ask_judge(rosa, study)
    confirm(rosa, study)
    assert {headers["Host"] for headers in judge.headers} == {f"{NAME}:{judge.server_port}"}
    assert (len(judge.bodies), resolver.n_lookups) == (4, 2)


def test_the_key_is_encrypted_and_follows_a_change_of_keys(connection, settings, rosa, team):
    assert KEY not in connection.encrypted_key
    assert decrypt(connection.encrypted_key) == KEY
    old = settings.ENCRYPTION_KEYS
    settings.ENCRYPTION_KEYS = ["MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", *old]
    call_command("reencrypt_judge_connections")
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    connection.refresh_from_db()
    assert decrypt(connection.encrypted_key) == KEY
    settings.ENCRYPTION_KEYS = old
    rosa.post(reverse("console:judge-connection-close", args=[team.slug, connection.pk]))
    connection.refresh_from_db()
    assert connection.encrypted_key == ""
    assert connection.closed_at is not None
    assert {entry.action for entry in models.AuditEntry.objects.filter(subject="Ours")} == {
        "judge_connection.create",
        "judge_connection.close",
    }


def test_who_may_not_spend_asks_and_resumes_no_judge_but_stops_it(
    rosa, study, team, connection, judge, colleague, signed_in
):
    set_role(team=team, user=colleague, role=roles.Role.ANALYST, actor=team.memberships.get().user)
    analyst = signed_in(colleague)
    assert ask_judge(analyst, study).status_code == 403
    assert analyst.get(reverse("console:judge-connections", args=[team.slug])).status_code == 403
    ask_judge(rosa, study)
    job = stopped_job(study)
    again = reverse("console:again", args=[study.slug, job.pk])
    assert analyst.post(reverse("console:stop", args=[study.slug, job.pk])).status_code == 302
    assert analyst.post(again).status_code == 403
    api = reverse("console:api:job-resume", args=[study.slug, job.pk])
    assert analyst.post(api, content_type="application/json").status_code == 403
    assert judge.bodies == []
    assert rosa.post(again).status_code == 302
    assert len(judge.bodies) == 4
    # Analysts ask for and resume what asks no judge.
    ScoringRequest.objects.all().delete()
    assert ask(analyst, study, "length").status_code == 302
    job = stopped_job(study)
    assert analyst.post(reverse("console:again", args=[study.slug, job.pk])).status_code == 302
    assert ScoringRun.objects.filter(metric="length").exists()


def stopped_job(study: Study) -> Job:
    """The job that scores as was asked for, stopped before it began."""
    row = ScoringRequest.objects.get()
    arguments = {"request": row.pk}
    job = request_for_later(study=study, kind=SCORE, names=[row.metric], arguments=arguments)
    stop_job(job=job)
    return job

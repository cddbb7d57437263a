import json
import re

import pandas as pd
import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import models, teams
from accounts.roles import PERMISSIONS, Permission, Role
from annotation.models import Study, Submission
from annotation.protocols.versions import current_document
from console.chart_values import values_in_words
from results.models import Result, pack_record
from results.shown import ShownResult
from simulation import run_pieces, stored_experiments
from simulation.models import DialogueStudy, FinalItem, StoredExperiment
from tests.annotation.importing import command_output
from tests.codes import codes_on
from tests.console import pages, work
from tests.console.addresses import PAGES_OF_DIALOGUES, address
from tests.console.conftest import browser
from tests.retrieval.collections import sent
from tests.retrieval.conftest import record_of
from tests.simulation import answered, stored

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
MOST_STATEMENTS = 15
REPORTS = Result.objects.exclude(kind="experiment")
NEW = reverse("console:new-dialogue-study")
USERS = ["base", "tol:3", "base,accepts=target and alternatives"]
FORM = {"title": "Outcomes", "kind": "outcomes", "per_target": "2", "seed": "0"}
REPORT = {"first": "SimBase", "chosen_on": ["random"], "margin": "0.05", "seed": "0"}


@pytest.fixture(scope="module")
def stored_run(stored_for_module):
    owner = models.User.objects.create_user("rosa")
    row = stored.stored_experiment(teams.create_team(name="Lab", owner=owner), owner, n_targets=24)
    rules = stored.RULES | {"users": USERS, "seeds": [0], "n_turns": 4}
    with override_settings(TASKS=work.AT_ONCE):
        stored_experiments.request_run(experiment=row, rules=rules, actor=owner)
    return row


@pytest.fixture
def experiment(stored_run, db):
    return StoredExperiment.objects.get(pk=stored_run.pk)


@pytest.fixture
def team(experiment):
    return experiment.team


@pytest.fixture
def chosen(experiment):
    return FORM | {"dialogues": f"version:{experiment.versions.get().pk}"}


@pytest.fixture
def outcomes(rosa, experiment, chosen):
    rosa.post(NEW, chosen)
    return Study.objects.get(slug="outcomes")


@pytest.fixture
def reported(rosa, experiment, outcomes):
    answered.answer_outcomes(outcomes, experiment)
    rosa.post(address("dialogues"), REPORT)
    return outcomes


def content(client, name):
    return client.get(address("dialogues-download", name=name)).getvalue().decode()


def picture(client, chart, slug="", form="csv"):
    return client.get(address("dialogues-picture", slug, chart=chart, form=form))


@pytest.mark.slow
def test_an_experiment_leads_to_a_study_of_its_final_items(rosa, experiment, chosen):
    page = rosa.get(reverse("console:experiment", args=["shoes"])).content.decode()
    where = f"{NEW}?version={experiment.versions.get().pk}"
    assert where in page
    form = rosa.get(where).context["form"]
    assert form["dialogues"].value() == chosen["dialogues"]
    answer = rosa.post(where, chosen)
    assert (answer.status_code, answer.url) == (302, address("dialogues"))
    study = Study.objects.get(slug="outcomes")
    assert (study.team, study.items.count()) == (experiment.team, 24)
    assert current_document(study).title == "Which of these would do?"
    dialogues = DialogueStudy.objects.get()
    assert (dialogues.experiment, dialogues.final_user) == (experiment, "SimBase")
    assert dialogues.made_at is not None
    assert reverse("console:launch", args=["outcomes"]) in rosa.get(answer.url).content.decode()
    items = rosa.get(reverse("console:items", args=["outcomes"])).content.decode()
    assert f'href="{address("dialogues")}"' in items
    assert models.AuditEntry.objects.filter(action="study.create").exists()


def test_a_log_that_is_sent_gives_the_same_items_and_is_forgotten(rosa, experiment, outcomes):
    file = sent("dialogues.jsonl", "".join(run_pieces.log_lines(experiment.versions.get())))
    data = FORM | {"title": "Sent", "dialogues": f"log:{experiment.pk}", "file": file}
    assert rosa.post(NEW, data).status_code == 302
    again, made = (DialogueStudy.objects.get(study__slug=slug) for slug in ("sent", "outcomes"))
    assert again.log_sha256 == made.log_sha256
    finals = FinalItem.objects.values_list("recommender", "shown")
    assert [*finals.filter(dialogues=again)] == [*finals.filter(dialogues=made)] != []
    assert not again.log_parts.exists()


def test_a_file_that_is_no_log_makes_no_study(rosa, experiment):
    for content, code in (
        (b"nothing\n", "dialogues_unfit"),
        (b'{"topic": "t1"}\n', "dialogues_unfit"),
        (b"\xff\xfe\n", "dialogues_unfit"),
        (b"", "empty"),
    ):
        log = {"dialogues": f"log:{experiment.pk}", "file": sent("log.jsonl", content)}
        answer = rosa.post(NEW, FORM | log)
        assert [*pages.refused_fields(answer).values()] == [[code]]
        has_line = re.search(r"log\.jsonl, \S+ 1:", str(answer.context["form"].errors))
        assert bool(has_line) == bool(content)
    assert not Study.objects.exists()


def test_a_log_that_cannot_be_used_is_named_by_line_on_the_studys_page(rosa, experiment):
    lines = [*run_pieces.log_lines(experiment.versions.get())][:1]
    file = sent("log.jsonl", f"{lines[0].strip()}\nnothing\n")
    page = rosa.post(NEW, FORM | {"dialogues": f"log:{experiment.pk}", "file": file}, follow=True)
    job = page.context["job"]
    assert job.state == "failed"
    assert re.search(r"log\.jsonl, \S+ 2:", job.message)
    assert f'href="{NEW}"' in page.content.decode()
    assert not Study.objects.get().items.exists()


def test_a_form_that_says_too_little_makes_nothing(rosa, chosen):
    for changes, codes in (
        ({"title": ""}, {"title": ["required"]}),
        ({"dialogues": "version:0"}, {"dialogues": ["invalid_choice"]}),
        ({"most_targets": "5"}, {"most_targets": ["min_value"]}),
        ({"kind": "nothing"}, {"kind": ["invalid_choice"]}),
        ({"final_user": "foo"}, {"final_user": ["unknown_user"]}),
    ):
        assert pages.refused_fields(rosa.post(NEW, chosen | changes)) == codes
    assert not Study.objects.exists()


def test_a_result_with_too_few_targets_is_refused_before_a_study_is_made(rosa, team, researcher):
    small = stored.stored_experiment(team, researcher, n_targets=8)
    rules = stored.RULES | {"users": USERS, "recommenders": ["random"], "seeds": [0], "n_turns": 4}
    version = stored_experiments.request_run(experiment=small, rules=rules, actor=researcher)
    for dialogues, codes in (
        (f"version:{version.pk}", {"dialogues": ["too_few_targets", "one_recommender"]}),
        (f"log:{small.pk}", {"file": ["log_missing"]}),
    ):
        assert pages.refused_fields(rosa.post(NEW, FORM | {"dialogues": dialogues})) == codes
    assert not Study.objects.exists()


@pytest.mark.slow
def test_a_report_is_stored_once_and_never_changes(rosa, experiment, reported):
    where = address("dialogues")
    report = REPORTS.get()
    n_answers, n_annotators, n_targets = 6 * 24, 6, 24
    assert report.facts["n_answers"] == report.record["n_answers"] == n_answers
    assert (report.facts["n_annotators"], report.facts["n_targets"]) == (n_annotators, n_targets)
    assert report.record == record_of("outcome_report", "outcomes", "--chosen-on", "random")
    rosa.get(where)
    with CaptureQueriesContext(connection) as queries:
        answer = rosa.get(where)
    assert len(queries) <= MOST_STATEMENTS
    page, first = answer.content.decode(), answer.context["view"].answer
    assert codes_on(page)[:2] == ["few_pairs", "none_truer"]
    assert "biases" in codes_on(page)
    assert pages.rows_alike(page) == []
    assert report.fingerprint[:12] in page
    assert rosa.post(where, REPORT).url == f"{where}?report=1"
    others = {"first": "MetaSimTol tolerance 3", "chosen_on": ["embedding"], "margin": "0.1"}
    other = rosa.post(where, REPORT | others | {"seed": "7"}, follow=True)
    assert other.context["report"].number == 2
    assert REPORTS.count() == 2
    # The form begins with the settings of the report that is shown.
    for number, settings in (
        (1, REPORT | {"margin": 0.05, "seed": 0}),
        (2, others | {"margin": 0.1, "seed": 7}),
    ):
        answer = rosa.get(f"{where}?report={number}")
        assert answer.context["report"].number == number
        assert {name: answer.context["form"][name].value() for name in REPORT} == settings
    assert rosa.get(f"{where}?report=3").status_code == 404
    # Answers came in since.
    reported.refresh_from_db()
    reported.judgments_version += 1
    reported.save()
    answer = rosa.get(f"{where}?report=1")
    assert "report_outdated" in codes_on(answer.content.decode())
    assert answer.context["view"].answer == first
    rosa.post(where, REPORT)
    assert REPORTS.count() == 3


def test_a_report_that_cannot_be_computed_says_why(rosa, outcomes):
    where = address("dialogues")
    assert rosa.post(where, REPORT, follow=True).context["job"].state == "failed"
    all_of_them = rosa.post(where, REPORT | {"chosen_on": ["random", "embedding"]})
    assert all_of_them.status_code == 422
    assert not REPORTS.exists()


@pytest.mark.slow
def test_a_switching_study_says_what_makes_people_switch(rosa, experiment, chosen):
    data = chosen | {"title": "Switching", "kind": "switching"}
    assert rosa.post(NEW, data).status_code == 302
    study = Study.objects.get(slug="switching")
    answered.answer_switching(study)
    where = address("dialogues", "switching")
    rosa.post(where, {"users": "base; prob:0:0.75", "seed": "0"})
    page = rosa.get(where)
    details = {one.code: one for one in page.context["view"].details}
    assert page.context["view"].answer.code == "probabilities"
    assert "MetaSimProb tolerance 0, P 0.75" in details["truer"]
    assert "too_few_workers" not in details
    people = page.context["view"].answer
    users = ("--user", "base", "--user", "prob:0:0.75")
    assert REPORTS.get().record == record_of("switching_report", "switching", *users)
    form = page.context["form"]
    assert form["users"].value() == "base; prob:0:0.75"
    for wrong, code in (("base; base", "repeated_user"), ("nobody", "unknown_user")):
        refused = rosa.post(where, {"users": wrong, "seed": "0"})
        assert pages.refused_fields(refused) == {"users": [code]}
    assert len(picture(rosa, "errors", "switching").content.splitlines()) == 1 + 2
    Submission.objects.of(study).update(is_simulated=True)
    Study.objects.update(judgments_version=99)  # the number of simulated answers is kept for each
    assert rosa.get(where).context["view"].answer != people


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "codes", "shares"),
    [
        ({"after_gain": 0.0}, ["probabilities", "undefined_model", "decisions"], (True, True)),
        ({"leaving": True}, ["unknown", "decisions", "stayed"], (False, False)),
    ],
)
def test_a_switching_study_without_a_model_says_what_can_be_said(
    rosa, experiment, chosen, answers, codes, shares
):
    rosa.post(NEW, chosen | {"title": "Switching", "kind": "switching"})
    answered.answer_switching(Study.objects.get(slug="switching"), **answers)
    where = reverse("console:dialogues", args=["switching"])
    rosa.post(where, {"users": "base; prob:0:0.75", "seed": "0"})
    assert REPORTS.count() == 1
    view = rosa.get(where).context["view"]
    assert [view.answer.code, *(one.code for one in view.details)][: len(codes)] == codes
    record = view.result.record
    assert shares == tuple(
        record[f"p_switch_{name}"]["value"] is not None for name in ("after_loss", "after_gain")
    )
    for chart in view.charts:
        assert picture(rosa, chart.name, "switching", "svg").status_code == 200
    for name in ("estimates.csv", *[f"{name}.csv" for name in view.tables], "report.json"):
        download = address("dialogues-download", "switching", name=name)
        assert rosa.get(download).status_code == 200


@pytest.mark.slow
def test_files_hold_what_the_page_shows(rosa, reported):
    record = json.loads(content(rosa, "report.json"))
    assert record["rules"]["chosen_on"] == ["random"]
    assert record["origin"]["final_user"] == "SimBase"
    rows = [json.loads(line) for line in content(rosa, "estimates.jsonl").splitlines()]
    assert rows == record["estimates"]
    spa = [row for row in rows if (row["part"], row["name"]) == ("order", "spa")]
    assert spa[0]["user"] == "SimBase"
    assert len(spa) == len(USERS)
    assert "tabular" in content(rosa, "bias.tex")
    assert len(content(rosa, "bias.csv").splitlines()) == 1 + 2 * len(USERS)
    assert models.AuditEntry.objects.filter(action="export").count() == 4
    chosen = ("outcomes", "outcomes", "--chosen-on", "random")
    assert "tau_AP" in command_output("compute_result", *chosen)
    latest = REPORTS.latest("number")
    assert (latest.number, latest.settings["first"]) == (2, None)
    assert latest.record == REPORTS.get(number=1).record
    latest.delete()
    missing = address("dialogues-download", name="nothing.csv")
    assert rosa.get(missing).status_code == 404
    assert len(picture(rosa, "outcomes").content.splitlines()) == 1 + 3 + 2 * len(USERS)
    changed = json.dumps(REPORTS.get().record).replace('"SimBase"', '"=1+1"')
    REPORTS.update(packed_record=pack_record(json.loads(changed)))
    for chart in ("order", "outcomes"):
        lines = picture(rosa, chart).content.decode()
        assert "'=1+1" in lines
        assert ",=1+1" not in lines
        assert not lines.startswith("=1+1")
    assert picture(rosa, "nothing").status_code == 404


@pytest.mark.slow
def test_a_picture_and_a_file_ask_the_database_a_few_things(rosa, reported):
    for name in ("dialogues-picture", "dialogues-download"):
        where = address(name)
        rosa.get(where)
        with CaptureQueriesContext(connection) as queries:
            assert rosa.get(where).getvalue() is not None
        assert len(queries) <= MOST_STATEMENTS


@pytest.mark.slow
def test_each_role_opens_what_it_may_and_nothing_else(team, reported, researcher):
    for role in Role:
        user = researcher
        if role != Role.OWNER:
            user = models.User.objects.create_user(role.value)
            teams.set_role(team=team, user=user, role=role, actor=researcher)
        client, permissions = browser(user), PERMISSIONS[Role(role)]
        for name, permission in PAGES_OF_DIALOGUES.items():
            status = client.get(address(name)).status_code
            may_open = permission in permissions and Permission.VIEW_SYSTEMS in permissions
            assert status == (200 if may_open else 403), (role, name)
        status = client.post(address("dialogues"), REPORT).status_code
        may_compute = Permission.ANALYSE in permissions and Permission.VIEW_SYSTEMS in permissions
        assert status == (302 if may_compute else 403), role
        choices = browser(user).get(NEW).context["form"].experiments
        may_make = Permission.EDIT in permissions and Permission.VIEW_SYSTEMS in permissions
        assert bool(choices) == may_make, role


@pytest.mark.slow
def test_to_strangers_the_study_and_the_experiment_are_not_there(reported, chosen):
    stranger = models.User.objects.create_user("stranger")
    teams.create_team(name="Other", owner=stranger)
    client = browser(stranger)
    for name in PAGES_OF_DIALOGUES:
        assert client.get(address(name)).status_code == 404, name
    assert client.post(NEW, chosen | {"title": "Taken"}).status_code == 422
    assert not Study.objects.filter(title="Taken").exists()
    nobody = browser(None)
    for name in PAGES_OF_DIALOGUES:
        assert nobody.get(address(name)).status_code == 302


def test_another_study_has_no_such_page(rosa, researcher, team):
    study = Study.objects.create(slug="plain", title="Plain", kind="rating", team=team)
    assert rosa.get(reverse("console:dialogues", args=[study.slug])).status_code == 404
    items = rosa.get(reverse("console:items", args=[study.slug])).content.decode()
    assert "simulated-users" not in items


def share(value=0.5, reason=None):
    return {"value": value, "ci_low": None, "ci_high": None, "reason": reason}


def shown_switching(**record):
    of_all = {
        "choices": {"keep": 34, "switch": 0, "leave": 5},
        "reason": None,
        **dict.fromkeys(("p_switch_after_loss", "p_switch_after_gain"), share()),
        "nearest_excess": share(),
        "leaves": share(0.1, "fewer than 6 workers"),
        "coefficients": [],
        "deviations": {},
        "users": [
            {"user": user, "brier": 0.2, "gain": share(0.4), "p": p, "p_adjusted": p and 2 * p}
            for user, p in (("SimBase", None), ("A", 0.0625), ("B", 0.0625))
        ],
    }
    packed = pack_record(of_all | record)
    return ShownResult(Result(kind="switching", facts={"n_annotators": 5}, packed_record=packed))


def test_so_few_workers_that_no_answer_could_tell_users_apart_are_named():
    shown = shown_switching()
    said = {one.code: one for one in shown.details}
    assert " 34 " in said["stayed"]
    assert " 5 " in said["too_few_workers"]
    assert " 0.125" in said["too_few_workers"]
    table = shown.tables["shares"]
    assert "; a: " in table.full_note
    assert any("6" in str(value) for value in list(table.records()[-1].values())[1:])


def shown_outcomes(*, spa=0.75, reasons=None, equivalent=()):
    names = ("tau_b", "tau_ap", "spa")
    order = {
        "user": "SimBase",
        "values": dict.fromkeys(names, spa),
        "limits": {name: [None, None] for name in names},
        "reasons": reasons or {},
        **dict.fromkeys(("alike", "opposite", "undecided"), 1),
        **dict.fromkeys(("spa_gain", "p", "p_adjusted")),
        "gain_limits": [None, None],
    }
    biases = [
        {"user": "SimBase", "recommender": f"r{n}", "equivalent": one}
        | dict.fromkeys(("bias", "ci_low", "ci_high", "p_equivalence", "reason"))
        | dict.fromkeys(("apart", "apart_low", "apart_high"))
        for n, one in enumerate(equivalent)
    ]
    record = {
        "users": ["SimBase"],
        "recommenders": [{"recommender": row["recommender"]} | share() for row in biases],
        "item_at_random": {"recommender": ""} | share(),
        "biases": biases,
        "orders": [order],
        **{"ceiling": {}, "attainable": {}, "ceiling_reason": None, "counterfactual": None},
    }
    said = {"settings": {"margin": 0.05}, "facts": {"n_targets": 30}}
    return ShownResult(Result(kind="outcomes", packed_record=pack_record(record), **said))


def test_why_an_order_has_no_interval_is_said_below_it():
    reasons = dict.fromkeys(("tau_b", "tau_ap"), "no spread")
    table = shown_outcomes(spa=1.0, reasons=reasons).tables["order"]
    assert table.full_note.count("; a: ") == 1
    assert [cell.letter for cell in next(table.cells)].count("a") == 2


def test_of_many_values_a_chart_says_the_ends():
    names = [f"user {n}" for n in range(20)]
    rows = pd.DataFrame({"name": names, "value": range(20), "ci_low": None, "ci_high": None})
    assert "user 0 0.000; user 19 19.000" in values_in_words(rows)
    assert "user 1 " not in values_in_words(rows)


@pytest.mark.parametrize(
    ("equivalent", "code", "n_pairs", "numbers"),
    [
        ([None, None], "few_pairs", 1, [0, 2]),
        ([True, None, False], "few_pairs", 3, [1, 2, 3]),
        ([True] * 4 + [False] * 6, "pairs", 45, [4, 10]),
    ],
)
def test_an_order_says_how_many_pairs_it_rests_on_and_a_bias_where_it_was_tested(
    equivalent, code, n_pairs, numbers
):
    shown = shown_outcomes(equivalent=equivalent)
    assert shown.answer.code == code
    assert "0.750" in shown.answer
    assert f" {n_pairs} " in shown.answer
    [bias] = shown.details
    assert "SimBase " in bias
    assert [int(n) for n in re.findall(r"(?<= )\d+(?![\d.]*\d)", bias)] == numbers

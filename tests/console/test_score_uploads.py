"""Scores computed elsewhere, uploaded on the Metrics page: mapped, shown, imported."""

from io import BytesIO
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry, User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.models import Study, Upload
from metrics.frames import score_frame
from metrics.models import Score, ScoringRun
from tests.annotation.studies import rating_study
from work.execution import run_job
from work.models import Job

pytestmark = pytest.mark.django_db
WIDE = "dialog_id;model;bleurt;loss\nd0;alpha;0,5;2\nd0;beta;0.25;\nd1;alpha;0.75;3\n"
LONG = "item,system,metric,value,note\nd0,alpha,bleurt,0.5,x\nd0,beta,bleurt,,y\n"


@pytest.fixture
def study(researcher: User) -> Study:
    return rating_study(n_items=2, owner=researcher)


def send(client: Client, study: Study, content: str | bytes, name: str = "scores.csv") -> Upload:
    body = content.encode() if isinstance(content, str) else content
    where = reverse("console:add-scores", args=[study.slug])
    answer = client.post(where, {"file": SimpleUploadedFile(name, body)})
    assert answer.status_code == 302, answer.content.decode()
    do_jobs()
    return Upload.objects.get()


def do_jobs() -> None:
    """Parquet is read in the background, however small it is."""
    for job in Job.objects.exclude(state=Job.State.DONE):
        run_job(job.pk)


def to(name: str, upload: Upload) -> str:
    return reverse(f"console:{name}", args=[upload.token])


def form_of(upload: Upload, uses: dict[str, str] | None = None, **said: Any) -> dict[str, Any]:
    uses = upload.mapping["uses"] | (uses or {})
    names = [column["name"] for column in upload.columns]
    return {f"use-{n}": uses.get(name, "") for n, name in enumerate(names)} | said


def show(client: Client, upload: Upload) -> Any:
    """The page of the file."""
    return client.get(to("upload", upload)).context


def values(study: Study) -> dict[Any, float]:
    rows = score_frame(study).dropna(subset="value").itertuples()
    return {(row.metric, row.item, row.candidate): row.value for row in rows}


def test_columns_of_metrics_are_guessed_shown_and_imported(rosa: Client, study: Study) -> None:
    upload = send(rosa, study, WIDE.replace("0,5", "0.5"))
    assert upload.mapping["uses"] == {
        "dialog_id": "item",
        "model": "system",
        "bleurt": "score",
        "loss": "score",
    }
    shown = show(rosa, upload)
    assert upload.form["delimiter"] == ";"
    assert (shown["summary"]["n_scores"], shown["summary"]["n_metrics"]) == (6, 2)
    names = ("metric", "n", "least", "most", "n_undefined", "n_without")
    bleurt = next(row for row in shown["metrics"] if row["metric"] == "bleurt")
    assert [bleurt[name] for name in names] == ["bleurt", 3, "0.25", "0.75", 0, 1]
    assert not ScoringRun.objects.exists()

    answer = rosa.post(to("upload-map", upload), form_of(upload, lower="loss", signature="loss|v1"))
    answer = rosa.post(
        to("upload-import", upload), form_of(upload, lower="loss", signature="loss|v1")
    )
    assert rosa.get(answer.url).url == reverse("console:validation", args=[study.slug])
    assert values(study) == {
        ("bleurt", "d0", "alpha"): 0.5,
        ("bleurt", "d0", "beta"): 0.25,
        ("bleurt", "d1", "alpha"): 0.75,
        ("loss", "d0", "alpha"): 2,
        ("loss", "d1", "alpha"): 3,
    }
    assert {run.metric: run.higher_is_better for run in ScoringRun.objects.all()} == {
        "bleurt": True,
        "loss": False,
    }
    assert {run.signature for run in ScoringRun.objects.all()} == {"loss|v1"}


def test_a_row_a_score_names_its_metric(rosa: Client, study: Study) -> None:
    upload = send(rosa, study, LONG)
    assert show(rosa, upload)["summary"]["n_scores"] == 2
    rosa.post(to("upload-import", upload), form_of(upload))
    do_jobs()
    assert values(study) == {("bleurt", "d0", "alpha"): 0.5}
    assert Score.objects.get(value=None).reason == "not computed"
    assert ScoringRun.objects.get().signature == "imported|file:scores.csv"


def test_all_faults_are_shown_at_their_cells_and_nothing_is_imported(
    rosa: Client, study: Study
) -> None:
    content = WIDE + "d9;alpha;1;1\nd1;beta;high;1\nd0;alpha;0.1;9\nd1;beta;1\n;beta;1;1\n"
    upload = send(rosa, study, content)
    assert upload.n_faults == 6
    faults = [(one["line"], one["column"], one["value"]) for one in upload.faults]
    assert faults == [
        (2, "bleurt", "0,5"),
        (5, "", ""),
        (6, "bleurt", "high"),
        (7, "loss", "9"),
        (8, "", ""),
        (9, "dialog_id", ""),
    ]
    missing = upload.faults[1]["problem"]
    assert "'alpha'" in missing
    assert "'d9'" in missing
    rosa.post(to("upload-import", upload), form_of(upload))
    assert not ScoringRun.objects.exists()
    assert Upload.objects.get().result is None


def test_what_the_columns_are_is_said_and_kept(rosa: Client, study: Study) -> None:
    content = "doc,bot,q\nd0,alpha,0.5\n"
    upload = send(rosa, study, content)
    assert len(show(rosa, upload)["problems"]) == 1
    rosa.post(to("upload-map", upload), form_of(upload, {"doc": "item"}))
    assert show(rosa, upload)["summary"]["n_scores"] == 1
    rosa.post(to("upload-import", upload), form_of(upload, {"doc": "item"}))
    Upload.objects.all().delete()
    again = send(rosa, study, content.replace("0.5", "0.75"))
    assert again.mapping["uses"]["doc"] == "item"
    rosa.post(to("upload-import", again), form_of(again))
    assert values(study) == {("q", "d0", "alpha"): 0.75}


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "jsonl", "tsv"])
def test_a_table_is_of_any_kind(rosa: Client, study: Study, kind: str) -> None:
    import openpyxl
    import pandas as pd

    frame = pd.DataFrame({"item": ["d0"], "system": ["alpha"], "bleurt": [0.5]})
    content = BytesIO()
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in [list(frame), *frame.to_numpy().tolist()]:
            book.active.append(row)
        book.save(content)
    elif kind == "parquet":
        frame.to_parquet(content)
    elif kind == "jsonl":
        content.write(frame.to_json(orient="records", lines=True).encode())
    else:
        content.write(frame.to_csv(index=False, sep="\t").encode())
    upload = send(rosa, study, content.getvalue(), f"scores.{kind}")
    rosa.post(to("upload-import", upload), form_of(upload))
    do_jobs()
    assert values(study) == {("bleurt", "d0", "alpha"): 0.5}


def test_analysts_import_scores_and_the_log_says_so(
    researcher: User, colleague: User, signed_in: Any
) -> None:
    team = create_team(name="Lab", owner=researcher)
    set_role(team=team, user=colleague, role=Role.ANALYST, actor=researcher)
    study = rating_study(n_items=1, team=team)
    browser = signed_in(colleague)
    upload = send(browser, study, LONG)
    browser.post(to("upload-import", upload), form_of(upload))
    assert Score.objects.count() == 2
    entry = AuditEntry.objects.get(action="scores.import")
    assert entry.details == {"file": "scores.csv", "n_scores": 2}
    set_role(team=team, user=colleague, role=Role.AUDITOR, actor=researcher)
    upload = Upload.objects.get()
    assert browser.get(to("upload", upload)).status_code == 403

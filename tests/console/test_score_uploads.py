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
from tests.console import pages
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


def words_of(client: Client, upload: Upload) -> str:
    text = pages.words_of(client.get(to("upload", upload)).content.decode())
    return text.replace(" :", ":").replace(" ,", ",").replace("“ ", "“").replace(" ”", "”")


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
    text = words_of(rosa, upload)
    assert "Read as CSV with semicolons" in text
    assert "6 scores of 2 metrics" in text
    assert "bleurt 3 0.25 0.75 0 1" in text
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
    assert "2 scores of 1 metric" in words_of(rosa, upload)
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
    text = words_of(rosa, upload)
    assert "6 faults in the file. Nothing is saved yet." in text
    for fault in (
        "Line 2, bleurt: “0,5”: '0,5' is not a number.",
        "has no candidate 'alpha' of 'd9'.",
        "Line 6, bleurt: “high”: 'high' is not a number.",
        "Line 7, loss: “9”: line 2 gives 'loss' for it already.",
        "Line 8: 3 fields, where the header has 4.",
        "Line 9, dialog_id: this field must not be empty.",
    ):
        assert fault in text, fault
    rosa.post(to("upload-import", upload), form_of(upload))
    assert not ScoringRun.objects.exists()
    assert Upload.objects.get().result is None


def test_what_the_columns_are_is_said_and_kept(rosa: Client, study: Study) -> None:
    content = "doc,bot,q\nd0,alpha,0.5\n"
    upload = send(rosa, study, content)
    assert "Choose the column that is “Item”." in words_of(rosa, upload)
    rosa.post(to("upload-map", upload), form_of(upload, {"doc": "item"}))
    assert "1 score of 1 metric" in words_of(rosa, upload)
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

import csv
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from annotation.exceptions import ImportRefused
from annotation.frames import candidate_frame, judgment_frame
from annotation.models import Annotator, Item, Judgment, Study, Submission
from annotation.readers.mturk_batch import read_mturk_batch
from tests.annotation.importing import (
    assert_imported_once,
    assert_refused,
    command_output,
    everything,
    numbers_in,
    queries_of,
)
from tests.annotation.studies import alternatives_study
from tests.codes import refused

pytestmark = pytest.mark.django_db

WORKERS = ("A1WORKERONE", "A2WORKERTWO", "A3WORKERTHREE")
TIMES = {
    "AcceptTime": "Tue Jun 13 14:13:34 PDT 2023",
    "SubmitTime": "Tue Jun 13 23:59:59 PST 2023",
    "WorkTimeInSeconds": "174",
}


def assignment(hit: str, worker: str, status: str, *values: float, **fields: Any) -> dict[str, Any]:
    """A row as Amazon writes it, with a rating of fit and of style for two systems."""
    names = ("Answer.Fit_big", "Answer.Fit_small", "Answer.Style_big", "Answer.Style_small")
    return {
        "HITId": hit,
        "Title": "Rate the responses",
        "AssignmentId": f"ASSIGNMENT-{hit}-{worker}",
        "WorkerId": worker,
        "AssignmentStatus": status,
        **TIMES,
        "LifetimeApprovalRate": "89% (201/227)",
        "Input.Speaker": f"context of {hit}",
        "Input.big": f"big says {hit}",
        "Input.small": f"small says {hit}",
        **dict(zip(names, values or (10, 20, 30, 40), strict=True)),
        "Approve": "",
        **fields,
    }


BATCH = (
    assignment("H1", WORKERS[0], "Approved", 10, 20, 30, 40),
    assignment("H1", WORKERS[1], "Rejected", 0, 0, 0, 0),
    assignment("H2", WORKERS[0], "Submitted", 50, 60, 70, 80),
)

Writer = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def write(*rows: dict[str, Any], name: str = "Batch_1_batch_results.csv") -> Path:
        path = tmp_path / name
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


def test_a_batch_becomes_a_rating_study(write: Writer) -> None:
    assert_imported_once("import_mturk_batch", write(*BATCH), [2, 3], study="styles")
    study = Study.objects.get()
    assert study.kind == "rating"
    contexts = study.items.values_list("key", "context")
    assert list(contexts) == [("H1", "context of H1"), ("H2", "context of H2")]
    frame = judgment_frame(study)
    rows = frame[["question", "item", "system", "value"]].to_numpy().tolist()
    names = [
        [question, item, system]
        for question in ("Fit", "Style")
        for item in ("H1", "H2")
        for system in ("big", "small")
    ]
    values = [10, 20, 50, 60, 30, 40, 70, 80]
    assert rows == [[*name, value] for name, value in zip(names, values, strict=True)]
    assert candidate_frame(study)["response"].tolist()[:2] == ["big says H1", "small says H1"]
    # What Amazon decided is kept.
    submissions = Submission.objects.order_by("pk")
    assert [s.status for s in submissions] == ["approved", "rejected", "submitted"]
    assert Judgment.objects.count() == 12
    assert Judgment.objects.accepted().count() == 8


def test_amazons_local_times_become_utc_and_what_is_no_time_is_refused(write: Writer) -> None:
    times = ["yesterday", "Tue Jun 13 14:13:34 CEST 2023", "Tue Jun 31 14:13:34 PDT 2023"]
    times += ["Tue Jun 13 25:13:34 PDT 2023", "13/06/2023", "0001-01-01T00:00:00+23:59"]
    for text in (*times, "1686690814"):
        for field in ("AcceptTime", "SubmitTime"):
            path = write(BATCH[0], {**BATCH[2], field: text})
            assert_refused("import_mturk_batch", path, "not_time", line=3, field=field, value=text)
    rows = [
        BATCH[0],
        assignment("H2", WORKERS[0], "Approved", AcceptTime="2023-06-13T14:13:34+02:00"),
        assignment("H3", WORKERS[0], "Approved", AcceptTime="2023-06-13 14:13:34"),
        assignment("H4", WORKERS[0], "Approved", AcceptTime="", WorkTimeInSeconds=""),
    ]
    command_output("import_mturk_batch", write(*rows), study="styles")
    h1, h2, h3, h4 = Submission.objects.order_by("pk")
    assert h1.accepted_at == datetime(2023, 6, 13, 21, 13, 34, tzinfo=UTC)
    assert h1.submitted_at == datetime(2023, 6, 14, 7, 59, 59, tzinfo=UTC)
    assert h1.seconds == 174
    assert h2.accepted_at == datetime(2023, 6, 13, 12, 13, 34, tzinfo=UTC)
    assert h3.accepted_at == datetime(2023, 6, 13, 14, 13, 34, tzinfo=UTC)
    assert (h4.accepted_at, h4.seconds) == (None, None)


@pytest.mark.parametrize(
    "layout", ["{question}_{system}", "{question}.{system}", "{system}_{question}"]
)
def test_answers_are_found_in_each_layout(write: Writer, layout: str) -> None:
    inputs = {"Input.text": "hi", "Input.2": "b", "Input.gpt": "c", "Input.gpt_2": "a"}
    columns = [
        layout.format(question=question, system=system)
        for question in ("Fit", "Style")
        for system in ("gpt_2", "2", "gpt")
    ]
    row = {
        **{"HITId": "H1", "WorkerId": "W", "AssignmentStatus": "Approved", **inputs},
        **{f"Answer.{column}": value for value, column in enumerate(columns)},
        "Answer.comment": "fine",
    }
    command_output("import_mturk_batch", write(row), study="s")
    frame = judgment_frame(Study.objects.get())
    assert frame[["question", "system", "value"]].to_numpy().tolist() == [
        *(["Fit", "gpt_2", 0.0], ["Fit", "2", 1.0], ["Fit", "gpt", 2.0]),
        *(["Style", "gpt_2", 3.0], ["Style", "2", 4.0], ["Style", "gpt", 5.0]),
    ]


def test_a_worker_is_known_by_a_pseudonym_alone(write: Writer, tmp_path: Path) -> None:
    rows = [{**row, "Answer.comment": "☃ naïve", "Input.note": "n"} for row in BATCH]
    output = command_output("import_mturk_batch", write(*rows), study="styles", context="Speaker")
    study = Study.objects.get()
    # Of a row, only the answers are kept.
    assert json.loads(Submission.objects.order_by("pk")[0].raw) == {
        **{"Answer.Fit_big": "10", "Answer.Fit_small": "20"},
        **{"Answer.Style_big": "30", "Answer.Style_small": "40"},
        "Answer.comment": "☃ naïve",
    }
    csv_text = judgment_frame(study, accepted=False).to_csv() + candidate_frame(study).to_csv()
    stored = repr(everything())
    for text in (output, csv_text, stored):
        assert not [word for word in (*WORKERS, "ASSIGNMENT-", "201/227") if word in text]
    names = judgment_frame(study, accepted=False)["annotator"].unique()
    assert len(names) == 2
    assert all(len(name) == 11 and name[0] == "A" and int(name[1:], 16) >= 0 for name in names)
    # No refusal names a worker.
    path = write(assignment("H1", WORKERS[0], "Approved", 11, 20, 30, 40))
    options = {"value": "H1", "study": "styles"}
    error = assert_refused("import_mturk_batch", path, "other_submission", line=2, **options)
    assert re.search("A[0-9a-f]{10}", str(error))
    assert WORKERS[0] not in str(error)


def test_answers_may_follow_the_items(write: Writer) -> None:
    path = write(*BATCH)
    output = command_output("import_mturk_batch", path, study="styles", items_only=True)
    assert numbers_in(output.splitlines()[0]) == [2]
    assert (Item.objects.count(), Submission.objects.count()) == (2, 0)
    assert not Annotator.objects.exists()
    assert Study.objects.get().questions.count() == 2
    imported = command_output("import_mturk_batch", path, study="styles").splitlines()[0]
    assert numbers_in(imported) == [0, 2, 3]
    # A worker has another pseudonym in another study.
    command_output("import_mturk_batch", path, study="two")
    names = Annotator.objects.values_list("pseudonym", flat=True)
    assert len(set(names)) == len(names) == 4
    alternatives_study("pools")
    for items_only in (True, False):
        options = {"study": "pools", "items_only": items_only}
        assert_refused("import_mturk_batch", path, "other_kind", **options)


def test_columns_may_name_items_conditions_and_contexts(write: Writer) -> None:
    extra = {"Input.dataset": "BST", "Input.number": "7"}
    path = write({**BATCH[0], **extra}, {**BATCH[2], **extra, "Input.number": "8"})
    options = {"item": ["dataset", "number"], "condition": "dataset"}
    command_output("import_mturk_batch", path, study="s", **options)
    items = Item.objects.values_list("key", "condition")
    assert list(items) == [("BST-7", "BST"), ("BST-8", "BST")]
    # A HIT that was published again is the same item.
    again = {**BATCH[0], "HITId": "H9", "WorkerId": WORKERS[1], **extra}
    path = write({**BATCH[0], **extra}, again)
    command_output("import_mturk_batch", path, study="again", **options)
    study = Study.objects.named("again")
    assert (study.items.get().key, Submission.objects.of(study).count()) == ("BST-7", 2)
    path = write(*({**row, "Input.dataset": "BST"} for row in BATCH))
    assert_refused("import_mturk_batch", path, "no_context", value="Speaker, dataset")
    options = {"value": "Speaker, big, small", "item": ["Speaker"]}
    assert_refused("import_mturk_batch", write(*BATCH), "no_context", **options)
    path = write(*({**row, "Input.dataset": "BST"} for row in BATCH))
    command_output("import_mturk_batch", path, study="s", context="Speaker")
    assert Item.objects.get(key="H1").context == "context of H1"


def test_a_rejected_submission_gives_way_to_the_workers_next(write: Writer) -> None:
    rows = [
        assignment("H1", WORKERS[0], "Rejected", 0, 0, 0, 0),
        assignment("H1", WORKERS[0], "Approved", 1, 1, 1, 1),
        assignment("H1", WORKERS[0], "Rejected", 2, 2, 2, 2),
        assignment("H1", WORKERS[0], "Approved", 3, 3, 3, 3),
    ]
    output = command_output("import_mturk_batch", write(*rows), study="s")
    assert set(Judgment.objects.values_list("value", "submission__status")) == {(1, "approved")}
    _sentence, reading, left_out = output.splitlines()
    assert numbers_in(reading) == [4, 1]
    # rows, and of each its line and the line that is kept
    assert numbers_in(left_out) == [3, 2, 3, 4, 3, 5, 3]


def test_an_assignment_that_is_not_whole_or_in_another_layout_is_refused(write: Writer) -> None:
    cases: list[tuple[str, str, str]] = [
        ("AssignmentStatus", "Lost", "unknown_status"),
        ("AssignmentStatus", "", "empty"),
        ("WorkerId", " ", "empty"),
        ("HITId", "", "empty"),
        ("Answer.Fit_big", "", "not_number"),
        ("Answer.Fit_big", "good", "not_number"),
        ("Answer.Fit_big", "nan", "not_finite"),
        ("WorkTimeInSeconds", "long", "not_number"),
        ("Answer.Fit_big", "101", "off_scale"),
        ("Answer.Style_small", "-1", "off_scale"),
    ]
    for field, value, code in cases:
        path = write(BATCH[0], {**BATCH[2], field: value})
        options = {"field": field, "value": value.strip()}
        assert_refused("import_mturk_batch", path, code, line=3, **options)

    def check(code: str, *rows: dict[str, Any], line: int = 1, **options: Any) -> None:
        assert_refused("import_mturk_batch", write(*rows), code, line=line, **options)

    check("differs", BATCH[0], {**BATCH[1], "Input.big": "something else"}, line=3, value="H1")
    for missing in ("HITId", "WorkerId", "AssignmentStatus"):
        row = {name: value for name, value in BATCH[0].items() if name != missing}
        check("missing_columns", row, value=missing)
    row = {name: value for name, value in BATCH[0].items() if not name.startswith("Answer.")}
    check("no_ratings", {**row, "Answer.note": "x"})
    check("missing_columns", *BATCH, value="Input.Dialogue", context="Dialogue")
    check("missing_columns", *BATCH, value="Input.Dialogue", condition="Dialogue")
    with refused(ImportRefused, "missing_columns"):
        read_mturk_batch(write(*BATCH), item=("Dialogue",))
    for name in ("q" * 65 + "_big", "_big", "Fit_" + "s" * 101):
        inputs = {f"Input.{'s' * 101}": "a"} if "s" * 101 in name else {}
        row = {**BATCH[0], f"Answer.{name}": "1", **inputs}
        check("unfit_name", row, value=name[:40], context="Speaker")
    row = {**BATCH[0], "Input.a": "x" * 150, "Input.b": "y" * 50}
    check("too_long", row, line=2, field="Input.b", value="201", item=["a", "b"])


def test_a_batch_reviewed_since_brings_its_decisions(write: Writer) -> None:
    command_output("import_mturk_batch", write(*BATCH), study="styles")
    judged = list(Judgment.objects.order_by("pk").values_list("pk", "value"))
    path = write(*BATCH[:2], {**BATCH[2], "AssignmentStatus": "Rejected"})
    output = command_output("import_mturk_batch", path, study="styles")
    imported, reading = output.splitlines()
    assert (numbers_in(imported), numbers_in(reading)) == ([0, 2, 0, 3], [3, 3])
    statuses = Submission.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["approved", "rejected", "rejected"]
    assert list(Judgment.objects.order_by("pk").values_list("pk", "value")) == judged


def test_the_number_of_queries_does_not_grow(write: Writer) -> None:
    counts = []
    for slug, n_hits in (("few", 2), ("many", 24)):
        batch = [assignment(f"H{n}", WORKERS[n % 3], "Submitted") for n in range(n_hits)]
        counts.append(queries_of("import_mturk_batch", write(*batch), study=slug))
    assert counts[0] == counts[1] <= 24
    counts = []
    for first, last in ((0, 1), (1, 24)):
        for row in batch[first:last]:
            row["AssignmentStatus"] = "Approved"
        counts.append(queries_of("import_mturk_batch", write(*batch), study="many"))
        assert Submission.objects.filter(status="approved").count() == last
    assert counts[0] == counts[1]

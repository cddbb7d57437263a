"""Exports as CSV, JSON Lines and Parquet, and as a dataset with its card."""

import csv
import io
import json
import re
from datetime import timedelta
from math import nan
from pathlib import Path
from zipfile import ZipFile

import lxml.html
import pandas as pd
import pytest
import yaml
from django.core.management import call_command
from django.urls import reverse

from annotation.agreement import study_agreement
from annotation.agreement_records import agreement_records
from annotation.dispute_comments import add_comment
from annotation.frames import judgment_frame
from annotation.item_samples import record_item_sample
from annotation.label_sets import Rule, make_label_set
from annotation.models import Candidate, Study, Submission
from annotation.simulated_answers import simulation_notice
from console.dataset_card import LICENSES
from console.downloads import ROW_DOWNLOADS, file_names
from console.exceptions import LicenseUnknown
from console.results import require_agreement
from presentation.row_files import FORMS, GROUP_SIZE, RowFile, row_parquet
from presentation.spreadsheets import from_cell
from tests.annotation.studies import (
    doubt,
    make_simulated,
    rate,
    rated_study,
    rating_study,
    ticked_study,
)
from tests.codes import message_codes, refused_naming
from tests.console.filled import NOON, add_assignment, add_batch, add_scores, scored_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def full_study(researcher):
    """With judgments, reasons, scores, a label set, and a rejected submission."""
    study = scored_study(owner=researcher, conditions=("calm", "=loud"), n_items=4)
    Submission.objects.of(study).filter(item__key="d1").update(
        justification="-Because", comment="An id: A1WORKER"
    )
    first = Submission.objects.of(study).first()
    Submission.objects.filter(pk=first.pk).update(status=Submission.Status.REJECTED)
    make_label_set(question=study.question(), rule=Rule("mean"))
    candidate = Candidate.objects.filter(item__study=study).first()
    for text in ("=Both are right.", "No."):
        add_comment(
            candidate=candidate, question=study.question(), text=text, written_by=researcher
        )
    items = dict.fromkeys(study.items.values_list("pk", flat=True)[:3], 0.75)
    record_item_sample(study=study, probabilities=items, method="random", seed=7, n_available=4)
    return study


def content_of(rosa, study, name, **query):
    answer = rosa.get(reverse("console:download", args=[study.slug, name]), query)
    assert answer.status_code == 200, name
    return b"".join(answer.streaming_content)


# What not every study has: of documents, of checks, of practice.
OF_SOME = {"qrels", "provenance", "checks", "practice"}


@pytest.mark.parametrize("base", sorted(set(ROW_DOWNLOADS) - OF_SOME))
def test_the_three_forms_hold_the_same_rows(rosa, full_study, base):
    import pyarrow.parquet as pq

    as_csv = list(csv.reader(io.StringIO(content_of(rosa, full_study, f"{base}.csv").decode())))
    lines = content_of(rosa, full_study, f"{base}.jsonl").decode().splitlines()
    records = [json.loads(line) for line in lines]
    parquet = pq.read_table(io.BytesIO(content_of(rosa, full_study, f"{base}.parquet")))
    assert as_csv[0] == list(records[0]) == parquet.column_names
    assert len(as_csv) - 1 == len(records) == parquet.num_rows > 0
    plain = parquet.to_pylist()
    for cells, record, row in zip(as_csv[1:], records, plain, strict=True):
        for cell, value, typed in zip(cells, record.values(), row.values(), strict=True):
            if hasattr(typed, "isoformat"):
                typed = typed.isoformat()
            assert value == typed
            assert from_cell(cell) == ("" if value is None else str(value))


def test_qrels_and_provenance_have_the_three_forms_as_well(rosa, researcher):
    study = ticked_study(owner=researcher)
    frame = pd.read_parquet(io.BytesIO(content_of(rosa, study, "qrels.parquet")))
    lines = content_of(rosa, study, "qrels.txt").decode().splitlines()
    written = [f"{row.topic} 0 {row.docno} {row.relevance}" for row in frame.itertuples()]
    assert written == lines
    assert frame["relevance"].dtype == "int64"
    frame = pd.read_parquet(io.BytesIO(content_of(rosa, study, "provenance.parquet")))
    rows = list(csv.DictReader(io.StringIO(content_of(rosa, study, "provenance.csv").decode())))
    lines = content_of(rosa, study, "provenance.jsonl").decode().splitlines()
    assert list(frame.columns) == list(rows[0]) == list(json.loads(lines[0]))
    assert len(frame) == len(rows) == len(lines) > 0


def test_columns_of_parquet_have_types_though_nothing_is_in_them(researcher):
    import pyarrow.parquet as pq

    study = rated_study(owner=researcher)
    file = ROW_DOWNLOADS["submissions"].rows(study)
    table = pq.read_table(io.BytesIO(b"".join(row_parquet(file))))
    types = {field.name: str(field.type) for field in table.schema}
    assert types["accepted_at"] == "timestamp[us, tz=UTC]"
    assert (types["protocol"], types["pasted"]) == ("int64", "bool")
    empty = b"".join(row_parquet(RowFile({"a": "text", "b": "number"}, [])))
    assert pq.read_table(io.BytesIO(empty)).num_rows == 0


def test_parquet_is_written_a_group_at_a_time():
    import pyarrow.parquet as pq

    n_read = 0

    def rows():
        nonlocal n_read
        for number in range(3 * GROUP_SIZE):
            n_read += 1
            yield (f"row {number}", float(number))

    parts = row_parquet(RowFile({"name": "text", "value": "number"}, rows()))
    first = next(parts)
    assert (first, n_read) == (b"PAR1", 0)
    second = next(parts)
    assert n_read == GROUP_SIZE
    content = first + second + b"".join(parts)
    file = pq.ParquetFile(io.BytesIO(content))
    assert file.num_row_groups == 3
    assert file.read().column("value").to_pylist() == list(map(float, range(3 * GROUP_SIZE)))


def test_a_submission_names_the_version_of_its_protocol_and_its_assignment(
    rosa, full_study, tmp_path
):
    batch = add_batch(full_study)
    hit = batch.hits.exclude(hit_id="").get()
    assignment = add_assignment(hit)
    submission = Submission.objects.of(full_study).filter(item=hit.item).first()
    assignment.submission = submission
    assignment.save()
    frame = pd.read_parquet(io.BytesIO(content_of(rosa, full_study, "submissions.parquet")))
    row = frame[frame["assignment_id"].notna()].squeeze()
    assert (row["hit_id"], row["assignment_id"]) == (hit.hit_id, assignment.assignment_id)
    assert {"protocol", "consented_at", "comment", "justification", "status"} <= set(frame)
    path = tmp_path / "s.parquet"  # the command goes by the file's name
    call_command("export_submissions", full_study.slug, output=path)
    assert len(pd.read_parquet(path)) == Submission.objects.count()


def front_matter(card):
    _, front, body = card.split("---\n", 2)
    return yaml.safe_load(front), body


def test_a_dataset_is_a_card_and_tables(full_study, tmp_path):
    folder = tmp_path / "dataset"
    call_command("export_dataset", full_study.slug, folder, license="cc-by-4.0")
    front, body = front_matter((folder / "README.md").read_text())
    assert front["license"] == "cc-by-4.0"
    assert front["size_categories"] == ["n<1K"]
    names = [config["config_name"] for config in front["configs"]]
    assert names == ["judgments", "items", "submissions", "labels", "scores"]
    for config in front["configs"]:
        [files] = config["data_files"]
        assert files["split"] == "train"
        frame = pd.read_parquet(folder / files["path"])
        assert len(frame) > 0
        for column in frame:
            assert f"`{column}` (" in body
    judgments = pd.read_parquet(folder / "data/judgments.parquet")
    pd.testing.assert_frame_equal(
        judgments,
        judgment_frame(full_study).assign(simulated=False).astype(judgments.dtypes.to_dict()),
        check_index_type=False,
    )


def test_the_card_states_wording_counts_and_agreement(full_study, tmp_path):
    call_command("export_dataset", full_study.slug, tmp_path)
    _, body = front_matter((tmp_path / "README.md").read_text())
    question = full_study.question()
    assert f"> {question.wording}" in body
    # Judgments, annotators, submissions, and those of them that are rejected.
    assert re.search(r"\b14 \S+ \S+ 2 \S+ \S+ 8 \S+ \(1 ", body)
    for end in (question.low_label, question.high_label):
        assert f"“{end}”" in body
    [row] = [row for row in study_agreement(full_study).questions if not row.condition]
    alpha = row.alpha
    expected = f"{alpha.value:.3f}" if alpha.value == alpha.value else "undefined"
    assert f"| {question.name} | 1 | {expected}" in body


def test_the_card_says_that_answers_are_simulated(full_study, tmp_path):
    call_command("export_dataset", full_study.slug, tmp_path)
    front, body = front_matter((tmp_path / "README.md").read_text())
    assert front["annotations_creators"] != ["machine-generated"]
    make_simulated(full_study)
    call_command("export_dataset", full_study.slug, tmp_path)
    front, body = front_matter((tmp_path / "README.md").read_text())
    assert front["annotations_creators"] == ["machine-generated"]
    assert simulation_notice(full_study) not in front
    assert simulation_notice(full_study) in body
    assert pd.read_parquet(tmp_path / "data/submissions.parquet")["simulated"].all()


def test_a_dataset_names_no_worker_and_no_money(full_study, tmp_path):
    batch = add_batch(full_study)
    assignment = add_assignment(batch.hits.exclude(hit_id="").get())
    assignment.submission = Submission.objects.of(full_study).last()
    assignment.save()
    call_command("export_dataset", full_study.slug, tmp_path)
    text = (tmp_path / "README.md").read_text()
    for path in sorted((tmp_path / "data").iterdir()):
        text += pd.read_parquet(path).to_csv()
    for secret in ("A1WORKER", assignment.assignment_id, "Because", "0.10", "reward"):
        assert secret not in text


def test_the_zip_is_the_folder(rosa, full_study, tmp_path):
    call_command("export_dataset", full_study.slug, tmp_path, license="odc-by")
    content = content_of(rosa, full_study, "dataset.zip", license="odc-by")
    with ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            path = tmp_path / Path(name).relative_to(full_study.slug)
            assert archive.read(name) == path.read_bytes()
        assert len(archive.namelist()) == 6


def test_a_license_of_no_form_is_refused(rosa, full_study, tmp_path):
    with refused_naming(LicenseUnknown, *LICENSES[:2]):
        call_command("export_dataset", full_study.slug, tmp_path, license="my: own\nlicense")
    where = reverse("console:download", args=[full_study.slug, "dataset.zip"])
    rosa.get(reverse("console:agreement", args=[full_study.slug]))
    answer = rosa.get(where, {"license": "a b"}, follow=True)
    assert message_codes(answer) == ["license_unknown"]
    assert all(LICENSES)


def test_the_dataset_loads_with_datasets(full_study, tmp_path):
    datasets = pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed")
    call_command("export_dataset", full_study.slug, tmp_path)
    loaded = datasets.load_dataset(str(tmp_path), "judgments", split="train")
    assert loaded.num_rows == len(judgment_frame(full_study))


def test_the_page_offers_every_form_and_labels_only_if_there_are_some(rosa, full_study, researcher):
    page = rosa.get(reverse("console:downloads", args=[full_study.slug])).content.decode()
    for name in file_names(full_study):
        if name.partition(".")[2] in FORMS:
            assert f'aria-label="{name}"' in page
    study = rated_study(owner=researcher)
    add_scores(study)
    assert "labels.csv" not in file_names(Study.objects.get(pk=study.pk))


@pytest.fixture
def timed_study(researcher):
    """An item that Ann did through a HIT, with remarks, and Bob by hand, who was not measured."""
    study = rating_study(owner=researcher, n_items=1)
    rate(study, "Bob", "d0", {"alpha": 1, "beta": 2})
    ann = rate(study, "Ann", "d0", {"alpha": 3, "beta": 4}, status="rejected")
    assignment = add_assignment(add_batch(study).hits.get())
    assignment.submission = ann
    assignment.save()
    Submission.objects.filter(pk=ann.pk).update(
        justification="Alpha is rude.",
        comment="The second picture is <b>broken</b>!",
        seconds=95.5,
        active_seconds=61.25,
        pasted=True,
        accepted_at=NOON,
        submitted_at=NOON + timedelta(seconds=95.5),
    )
    return study


def test_the_items_page_has_remarks_times_and_status_and_names_no_worker(rosa, timed_study):
    where = reverse("console:item", args=[timed_study.slug, timed_study.items.get().pk])
    content = rosa.get(where).content.decode()
    table = lxml.html.fromstring(content).xpath("//table[@class='submissions']/tbody/tr")
    bob, ann = ([cell.text_content().split("\n")[0].strip() for cell in row] for row in table)
    assert ann[4].startswith("Alpha is rude.")
    assert ann[5] == "The second picture is <b>broken</b>!"
    assert ann[6:] == ["95.5", "61.3", "2026-03-02 12:00:00", "2026-03-02 12:01:35"]
    # Bob's times and remarks are not known, which is not the same as none.
    assert bob[4:] == ["–"] * 6
    ann, bob = timed_study.items.get().submissions.order_by("annotator__pseudonym")
    assert content.count(ann.get_status_display()) == content.count(bob.get_status_display()) == 1
    assert content.count("A1WORKER") == content.count("3ASSIGNMENT") == 1
    assert "WorkerId" not in content


def test_submissions_download_while_they_are_read(rosa, timed_study):
    where = reverse("console:download", args=[timed_study.slug, "submissions.csv"])
    answer = rosa.get(where)
    assert answer.streaming
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="ratings-submissions.csv"'
    ann, bob = csv.DictReader(io.StringIO(answer.getvalue().decode()))
    assert (ann["annotator"], ann["comment"]) == ("Ann", "The second picture is <b>broken</b>!")
    assert (ann["seconds"], ann["active_seconds"], ann["pasted"]) == ("95.5", "61.25", "True")
    assert ann["submitted_at"] == "2026-03-02T12:01:35.500000+00:00"
    assert (bob["annotator"], bob["pasted"], bob["hit_id"]) == ("Bob", "", "")
    content = content_of(rosa, timed_study, "submissions.jsonl").decode()
    ann, bob = map(json.loads, content.splitlines())
    assert (ann["pasted"], bob["pasted"]) == (True, None)
    assert (ann["status"], bob["status"]) == ("rejected", "approved")


def test_the_export_of_judgments_gives_the_pages_agreement(rosa, researcher, tmp_path, capsys):
    """The project's own file goes into its own command, and every coefficient comes out again."""
    study = uneven_study(researcher)
    path = tmp_path / "judgments.csv"
    path.write_bytes(content_of(rosa, study, path.name))
    coefficients = agreement_records(require_agreement(study))["coefficients"]
    rows = [row for row in coefficients if row["round"] == 1 and row["with_flagged"]]
    n_compared = 0
    for question in ("=style", "sense"):
        for condition in ("", "calm", "-angry"):
            where = ["round=1", f"question={question}"]
            where += [f"condition={condition}"] if condition else []
            in_file = agreement_of(path, where, capsys)
            for row in rows:
                if (row["question"], row["by"]) == (question, condition):
                    twin = in_file[row["name"]]
                    for name in ("value", "ci_low", "ci_high", "se"):
                        # Undefined is null in JSON.
                        there, here = (
                            nan if each[name] is None else each[name] for each in (twin, row)
                        )
                        assert there == pytest.approx(here, rel=1e-12, nan_ok=True)
                        n_compared += row["name"] == "krippendorff_alpha"
    assert n_compared == 2 * 3 * 4


def uneven_study(owner):
    """Two questions, two conditions and two rounds; not everybody rated everything."""
    questions = ("=style", "sense")
    study = rating_study(owner=owner, n_items=6, questions=questions, conditions=("calm", "-angry"))
    for number, item in enumerate(study.items.all()):
        for position, person in enumerate(("Ann", "=Bob", "Cyd")):
            if (number + position) % 5:
                for index, question in enumerate(questions):
                    alpha = (number * 37 + position * 11 + index * 53) % 101
                    ratings = {"alpha": alpha, "beta": (alpha * 7 + position) % 101 / 3}
                    last = rate(study, person, item.key, ratings, question=question)
    doubt(last)
    rate(study, "Ann", "d0", {"alpha": 1, "beta": 99}, question="sense", round=2)
    return study


def agreement_of(path, where, capsys):
    capsys.readouterr()
    options = [option for each in where for option in ("--where", each)]
    columns = ["--item", "item", "--item", "candidate", "--annotator", "annotator"]
    columns += ["--value", "value", "--cluster", "item", "--level", "interval", "--json"]
    call_command("agreement", str(path), *columns, *options)
    content = json.loads(capsys.readouterr().out)
    return {row["name"]: row for row in content["coefficients"]}

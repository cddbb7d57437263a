import csv
import io
import json
import re
from datetime import timedelta
from functools import partial
from math import nan
from pathlib import Path
from zipfile import ZipFile

import lxml.html
import pandas as pd
import pytest
import yaml
from django.core.management import call_command
from django.urls import reverse

from accounts.models import User
from annotation import dataset, exceptions, label_sets, study_facts
from annotation.agreement import study_agreement
from annotation.disputes import add_comment
from annotation.frames import judgment_frame, record_item_sample
from annotation.models import Candidate, Item, Judgment, Study, Submission
from annotation.result_kinds.agreement import AgreementKind, agreement_records
from annotation.study_files import file_names, row_downloads, study_downloads
from metrics import score_tables, study_files
from presentation.numbers import plain_records
from presentation.row_files import FORMS, GROUP_SIZE, RowFile, from_cell, row_parquet
from tests.annotation import studies
from tests.codes import message_codes, refused_naming
from tests.console.conftest import PASSWORD
from tests.console.filled import NOON, add_assignment, add_batch, add_scores, scored_study
from validation import results, versions
from validation.analysis.records import plain
from validation.result_kinds.validation import ValidationKind

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture(scope="module")
def stored_full_study(stored_for_module):
    owner = User.objects.create_user("rosa", password=PASSWORD)
    study = scored_study("full", owner=owner, conditions=("calm", "=loud"), n_items=4)
    Submission.objects.of(study).filter(item__key="d1").update(
        justification="-Because", comment="An id: A1WORKER"
    )
    first = Submission.objects.of(study).first()
    Submission.objects.filter(pk=first.pk).update(status=Submission.Status.REJECTED)
    label_sets.make_label_set(question=study.question(), rule=label_sets.Rule("mean"))
    candidate = Candidate.objects.filter(item__study=study).first()
    for text in ("=Both are right.", "No."):
        add_comment(candidate=candidate, question=study.question(), text=text, written_by=owner)
    items = dict.fromkeys(study.items.values_list("pk", flat=True)[:3], 0.75)
    record_item_sample(study=study, probabilities=items, method="random", seed=7, n_available=4)
    return study


@pytest.fixture
def full_study(stored_full_study, db):
    return Study.objects.get(pk=stored_full_study.pk)


def download(rosa, study, name, **query):
    return rosa.get(reverse("console:download", args=[study.slug, name]), query)


def content_of(rosa, study, name, **query):
    answer = download(rosa, study, name, **query)
    assert answer.status_code == 200, name
    return answer.getvalue()


# What not every study has: of documents, of checks, of practice, of missing values.
OF_SOME = {"qrels", "provenance", "checks", "practice", "missing"}


def test_the_three_forms_have_the_same_rows(rosa, full_study, researcher, tmp_path):
    import pyarrow.parquet as pq

    for base in set(row_downloads()) - OF_SOME:
        as_csv = list(csv.reader(io.StringIO(content_of(rosa, full_study, f"{base}.csv").decode())))
        lines = content_of(rosa, full_study, f"{base}.jsonl").decode().splitlines()
        records = [json.loads(line) for line in lines]
        parquet = pq.read_table(io.BytesIO(content_of(rosa, full_study, f"{base}.parquet")))
        assert as_csv[0] == list(records[0]) == parquet.column_names
        assert len(as_csv) - 1 == len(records) == parquet.num_rows > 0
        for cells, record, row in zip(as_csv[1:], records, parquet.to_pylist(), strict=True):
            for cell, value, typed in zip(cells, record.values(), row.values(), strict=True):
                if hasattr(typed, "isoformat"):
                    typed = typed.isoformat()
                assert value == typed, base
                assert from_cell(cell) == ("" if value is None else str(value))
    path = tmp_path / "s.parquet"  # the command goes by the file's name
    call_command("export_submissions", full_study.slug, output=path)
    assert len(pd.read_parquet(path)) == Submission.objects.count()
    study = studies.ticked_study(owner=researcher)
    frame = pd.read_parquet(io.BytesIO(content_of(rosa, study, "qrels.parquet")))
    lines = content_of(rosa, study, "qrels.txt").decode().splitlines()
    assert [f"{row.topic} 0 {row.docno} {row.relevance}" for row in frame.itertuples()] == lines
    assert frame["relevance"].dtype == "int64"
    frame = pd.read_parquet(io.BytesIO(content_of(rosa, study, "provenance.parquet")))
    rows = list(csv.DictReader(io.StringIO(content_of(rosa, study, "provenance.csv").decode())))
    lines = content_of(rosa, study, "provenance.jsonl").decode().splitlines()
    assert list(frame.columns) == list(rows[0]) == list(json.loads(lines[0]))
    assert len(frame) == len(rows) == len(lines) > 0


def test_parquet_has_typed_columns_and_is_written_a_group_at_a_time(researcher):
    import pyarrow.parquet as pq

    study = studies.rated_study(owner=researcher)
    file = row_downloads()["submissions"].rows(study)
    table = pq.read_table(io.BytesIO(b"".join(row_parquet(file))))
    types = {field.name: str(field.type) for field in table.schema}
    assert types["accepted_at"] == "timestamp[us, tz=UTC]"
    assert (types["protocol"], types["pasted"]) == ("int64", "bool")
    empty = b"".join(row_parquet(RowFile({"a": "text", "b": "number"}, [])))
    assert pq.read_table(io.BytesIO(empty)).num_rows == 0

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
    file = pq.ParquetFile(io.BytesIO(first + second + b"".join(parts)))
    assert file.num_row_groups == 3
    assert file.read().column("value").to_pylist() == list(map(float, range(3 * GROUP_SIZE)))


def front_matter(card):
    _, front, body = card.split("---\n", 2)
    return yaml.safe_load(front), body


def test_a_dataset_is_a_card_and_tables_without_workers_and_money(full_study, tmp_path):
    datasets = pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed")
    assignment = add_assignment(add_batch(full_study).hits.exclude(hit_id="").get())
    assignment.submission = Submission.objects.of(full_study).last()
    assignment.save()
    folder = tmp_path / "dataset"
    call_command("export_dataset", full_study.slug, folder, license="cc-by-4.0")
    text = (folder / "README.md").read_text()
    front, body = front_matter(text)
    assert front["license"] == "cc-by-4.0"
    assert front["size_categories"] == ["n<1K"]
    assert front["annotations_creators"] != ["machine-generated"]
    names = [config["config_name"] for config in front["configs"]]
    assert names == ["judgments", "items", "submissions", "labels", "scores"]
    for config in front["configs"]:
        [files] = config["data_files"]
        assert files["split"] == "train"
        frame = pd.read_parquet(folder / files["path"])
        text += frame.to_csv()
        assert len(frame) > 0
        for column in frame:
            assert f"`{column}` (" in body
    for secret in ("A1WORKER", assignment.assignment_id, "Because", "0.10", "reward"):
        assert secret not in text
    judgments = pd.read_parquet(folder / "data/judgments.parquet")
    pd.testing.assert_frame_equal(
        judgments,
        judgment_frame(full_study).assign(simulated=False).astype(judgments.dtypes.to_dict()),
        check_index_type=False,
    )
    assert datasets.load_dataset(str(folder), "judgments", split="train").num_rows == len(judgments)


def test_the_card_states_wording_counts_agreement_and_simulation(full_study, tmp_path):
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
    studies.make_simulated(full_study)
    folder = tmp_path / "simulated"
    call_command("export_dataset", full_study.slug, folder)
    front, body = front_matter((folder / "README.md").read_text())
    assert front["annotations_creators"] == ["machine-generated"]
    assert study_facts.simulation_notice(full_study) not in front
    assert study_facts.simulation_notice(full_study) in body
    assert pd.read_parquet(folder / "data/submissions.parquet")["simulated"].all()


def test_the_zip_is_the_folder_and_a_license_of_no_form_is_refused(rosa, full_study, tmp_path):
    call_command("export_dataset", full_study.slug, tmp_path, license="odc-by")
    content = content_of(rosa, full_study, "dataset.zip", license="odc-by")
    with ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            path = tmp_path / Path(name).relative_to(full_study.slug)
            assert archive.read(name) == path.read_bytes()
        assert len(archive.namelist()) == 6
    with refused_naming(exceptions.LicenseUnknown, *dataset.LICENSES[:2]):
        call_command("export_dataset", full_study.slug, tmp_path, license="my: own\nlicense")
    where = reverse("console:download", args=[full_study.slug, "dataset.zip"])
    rosa.get(reverse("console:agreement", args=[full_study.slug]))
    assert message_codes(rosa.get(where, {"license": "a b"}, follow=True)) == ["license_unknown"]
    assert all(dataset.LICENSES)


def test_an_items_page_has_remarks_times_and_status_and_names_no_worker(rosa, researcher):
    timed_study = studies.rating_study(owner=researcher, n_items=1)
    studies.rate(timed_study, "Bob", "d0", {"alpha": 1, "beta": 2})
    ann = studies.rate(timed_study, "Ann", "d0", {"alpha": 3, "beta": 4}, status="rejected")
    assignment = add_assignment(add_batch(timed_study).hits.get())
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


def test_the_export_of_judgments_gives_the_pages_agreement(rosa, researcher, tmp_path, capsys):
    """The project's own file goes into its own command, and every coefficient comes out again."""
    study = uneven_study(researcher)
    path = tmp_path / "judgments.csv"
    path.write_bytes(content_of(rosa, study, path.name))
    coefficients = agreement_records(AgreementKind().require(study))["coefficients"]
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
    study = studies.rating_study(
        owner=owner, n_items=6, questions=questions, conditions=("calm", "-angry")
    )
    for number, item in enumerate(study.items.all()):
        for position, person in enumerate(("Ann", "=Bob", "Cyd")):
            if (number + position) % 5:
                for index, question in enumerate(questions):
                    alpha = (number * 37 + position * 11 + index * 53) % 101
                    ratings = {"alpha": alpha, "beta": (alpha * 7 + position) % 101 / 3}
                    last = studies.rate(study, person, item.key, ratings, question=question)
    studies.doubt(last)
    studies.rate(study, "Ann", "d0", {"alpha": 1, "beta": 99}, question="sense", round=2)
    return study


def agreement_of(path, where, capsys):
    capsys.readouterr()
    options = [option for each in where for option in ("--where", each)]
    columns = ["--item", "item", "--item", "candidate", "--annotator", "annotator"]
    columns += ["--value", "value", "--cluster", "item", "--level", "interval", "--json"]
    call_command("agreement", str(path), *columns, *options)
    content = json.loads(capsys.readouterr().out)
    return {row["name"]: row for row in content["coefficients"]}


# Files of a study, by name.


@pytest.fixture
def fetch(rosa):
    return partial(download, rosa)


def table(answer):
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def test_a_file_is_saved_under_the_studys_name_and_others_are_not_found(fetch, researcher):
    study = scored_study(owner=researcher)
    for name, content_type in (
        ("judgments.csv", "text/csv; charset=utf-8"),
        ("scores.csv", "text/csv; charset=utf-8"),
        ("agreement.json", "application/json"),
        ("validation.json", "application/json"),
    ):
        answer = fetch(study, name)
        assert answer.status_code == 200
        assert answer["Content-Type"] == content_type
        assert answer["Content-Disposition"] == f'attachment; filename="scored-{name}"'
        assert answer["X-Content-Type-Options"] == "nosniff"
    bare = studies.rated_study(owner=researcher)
    for name in ("nothing.csv", "judgments", "judgments.CSV", "qrels.txt"):
        assert fetch(study, name).status_code == 404
    for name in ("scores.csv", "validation.json"):
        assert fetch(bare, name).status_code == 404


def test_without_judgments_there_are_columns_alone_and_nothing_is_validated(fetch, researcher):
    study = studies.rating_study(owner=researcher)
    answer = fetch(study, "judgments.csv")
    assert answer.getvalue().decode().startswith("study,round,item,")
    assert table(answer) == []
    agreement = fetch(study, "agreement.json").getvalue().decode()
    assert "NaN" not in agreement
    assert json.loads(agreement)["coefficients"][0]["value"] is None
    add_scores(study)
    content = json.loads(fetch(study, "validation.json").getvalue())
    assert content["rows"] == []
    assert content["reason"]


@pytest.mark.slow
def test_judgments_and_scores_stream_as_their_frames_have_them(fetch, researcher):
    conditions = ("calm", 'a "loud" one, or not')
    study = scored_study(owner=researcher, n_items=45, conditions=conditions, questions=("b", "a"))
    study.items.filter(key="d3").update(position=50)
    Judgment.objects.filter(candidate__item__key="d7").update(position=None, seconds=None)
    Submission.objects.filter(item__key="d9").update(status=Submission.Status.REJECTED)
    for name, frame in {
        "judgments.csv": judgment_frame(study).assign(simulated=False),
        "scores.csv": study_files.score_frame(study),
    }.items():
        answer = fetch(study, name)
        assert answer.streaming
        assert answer.getvalue().decode() == frame.to_csv(index=False)


def test_judgments_of_whole_items_and_scores_can_be_taken_elsewhere(fetch, researcher, tmp_path):
    study = studies.rated_study(owner=researcher)
    whole = study.questions.create(name="safe", wording="Is all of it safe?", position=9)
    for submission in Submission.objects.of(study):
        submission.judgments.create(question=whole, value=1)
    answer = fetch(study, "judgments.csv").getvalue().decode()
    assert answer == judgment_frame(study).assign(simulated=False).to_csv(index=False)
    row = next(row for row in csv.DictReader(io.StringIO(answer)) if row["question"] == "safe")
    assert (row["item"], row["candidate"], row["system"], row["value"]) == ("d0", "", "", "1.0")
    path = tmp_path / "scores.csv"
    content = fetch(scored_study(owner=researcher), "scores.csv").getvalue()
    path.write_bytes(content)
    there = studies.rated_study("there", owner=researcher)
    score_tables.import_scores(study=there, path=path)
    assert fetch(there, "scores.csv").getvalue() == content


def test_agreement_and_validation_hold_what_the_pages_show(fetch, researcher):
    study = studies.ticked_study(owner=researcher)
    studies.tick(study, "Bob", "boot", {"clog"})
    studies.tick(study, "Bob", "gown", {"coat"})
    content = json.loads(fetch(study, "agreement.json").getvalue())
    report = study_agreement(study)
    signatures = [row.pop("signature") for row in content["coefficients"]]
    records = json.loads(json.dumps(report.coefficient_records()))
    assert content["coefficients"] == [{"round": 1, **row} for row in records]
    assert {row["name"] for row in records} >= {"krippendorff_alpha", "cohen_kappa", "gwet_ac1"}
    beginning = "krippendorff_alpha|question:acceptable|level:nominal|ci:jackknife-t-clusters|"
    assert [f"{beginning}round:1|input:" in each for each in signatures].count(True) == 1
    assert content["pairs"] == plain_records(report.pairs)
    assert (content["study"], len(content["pairs"])) == ("ticked", 1)
    study = scored_study(owner=researcher, conditions=("calm", "angry"))
    content = json.loads(fetch(study, "validation.json").getvalue())
    version = ValidationKind().require(study)
    correlations = results.correlations_of(versions.StoredResults(version, with_variants=True))
    assert content["rows"] == [plain(row) for row in correlations]
    assert content["report"] == version.number
    assert (content["study"], content["round"], content["aggregation"]) == ("scored", 1, "mean")
    assert (content["n_resamples"], content["seed"]) == (1000, 0)


def test_a_signature_of_agreement_is_of_one_number_and_one_input(fetch, researcher):
    study = studies.rating_study(owner=researcher, questions=("warmth", "clarity"))
    Item.objects.filter(study=study, key="d0").update(condition="calm")
    for round in (1, 2):
        for question in ("warmth", "clarity"):
            for number, name in enumerate(("Ann", "Bob", "Cyd")):
                for item in ("d0", "d1"):
                    values = {"alpha": 10 * number, "beta": 20 + number}
                    studies.rate(study, name, item, values, question=question, round=round)
    content = json.loads(fetch(study, "agreement.json").getvalue())
    rows = content["coefficients"] + content["between_rounds"] + content["by_protocol"]
    signatures = [row["signature"] for row in rows]
    assert {row["question"] for row in rows} == {"warmth", "clarity"}
    assert {row["by"] for row in content["coefficients"]} == {"", "calm", "(none)"}
    assert len(content["between_rounds"]) >= 2
    assert len(set(signatures)) == len(signatures) >= 8
    study = studies.rated_study(owner=researcher)

    def signature():
        return json.loads(fetch(study, "agreement.json").getvalue())["coefficients"][0]["signature"]

    before = signature()
    assert signature() == before
    studies.rate(study, "Cyd", "d0", {"alpha": 1})
    assert signature() != before


def test_qrels_and_their_provenance_are_handed_out_or_why_they_cannot_be(fetch, researcher, rosa):
    study = studies.ticked_study(owner=researcher)
    qrels = fetch(study, "qrels.txt")
    assert qrels["Content-Type"] == "text/plain; charset=utf-8"
    lines = qrels.getvalue().decode().splitlines()
    assert (lines[0], lines[2], len(lines)) == ("boot 0 clog 1", "boot 0 flat 0", 5)
    [name] = set(study.annotators.values_list("pseudonym", flat=True))
    own = fetch(study, "qrels_jg.txt").getvalue().decode().splitlines()
    assert own[:2] == [f"boot {name} clog 1", f"boot {name} pump 1"]
    lines = fetch(study, "provenance.csv").getvalue().decode().splitlines()
    assert lines[0].startswith("line,topic,docno,grade")
    assert lines[1].startswith("1,boot,clog,1")
    packed = ZipFile(io.BytesIO(fetch(study, "released_layout.zip").getvalue()))
    files = ["judged_targets_ticked.csv", "alter_target_ids_ticked.csv", "docids_ticked.csv"]
    assert packed.namelist() == files
    assert "Input.target1" in packed.read(files[0]).decode()
    Item.objects.filter(key="boot").update(key="rubber boot")
    answer = rosa.get(reverse("console:download", args=["ticked", "qrels.txt"]), follow=True)
    assert answer.redirect_chain == [(reverse("console:downloads", args=[study.slug]), 302)]
    assert message_codes(answer) == ["space_in_name"]
    assert "rubber boot" in answer.getvalue().decode()


def in_every_form(*bases):
    return [f"{base}.{form}" for base in bases for form in FORMS]


def test_alternatives_offer_scores_once_they_have_some(researcher):
    study = studies.ticked_study(owner=researcher)
    rest = ["qrels.txt", "qrels_jg.txt", "released_layout.zip", "agreement.json"]
    assert file_names(study) == [
        *in_every_form("judgments", "submissions", "items", "qrels", "provenance"),
        *rest, "dataset.zip",
    ]  # fmt: skip
    add_scores(study)
    assert file_names(study) == [
        *in_every_form("judgments", "submissions", "items", "scores", "qrels", "provenance"),
        *rest, "validation.json", "dataset.zip",
    ]  # fmt: skip
    of_apps = {"judgments.csv", "submissions.csv", "scores.csv", "validation.json"}
    assert of_apps | {"qrels.txt", "provenance.csv", "released_layout.zip"} <= set(
        study_downloads()
    )


@pytest.mark.slow
@pytest.mark.parametrize("build", [scored_study, studies.ticked_study])
def test_a_page_links_to_the_files_a_study_has_and_to_no_others(rosa, researcher, build):
    study = build(owner=researcher)
    for name in ("agreement", "validation"):
        rosa.get(reverse(f"console:{name}", args=[study.slug]))
    page = rosa.get(reverse("console:downloads", args=[study.slug])).content.decode()
    for name in file_names(study):
        where = reverse("console:download", args=[study.slug, name])
        assert f'href="{where}"' in page
        assert name.partition(".")[2] not in FORMS or f'aria-label="{name}"' in page
        assert rosa.get(where).status_code == 200
    for name in {"scores.csv", "qrels.txt"} - set(file_names(study)):
        assert name not in page


@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_before_anything_is_judged_only_what_is_there_is_offered(rosa, researcher, kind):
    if kind == "rating":
        study = studies.rating_study(owner=researcher)
        add_scores(study)
    else:
        study = studies.ticked_study(owner=researcher)
        Submission.objects.of(study).delete()
        Judgment.objects.of(study).delete()
    page = rosa.get(reverse("console:downloads", args=[study.slug])).content.decode()
    addresses = {n: reverse("console:download", args=[study.slug, n]) for n in file_names(study)}
    links = {name for name, address in addresses.items() if f'href="{address}"' in page}
    assert {"items.csv", "items.jsonl", "items.parquet"} <= links
    assert {name.partition(".")[0] for name in links} <= {"items", "scores"}
    labels = rosa.get(reverse("console:labels", args=[study.slug])).content.decode()
    assert reverse("console:new-experiment") not in labels

import json
from tempfile import NamedTemporaryFile

import numpy as np
import pandas as pd
import pytest
from django.conf import settings as site

from annotation import exceptions, frames, models
from config.variables import object_storage
from tests.annotation import importing, studies
from tests.codes import refused
from tests.processes import run_python

pytestmark = pytest.mark.django_db

COLUMNS = [
    *("study", "round", "item", "condition", "candidate", "system", "question", "annotator"),
    *("value", "position", "seconds"),
]
TEXTS = ("study", "item", "condition", "candidate", "system", "question", "annotator")


def _is_typed(frame: pd.DataFrame) -> bool:
    kinds = dict.fromkeys(TEXTS, "category") | {"round": "int64"}
    kinds |= dict.fromkeys(("value", "position", "seconds"), "float64")
    return {name: str(kind) for name, kind in frame.dtypes.items()} == kinds


def test_a_frame_has_a_row_for_each_judgment():
    empty = frames.judgment_frame(studies.rating_study())
    assert empty.empty
    assert list(empty.columns) == COLUMNS
    assert _is_typed(empty)
    study = studies.rated_study("rated", conditions=("formal", "casual"))
    studies.rated_study("another")
    frame = frames.judgment_frame(study)
    assert list(frame.columns) == COLUMNS
    assert _is_typed(frame)
    assert len(frame) == models.Judgment.objects.of(study).count() == 12
    assert frame.iloc[0].to_dict() == {
        **{"study": "rated", "round": 1, "item": "d0", "condition": "formal"},
        **{"candidate": "alpha", "system": "alpha", "question": "appropriateness"},
        **{"annotator": "Ann", "value": 20.0, "position": 0.0, "seconds": 1.5},
    }
    means = frame.groupby("system", observed=True)["value"].mean()
    assert means.to_dict() == {"alpha": 23.5, "beta": 53.5}
    # An alternative that was not ticked is a judgment of 0.
    frame = frames.judgment_frame(studies.ticked_study())
    values = {"clog": 1, "pump": 1, "flat": 0, "skirt": 0, "coat": 0}
    assert dict(zip(frame["candidate"], frame["value"], strict=True)) == values


def test_rows_come_in_the_studys_order_however_they_were_written():
    study = studies.rating_study(n_items=11, questions=("wit", "tone"))
    for question in ("tone", "wit"):
        for person in ("Bob", "Ann"):
            for number in (2, 1):
                for item in ("d10", "d9", "d0"):
                    values = {"beta": 1.0, "alpha": 2.0}
                    studies.rate(study, person, item, values, question=question, round=number)
    frame = frames.judgment_frame(study)
    keys = ["question", "item", "candidate", "round", "annotator"]
    wit = frames.judgment_frame(study, question=study.question("wit"))
    assert (len(wit), set(wit["question"])) == (len(frame) / 2, {"wit"})
    assert frame[keys].to_numpy().tolist() == [
        [question, item, candidate, number, person]
        for question in ("wit", "tone")
        for item in ("d0", "d9", "d10")
        for candidate in ("alpha", "beta")
        for number in (1, 2)
        for person in ("Ann", "Bob")
    ]


def test_rejected_judgments_are_left_out_and_flagged_ones_where_asked():
    study = studies.alternatives_study()
    studies.tick(study, "Ann", "boot", {"clog"})
    studies.tick(study, "Bob", "boot", {"clog"}, status="rejected")
    studies.doubt(studies.tick(study, "Cyd", "boot", {"clog"}, status="submitted"))
    assert set(frames.judgment_frame(study)["annotator"]) == {"Ann", "Cyd"}
    assert set(frames.judgment_frame(study, accepted=False)["annotator"]) == {"Ann", "Bob", "Cyd"}
    assert set(frames.judgment_frame(study, with_flagged=False)["annotator"]) == {"Ann"}


def test_missing_values_are_nan_and_queries_do_not_grow(django_assert_num_queries):
    study = studies.rated_study()
    models.Judgment.objects.filter(value=20).update(position=None, seconds=None)
    frame = frames.judgment_frame(study)
    unknown = frame[frame["value"] == 20]
    assert np.isnan(unknown[["position", "seconds"]].to_numpy(dtype=float)).all()
    assert frame["seconds"].notna().sum() == 11
    models.Judgment.objects.update(position=None, seconds=None)
    frame = frames.judgment_frame(study)
    assert frame[["position", "seconds"]].isna().to_numpy().all()
    assert _is_typed(frame)
    short, long = studies.rated_study("short", n_items=1), studies.rated_study("long", n_items=12)
    for study in (short, long):
        # The judgments, and the texts of candidates, questions and annotators once for all.
        with django_assert_num_queries(4):
            frames.judgment_frame(study)
        with django_assert_num_queries(1):
            frames.candidate_frame(study)


def test_candidates_come_with_the_texts_a_metric_needs():
    study = studies.rating_study(n_items=2, conditions=("formal",))
    studies.rating_study("another")
    frame = frames.candidate_frame(study)
    assert list(frame.columns) == [
        *("candidate_id", "item", "condition", "candidate", "system"),
        *("context", "response", "reference"),
    ]
    assert frame.drop(columns="candidate_id").to_numpy().tolist() == [
        ["d0", "formal", "alpha", "alpha", "Context 0", "alpha on d0", "Reference 0"],
        ["d0", "formal", "beta", "beta", "Context 0", "beta on d0", "Reference 0"],
        ["d1", "formal", "alpha", "alpha", "Context 1", "alpha on d1", "Reference 1"],
        ["d1", "formal", "beta", "beta", "Context 1", "beta on d1", "Reference 1"],
    ]
    assert frames.candidate_frame(models.Study.objects.create(slug="empty", kind="rating")).empty


FOLDER = "django.core.files.storage.FileSystemStorage"


@pytest.fixture
def objects(settings, tmp_path):
    options = {"location": str(tmp_path)}
    settings.STORAGES = settings.STORAGES | {"objects": {"BACKEND": FOLDER, "OPTIONS": options}}
    return tmp_path


def judged_study() -> models.Study:
    rows = [f"i-{n},alpha,wit,a{n % 2},{10 * n}\n" for n in range(6)]
    with NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("item,candidate,question,annotator,value\n" + "".join(rows))
        file.flush()
        importing.command_output("import_judgments", file.name, study="judged")
    return models.Study.objects.get(slug="judged")


def test_a_frame_that_was_changed_is_refused_and_frozen_anew(objects):
    study = judged_study()
    frozen = frames.freeze_judgments(study)
    path = objects / frozen["name"]
    content = path.read_bytes()
    frame = pd.read_parquet(path)
    frame.loc[0, "value"] = 99.0
    frame.to_parquet(path)
    # A full disk leaves a part of a file, or nothing.
    for damaged in (path.read_bytes(), b"", content[:400]):
        path.write_bytes(damaged)
        with refused(exceptions.FrameUnfit, "changed"):
            frames.read_frozen_frame(frozen["fingerprint"])
    assert frames.freeze_judgments(study) == frozen
    assert len(frames.read_frozen_frame(frozen["fingerprint"])) == 6
    with refused(exceptions.FrameUnfit, "unknown"):
        frames.read_frozen_frame("0" * 64)
    with refused(exceptions.FrameUnfit, "not_fingerprint"):
        frames.read_frozen_frame("../../etc/passwd")


def test_judgments_are_frozen_once_and_read_back_as_they_were(objects):
    study = judged_study()
    frozen = json.loads(importing.command_output("freeze_judgments", "judged", "--json"))
    assert (frozen["n_rows"], frozen["is_new"]) == (6, True)
    assert (objects / frozen["name"]).stat().st_size > 0
    assert frames.freeze_judgments(study)["is_new"] is False
    frame = frames.read_frozen_frame(frozen["fingerprint"])
    pd.testing.assert_frame_equal(frame, frames.judgment_frame(study), check_categorical=False)
    # What changes has another fingerprint; the frozen frame stays.
    models.Judgment.objects.filter(value=50).update(value=51)
    assert frames.freeze_judgments(study)["fingerprint"] != frozen["fingerprint"]
    assert len(list(objects.glob("frames/*/*.parquet"))) == 2
    assert frames.read_frozen_frame(frozen["fingerprint"])["value"].max() == 50


def test_a_fingerprint_is_of_values_and_not_of_their_form():
    frame = pd.DataFrame({"item": ["b", "a", None], "value": [1, 2, 3]})
    same = frame.astype({"item": "category", "value": "float64"})
    assert frames.frame_fingerprint(frame) == frames.frame_fingerprint(same)
    assert frames.frame_fingerprint(frame) != frames.frame_fingerprint(frame.iloc[::-1])
    assert frames.frame_fingerprint(frame) != frames.frame_fingerprint(
        frame.rename(columns={"item": "unit"})
    )
    assert frames.frame_fingerprint(frame) != frames.frame_fingerprint(frame.head(2))


def test_they_are_frozen_in_a_bucket(settings, monkeypatch):
    import boto3
    from moto import mock_aws

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    storage = object_storage("s3://lab/assay", "", site.BASE_DIR)
    assert storage["BACKEND"] == "storages.backends.s3.S3Storage"
    settings.STORAGES = settings.STORAGES | {"objects": storage}
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="lab")
        frozen = frames.freeze_judgments(judged_study())
        assert frames.freeze_judgments(models.Study.objects.get(slug="judged"))["is_new"] is False
        (stored,) = client.list_objects_v2(Bucket="lab")["Contents"]
        assert stored["Key"] == f"assay/{frozen['name']}"
        assert len(frames.read_frozen_frame(frozen["fingerprint"])) == 6


@pytest.mark.parametrize("url", ["ftp://lab/x", "s3://", "s3://key:secret@lab/x", "lab"])
def test_what_names_no_storage_is_refused_without_saying_it(url):
    done = run_python("-c", "import config.settings", OBJECTS_URL=url)
    assert done.returncode != 0
    assert "OBJECTS_URL" in done.stderr
    assert "secret@" not in done.stderr

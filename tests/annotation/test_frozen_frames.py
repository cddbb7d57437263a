"""Judgments frozen as Parquet under their fingerprint, in a folder or a bucket."""

import json
from io import StringIO
from tempfile import NamedTemporaryFile

import pandas as pd
import pytest
from django.conf import settings as site
from django.core.management import call_command

from annotation.exceptions import FrameUnfit
from annotation.frames import frame_fingerprint, freeze_judgments, judgment_frame, read_frozen_frame
from annotation.models import Judgment, Study
from config.variables import S3, object_storage
from tests.codes import refused
from tests.processes import run_python

FOLDER = "django.core.files.storage.FileSystemStorage"


@pytest.fixture
def objects(settings, tmp_path):
    options = {"location": str(tmp_path)}
    settings.STORAGES = settings.STORAGES | {"objects": {"BACKEND": FOLDER, "OPTIONS": options}}
    return tmp_path


def judged_study() -> Study:
    rows = [f"i-{n},alpha,wit,a{n % 2},{10 * n}\n" for n in range(6)]
    with NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("item,candidate,question,annotator,value\n" + "".join(rows))
        file.flush()
        call_command("import_judgments", file.name, study="judged", stdout=StringIO())
    return Study.objects.get(slug="judged")


@pytest.mark.django_db
def test_a_frame_that_was_changed_is_refused_and_frozen_anew(objects):
    study = judged_study()
    frozen = freeze_judgments(study)
    path = objects / frozen.name
    content = path.read_bytes()
    frame = pd.read_parquet(path)
    frame.loc[0, "value"] = 99.0
    frame.to_parquet(path)
    # A full disk leaves a part of a file, or nothing.
    for damaged in (path.read_bytes(), b"", content[:400]):
        path.write_bytes(damaged)
        with refused(FrameUnfit, "changed"):
            read_frozen_frame(frozen.fingerprint)
    assert freeze_judgments(study) == frozen
    assert len(read_frozen_frame(frozen.fingerprint)) == 6
    with refused(FrameUnfit, "unknown"):
        read_frozen_frame("0" * 64)
    with refused(FrameUnfit, "not_fingerprint"):
        read_frozen_frame("../../etc/passwd")


@pytest.mark.django_db
def test_judgments_are_frozen_once_and_read_back_as_they_were(objects):
    study = judged_study()
    said = StringIO()
    call_command("freeze_judgments", "judged", "--json", stdout=said)
    frozen = json.loads(said.getvalue())
    assert (frozen["n_rows"], frozen["is_new"]) == (6, True)
    assert (objects / frozen["name"]).stat().st_size > 0
    assert freeze_judgments(study).is_new is False
    frame = read_frozen_frame(frozen["fingerprint"])
    pd.testing.assert_frame_equal(frame, judgment_frame(study), check_categorical=False)
    # What changes has another fingerprint; the frozen frame stays.
    Judgment.objects.filter(value=50).update(value=51)
    assert freeze_judgments(study).fingerprint != frozen["fingerprint"]
    assert len(list(objects.glob("frames/*/*.parquet"))) == 2
    assert read_frozen_frame(frozen["fingerprint"])["value"].max() == 50


def test_a_fingerprint_is_of_values_and_not_of_their_form():
    frame = pd.DataFrame({"item": ["b", "a", None], "value": [1, 2, 3]})
    same = frame.astype({"item": "category", "value": "float64"})
    assert frame_fingerprint(frame) == frame_fingerprint(same)
    assert frame_fingerprint(frame) != frame_fingerprint(frame.iloc[::-1])
    assert frame_fingerprint(frame) != frame_fingerprint(frame.rename(columns={"item": "unit"}))
    assert frame_fingerprint(frame) != frame_fingerprint(frame.head(2))


@pytest.mark.django_db
def test_they_are_frozen_in_a_bucket(settings, monkeypatch):
    import boto3
    from moto import mock_aws

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    storage = object_storage("s3://lab/assay", "", site.BASE_DIR)
    assert storage["BACKEND"] == S3
    settings.STORAGES = settings.STORAGES | {"objects": storage}
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="lab")
        frozen = freeze_judgments(judged_study())
        assert freeze_judgments(Study.objects.get(slug="judged")).is_new is False
        (stored,) = client.list_objects_v2(Bucket="lab")["Contents"]
        assert stored["Key"] == f"assay/{frozen.name}"
        assert len(read_frozen_frame(frozen.fingerprint)) == 6


@pytest.mark.parametrize("url", ["ftp://lab/x", "s3://", "s3://key:secret@lab/x", "lab"])
def test_what_names_no_storage_is_refused_without_saying_it(url):
    done = run_python("-c", "import config.settings", OBJECTS_URL=url)
    assert done.returncode != 0
    assert "OBJECTS_URL" in done.stderr
    assert "secret@" not in done.stderr

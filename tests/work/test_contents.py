import os
import time
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO

import pytest
from django.conf import settings as site
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from accounts.models import User
from annotation.models import Picture
from annotation.uploads import store_upload, stored_file
from config.backup_files.archive import read_lines, write_rows
from config.variables import object_storage
from tests.annotation.studies import rated_study
from tests.codes import refused, refused_naming
from work.contents import (
    LARGE_BYTES,
    MARK,
    REFERENCE,
    REFERENCE_BYTES,
    check_objects,
    content_columns,
    sweep_objects,
)
from work.exceptions import ContentMissing

pytestmark = pytest.mark.django_db
LARGE, SMALL = bytes(range(256)) * (LARGE_BYTES // 256), b"a small one"


@pytest.fixture
def folder(settings, tmp_path):
    """The site's storage, a folder."""
    storage = object_storage(f"file://{tmp_path}", "", site.BASE_DIR)
    settings.STORAGES = settings.STORAGES | {"objects": storage}
    settings.CONTENT_IN_OBJECTS = True
    return tmp_path


@contextmanager
def s3_storage(settings, monkeypatch):
    """The site's storage, a bucket "lab" that a test creates."""
    import boto3
    from moto import mock_aws

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    storage = object_storage("s3://lab/assay", "", site.BASE_DIR)
    settings.STORAGES = settings.STORAGES | {"objects": storage}
    with mock_aws():
        yield boto3.client("s3")


def picture(content: bytes, name: str = "a") -> Picture:
    return Picture.objects.create(sha256=name * 64, media_type="image/png", content=content)


def content_of(row: Picture) -> bytes:
    return bytes(Picture.objects.values_list("content", flat=True).get(pk=row.pk))


def column_of(row: Picture) -> bytes:
    """What the database itself has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT content FROM annotation_picture WHERE id = %s", [row.pk])
        return bytes(cursor.fetchone()[0])


def objects_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def make_old(folder):
    then = time.time() - timedelta(days=3).total_seconds()
    for path in objects_in(folder):
        os.utime(path, (then, then))


def move(to: str, **options) -> str:
    printed = StringIO()
    call_command("move_contents", to=to, stdout=printed, stderr=StringIO(), **options)
    return printed.getvalue()


def test_all_that_is_large_of_a_row_may_be_an_object():
    assert {f"{one.model.__name__}.{one.field.name}" for one in content_columns()} == {
        *("Picture.content", "UploadPart.content", "FilePart.content", "ResultPart.content"),
        *("Result.packed_record", "CataloguePart.content", "DialogueLogPart.content"),
        *("DialoguePiece.log", "StoredRecommender.checkpoint"),
    }


def test_without_a_storage_all_is_in_the_database(settings, tmp_path):
    settings.STORAGES = settings.STORAGES | {"objects": object_storage("", "", tmp_path)}
    row = picture(LARGE)
    assert (column_of(row), content_of(row), objects_in(tmp_path)) == (LARGE, LARGE, [])


def test_a_large_content_is_an_object_and_a_small_one_is_not(folder):
    large, small = picture(LARGE), picture(SMALL, "b")
    assert (len(column_of(large)), column_of(small)) == (REFERENCE_BYTES, SMALL)
    (path,) = objects_in(folder)
    assert path.read_bytes() == LARGE
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [content_of(row) for row in (large, small)] == [LARGE, SMALL]
    assert bytes(Picture.objects.get(pk=large.pk).content) == LARGE
    # However it is written.
    Picture.objects.filter(pk=small.pk).update(content=LARGE[::-1])
    (third,) = Picture.objects.bulk_create([Picture(sha256="c" * 64, content=LARGE * 2)])
    assert [content_of(row) for row in (small, third)] == [LARGE[::-1], LARGE * 2]
    assert len(objects_in(folder)) == 3


def test_who_sends_a_reference_gets_the_bytes_and_nobody_elses_object(folder, settings):
    secret = picture(LARGE)
    assert content_of(picture(column_of(secret), "b")) == column_of(secret) != LARGE
    settings.CONTENT_IN_OBJECTS = False
    for n, content in enumerate([column_of(secret), MARK, MARK + b"\x00", MARK + REFERENCE]):
        assert content_of(picture(content, str(n))) == content


def test_what_was_lost_or_changed_in_the_storage_is_said_and_not_shown(folder):
    row = picture(LARGE)
    (path,) = objects_in(folder)
    path.write_bytes(LARGE[:-1])
    with refused(ContentMissing, "changed"):
        content_of(row)
    path.unlink()
    with refused(ContentMissing, "missing"):
        content_of(row)


def test_only_old_objects_that_no_row_refers_to_are_swept(folder):
    kept, deleted = picture(LARGE), picture(LARGE, "b")
    with transaction.atomic():
        picture(LARGE, "c")
        transaction.set_rollback(True)
    deleted.delete()
    assert (len(objects_in(folder)), sweep_objects()) == (3, 0)
    make_old(folder)
    picture(LARGE, "d").delete()
    assert (sweep_objects(), len(objects_in(folder))) == (2, 2)
    assert content_of(kept) == LARGE


def test_contents_are_moved_into_the_storage_and_back(folder, settings):
    settings.CONTENT_IN_OBJECTS = False
    rows = [picture(LARGE), picture(SMALL, "b"), picture(MARK + LARGE, "c")]
    contents = [content_of(row) for row in rows]
    with refused_naming(CommandError, "OBJECTS_URL"):
        move("objects")
    settings.CONTENT_IN_OBJECTS = True
    assert move("objects", dry_run=True)[0] == "2"
    assert move("objects")[0] == "2"
    assert [len(column_of(row)) for row in rows] == [REFERENCE_BYTES, len(SMALL), REFERENCE_BYTES]
    assert [content_of(row) for row in rows] == contents
    assert move("objects")[0] == "0"
    printed = move("database")
    assert printed[0] == "2"
    assert "OBJECTS_URL" in printed
    make_old(folder)
    assert (sweep_objects(), objects_in(folder)) == (2, [])
    assert [content_of(row) for row in rows] == contents


def test_a_file_that_was_sent_is_read_back_whole_from_a_bucket(settings, monkeypatch):
    settings.CONTENT_IN_OBJECTS = True
    text = b"item,system,response\n" + b"".join(b"i-%d,alpha,Yes.\n" % n for n in range(150_000))
    with s3_storage(settings, monkeypatch) as client:
        client.create_bucket(Bucket="lab")
        study = rated_study()
        ada = User.objects.create_user("ada")
        upload = store_upload(
            file=SimpleUploadedFile("responses.csv", text), uploaded_by=ada, study=study
        )
        keys = [one["Key"] for one in client.list_objects_v2(Bucket="lab")["Contents"]]
        assert len(keys) == upload.parts.count() == 1
        assert all(key.startswith("assay/contents/") for key in keys)
        with stored_file(upload) as path:
            assert path.read_bytes() == text
        upload.delete()
        assert sweep_objects() == 0
        client.delete_object(Bucket="lab", Key=keys[0])


def test_check_deploy_says_when_nothing_can_be_stored(folder, settings, monkeypatch):
    assert check_objects(None) == []
    assert objects_in(folder) == []
    with s3_storage(settings, monkeypatch) as client:
        [refused] = check_objects(None)
        assert refused.id == "work.E001"
        assert "NoSuchBucket" in refused.msg
        client.create_bucket(Bucket="lab")
        assert check_objects(None) == []
    settings.CONTENT_IN_OBJECTS = False
    assert check_objects(None) == []


def test_a_backup_holds_what_is_in_the_storage_for_a_site_that_has_none(folder, settings):
    row = picture(LARGE)
    lines = list(read_lines(Picture))
    Picture.objects.all().delete()
    settings.CONTENT_IN_OBJECTS = False
    write_rows(Picture, lines)
    assert column_of(row) == LARGE

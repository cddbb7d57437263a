import json
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from errno import ENOSPC
from io import BytesIO
from pathlib import Path
from threading import Barrier
from zipfile import ZipFile

import numpy as np
import pytest
from django.db import connection
from PIL import Image

from accounts.models import User
from accounts.teams import create_team
from simulation import critics, exceptions
from simulation.stored_catalogues import (
    _unpacked,
    packed,
    read_stored,
    read_stored_critic,
    store_upload,
)
from tests.codes import refused, refused_naming
from tests.simulation.stored import saved, stored_experiment

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return create_team(name="Lab", owner=User.objects.create_user("rosa"))


def test_a_catalogue_that_is_sent_is_read_or_refused_with_the_reason(team):
    files = {
        "ids.txt": b"a\nb\nc\n",
        "embeddings.npy": saved(np.eye(3)),
        "attributes.csv": b"id,colour\na,red\nb,blue\nc,red\n",
    }
    row = store_upload(team=team, name="Zip", file=BytesIO(packed(files)), actor=None)
    assert read_stored(row).attributes.describe(1) == {"colour": "blue"}
    for content, named in (
        (b"no zip", ["zip"]),
        (packed(files | {"ids.txt": b"a\nb\n"}), ["embeddings.npy", 3, 2]),
        (packed({"ids.txt": b"a\nb\nc\n"}), ["embeddings.npy"]),
        (packed({"other.npy": saved(np.eye(3))}), []),
        (packed({"a.npy": b"", "b.npy": b""}), ["a.npy", "b.npy"]),
        (packed(files | {"old/ids.txt": b"a\n"}), ["ids.txt", "old/ids.txt"]),
    ):
        with refused_naming(exceptions.CatalogueUnfit, *named):
            store_upload(team=team, name="Zip", file=BytesIO(content), actor=None)
    assert ZipFile(BytesIO(packed(files))).namelist() == list(files)


def sprite():
    grey = np.random.default_rng(0).integers(0, 256, (840, 840)).astype(np.uint8)
    picture = BytesIO()
    Image.fromarray(grey).save(picture, format="PNG")
    return picture.getvalue()


@pytest.mark.parametrize(
    ("content", "n_items", "first"),
    [
        (packed({"eval_im_names.txt": b"a.jpg\nb.jpg\n", "x.npy": saved(np.eye(2))}), 2, "a.jpg"),
        (packed({"split.dress.val.json": b'["B01", "B02"]', "x.npy": saved(np.eye(2))}), 2, "B01"),
        (sprite(), 900, "t-shirt-000"),
    ],
)
def test_catalogues_are_sent_in_the_layouts_that_they_are_published_in(
    team, content, n_items, first
):
    row = store_upload(team=team, name="Sent", file=BytesIO(content), actor=None)
    catalogue = read_stored(row)
    assert (row.n_items, len(catalogue), catalogue.ids[0]) == (n_items, n_items, first)
    assert read_stored_critic(row).name == critics.critic_of(catalogue).name


def test_captions_that_come_along_are_what_critiques_are_said_in(team):
    said = {f"{name}.jpg": f"has a {name} strap" for name in ("red", "wide", "long", "old", "dark")}
    captions = [
        {"ReferenceImageName": one, "ImageName": other, "RelativeCaption": said[other]}
        for one in said
        for other in said
        if one != other
    ]
    files = {"eval_im_names.txt": "\n".join(said).encode(), "x.npy": saved(np.eye(5))}
    content = packed(files | {"relative_captions_shoes.json": json.dumps(captions).encode()})
    row = store_upload(team=team, name="Shoes", file=BytesIO(content), actor=None)
    critic = read_stored_critic(row)
    assert critic.texts(np.array([0]), np.array([1])) == [said["wide.jpg"]]
    assert critic.record()["source"] == "relative_captions_shoes.json"
    of_others = json.dumps([captions[0] | {"ImageName": "other.jpg"}]).encode()
    foreign = packed(files | {"relative_captions_shoes.json": of_others})
    with refused_naming(exceptions.CaptionsUnfit, " 0 "):
        store_upload(team=team, name="Shoes", file=BytesIO(foreign), actor=None)


def png(width, height, *more: tuple[bytes, bytes]):
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", header), *more, (b"IDAT", b""), (b"IEND", b"")):
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        content += struct.pack(">I", len(data)) + kind + data + checksum
    return content


@pytest.mark.parametrize(
    "content",
    [
        png(60_000, 60_000),
        png(840, 840, (b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 27)))),
        png(840, 840),
        b"\x89PNG",
    ],
)
def test_a_picture_that_cannot_be_read_is_refused_without_the_servers_folder(team, content):
    with refused_naming(exceptions.CatalogueUnfit, "fashion-mnist-sprite.png ") as error:
        store_upload(team=team, name="Sent", file=BytesIO(content), actor=None)
    assert "/" not in str(error.value)


def test_what_macos_packs_beside_the_files_is_left_out(team):
    files = {"eval_im_names.txt": b"a\nb\n", "e" * 300 + ".npy": saved(np.eye(2))}
    hidden = {"__MACOSX/._e.npy": b"\0\5", "__MACOSX/._eval_im_names.txt": b"\0\5", "x.npy/": b""}
    row = store_upload(team=team, name="Shoes", file=BytesIO(packed(files | hidden)), actor=None)
    assert read_stored(row).ids == ("a", "b")


def test_a_full_disk_is_not_called_a_zip_that_cannot_be_unpacked(team, monkeypatch):
    write = Path.write_bytes

    def write_little(path, data):
        if path.suffix == ".npy":
            raise OSError(ENOSPC, "No space left on device")
        return write(path, data)

    content = packed({"eval_im_names.txt": b"a\nb\n", "x.npy": saved(np.eye(2))})
    monkeypatch.setattr(Path, "write_bytes", write_little)
    with refused(OSError, errno=ENOSPC), _unpacked(content):
        pass


@pytest.mark.parametrize("shape", ["(9999999, 99999)", "(2, ", f"(2, {10**23})", "(2, -1)"])
def test_a_header_that_promises_more_than_the_file_holds_is_refused(team, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(16)
    content = packed({"ids.txt": b"a\nb\n", "embeddings.npy": array})
    with refused_naming(exceptions.CatalogueUnfit, "embeddings.npy"):
        store_upload(team=team, name="Huge", file=BytesIO(content), actor=None)


@pytest.mark.django_db(transaction=True)
def test_teams_that_make_experiments_of_one_name_at_once_have_one_each():
    teams = [create_team(name=f"Lab {n}", owner=User.objects.create_user(f"r{n}")) for n in "abc"]
    barrier = Barrier(len(teams))

    def make(team):
        with closing(connection):
            barrier.wait(timeout=30)
            return stored_experiment(team, None, n_items=100, n_targets=5).slug

    with ThreadPoolExecutor(len(teams)) as pool:
        slugs = list(pool.map(make, teams))
    assert sorted(slugs) == ["shoes", "shoes-2", "shoes-3"]

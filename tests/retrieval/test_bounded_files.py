import gzip
import re
import subprocess
import sys
import time
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import PictureDraft
from annotation.readers.tables import read_rows
from annotation.uploads import plain_file_name
from results.models import Result
from retrieval import exceptions, stored_files
from retrieval.models import SampledTarget
from retrieval.pools.catalogue import read_targets
from retrieval.pools.encoding import opened_picture
from retrieval.pools.vectors import TOO_LONG, read_vectors
from retrieval.result_kinds.pools import request_pool
from retrieval.trec_files import LONGEST_LINE, read_qrels
from simulation.exceptions import CatalogueUnfit
from simulation.product_files import read_embeddings
from tests.codes import refused, refused_naming
from tests.retrieval.collections import add_file, run_text, sent

pytestmark = pytest.mark.django_db


def parquet(names, **options):
    content = BytesIO()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * len(names), pa.float32()), 1)
    pq.write_table(pa.table({"docno": names, "v": vectors}), content, **options)
    return content.getvalue()


@pytest.mark.parametrize("coded", [True, False])
def test_a_long_name_in_parquet_is_refused_before_it_is_repeated(collection, coded):
    content = parquet(["a", *["x" * 200_000] * 150], use_dictionary=coded, compression="zstd")
    assert len(content) < 10_000
    [[line, problem]] = add_file(collection, "v.parquet", content, kind="embeddings").faults
    assert line == 2
    assert problem == f"{'x' * 40}… {TOO_LONG}"


def test_parquet_is_read_in_the_background_and_its_names_keep_their_order(collection, tmp_path):
    names = ["b", "a", "ü"]
    content = parquet(names)
    stored = {"file": sent("v.parquet", content), "actor": None, "kind": "embeddings"}
    assert stored_files.is_packed(stored_files.store_file(collection=collection, **stored))
    (tmp_path / "v.parquet").write_bytes(content)
    assert read_vectors(tmp_path / "v.parquet").names == names


def test_texts_and_vectors_that_fill_the_memory_are_refused_unread(collection, settings):
    settings.UPLOAD_MAX_MEGABYTES = 1
    texts = parquet([f"{n:0900d}" for n in range(8000)], use_dictionary=False, compression="zstd")
    same, vectors = np.zeros(2_000_000, np.float32), BytesIO()
    same = pa.FixedSizeListArray.from_arrays(pa.array(same), 1000)
    pq.write_table(pa.table({"docno": [f"d{n}" for n in range(2000)], "v": same}), vectors)
    for content in (texts, vectors.getvalue()):
        assert len(content) < 1024**2
        [[line, problem]] = add_file(collection, "v.parquet", content, kind="embeddings").faults
        assert (line, re.findall(r"\d+", problem)) == (None, ["5"])


def test_columns_that_are_twice_are_found_at_once_and_too_many_are_refused(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n % 8000}" for n in range(16_000)) + "\n")
    start = time.process_time()
    with refused_naming(ImportRefused, "c0, ", "7,950") as said:
        read_rows(path)
    assert time.process_time() - start < 1
    assert len(str(said.value)) < 1000
    path.write_text(",".join(f"c{n}" for n in range(65_000)) + "\n")
    with refused_naming(ImportRefused, "65,000", "16,384"):
        read_rows(path)


@pytest.mark.parametrize("kind", ["qrels", "assessors"])
def test_faults_quote_the_beginning_of_a_name(collection, kind):
    long = "d" * 100_000
    text = f"t1 Ann {long} 1\n" * 3 + "t1 Bob d 1\n"
    file = add_file(collection, "q.txt.gz", gzip.compress(text.encode()), kind=kind)
    assert file.n_faults >= 2
    assert all(len(problem) <= 500 for _line, problem in file.faults)
    assert f" {'d' * 40}… " in file.faults[-1][1]


def test_a_file_of_a_long_name_is_kept_under_a_shorter_one_and_read(collection):
    file = add_file(collection, "鞋" * 100 + ".run", run_text("dense"))
    assert file.is_usable
    assert len(file.file_name.encode()) <= 200
    assert file.file_name.endswith("鞋.run")
    # as those that were stored before names were cut
    file.file_name = "鞋" * 90 + ".run"
    file.save()
    with stored_files.files_on_disk([file]) as [path]:
        assert path.read_bytes() == run_text("dense").encode()
    assert plain_file_name("a" * 300 + ".csv") == "a" * 196 + ".csv"


def test_a_sample_of_too_many_candidates_is_refused_as_names_are(collection):
    run, names = (
        add_file(collection, "dense.run", run_text("dense")),
        [f"t{n}" for n in range(1001)],
    )
    stored = {"kind": "targets", "number": 1, "form": 1, "fingerprint": "x"}
    sample = Result.objects.create(subject=collection, **stored)
    SampledTarget.objects.bulk_create(SampledTarget(version=sample, topic=name) for name in names)
    documents = add_file(collection, "d.parquet", parquet(["a", "b"]), kind="embeddings")
    topics = add_file(collection, "q.parquet", parquet(names), kind="embeddings")
    for files, rules in (
        ([run], {"sample": sample.pk}),
        ([run], {"targets": names}),
        ([documents, topics], {"queries": {documents.name: topics.name}}),
    ):
        rules |= {"depth": 1000}
        with refused(exceptions.CollectionUnfit, "too_many_candidates"):
            request_pool(collection=collection, files=files, rules=rules, actor=None)


def test_an_array_whose_shape_is_no_number_is_refused(tmp_path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (True, 2), }"
    header += b" " * (117 - len(header)) + b"\n"
    path = tmp_path / "v.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))
    path.with_suffix(".ids").write_text("a\n")
    with refused(exceptions.PoolFileFaults, "unreadable"):
        read_vectors(path)
    with refused_naming(CatalogueUnfit, path.name):
        read_embeddings(path, 1)


PEAK = """
import resource, sys
from pathlib import Path
import django
django.setup()
import numpy, pyarrow, pyarrow.csv
from annotation.readers.tables import read_rows
from retrieval.pools.catalogue import read_targets
from retrieval.pools.vectors import read_vectors
from retrieval.trec_files import each_row, read_assessors, read_qrels, read_run
run_rows = lambda path: each_row(path, "run")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    list({read}(Path(sys.argv[1])))
except Exception as refused:
    print(refused.code, getattr(refused, "lines", [getattr(refused, "line", None)])[0])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def peak(read, path):
    command = [sys.executable, "-c", PEAK.replace("{read}", read), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    refusal, megabytes = done.stdout.splitlines()
    return refusal, int(megabytes)


@pytest.fixture(scope="module")
def long_line(tmp_path_factory):
    """A file of 100 KB, of which gzip makes a line of 50 million columns."""
    path = tmp_path_factory.mktemp("long") / "long.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"t 0 d 1\n")
        for _ in range(50):
            file.write(b"a " * 500_000 + b"," * 1_000_000)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "line"),
    [
        *((read, 2) for read in ("read_run", "read_qrels", "read_assessors", "run_rows")),
        *(("read_rows", 2), ("read_targets", 1)),
    ],
)
def test_a_line_that_fills_the_memory_is_refused_by_its_number(long_line, read, line):
    said, megabytes = peak(read, long_line)
    assert said.split()[-1] == str(line)
    assert ("too_long" in said) == (read != "read_targets")
    assert megabytes < 150


@pytest.mark.slow
def test_a_record_of_many_lines_is_refused_where_it_begins(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("target\n" + '"\n",' * 4_500_000)
    said, megabytes = peak("read_rows", path)
    assert said.split()[-1] == "2"
    assert megabytes < 400


@pytest.mark.slow
def test_names_of_nothing_but_line_ends_are_refused_at_the_first_thousand(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2000, 2), np.float32))
    numbers = b"".join(b"%d\n" % n for n in range(2000))
    for start, block, code in (
        (b"", b"\n" * 1_000_000, "no_name 1"),
        (numbers, b"a\n" * 500_000, "n_names None"),
    ):
        with (tmp_path / "v.ids").open("wb") as file:
            file.write(start)
            for _ in range(30):
                file.write(block)
        said, megabytes = peak("read_vectors", tmp_path / "v.npy")
        assert (said, megabytes < 100) == (code, True)
    (tmp_path / "v.ids").write_text("a" * 70_000)
    with refused(exceptions.PoolFileFaults, "too_long", lines=[1]):
        read_vectors(tmp_path / "v.npy")


def test_vectors_of_more_rows_than_names_fit_are_refused(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((3, 2), np.float32))
    (tmp_path / "v.ids").write_text("a\nb\nc\n")
    assert read_vectors(tmp_path / "v.npy", most_rows=3).names == ["a", "b", "c"]
    (tmp_path / "v.parquet").write_bytes(parquet(["a", "b", "c"]))
    for name in ("v.npy", "v.parquet"):
        with refused(exceptions.PoolFileFaults, "too_many_vectors"):
            read_vectors(tmp_path / name, most_rows=2)


def test_more_targets_than_candidates_fit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("retrieval.pools.catalogue.MOST_TARGETS", 2)
    for name, text in (("t.txt", "a\n\nb\n"), ("t.csv", "target\na\nb\n")):
        path = tmp_path / name
        path.write_text(text)
        assert len(read_targets(path)) == 2
        path.write_text(text + "c\n")
        with refused(exceptions.PoolFileFaults, "too_many_targets", lines=[4]):
            read_targets(path)


def test_a_line_may_be_as_long_as_the_limit(tmp_path):
    name = "d" * (LONGEST_LINE - 8)
    path = tmp_path / "long.qrels"
    path.write_text(f"t 0 {name}dd 1\nt 0 e 1\n")
    assert len(read_qrels(path).documents) == 2
    path.write_text(f"t 0 e 1\nt 0 {name}ddd 1\n")
    with refused(exceptions.TrecFileFaults, "too_long", lines=[2]):
        read_qrels(path)


DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink" {}>{}</svg>'
)
USES = "".join(f'<g id="g{n}">' + f'<use href="#g{n - 1}"/>' * 10 + "</g>" for n in range(1, 9))


@pytest.mark.parametrize(
    ("size", "inside", "named"),
    [
        ("", '<image href="http://127.0.0.1:9/a.png"/>', "http://127.0.0.1:9/a.png"),
        ("", '<image x:href="/etc/passwd"/>', "/etc/passwd"),
        ("", '<image href="data:image/svg+xml;base64,PHN2Zz4="/>', "data:image/svg"),
        ("", "<style>@import 'http://127.0.0.1:9/a.css';</style>", "style"),
        ("", '<rect fill="url(http://127.0.0.1:9/a)"/>', "url"),
        ('width="60000" height="60000"', "", "60,000"),
        ('viewBox="0 0 9 90000"', "", "90,000"),
        ('width="many" height="1"', "", "many"),
        ("", f'<g id="g0"/>{USES}', "80"),
    ],
)
def test_a_drawing_that_refers_to_others_or_is_huge_is_not_drawn(size, inside, named):
    drawing = PictureDraft("image/svg+xml", DRAWING.format(size, inside).encode())
    with refused_naming(exceptions.PoolUnfit, "boot", named):
        opened_picture(drawing, "boot")


def test_a_drawing_of_its_own_parts_is_drawn():
    inside = (
        '<defs><linearGradient id="a"><stop stop-color="#f00"/></linearGradient></defs>'
        '<rect width="9" height="9" fill="url(#a)"/><use href="#b"/>'
    )
    content = DRAWING.format('width="9px" height="9"', inside).encode()
    image = opened_picture(PictureDraft("image/svg+xml", content), "boot")
    assert image.size == (9, 9)
    assert image.getpixel((4, 4)) == (255, 0, 0)

import os
from errno import ESPIPE
from io import StringIO

import numpy as np
import pyarrow as pa
import pytest
from django.core.management import call_command

from annotation.exceptions import AnnotationError
from annotation.readers import archives, tables
from presentation.files import plain_file, reason_of
from retrieval import exceptions, sizes
from retrieval.exports.assessors import read_terms
from retrieval.pools.catalogue import read_targets
from retrieval.pools.vectors import read_vectors
from retrieval.reuse.pools import read_groups
from retrieval.trec_files import read_assessors, read_qrels, read_run
from tests.codes import refused, refused_naming

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe.txt"
    os.mkfifo(path)
    return path


def read_unpacked(path):
    with archives.unpacked(path, most_bytes=10):
        pass


@pytest.mark.parametrize(
    "read",
    [
        *(read_run, read_qrels, read_assessors, read_groups, sizes.read_pilot, read_targets),
        *(read_terms, read_vectors, tables.read_rows, read_unpacked),
    ],
)
def test_no_reader_waits_for_a_pipe(pipe, read):
    with pytest.raises((exceptions.RetrievalError, AnnotationError)) as error:
        read(pipe)
    assert "pipe" in str(error.value)
    assert ".." not in str(error.value)


def test_no_list_of_names_is_a_pipe(pipe, tmp_path):
    np.save(tmp_path / "v.npy", np.ones((1, 2), np.float32))
    with refused(exceptions.PoolFileFaults, "unreadable"):
        read_vectors(tmp_path / "v.npy", pipe)


@pytest.mark.parametrize(
    "command",
    [
        "evaluate_runs --qrels {pipe} --run {pipe} --measure nDCG@10",
        "pool_candidates --targets {pipe} --run a={pipe} --depth 3",
    ],
)
def test_commands_refuse_a_pipe(pipe, command):
    with refused_naming(exceptions.RetrievalError, pipe.name):
        call_command(*command.format(pipe=pipe).split(), stdout=StringIO())


def test_files_and_folders_are_what_can_be_read_again(tmp_path):
    assert plain_file(tmp_path) == tmp_path
    assert plain_file(tmp_path / "none") == tmp_path / "none"
    with refused(OSError, errno=ESPIPE):
        plain_file(tmp_path.__class__("/dev/null"))


def test_what_a_library_says_ends_as_part_of_a_sentence(tmp_path):
    assert reason_of(pa.ArrowInvalid("Not found. Why?.\nmore.")) == "Not found. Why?"
    path = tmp_path / "v.parquet"
    path.write_bytes(b"PAR1 and no more than this, PAR2")
    with refused(exceptions.PoolFileFaults, "not_parquet") as error:
        read_vectors(path)
    assert not str(error.value).splitlines()[0].endswith("..")

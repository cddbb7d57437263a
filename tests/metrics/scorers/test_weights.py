import hashlib

import pytest

from metrics.scorers.errors import ModelChangedError
from metrics.scorers.weights import file_sha256, fingerprint, verify_sha256
from tests.codes import refused, refused_naming

WEIGHTS = bytes(range(256)) * 4


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_one_changed_byte_or_a_missing_file_is_refused(folder):
    path = folder / "model.safetensors"
    expected = hashlib.sha256(WEIGHTS).hexdigest()
    verify_sha256(path, expected)
    changed = bytearray(WEIGHTS)
    changed[700] ^= 1
    path.write_bytes(changed)
    with refused_naming(ModelChangedError, file_sha256(path)[:12], expected[:12]):
        verify_sha256(path, expected)
    with refused(ModelChangedError, "missing"):
        verify_sha256(folder / "other.safetensors", expected)


def test_the_fingerprint_is_of_the_weights_and_apart_of_the_settings(folder):
    assert fingerprint(folder).weights == hashlib.sha256(WEIGHTS).hexdigest()
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"dense")
    dense = hashlib.sha256(b"dense").hexdigest()
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    listing = f"{dense}  2_Dense/pytorch_model.bin\n{digest}  model.safetensors\n"
    assert fingerprint(folder).weights == hashlib.sha256(listing.encode()).hexdigest()
    before = fingerprint(folder)
    (folder / "config.json").write_text('{"max_seq_length": 9}')
    after = fingerprint(folder)
    assert after.weights == before.weights
    assert after.settings != before.settings


@pytest.mark.parametrize(
    "name", ["README.md", ".gitattributes", ".cache/lock", "onnx/model.onnx", "pytorch_model.bin"]
)
def test_files_that_do_not_shape_the_output_do_not_count(folder, name):
    before = fingerprint(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"something")
    assert fingerprint(folder) == before


def test_an_empty_or_missing_folder_has_no_fingerprint(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with refused_naming(FileNotFoundError, folder):
            fingerprint(folder)

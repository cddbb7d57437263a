import hashlib

import pytest

from metrics.scorers.errors import ModelChangedError
from metrics.scorers.weights import file_sha256, fingerprint, verify_sha256

WEIGHTS = bytes(range(256)) * 4


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_a_file_that_is_the_one_expected_passes(folder):
    path = folder / "model.safetensors"
    verify_sha256(path, hashlib.sha256(WEIGHTS).hexdigest())


def test_one_changed_byte_is_refused(folder):
    path = folder / "model.safetensors"
    expected = file_sha256(path)
    changed = bytearray(WEIGHTS)
    changed[700] ^= 1
    path.write_bytes(changed)
    with pytest.raises(ModelChangedError, match=rf"{file_sha256(path)[:12]}.*{expected[:12]}"):
        verify_sha256(path, expected)


def test_a_missing_file_is_refused(folder):
    with pytest.raises(ModelChangedError, match=r"other\.safetensors"):
        verify_sha256(folder / "other.safetensors", "0" * 64)


def test_the_fingerprint_of_one_file_of_weights_is_its_own_sha256(folder):
    assert fingerprint(folder).weights == hashlib.sha256(WEIGHTS).hexdigest()


def test_the_fingerprint_of_several_is_that_of_their_listing(folder):
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"dense")
    dense = hashlib.sha256(b"dense").hexdigest()
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    listing = f"{dense}  2_Dense/pytorch_model.bin\n{digest}  model.safetensors\n"
    assert fingerprint(folder).weights == hashlib.sha256(listing.encode()).hexdigest()


def test_the_settings_count_but_not_among_the_weights(folder):
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
    with pytest.raises(FileNotFoundError, match="no model"):
        fingerprint(tmp_path)
    with pytest.raises(FileNotFoundError, match="no model"):
        fingerprint(tmp_path / "nowhere")

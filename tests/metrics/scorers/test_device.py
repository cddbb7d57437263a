import pytest

from metrics.scorers.device import available, chosen_device


def test_the_fastest_there_is_comes_first_and_the_processor_is_always_there():
    assert chosen_device() == available()[0]
    assert available()[-1] == "cpu"
    assert chosen_device("cpu") == "cpu"


def test_a_device_this_machine_has_not_is_refused_by_name():
    absent = {"cuda", "mps"} - set(available())
    for kind in absent:
        with pytest.raises(ValueError, match=f"device '{kind}:0' is not on this machine"):
            chosen_device(f"{kind}:0")
    assert absent


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="device must be one of cuda, mps, cpu, got 'tpu'"):
        chosen_device("tpu")

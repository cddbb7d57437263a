from error_codes import InvalidValue
from metrics.scorers.device import available, chosen_device
from tests.codes import refused


def test_the_fastest_there_is_comes_first_and_the_processor_is_always_there():
    assert chosen_device() == available()[0]
    assert available()[-1] == "cpu"
    assert chosen_device("cpu") == "cpu"


def test_a_device_this_machine_has_not_and_an_unknown_one_are_refused():
    absent = {"cuda", "mps"} - set(available())
    assert absent
    for device, code in ((f"{absent.pop()}:0", "device_absent"), ("tpu", "unknown_device")):
        with refused(InvalidValue, code):
            chosen_device(device)

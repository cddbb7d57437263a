import math

import pytest

from error_codes import InvalidValue
from metrics.scorers.judges.distributions import from_samples, from_tokens
from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.probes import capabilities_of, stored_capabilities
from metrics.scorers.judges.readings import (
    read_grade,
    read_grade_as_released,
    read_rating,
    read_rating_as_released,
)
from metrics.scorers.judges.replies import Token
from tests.codes import refused
from tests.metrics.scorers.judges.foreign import chat


def coherence(reply):
    return read_rating(reply, "coherence", 1, 3)


@pytest.mark.parametrize(
    ("read", "reply", "expected"),
    [
        (read_grade, "85", 85),
        (read_grade, "Appropriateness Score: [90]", 90),
        (read_grade, "0", 0),
        (read_grade, "100.", 100),
        (read_grade, "I'd say 72 out of 100", 72),
        (read_grade, "85.5", 85),
        (coherence, "3", 3),
        (coherence, "- Coherence: 2", 2),
        (coherence, "1. Coherence: 3", 3),
        (coherence, "2. The response is loosely coherent.", 2),
        (coherence, "2.5", 2.5),
        (coherence, "Coherence:\n2", 2),
        (coherence, "**Coherence**: 2", 2),
        (coherence, "The score is 3.", 3),
        (coherence, "It has 7 turns, so I hesitate. Therefore, the coherence score is 1.", 1),
        (coherence, "The response is somewhat coherent (2).", 2),
        (coherence, "3/3", 3),
        (lambda reply: read_rating(reply, "coherence", 0, 3), "Coherence: 0", 0),
    ],
)
def test_a_grade_is_the_first_integer_and_a_rating_has_the_forms_models_give(read, reply, expected):
    assert read(reply) == (expected, None)


@pytest.mark.parametrize(
    ("read", "reply", "code"),
    [
        (read_grade, "Quite good.", "no_number"),
        (read_grade, "", "no_number"),
        (read_grade, "150", "off_scale"),
        (read_grade, "-5", "off_scale"),
        (coherence, "N/A", "no_number"),
        (coherence, "Coherence: 0", "off_scale"),
        (coherence, "4", "off_scale"),
    ],
)
def test_a_reply_without_a_value_on_the_scale_is_nan_with_a_reason_and_never_50(read, reply, code):
    found = read(reply)
    assert math.isnan(found.value)
    assert found.reason.code == code


def test_released_readings_are_the_first_digits_or_a_default():
    assert read_grade_as_released("Quite good.").value == 50
    assert read_grade_as_released("150").value == 150
    replies = ["2.5", "Fact: 84 per cent", "N/A", "1. Coherence: 3"]
    assert [read_rating_as_released(reply).value for reply in replies] == [2, 8, 0, 1]


def test_distributions_are_of_samples_that_were_read():
    """20 samples that sum to 38, in every way there is."""
    means = {
        from_samples([1.0] * ones + [2.0] * twos + [3.0] * (20 - ones - twos)).expectation
        for ones in range(21)
        for twos in range(21 - ones)
        if ones + 2 * twos + 3 * (20 - ones - twos) == 38
    }
    assert means == {1.9}
    assert from_samples([3.0, math.nan]).expectation == 3
    assert from_samples([3.0, math.nan]).mass == 0.5
    assert math.isnan(from_samples([math.nan]).expectation)


def token(text: str, *alternatives: tuple[str, float]) -> Token:
    return Token(text, math.log(0.5), tuple((name, math.log(p)) for name, p in alternatives))


def test_distributions_of_tokens_are_of_the_first_level_chosen():
    tokens = [token("Score", ("2", 0.2)), token(":"), token(" 2", (" 2", 0.5), ("3", 0.5))]
    assert from_tokens(tokens, range(1, 4)).expectation == pytest.approx(2.5)
    assert from_tokens([token("Good", ("2", 0.4))], range(1, 4)) == ({}, 0.0)
    assert from_tokens([token("1", ("3", 0.5))], range(1, 4)).expectation == pytest.approx(2)


def test_no_samples_and_levels_of_two_digits_are_refused():
    with refused(InvalidValue, "values_empty"):
        from_samples([])
    with refused(InvalidValue, "levels_of_two_digits"):
        from_tokens([], range(11))


PROBES = 6


def test_an_endpoint_is_probed_once_for_each_model_or_anew_if_asked_to(foreign, tmp_path):
    foreign.says(chat("2"))
    seen = capabilities_of(foreign.client(), tmp_path)
    assert capabilities_of(foreign.client(), tmp_path) == seen
    assert len(foreign.bodies) == PROBES
    assert stored_capabilities(Endpoint(base_url=foreign.base_url, model="other"), tmp_path) is None
    foreign.says(chat("2", "3"))
    assert capabilities_of(foreign.client(), tmp_path, anew=True).several_replies
    assert capabilities_of(foreign.client(), tmp_path).several_replies


def test_findings_that_cannot_be_read_or_written_are_none(foreign, tmp_path):
    foreign.says(chat("2"))
    capabilities_of(foreign.client(), tmp_path)
    [file] = tmp_path.iterdir()
    file.write_text('{"asked_model": "foreign"')
    capabilities_of(foreign.client(), tmp_path)
    assert len(foreign.bodies) == 2 * PROBES
    for _ in range(2):
        assert not capabilities_of(foreign.client(), file).several_replies
    assert len(foreign.bodies) == 4 * PROBES


def test_the_key_is_not_stored(foreign, tmp_path):
    foreign.says(chat("2"))
    capabilities_of(foreign.client(api_key="sesame"), tmp_path)
    [file] = tmp_path.iterdir()
    assert foreign.headers[0]["Authorization"] == "Bearer sesame"
    assert "sesame" not in file.read_text()

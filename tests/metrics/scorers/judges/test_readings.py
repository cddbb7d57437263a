import json
import math
from pathlib import Path
from time import process_time

import pytest

from error_codes import InvalidValue
from metrics.scorers.judges import readings
from metrics.scorers.judges.capabilities import capabilities_of, stored_capabilities
from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.samples import from_samples, from_tokens
from tests.codes import refused
from tests.metrics.scorers.judges.foreign import chat

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parent / "replies.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Shapes of replies: what is asked for, the scale, and the value or the code of the reason."""


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in CORPUS}))
def test_a_reply_is_its_score_or_a_reason(kind):
    wrong = []
    for row in (row for row in CORPUS if row["kind"] == kind):
        reply, label, scale = row["reply"], row["label"], (row["low"], row["high"])
        reading = readings.read_rating(reply, label, *scale)
        found = reading.value if reading.reason is None else reading.reason.code
        assert math.isnan(reading.value) == (reading.reason is not None)
        if found != row["expected"]:
            wrong.append((reply, row["expected"], found))
    assert wrong == []


@pytest.mark.parametrize(
    "reply",
    [
        "Score:" + " " * 50_000 + "x", "1 " * 10_000, "1" * 20_000, "(" * 20_000, "1-1" * 7_000,
        "scale " + "a" * 20_000, "1. a " * 4_000, "<think>" * 3_000, '"' * 20_000, "4 of " * 4_000,
    ],
    ids=lambda reply: reply[:12],
)  # fmt: skip
def test_a_long_reply_takes_no_long_time(reply):
    started = process_time()
    readings.read_rating(reply, "coherence", 1, 5)
    assert process_time() - started < 3


def test_of_a_long_reply_the_end_is_read():
    assert readings.read_rating("x" * 30_000 + "\nRating: 4", "tone", 1, 5) == (4, None)


def test_released_readings_are_the_first_digits_or_a_default():
    assert readings.read_grade_as_released("Quite good.").value == 50
    assert readings.read_grade_as_released("150").value == 150
    replies = ["2.5", "Fact: 84 per cent", "N/A", "1. Coherence: 3"]
    assert [readings.read_rating_as_released(reply).value for reply in replies] == [2, 8, 0, 1]


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


def token(text: str, *alternatives: tuple[str, float]) -> readings.Token:
    return readings.Token(
        text, math.log(0.5), tuple((name, math.log(p)) for name, p in alternatives)
    )


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Tone", " (", "1", "-", "5", "):", " 4"], 4),
        (["On", " a scale of ", "1", " to ", "5", ", I rate it ", "2", "."], 2),
        (["Based on the ", "4", " criteria, ", "2"], 2),
        (["<think>", "3", "?</think>", "4"], 4),
        (["4", "/", "5"], 4),
        (["Tone (", "1", "-", "5", "):"], None),
        (["between ", "3", " and ", "4"], None),
        (["2", ".", "5"], None),
        (["7"], None),
    ],
)
def test_the_token_of_the_score_is_no_number_of_the_scale_or_an_explanation(texts, expected):
    tokens = [token(text, (text, 1.0)) for text in texts]
    found = from_tokens(tokens, range(1, 6), "tone")
    assert list(found.weights) == ([] if expected is None else [expected])


def test_distributions_of_tokens_are_of_the_first_level_chosen():
    tokens = [token("Score", ("2", 0.2)), token(":"), token(" 2", (" 2", 0.5), ("3", 0.5))]
    assert from_tokens(tokens, range(1, 4)).expectation == pytest.approx(2.5)
    assert from_tokens([token("Good", ("2", 0.4))], range(1, 4)) == ({}, 0.0)
    assert from_tokens([token("1", ("3", 0.5))], range(1, 4)).expectation == pytest.approx(2)
    with refused(InvalidValue, "values_empty"):
        from_samples([])
    with refused(InvalidValue, "levels_of_two_digits"):
        from_tokens([], range(11))


PROBES = 6


def test_an_endpoint_is_probed_once_for_each_model_or_anew_and_its_key_not_stored(
    foreign, tmp_path
):
    foreign.says(chat("2"))
    seen = capabilities_of(foreign.client(api_key="sesame"), tmp_path)
    [file] = tmp_path.iterdir()
    assert foreign.headers[0]["Authorization"] == "Bearer sesame"
    assert "sesame" not in file.read_text()
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

import math
from pathlib import Path
from typing import Any

import pytest

from metrics.scorers.errors import EndpointRefusedError, EndpointUnavailableError
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint, Limits
from metrics.scorers.likelihood_server import CompletionsServer, response_likelihood
from metrics.scorers.nll import Nll
from tests.codes import refused
from tests.metrics.scorers.completions import TOO_LONG, Completions, serving
from tests.metrics.scorers.examples import example
from tests.metrics.scorers.judges.foreign import Says

WITHOUT_OFFSETS = {"tokens": ["Hi.", " Yes."], "token_logprobs": [None, -1.0]}
EXAMPLES = [
    example(response, None, context="I took the train to work. 😀")
    for response in (" I'm sorry to hear that.", "Привет!", "😀 ok", "", " Good day, " * 9)
]


@pytest.fixture(scope="module")
def completions(tiny_llama: Path) -> Completions:
    return Completions(tiny_llama, longest=400)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFEREE_KEY", "secret")


def server(url: str, **options: Any) -> CompletionsServer:
    return CompletionsServer(
        Client(Endpoint(base_url=url, model="tiny", api_key="secret"), **options)
    )


def served(url: str) -> Nll:
    return Nll(model="tiny", endpoint=url, api_key_variable="REFEREE_KEY")


def test_through_a_server_it_equals_the_model_itself(completions, tiny_llama):
    here = Nll(model=tiny_llama, boundary="joint").score(EXAMPLES)
    with serving(completions) as url:
        there = served(url).score(EXAMPLES)
    values = [scores["nll"].value for scores in there]
    assert values == pytest.approx([scores["nll"].value for scores in here], abs=1e-5)
    assert there[3]["nll_score"].value == 0


def test_a_busy_server_is_asked_again(completions):
    waits: list[float] = []
    with serving(completions, busy=2) as url:
        (likelihood,) = server(url, sleep=waits.append).likelihoods([("Hi.", " Good day.")])
    assert likelihood.nats > 0
    assert waits == [1, 2]


def test_a_server_that_ignores_echo_is_refused_and_not_believed(completions):
    with serving(completions, echoes=False) as url, refused(EndpointRefusedError, "no_echo"):
        served(url).score(EXAMPLES[:1])


def test_a_text_the_server_turns_away_is_undefined_and_the_others_are_scored(completions):
    with serving(completions) as url:
        long, short = served(url).score([example("so " * 200, None, context="Hi."), EXAMPLES[0]])
    assert math.isnan(long["nll"].value)
    assert TOO_LONG in long["nll"].reason
    assert short["nll"].value > 0


def test_a_wrong_key_is_reported(completions, monkeypatch):
    monkeypatch.setenv("REFEREE_KEY", "other")
    with serving(completions) as url, refused(EndpointRefusedError, "status_401"):
        served(url).score(EXAMPLES[:1])


def test_a_server_that_is_not_there_is_reported(completions):
    with serving(completions) as url:
        pass
    absent = server(url, limits=Limits(attempts=1))
    with refused(EndpointUnavailableError, "no_answer"):
        absent.likelihoods([("Hi.", " Good day.")])


def test_a_server_that_does_not_say_where_its_tokens_begin_is_refused(foreign):
    foreign.says(Says({"choices": [{"text": "Hi. Yes.", "logprobs": WITHOUT_OFFSETS}]}))
    with refused(EndpointRefusedError, "no_offsets"):
        CompletionsServer(foreign.client()).likelihoods([("Hi.", " Yes.")])


def test_the_signature_names_the_model_and_neither_the_address_nor_the_key():
    signature = served("http://somewhere:1/v1").signature
    assert "|boundary:joint|through:server|model:tiny|" in signature
    assert "somewhere" not in signature
    assert "secret" not in signature


def test_tokens_across_the_boundary_and_all_of_one_character_count_for_the_response():
    assert response_likelihood([0, 3, 6], [None, -1.0, -2.0], begin=4, end=8).n_tokens == 2
    assert response_likelihood([0, 3, 6], [None, -1.0, -2.0], begin=6, end=8).n_tokens == 1
    assert response_likelihood([0, 4, 4, 4], [None, -1, -1, -1], begin=4, end=5).nats == 3
    # A response that begins with the first token has no likelihood.
    assert response_likelihood([0], [None], begin=0, end=3).problem.code == "no_logprob"

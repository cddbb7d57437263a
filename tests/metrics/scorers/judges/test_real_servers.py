"""Judges on servers that others made; ``python -m benchmarks.judge_servers`` builds a third."""

import json
import os
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest

from benchmarks import judge_servers
from metrics.scorers import errors
from metrics.scorers.interface import Example
from metrics.scorers.judges import capabilities, geval, grade
from tests.codes import refused

TURNS = [
    Example(item=str(number), system="a", context="How are you?", response=f"Fine {number}.")
    for number in range(4)
]
SAMPLED = geval.GEvalSettings(aspect="Tone", criteria="Kind?", low=1, high=3, n=3, max_tokens=1)
WEIGHTED = replace(SAMPLED, distribution="logprobs")


@pytest.fixture(scope="module")
def without_logprobs(tmp_path_factory):
    """``transformers serve``."""
    for package in ("fastapi", "uvicorn", "openai"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("transformers")
    model = judge_servers.save_model(folder / "tiny")
    with judge_servers.transformers_server(model, folder / "log") as client:
        yield client


@pytest.fixture(scope="module")
def with_logprobs(tmp_path_factory):
    """llama.cpp's own server."""
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("llama")
    judge_servers.write_gguf(str(folder / "tiny.gguf"))
    with judge_servers.llama_server(folder / "tiny.gguf", folder / "log") as client:
        yield client


@pytest.fixture(scope="module")
def with_echo(tmp_path_factory):
    """llama-cpp-python's server."""
    python = os.environ.get("LLAMA_SERVER_PYTHON")
    if not (python := python or (sys.executable if find_spec("llama_cpp") else None)):
        pytest.skip("llama-cpp-python is not here; LLAMA_SERVER_PYTHON may name a Python with it")
    folder = tmp_path_factory.mktemp("llama_python")
    model = folder / "tiny.gguf"
    judge_servers.write_gguf(str(model))
    with judge_servers.llama_python_server(python, model, folder / "log") as client:
        yield client


@pytest.mark.slow
def test_the_probe_finds_what_transformers_ignores(without_logprobs):
    seen = capabilities.probe(without_logprobs)
    assert (seen.several_replies, seen.top_logprobs, seen.echoed_logprobs) == (False, 0, False)
    assert seen.distribution == "samples"
    assert dict(seen.evidence)["chat, n=2"].startswith("1 reply (")
    with refused(errors.EndpointRefusedError, "no_logprobs"):
        geval.GEval(WEIGHTED, client=without_logprobs).score(TURNS[:1])


def test_the_probe_finds_who_ignores_the_temperature(without_logprobs, with_logprobs):
    """Transformers does, unless the model's own generation settings say to sample."""
    assert not capabilities.probe(without_logprobs).samples_differ
    assert capabilities.probe(with_logprobs).samples_differ


def test_the_probe_finds_that_llama_cpp_gives_log_probabilities_and_refuses_n(with_logprobs):
    seen = capabilities.probe(with_logprobs)
    assert (seen.several_replies, seen.top_logprobs, seen.echoed_logprobs) == (False, 5, False)
    assert seen.distribution == "logprobs"
    assert dict(seen.evidence)["chat, n=2"].startswith("PromptRefusedError")


def test_the_probe_finds_that_llama_cpp_python_echoes_and_ignores_n(with_echo):
    seen = capabilities.probe(with_echo)
    assert (seen.several_replies, seen.top_logprobs, seen.echoed_logprobs) == (False, 5, True)
    assert dict(seen.evidence)["chat, n=2"].startswith("1 reply (")


@pytest.mark.parametrize("server", ["without_logprobs", "with_logprobs"])
def test_where_n_is_ignored_or_refused_samples_take_n_calls(server, request):
    client = request.getfixturevalue(server)
    scores = [one["geval"] for one in geval.GEval(SAMPLED, client=client).score(TURNS)]
    records = [json.loads(score.raw) for score in scores]
    assert {record["obtained"] for record in records} == {"n calls"}
    for score, record in zip(scores, records, strict=True):
        assert score.value == pytest.approx(sum(map(int, record["replies"])) / 3)


@pytest.mark.parametrize("server", ["with_logprobs", "with_echo"])
def test_log_probabilities_of_llama_cpp_weigh_all_levels(server, request):
    client = request.getfixturevalue(server)
    (first, again) = geval.GEval(WEIGHTED, client=client).score([TURNS[0], TURNS[0]])
    record = json.loads(first["geval"].raw)
    assert record["obtained"] == "top_logprobs"
    assert set(record["probabilities"]) == {"1", "2", "3"}
    assert record["mass"] > 0.9
    assert first["geval"].value == pytest.approx(again["geval"].value, abs=1e-4)


@pytest.mark.parametrize("server", ["without_logprobs", "with_logprobs", "with_echo"])
def test_a_grade_and_steps_work_on_either(server, request):
    client = request.getfixturevalue(server)
    (scores,) = grade.Grade(grade.GradeSettings(max_tokens=1), client=client).score(TURNS[:1])
    assert scores["judge"].value in {1, 2, 3}
    steps = geval.with_steps(SAMPLED, client, max_tokens=8).steps
    assert set(steps) <= set("123")
    assert steps

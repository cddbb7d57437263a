import random

import pytest
import torch

from simulation import drawn_products, exceptions
from simulation.critics import AttributeCritic
from simulation.recommenders.trained.settings import settings_of
from simulation.recommenders.trained.training import read_checkpoint, read_recommender, train
from tests.codes import refused_naming


@pytest.fixture(scope="module")
def catalogue():
    return drawn_products.drawn_catalogue(80)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, catalogue):
    path = tmp_path_factory.mktemp("checkpoints") / "good.pt"
    train(catalogue, AttributeCritic(catalogue), settings_of("gru-sl", width=8, epochs=1), path)
    return path


def without(name):
    return lambda content: {key: value for key, value in content.items() if key != name}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda content: [1], "x.pt"),
        (without("format"), "x.pt"),
        (without("best"), "best"),
        (lambda content: content | {"settings": "x"}, "settings"),
        (lambda content: content | {"critic": "x"}, "critic"),
        (lambda content: content | {"history": []}, "x.pt"),
        (lambda content: content | {"history": [{}]}, "x.pt"),
        (lambda content: content | {"settings": {"kind": "x"}}, "settings"),
        (lambda content: content | {"best": {k: torch.zeros(1) for k in content["best"]}}, "x.pt"),
        (
            lambda content: (
                content | {"best": {k: v * torch.nan for k, v in content["best"].items()}}
            ),
            "x.pt",
        ),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_refused(tmp_path, catalogue, checkpoint, change, named):
    torch.save(change(torch.load(checkpoint, weights_only=True)), tmp_path / "x.pt")
    with refused_naming(exceptions.CheckpointUnfit, named):
        read_recommender(tmp_path / "x.pt", catalogue, AttributeCritic(catalogue))


@pytest.mark.parametrize("content", [b"", b"hello world", b"# Readme", b"PK\x05\x06" + bytes(18)])
def test_a_file_of_something_else_is_refused_without_bad_advice(tmp_path, content):
    (tmp_path / "README.md").write_bytes(content)
    with refused_naming(exceptions.CheckpointUnfit, "README.md") as refused:
        read_checkpoint(tmp_path / "README.md")
    assert "weights_only" not in str(refused.value)
    with refused_naming(exceptions.CheckpointUnfit, "none.pt"):
        read_checkpoint(tmp_path / "none.pt")


def test_a_damaged_checkpoint_is_read_or_refused(tmp_path, catalogue, checkpoint):
    draw, whole = random.Random(1), checkpoint.read_bytes()
    n_refused = 0
    for number in range(60):
        content = bytearray(whole)
        for _ in range((1, 20)[number % 2]):
            content[draw.randrange(len(content))] = draw.randrange(256)
        (tmp_path / "x.pt").write_bytes(content)
        try:
            read_recommender(tmp_path / "x.pt", catalogue, AttributeCritic(catalogue))
        except exceptions.CheckpointUnfit:
            n_refused += 1
    assert n_refused > 5

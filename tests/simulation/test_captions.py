import json
from dataclasses import replace

import numpy as np
import pytest
from django.core.management import CommandError

from simulation import critics
from simulation.drawn_products import drawn_catalogue
from simulation.exceptions import CaptionsUnfit, CheckpointUnfit
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.simulation.conftest import neighbours, write_qrels

CAPTIONS = ["is a red sneaker", "has a much higher heel", "are blue with a strap", "is shinier"]


def test_the_nearest_caption_is_said_for_a_critique():
    catalogue = drawn_catalogue(300)
    critic = critics.CaptionCritic(critics.AttributeCritic(catalogue, n_named=1), CAPTIONS)
    critic.nearest.clear()
    numbers = critic._numbers(["is sneaker", "has a higher heel", "is blue", "is dotted", "xyz"])
    assert numbers.tolist()[:3] == [0, 1, 2]
    assert numbers[4] == -1
    shown, wanted = np.arange(100), np.arange(100, 200)
    texts, vectors = critic.texts(shown, wanted), critic.vectors(shown, wanted)
    own = critics.AttributeCritic(catalogue, n_named=1).texts(shown, wanted)
    for text, plain, vector in zip(texts, own, vectors, strict=True):
        if vector.any():
            assert text in CAPTIONS
            assert np.linalg.norm(vector) == pytest.approx(1)
            assert set(text.split()) & set(plain.split())
        else:
            assert text == plain


def test_captions_of_shoes_and_of_fashion_iq(tmp_path):
    path = tmp_path / "captions.json"
    path.write_text(json.dumps([{"RelativeCaption": " is red "}, {"captions": ["is longer", "a"]}]))
    assert [one.text for one in critics.read_captions(path)] == ["is red", "is longer", "a"]
    for content, entry in (
        ("{", ""),
        ("[]", ""),
        ('[{"RelativeCaption": "x"}, {"text": "y"}]', "Record 2"),
        ('[{"RelativeCaption": " "}]', ""),
        ("[" * 200_000, ""),
        ('[{"RelativeCaption": "is red \\ud800"}]', "Record 1"),
    ):
        path.write_text(content)
        with refused_naming(CaptionsUnfit, path.name, entry):
            critics.read_captions(path)


def test_captions_without_words_that_come_often_are_compared_by_all_their_words():
    critic = critics.AttributeCritic(drawn_catalogue(60))
    many = critics.CaptionCritic(critic, [f"is number{number}" for number in range(150)])
    assert many.width == 1  # "is" alone comes three times
    rare = critics.CaptionCritic(critic, [f"word{number}" for number in range(150)])
    assert rare.width == 150
    with pytest.raises(CaptionsUnfit):
        critics.CaptionCritic(critic, ["!", "a"])


def test_without_attributes_the_caption_of_the_pair_most_alike_is_said():
    catalogue = drawn_catalogue(400)
    critic = critics.AttributeCritic(catalogue, n_named=1)
    shown, wanted = np.random.default_rng(0).integers(0, 400, size=(2, 3000))
    texts = critic.texts(shown, wanted)
    rows = [
        critics.RelativeCaption(text, catalogue.ids[a], catalogue.ids[b])
        for text, a, b in zip(texts, shown, wanted, strict=True)
    ]
    bare = replace(catalogue, attributes=None)
    paired = critics.PairedCaptionCritic(bare, rows)
    # Pairs that were captioned are said what was said of them, or of a pair just alike.
    different = shown != wanted
    assert (np.array(paired.texts(shown, wanted)) == texts)[different].mean() > 0.99
    a, b = np.random.default_rng(1).integers(0, 400, size=(2, 400))
    said, true = np.array(paired.texts(a, b)), np.array(critic.texts(a, b))
    by_chance = (np.random.default_rng(2).permutation(said) == true).mean()
    assert (said == true).mean() > 2 * by_chance
    one_by_one = [paired.texts(a[n : n + 1], b[n : n + 1])[0] for n in range(50)]
    assert one_by_one == said[:50].tolist()
    assert not paired.vectors(a[:1], a[:1]).any()
    with refused_naming(CaptionsUnfit, " 0 "):
        critics.PairedCaptionCritic(bare, [critics.RelativeCaption("is red", "x", "y")])


def trained(*arguments):
    options = ("--catalogue", "drawn:300", "--width", "16", "--turns", "3", "--epochs", "2")
    return command_output("train_recommender", *options, *arguments)


def test_a_recommender_is_trained_on_captions_and_simulated(tmp_path):
    captions, checkpoint = tmp_path / "captions.json", tmp_path / "mine.pt"
    captions.write_text(json.dumps([{"RelativeCaption": text} for text in CAPTIONS]))
    arguments = ("--kind", "gru-sl", "--output", checkpoint, "--captions", captions)
    trained(*arguments)
    record = json.loads(trained(*arguments, "--json"))
    assert len(record["history"]) == 2
    assert record["trained_with"]["source"] == "captions.json"
    catalogue = drawn_catalogue(300)
    qrels = write_qrels(tmp_path / "qrels.txt", catalogue, neighbours(catalogue, 10))
    options = ("--catalogue", "drawn:300", "--qrels", qrels, "--recommender", checkpoint)
    result = json.loads(command_output("simulate", *options, "--captions", captions, "--json"))
    assert result["recommenders"][0]["training"]["kind"] == "gru-sl"
    with refused(CheckpointUnfit, "other_critic"):
        command_output("simulate", *options)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--kind", "gru-rl"), "start_from"),
        (("--kind", "ege", "--learning-rate", "0"), "learning_rate"),
    ],
)
def test_training_that_cannot_be_is_refused(tmp_path, arguments, named):
    with refused_naming(CommandError, named):
        trained("--output", tmp_path / "x.pt", *arguments)

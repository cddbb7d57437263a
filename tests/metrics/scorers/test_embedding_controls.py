import math

import numpy as np
import pytest

from metrics.scorers.embedding import Embedding
from metrics.scorers.embedding_controls import r_squared, random_texts, random_words_control
from metrics.scorers.random_words import WORDS
from metrics.scorers.rouge import Rouge

REFERENCES = [
    "I am sorry to hear that, I hope you feel better soon.",
    "What kind of music do you listen to?",
    "You can track your order on our website.",
    "My brother lives in Chicago with his wife.",
    "That sounds like a great plan for the weekend.",
]


def test_random_words_are_near_0_for_a_sentence_encoder():
    control = random_words_control(Embedding(), REFERENCES * 4, seed=3)
    assert abs(control.bias) < 0.1
    assert 0 < control.standard_deviation < 0.1
    assert (control.n_texts, control.seed) == (20, 3)


def test_the_seed_decides_the_words():
    assert random_texts(2, 5, seed=1) == random_texts(2, 5, seed=1)
    assert random_texts(2, 5, seed=1) != random_texts(2, 5, seed=2)
    assert set(" ".join(random_texts(50, 20, seed=1)).split()) <= set(WORDS)


def test_no_word_is_there_twice():
    assert len(set(WORDS)) == len(WORDS) > 300


def test_what_is_undefined_or_blank_is_left_out_of_the_control(bag_of_words):
    scorer = Embedding(model=bag_of_words)
    control = random_words_control(
        scorer, ["cat dog", "whale", " "], n_words=4, words=["cat", "cow"], seed=2
    )
    assert control.n_texts == 1
    assert control.bias == pytest.approx(math.sqrt(0.5))
    assert math.isnan(control.standard_deviation)


@pytest.mark.parametrize("references", [[], [" "]])
def test_the_control_needs_references(references):
    with pytest.raises(ValueError, match="references must hold a text"):
        random_words_control(Rouge("1"), references)


def test_a_control_without_a_single_score_is_refused(bag_of_words):
    with pytest.raises(ValueError, match="references must be texts that embedding can score"):
        random_words_control(Embedding(model=bag_of_words), ["whale"])


@pytest.mark.parametrize("parameter", [{"n_texts": 0}, {"n_words": 0}, {"words": []}])
def test_random_texts_name_the_argument_out_of_range(parameter):
    (name,) = parameter
    with pytest.raises(ValueError, match=name):
        random_texts(**({"n_texts": 1, "n_words": 1, "seed": 0} | parameter))


def test_r_squared_of_two_encoders_is_the_square_of_pearsons_r():
    from scipy.stats import pearsonr

    rng = np.random.default_rng(5)
    left = rng.normal(size=40)
    right = left + rng.normal(size=40)
    assert r_squared(left, right) == pytest.approx(pearsonr(left, right).statistic ** 2)


def test_r_squared_leaves_out_pairs_with_nan():
    assert r_squared([1, 2, math.nan, 4], [2, 4, 1, 8]) == pytest.approx(1)


def test_r_squared_is_nan_where_nothing_varies_or_nothing_is_left():
    assert math.isnan(r_squared([0.1, 0.1, 0.1], [1, 2, 3]))
    assert math.isnan(r_squared([1, math.nan], [1, 2]))
    with pytest.raises(ValueError, match="left and right"):
        r_squared(np.ones(2), np.ones(3))

import math

import numpy as np
import pytest

from error_codes import InvalidValue
from metrics.scorers.embedding import Embedding
from metrics.scorers.embedding_controls import r_squared, random_texts, random_words_control
from metrics.scorers.errors import NoScoreError
from metrics.scorers.random_words import WORDS
from metrics.scorers.rouge import Rouge
from tests.codes import refused

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


def test_the_seed_decides_the_words_and_none_is_listed_twice():
    assert random_texts(2, 5, seed=1) == random_texts(2, 5, seed=1)
    assert random_texts(2, 5, seed=1) != random_texts(2, 5, seed=2)
    assert set(" ".join(random_texts(50, 20, seed=1)).split()) <= set(WORDS)
    assert len(set(WORDS)) == len(WORDS) > 300


def test_what_is_undefined_or_blank_is_left_out_of_the_control(bag_of_words):
    scorer = Embedding(model=bag_of_words)
    control = random_words_control(
        scorer, ["cat dog", "whale", " "], n_words=4, words=["cat", "cow"], seed=2
    )
    assert control.n_texts == 1
    assert control.bias == pytest.approx(math.sqrt(0.5))
    assert math.isnan(control.standard_deviation)


def test_the_control_needs_references_that_have_a_score(bag_of_words):
    for references in ([], [" "]):
        with refused(InvalidValue, "references_empty"):
            random_words_control(Rouge("1"), references)
    with refused(NoScoreError):
        random_words_control(Embedding(model=bag_of_words), ["whale"])


@pytest.mark.parametrize("parameter", [{"n_texts": 0}, {"n_words": 0}, {"words": []}])
def test_random_texts_name_the_argument_out_of_range(parameter):
    (name,) = parameter
    with refused(InvalidValue, f"{name}_out_of_range"):
        random_texts(**({"n_texts": 1, "n_words": 1, "seed": 0} | parameter))


def test_r_squared_of_two_encoders_is_the_square_of_pearsons_r():
    from scipy.stats import pearsonr

    rng = np.random.default_rng(5)
    left = rng.normal(size=40)
    right = left + rng.normal(size=40)
    assert r_squared(left, right) == pytest.approx(pearsonr(left, right).statistic ** 2)


def test_r_squared_leaves_out_nan_and_is_nan_where_nothing_varies_or_nothing_is_left():
    assert r_squared([1, 2, math.nan, 4], [2, 4, 1, 8]) == pytest.approx(1)
    assert math.isnan(r_squared([0.1, 0.1, 0.1], [1, 2, 3]))
    assert math.isnan(r_squared([1, math.nan], [1, 2]))
    with refused(InvalidValue, "unequal_shapes"):
        r_squared(np.ones(2), np.ones(3))

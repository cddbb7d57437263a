import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from error_codes import InvalidValue
from metrics.scorers.errors import ModelUnavailableError, TruncatedTextWarning
from metrics.scorers.ngram_classifier import TrainedClassifier, train
from metrics.scorers.style import PRESETS, Style
from tests.codes import refused, refused_naming
from tests.metrics.scorers.conftest import HOSTILE, cut_to, example

TEXTS = ["the cat sat", "the dog ran off", "", "dog", "the cat sat off the dog", "whale"]
FORMAL = [
    "I would be grateful for your assistance.",
    "Please accept my sincere apologies.",
    "It was a pleasure to meet you, Madam.",
    "We regret to inform you of the delay.",
    "I should like to thank you for your letter.",
    "Kindly find the document attached.",
]
INFORMAL = [
    "hey what's up lol",
    "yeah gonna grab a coffee, u in?",
    "omg that's sooo cool!!",
    "nah dude no way",
    "wanna hang out later?",
    "haha yep totally, c ya",
]
LABELS = ["Formal"] * len(FORMAL) + ["Informal"] * len(INFORMAL)

ONE = example("So.", None, condition="Formal")


def plain_probabilities(folder: Path, text: str) -> dict[str, float]:
    """One text at a time, by the pipeline of transformers."""
    from transformers import pipeline

    classify = pipeline("text-classification", model=str(folder), device="cpu", top_k=None)
    (answer,) = classify([text], truncation=True)
    return {one["label"].lower(): one["score"] for one in answer}


@pytest.mark.parametrize("condition", ["Formal", "informal", "Positive"])
def test_it_is_the_pipelines_probability_of_the_wanted_style(tiny_classifier, condition):
    scores = Style(model=tiny_classifier).score(
        [example(text, None, condition=condition) for text in TEXTS]
    )
    expected = [plain_probabilities(tiny_classifier, text)[condition.lower()] for text in TEXTS]
    assert [one["style"].value for one in scores] == pytest.approx(expected, abs=1e-6)
    accurate = [one["style_accuracy"].value for one in scores]
    assert accurate == [float(value > 0.5) for value in expected]


def test_conditions_are_the_styles_or_other_names_of_them(tiny_classifier):
    named = Style(model=tiny_classifier, labels={"Polite": "formal"})
    (polite,) = named.score([example("the cat", None, condition="Polite")])
    (formal,) = Style(model=tiny_classifier).score([example("the cat", None, condition="Formal")])
    assert polite["style"] == formal["style"]
    assert named.signature != Style(model=tiny_classifier).signature
    odd, none = Style(model=tiny_classifier).score(
        [example("the cat", None, condition="Angry"), example("the cat", None)]
    )
    assert math.isnan(odd["style"].value)
    assert odd["style"].reason.code == "unknown_style"
    assert all(name in odd["style"].reason for name in ("Angry", "formal", "informal", "POSITIVE"))
    assert none["style_accuracy"].reason.code == "missing_field"
    assert "|model:tiny-styles|weights:" in Style(model=tiny_classifier).signature
    assert str(tiny_classifier) not in Style(model=tiny_classifier).signature


def test_a_text_longer_than_the_classifier_reads_is_cut_with_a_warning(tiny_classifier):
    prefix = "the cat sat off the dog ran off the cat"
    scorer = Style(model=tiny_classifier)
    with pytest.warns(TruncatedTextWarning) as caught:
        cut, complete = scorer.score(
            [example(text, None, condition="Formal") for text in (f"{prefix} dog dog", prefix)]
        )
    assert cut_to(caught) == [1, 2, 12]
    assert cut["style"].value == pytest.approx(complete["style"].value, abs=1e-6)


def test_the_papers_classifiers_are_presets_that_are_not_fetched_unasked(tmp_path):
    assert PRESETS["sentiment"] == "siebert/sentiment-roberta-large-english"
    with refused(ModelUnavailableError, "absent") as raised:
        Style(cache_folder=str(tmp_path)).score([ONE])
    assert "s-nlp/roberta-base-formality-ranker" in str(raised.value)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainedClassifier:
    path = tmp_path_factory.mktemp("trained") / "formality.style.npz"
    return train([*FORMAL, *INFORMAL], LABELS, seed=7).save(path)


def test_a_trained_classifier_distinguishes_two_styles_or_three(trained, tmp_path):
    scores = Style(model=trained.path).score(
        [
            example("I would be pleased to meet you, Sir.", None, condition="formal"),
            example("hey dude wanna go??", None, condition="formal"),
            example("hey dude wanna go??", None, condition="Informal"),
        ]
    )
    assert scores[0]["style"].value > 0.5 > scores[1]["style"].value
    assert scores[1]["style"].value + scores[2]["style"].value == pytest.approx(1)
    assert trained.held_out_accuracy > 0.6
    assert (trained.n_texts, trained.seed) == (12, 7)
    texts = [*FORMAL, *INFORMAL, "QUIET!!!", "STOP THAT!!!"]
    three = train(texts, [*LABELS, "Angry", "Angry"]).save(tmp_path / "three.style.npz")
    (scores,) = Style(model=three.path).score([example("STOP NOW!!!", None, condition="angry")])
    assert scores["style_accuracy"].value == 1


def test_a_trained_classifier_is_read_as_trained_and_equals_scikit_learns(trained):
    fresh = train([*FORMAL, *INFORMAL], LABELS, seed=7)
    texts = [*FORMAL, *HOSTILE]
    assert trained.probabilities(texts) == pytest.approx(fresh.probabilities(texts), abs=1e-12)
    assert trained.held_out_accuracy == fresh.held_out_accuracy
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    features = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), lowercase=False, sublinear_tf=True
    )
    plain = make_pipeline(features, LogisticRegression(C=10.0, max_iter=1000))
    plain.fit([*FORMAL, *INFORMAL], LABELS)
    assert trained.probabilities(HOSTILE) == pytest.approx(plain.predict_proba(HOSTILE), abs=1e-9)


def test_a_file_that_would_run_code_or_is_not_there_is_refused(tmp_path):
    path = tmp_path / "bad.style.npz"
    with refused_naming(ModelUnavailableError, path.name):
        Style(model=path).score([ONE])
    np.savez(path, words=np.array([{"a": 1}], dtype=object))
    with refused(ModelUnavailableError, "not_a_classifier"):
        Style(model=path).score([ONE])
    path.write_bytes(pickle.dumps({"labels": ["formal"]}))
    with refused(ModelUnavailableError, "not_a_classifier"):
        TrainedClassifier.load(path)


def test_training_needs_labels_a_file_its_ending_and_a_signature_a_file(tmp_path):
    for texts, labels, code in (
        ("a", "", "unequal_lengths"),
        ("ab", "xx", "too_few_labels"),
        ("abc", "xxy", "too_few_labels"),
    ):
        with refused(InvalidValue, code):
            train(list(texts), list(labels))
    classifier = train([*FORMAL, *INFORMAL], LABELS)
    with refused(InvalidValue, "wrong_suffix"):
        classifier.save(tmp_path / "formality.npz")
    with refused(InvalidValue, "not_saved"):
        classifier.signed()

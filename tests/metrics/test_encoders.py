import json

import numpy as np
import pytest

from metrics.exceptions import NothingToScore
from metrics.models import ScoringRun
from metrics.score_comparisons import encoder_bias, encoder_pairs
from metrics.scorers.embedding import Embedding
from metrics.stored_scores import write_scores
from metrics.study_scores import score_study
from tests.annotation.importing import command_output
from tests.annotation.studies import rating_study
from tests.codes import refused
from tests.metrics.golden import golden_study
from tests.metrics.scorers.conftest import save_bag_of_words

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def packaged():
    return Embedding()


@pytest.fixture(scope="module")
def scored(stored_for_module, packaged):
    study = golden_study()
    score_study(study=study, scorer=packaged)
    return study


@pytest.fixture(scope="module")
def bag_of_words(tmp_path_factory):
    words = ["a", "the", "you", "bicycle", "station", "coin", "card", "app", "no", "and", "it"]
    return save_bag_of_words(tmp_path_factory, words)


@pytest.mark.slow
def test_random_words_are_near_0_and_the_answers_are_not(scored, packaged):
    bias = encoder_bias(study=scored, scorer=packaged)
    assert abs(bias.bias) < 0.1
    assert bias.mean > 0.5
    assert bias.n_references == 20
    assert bias.signature == packaged.signature
    biases = [encoder_bias(study=scored, scorer=packaged, seed=seed).bias for seed in (1, 2, 1)]
    assert biases[0] == biases[2] != biases[1]


@pytest.mark.parametrize("reference", ["", " \n"])
def test_a_study_without_scores_has_no_mean_and_without_references_no_control(packaged, reference):
    study = rating_study(n_items=2)
    bias = encoder_bias(study=study, scorer=packaged)
    assert np.isnan(bias.mean)
    study.items.update(reference=reference)
    with refused(NothingToScore, "no_references"):
        encoder_bias(study=study, scorer=packaged)


def test_two_encoders_are_compared_over_the_responses_both_have_scored(scored, bag_of_words):
    command_output(
        "score_study", scored.slug, "--metric=embedding", f"--set=embedding.model={bag_of_words}"
    )
    [pair] = encoder_pairs(scored)
    runs = ScoringRun.objects.of(scored).filter(metric="embedding")
    first, second = (dict(run.scores.values_list("candidate_id", "value")) for run in runs)
    shared = [key for key in first if None not in (first[key], second[key])]
    values = [[side[key] for key in shared] for side in (first, second)]
    assert pair.n == len(shared) < 120
    assert pair.r_squared == pytest.approx(np.corrcoef(values)[0, 1] ** 2)
    assert 0 < pair.r_squared < 1


def test_what_is_no_encoder_is_not_compared():
    study = rating_study(n_items=2)
    for metric in ("embedding", "nll"):
        values = {("d0", "alpha"): 1.0, ("d1", "alpha"): 2.0}
        write_scores(study=study, metric=metric, signature=f"{metric}|v:1", values=values)
    assert encoder_pairs(study) == []


def test_the_command_reports_both(scored):
    values = {("q01/standard", "terse"): 0.1, ("q01/enhanced", "terse"): 0.9}
    write_scores(study=scored, metric="use", signature="use|v:4", values=values)
    report = json.loads(command_output("check_embeddings", scored.slug, "--seed=4", "--json"))
    assert (report["random_words"][0]["seed"], report["random_words"][0]["n_words"]) == (4, 20)
    assert (report["pairs"][0]["second"], report["pairs"][0]["n"]) == ("use|v:4", 2)
    printed = command_output("check_embeddings", scored.slug, "--seed=4")
    assert "embedding" in printed
    assert "use|v:4" in printed


def test_an_encoder_that_knows_none_of_the_words_is_reported(bag_of_words):
    study = rating_study(n_items=2)
    study.items.update(reference="whale")
    with refused(NothingToScore, "unknown_words"):
        command_output("check_embeddings", study.slug, f"--set=embedding.model={bag_of_words}")

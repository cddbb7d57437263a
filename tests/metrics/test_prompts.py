import csv
import json
import math
from statistics import mean

import numpy as np
import pytest
from django.core.management import CommandError
from rouge_score.rouge_scorer import RougeScorer
from scipy import stats

from metrics import exceptions, models
from metrics.score_comparisons import encoder_bias, encoder_pairs, prompt_effects, system_scores
from metrics.scorers import embedding, registry
from metrics.stored_scores import write_scores
from metrics.study_scores import score_study
from tests.annotation.importing import command_output
from tests.annotation.studies import rating_study
from tests.codes import refused, refused_naming
from tests.metrics.golden import SAMPLE, golden_study
from tests.metrics.scorers.conftest import save_bag_of_words

pytestmark = pytest.mark.django_db

SYSTEMS = ("terse", "careful", "cheerful")


@pytest.fixture(scope="module")
def sample(stored_for_module):
    study = golden_study()
    score_study(study=study, scorer=registry.build("rouge1"))
    return study


@pytest.fixture(scope="module")
def rouge():
    """ROUGE-1 F of every answer in the sample by system, prompt and question, by the oracle."""
    scorer = RougeScorer(["rouge1"])
    with SAMPLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40
    return {
        (system, row["prompt"], row["question"]): scorer.score(row["golden_answer"], row[system])[
            "rouge1"
        ].fmeasure
        for row in rows
        for system in SYSTEMS
    }


def of_prompt(rouge, system, prompt):
    return [value for (s, p, _), value in rouge.items() if (s, p) == (system, prompt)]


def effect(study, system):
    effects = prompt_effects(study, n_resamples=200)
    [found] = [one for one in effects if (one.metric, one.system) == ("rouge1", system)]
    return found


def test_each_systems_mean_is_reported_over_all_prompts_and_under_each(sample, rouge):
    means = {
        (row["system"], row["condition"]): row
        for row in system_scores(sample)
        if row["metric"] == "rouge1"
    }
    assert len(means) == 9
    for system in SYSTEMS:
        values = {prompt: of_prompt(rouge, system, prompt) for prompt in ("standard", "enhanced")}
        for prompt, expected in values.items():
            row = means[system, prompt]
            assert (row["n"], row["n_undefined"]) == (20, 0)
            assert row["mean"] == pytest.approx(mean(expected), abs=1e-9)
        assert means[system, ""]["mean"] == pytest.approx(
            mean([*values["standard"], *values["enhanced"]]), abs=1e-9
        )


def test_a_systems_answers_are_compared_question_by_question(sample, rouge):
    row = effect(sample, "careful")
    standard, enhanced = (of_prompt(rouge, "careful", name) for name in ("standard", "enhanced"))
    assert row.difference.n_pairs == 20
    assert row.difference.mean == pytest.approx(mean(enhanced) - mean(standard), abs=1e-9)
    oracle = stats.ttest_rel(enhanced, standard)
    assert row.difference.t == pytest.approx(oracle.statistic)
    assert row.difference.t_p == pytest.approx(oracle.pvalue)
    assert row.difference.ci_low > 0
    assert row.difference.t_p < row.t_p_holm < 0.05
    # Over all systems a question counts once.
    row = effect(sample, "")
    means = {
        prompt: [
            mean(values)
            for values in zip(*(of_prompt(rouge, s, prompt) for s in SYSTEMS), strict=True)
        ]
        for prompt in ("standard", "enhanced")
    }
    oracle = stats.wilcoxon(means["enhanced"], means["standard"], zero_method="pratt")
    assert row.difference.n_pairs == 20
    assert row.difference.wilcoxon_p == pytest.approx(oracle.pvalue)
    other = prompt_effects(sample, prompts=("enhanced", "standard"), n_resamples=10)[0]
    assert row.difference.mean == pytest.approx(-other.difference.mean)


def two_prompts(values):
    """Answers of alpha and beta to two questions under two prompts, with these scores."""
    study = rating_study(n_items=4, conditions=("plain", "long"))
    for position, item in enumerate(study.items.all()):
        study.items.filter(pk=item.pk).update(context=f"Question {position // 2}")
    write_scores(study=study, metric="nll", signature="nll|v:1", values=values)
    return study


def test_an_answer_without_a_score_leaves_its_pair_out_and_is_counted():
    values = {(f"d{number}", "alpha"): float(number**2) for number in range(4)}
    values |= {("d0", "beta"): 1.0, ("d1", "beta"): float("nan"), ("d2", "beta"): 2.0}
    study = two_prompts(values)
    write_scores(study=study, metric="one", signature="one|v:1", values={("d0", "alpha"): 1.0})
    differences = {
        row.system: row.difference
        for row in prompt_effects(study, prompts=("plain", "long"), n_resamples=10)
        if row.metric == "nll"
    }
    assert (differences["alpha"].n_pairs, differences["alpha"].n_missing) == (2, 0)
    assert differences["alpha"].mean == ((1 - 0) + (9 - 4)) / 2
    assert (differences["beta"].n_pairs, differences["beta"].n_missing) == (0, 2)
    assert differences["beta"].reason.code == "too_few_pairs"
    assert (differences[""].n_pairs, differences[""].mean) == (2, differences["alpha"].mean)


def test_absent_conditions_or_scores_and_two_answers_under_one_prompt_are_refused(sample):
    with refused(exceptions.NotPaired, "unknown_condition") as raised:
        prompt_effects(sample, prompts=("standard", "long"))
    assert all(name in str(raised.value) for name in ("long", "standard", "enhanced"))
    with refused(exceptions.NotPaired, "same_condition"):
        prompt_effects(sample, prompts=("standard", "standard"))
    with refused(exceptions.NotPaired, "no_scores"):
        prompt_effects(rating_study("empty"))
    study = two_prompts({(f"d{number}", "alpha"): float(number) for number in range(4)})
    study.items.update(context="the same question")
    with refused(exceptions.NotPaired, "two_answers"):
        prompt_effects(study, prompts=("plain", "long"))


def test_the_command_reports_means_and_differences(sample):
    command = ("compare_prompts", "golden", "--resamples=100", "--seed=3")
    report = json.loads(command_output(*command, "--json"))
    assert {row["system"] for row in report["systems"]} == set(SYSTEMS)
    first = report["prompts"][0]
    assert (first["metric"], first["system"], first["n_pairs"]) == ("rouge1", "", 20)
    assert (first["n_resamples"], first["seed"]) == (100, 3)
    assert first["signature"].startswith("rouge|")
    cells = [line.split()[:3] for line in command_output(*command).splitlines()]
    assert ["rouge1", "terse", "standard"] in cells
    assert any(row[0] == "rouge1" and row[2].startswith("+0.") for row in cells if len(row) > 2)


def test_a_number_out_of_range_is_refused_before_anything_is_read():
    of_prompts = [("compare_prompts", each) for each in ("--resamples=0", "--resamples=many")]
    for command, option in (*of_prompts, ("check_embeddings", "--words=0")):
        with refused_naming(CommandError, option.partition("=")[0]):
            command_output(command, "golden", option)


@pytest.mark.slow
def test_variants_enter_no_correction():
    study = golden_study()
    score_study(study=study, scorer=registry.build("length"))
    before = {e.system: e.t_p_holm for e in prompt_effects(study) if e.metric == "length"}
    variants = [e for e in prompt_effects(study) if e.metric == "length_characters"]
    assert len(variants) == len(before) == 4
    assert all(math.isnan(e.t_p_holm) and math.isnan(e.wilcoxon_p_holm) for e in variants)
    assert not any(math.isnan(e.difference.t_p) for e in variants)
    models.ScoringRun.objects.filter(metric="length_characters").delete()
    assert {e.system: e.t_p_holm for e in prompt_effects(study)} == before


@pytest.fixture(scope="module")
def packaged():
    return embedding.Embedding()


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
    assert abs(bias["bias"]) < 0.1
    assert bias["mean"] > 0.5
    assert bias["n_references"] == 20
    assert bias["signature"] == packaged.signature
    biases = [encoder_bias(study=scored, scorer=packaged, seed=seed)["bias"] for seed in (1, 2, 1)]
    assert biases[0] == biases[2] != biases[1]


@pytest.mark.parametrize("reference", ["", " \n"])
def test_a_study_without_scores_has_no_mean_and_without_references_no_control(packaged, reference):
    study = rating_study(n_items=2)
    bias = encoder_bias(study=study, scorer=packaged)
    assert np.isnan(bias["mean"])
    study.items.update(reference=reference)
    with refused(exceptions.NothingToScore, "no_references"):
        encoder_bias(study=study, scorer=packaged)


def test_two_encoders_are_compared_over_the_responses_both_have_scored(scored, bag_of_words):
    command_output(
        "score_study", scored.slug, "--metric=embedding", f"--set=embedding.model={bag_of_words}"
    )
    [pair] = encoder_pairs(scored)
    runs = models.ScoringRun.objects.of(scored).filter(metric="embedding")
    first, second = (dict(run.scores.values_list("candidate_id", "value")) for run in runs)
    shared = [key for key in first if None not in (first[key], second[key])]
    values = [[side[key] for key in shared] for side in (first, second)]
    assert pair["n"] == len(shared) < 120
    assert pair["r_squared"] == pytest.approx(np.corrcoef(values)[0, 1] ** 2)
    assert 0 < pair["r_squared"] < 1


def test_the_command_reports_both(scored):
    values = {("q01/standard", "terse"): 0.1, ("q01/enhanced", "terse"): 0.9}
    write_scores(study=scored, metric="use", signature="use|v:4", values=values)
    report = json.loads(command_output("check_embeddings", scored.slug, "--seed=4", "--json"))
    assert (report["random_words"][0]["seed"], report["random_words"][0]["n_words"]) == (4, 20)
    assert (report["pairs"][0]["second"], report["pairs"][0]["n"]) == ("use|v:4", 2)
    assert "use|v:4" in command_output("check_embeddings", scored.slug, "--seed=4")


def test_an_encoder_that_knows_none_of_the_words_is_reported(bag_of_words):
    study = rating_study(n_items=2)
    study.items.update(reference="whale")
    with refused(exceptions.NothingToScore, "unknown_words"):
        command_output("check_embeddings", study.slug, f"--set=embedding.model={bag_of_words}")

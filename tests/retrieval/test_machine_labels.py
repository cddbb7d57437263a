"""A machine's labels beside people's: bias towards its own systems, and calibrated means."""

from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from scipy import stats

from retrieval.exceptions import RunsUnfit
from retrieval.result_kinds.machine import MachineKind
from stats.inference.powered_means import prediction_powered_mean
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.retrieval.conftest import Grades, Run, WriteFile, qrels_text, record_of, run_text

RUNS = ("own1", "own2", "other1", "other2", "other3")


def judged_by_both(
    seed: int, *, n_topics: int = 60, favour: float = 0.35
) -> tuple[Grades, Grades, dict[str, Run]]:
    """All labels of people and of a machine that also likes what its own systems list high."""
    rng = np.random.default_rng(seed)
    names = [f"d{n:02}" for n in range(20)]
    people: Grades = {}
    machine: Grades = {}
    runs: dict[str, Run] = {name: {} for name in RUNS}
    for topic in (f"t{n}" for n in range(n_topics)):
        truth = rng.random(20) < rng.beta(2, 5)
        own = rng.normal(size=20)
        for name in RUNS:
            taste = own if name.startswith("own") else rng.normal(size=20)
            scores = 1.5 * truth + taste + 0.3 * rng.normal(size=20)
            runs[name][topic] = dict(zip(names, scores.tolist(), strict=True))
        flipped = rng.random(20) < 0.1
        liked = (own > 0.8) & (rng.random(20) < favour)
        says = (truth ^ flipped) | liked
        people[topic] = {name: int(each) for name, each in zip(names, truth, strict=True)}
        machine[topic] = {name: int(each) for name, each in zip(names, says, strict=True)}
    return people, machine, runs


def options_of(
    file: WriteFile, people: Grades, machine: Grades, runs: dict[str, Run]
) -> list[object]:
    arguments = ["--qrels", file("people", qrels_text(people))]
    arguments += ["--machine", file("machine", qrels_text(machine))]
    for name, run in runs.items():
        arguments += ["--run", file(f"{name}.run", run_text(run, name))]
    return arguments


def compared(file, people, machine, runs, *options: str) -> dict[str, Any]:
    arguments = options_of(file, people, machine, runs)
    return record_of("evaluate_runs", *arguments, *options)["machine"]


def by_topic(grades: Grades, run: Run, name: str) -> dict[str, float]:
    import pytrec_eval

    evaluated = pytrec_eval.RelevanceEvaluator(grades, {name}).evaluate(run)
    return {topic: row[name] for topic, row in evaluated.items()}


OWN = ("--shares-model", "own1", "--shares-model", "own2.run")


def test_bias_is_the_difference_of_the_gaps_over_topics(file):
    people, machine, runs = judged_by_both(1)
    record = compared(file, people, machine, runs, "--measure", "nDCG@10", *OWN)
    gaps = {
        name: np.array(list(by_topic(machine, run, "ndcg_cut_10").values()))
        - np.array(list(by_topic(people, run, "ndcg_cut_10").values()))
        for name, run in runs.items()
    }
    own = np.mean([gaps[name] for name in RUNS[:2]], axis=0)
    others = np.mean([gaps[name] for name in RUNS[2:]], axis=0)
    (row,) = record["biases"]
    expected = stats.ttest_rel(own, others)
    assert row["difference"] == pytest.approx(np.mean(own - others), abs=1e-6)
    interval = expected.confidence_interval()
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((interval.low, interval.high), abs=1e-6)
    assert row["difference"] > 0.02
    assert row["p"] < 0.01
    means = [
        [np.mean(list(by_topic(grades, runs[name], "ndcg_cut_10").values())) for name in RUNS]
        for grades in (people, machine)
    ]
    assert row["tau"] == pytest.approx(stats.kendalltau(*means).statistic)
    others_means = [each[2:] for each in means]
    assert row["tau_without"] == pytest.approx(stats.kendalltau(*others_means).statistic)
    assert record["sharing"] == ["own1", "own2"]


def test_a_sample_of_topics_calibrates_every_measure_as_prediction_powered_inference_does(file):
    people, machine, runs = judged_by_both(2)
    some = {topic: people[topic] for topic in list(people)[:20]}
    record = compared(file, some, machine, runs, "--measure", "AP")
    assert (record["sample"], record["n_topics_both"], record["n_topics_machine"]) == (
        "topics",
        20,
        60,
    )
    for name, run in runs.items():
        by_machine, by_people = by_topic(machine, run, "map"), by_topic(some, run, "map")
        topics = list(machine)
        expected = prediction_powered_mean(
            [by_people.get(t, np.nan) for t in topics], [by_machine[t] for t in topics]
        )
        (row,) = [each for each in record["estimates"] if each["run"] == name]
        assert row["calibrated"] == pytest.approx(expected.value, abs=1e-6)
        assert row["calibrated_ci_low"] == pytest.approx(expected.ci_low, abs=1e-6)
        assert row["machine_mean"] == pytest.approx(np.mean(list(by_machine.values())), abs=1e-6)
        assert row["people_mean"] == pytest.approx(np.mean(list(by_people.values())), abs=1e-6)
        assert row["people_n_topics"] == 20


def test_labels_calibrate_sums_over_documents_alone_and_people_read_the_correction(file):
    people, machine, runs = judged_by_both(3)
    some = {topic: dict(list(row.items())[::2]) for topic, row in people.items()}
    record = compared(file, some, machine, runs, "--measure", "nDCG@10", "--measure", "P@5", *OWN)
    rows = {(row["run"], row["measure"]): row for row in record["estimates"]}
    assert rows["own1", "nDCG@10"]["reason"]
    assert "calibrated" not in rows["own1", "nDCG@10"]
    assert rows["own1", "P@5"]["calibrated"] is not None
    assert [row["measure"] for row in record["biases"]] == ["P@5"]
    record = compared(file, people, machine, runs, "--measure", "P@5", "--human-sample", "labels")
    for row in record["estimates"]:
        expected = np.mean(list(by_topic(people, runs[row["run"]], "P_5").values()))
        assert row["calibrated"] == pytest.approx(expected)
        assert row["people_mean"] == pytest.approx(expected)
    arguments = options_of(file, people, machine, runs)
    text = command_output("evaluate_runs", *arguments, *("--measure", "P@5"), *OWN[:2])
    assert all(str(table.caption) in text for table in MachineKind.tables.values())


def test_what_does_not_fit_is_refused(file):
    people, machine, runs = judged_by_both(6, n_topics=5)
    with refused(RunsUnfit, "run_unknown"):
        compared(file, people, machine, runs, "--shares-model", "nobody")
    elsewhere = {f"x{topic}": row for topic, row in people.items()}
    with refused(RunsUnfit, "nothing_in_common"):
        compared(file, people, elsewhere, runs)
    with refused_naming(CommandError, "--human-sample", "--machine"):
        call_command(
            "evaluate_runs", "--qrels", "q", "--run", "r", "--human-sample", "labels", "--json"
        )


def test_calibrated_limits_stay_on_the_scale_and_few_other_values_are_noted(file):
    """Of 40 topics that people judged four have a relevant document, at one rank or another."""
    rng = np.random.default_rng(3)
    people: Grades = {}
    machine: Grades = {}
    run: Run = {}
    for n in range(200):
        is_relevant = n < 4 or (n >= 40 and rng.random() < 0.1)
        run[f"t{n}"] = {"a": 2.0, "b": 1.0 if n % 4 else 3.0}
        people[f"t{n}"] = {"a": 0, "b": int(is_relevant)}
        machine[f"t{n}"] = {"a": 0, "b": int(is_relevant ^ (rng.random() < 0.5))}
    some = {topic: people[topic] for topic in list(people)[:40]}
    record = compared(
        file, some, machine, {"one": run}, "--measure", "nDCG@5", "--confidence", "0.99"
    )
    (row,) = record["estimates"]
    assert row["calibrated_ci_low"] == 0.0 < row["calibrated"] < row["calibrated_ci_high"]
    note = record["notes"][record["note_codes"].index("few_other_values")]
    assert note.startswith("nDCG@5 of one: ")
    assert " 4 " in note

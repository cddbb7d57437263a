import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from django.core.management.base import CommandError
from scipy import stats

from presentation.theme import rendered, themed
from retrieval import charts, exceptions
from retrieval.result_kinds.machine import MachineKind
from stats.inference.powered_means import prediction_powered_mean
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.retrieval.conftest import (
    Grades,
    Run,
    easy_and_hard_topics,
    qrels_text,
    record_of,
    run_arguments,
    run_text,
)

DEPTH = 5
N_TOPICS = 15
FAMILIES = {"a1": "A", "a2": "A", "b1": "B", "c": "c", "d": "d"}


def pooled_collection(seed=1):
    """Runs of four families pooled to rank 5; some of the pool unjudged, some judgments extra."""
    rng = np.random.default_rng(seed)
    names = np.array([f"d{n:02}" for n in range(60)])
    runs: dict[str, Run] = {name: {} for name in FAMILIES}
    grades: Grades = {}
    for topic in (f"t{n}" for n in range(N_TOPICS)):
        truth = (rng.random(60) < 0.2) * rng.integers(1, 4, 60)
        shared = {family: rng.normal(size=60) for family in FAMILIES.values()}
        for run, family in FAMILIES.items():
            scores = truth + shared[family] + 0.5 * rng.normal(size=60)
            best = np.argsort(-scores)[:30]
            runs[run][topic] = {str(names[at]): float(scores[at]) for at in best}
        pool = {doc for run in runs.values() for doc in first(run[topic])} | {"d00", "extra"}
        value = dict(zip(names.tolist(), truth.tolist(), strict=True)) | {"extra": 1}
        grades[topic] = {d: -1 if rng.random() < 0.05 else int(value[d]) for d in sorted(pool)}
    return grades, runs


def first(ranked, depth=DEPTH):
    return sorted(ranked, key=lambda doc: (np.float32(ranked[doc]), doc), reverse=True)[:depth]


def reduced(grades, runs, members):
    left: Grades = {}
    for topic, judged in grades.items():
        own = {doc for run in members for doc in first(runs[run][topic])}
        others = {doc for run in runs.keys() - members for doc in first(runs[run][topic])}
        left[topic] = {doc: grade for doc, grade in judged.items() if doc not in own - others}
    return left


@pytest.fixture
def collection(file):
    grades, runs = pooled_collection()
    arguments = ["--qrels", file("q", qrels_text(grades)), *run_arguments(file, files_of(runs))]
    return grades, runs, arguments


def files_of(runs):
    return {f"{name}.run": run_text(run, name) for name, run in runs.items()}


def reuse(arguments, *options):
    return record_of("evaluate_runs", *arguments, *options, "--reusability")["reusability"]


def left_out(record, unit, name):
    (row,) = [r for r in record["left_out"] if (r["unit"], r["name"]) == (unit, name)]
    return row


GROUPS = ("--group", "A=a1,a2.run")
MEASURES = ("--measure", "nDCG@10", "--measure", "AP")


@pytest.mark.parametrize(
    ("unit", "name", "members"),
    [("system", "a1", {"a1"}), ("system", "d", {"d"}), ("group", "A", {"a1", "a2"})],
)
def test_all_runs_are_scored_as_by_pytrec_eval_with_the_qrels_that_are_left(
    collection, unit, name, members
):
    grades, runs, arguments = collection
    row = left_out(reuse(arguments, *MEASURES, *GROUPS), unit, name)
    left = reduced(grades, runs, members)
    n_lost = [sum(len(each) for each in qrels.values()) for qrels in (grades, left)]
    assert n_lost[0] > n_lost[1]
    theirs = {"nDCG@10": "ndcg_cut_10", "AP": "map", "Bpref": "bpref"}
    values: dict[tuple[str, str], tuple[float, float]] = {}
    for run in runs:
        for key, of_trec_eval in theirs.items():
            values[run, key] = tuple(
                sum(by_topic(qrels, runs[run], of_trec_eval).values()) / N_TOPICS
                for qrels in (grades, left)
            )
    effects = {(each["run"], each["measure"]): each for each in row["effects"]}
    for (run, key), (mean, without) in values.items():
        effect = effects[run, key]
        assert (effect["mean"], effect["mean_without"]) == pytest.approx((mean, without), abs=1e-6)
        assert effect["is_left_out"] is (run in members)
        better = sum(other[1] > without + 1e-9 for (_, of), other in values.items() if of == key)
        assert effect["rank_without"] == 1 + better
    relevant = [sum(g > 0 for each in q.values() for g in each.values()) for q in (grades, left)]
    assert row["n_relevant_lost"] == relevant[0] - relevant[1]


def test_condensed_values_stand_beside_and_judged_falls(collection):
    _, _, arguments = collection
    record = reuse(arguments, *MEASURES, *GROUPS)
    condensed = ["nDCG(judged_only=True)@10", "AP(judged_only=True)"]
    assert record["measures"] == ["nDCG@10", condensed[0], "AP", condensed[1], "Bpref"]
    effects, of = left_out(record, "system", "d")["effects"], {"measure": "nDCG@10"}
    (own,) = [each for each in effects if each["is_left_out"] and each | of == each]
    assert own["judged_without"] < own["judged"]
    assert own["change"] < 0
    assert own["ci_low"] < own["change"] < own["ci_high"]


def test_what_to_expect_is_the_mean_over_groups_with_the_limits_of_one_more(collection):
    grades, runs, arguments = collection
    record = reuse(arguments, *MEASURES, *GROUPS)
    drops = []
    for members in ({"a1", "a2"}, {"b1"}, {"c"}, {"d"}):
        left = reduced(grades, runs, members)
        changes = []
        for run in members:
            full, less = (by_topic(qrels, runs[run], "map") for qrels in (grades, left))
            changes.append(np.mean([full[t] - less[t] for t in full]))
        drops.append(np.mean(changes))
    (row,) = [each for each in record["expectations"] if each["measure"] == "AP"]
    mean, sd = np.mean(drops), np.std(drops, ddof=1)
    half = stats.t.ppf(0.975, 3) * sd * np.sqrt(1 + 1 / 4)
    assert (row["unit"], row["n_left_out"]) == ("group", 4)
    assert row["underestimate"] == pytest.approx(mean, abs=1e-6)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((mean - half, mean + half), abs=1e-6)
    assert f" {mean:.4f}" in row["sentence"]


def test_unique_documents_depths_and_sources_are_counted_from_the_lists(collection):
    grades, runs, arguments = collection
    record = reuse(arguments, *MEASURES, *GROUPS, "--pool-depth", str(DEPTH))
    heads = {run: {(t, d) for t in grades for d in first(runs[run][t])} for run in runs}
    relevant = {(t, d) for t, each in grades.items() for d, g in each.items() if g > 0}
    judged = {(t, d) for t, each in grades.items() for d, g in each.items() if g >= 0}
    for row in record["systems"]:
        only = heads[row["run"]] - set().union(*(heads[run] for run in runs if run != row["run"]))
        assert row["n_judged_only"] == len(only & judged)
        assert row["n_relevant_only"] == len(only & relevant)
        in_ten = [
            np.mean([(t, d) in judged for d in first(runs[row["run"]][t], 10)]) for t in grades
        ]
        assert row["judged_at_10"] == pytest.approx(np.mean(in_ten))
    for row in record["depths"]:
        pool = {(t, d) for r in runs for t in grades for d in first(runs[r][t], row["depth"])}
        assert (row["n_judged"], row["n_relevant"]) == (len(pool & judged), len(pool & relevant))
    assert len(record["depths"]) == DEPTH
    of_run = {row["source"]: row for row in record["sources"]}
    assert of_run["c"]["prevalence"] == pytest.approx(
        len(heads["c"] & relevant) / len(heads["c"] & judged)
    )
    assert of_run["c"]["ci_low"] < of_run["c"]["prevalence"] < of_run["c"]["ci_high"]
    assert of_run["(no pooled run)"]["n_judged"] == len(judged - set().union(*heads.values()))
    assert "in_no_pooled_run" in record["note_codes"]


def test_a_run_outside_the_pool_is_scored_and_brings_nothing(collection, file):
    _, runs, arguments = collection
    # What a1 has, under another name: pooled, it would leave a1 nothing of its own.
    arguments = [*arguments, "--run", file("late.run", run_text(runs["a1"], "late"))]
    inside = left_out(reuse(arguments, *MEASURES), "system", "a1")
    record = reuse(arguments, *MEASURES, "--outside", "late")
    outside = left_out(record, "system", "a1")
    assert inside["n_judged_lost"] == 0
    assert outside["n_relevant_lost"] > 0
    of_ap = [each for each in outside["effects"] if each["measure"] == "AP"]
    changes = {each["run"]: each["change"] for each in of_ap}
    assert changes["late"] == pytest.approx(changes["a1"])
    assert [row["is_pooled"] for row in record["systems"]] == [True] * 5 + [False]
    assert "late" not in {row["name"] for row in record["left_out"]}


def test_groups_come_from_a_file_too(collection, file):
    _, _, arguments = collection
    path = file("groups.txt", "# run group\na1 A\na2.run A\n")
    assert reuse(arguments, *MEASURES, "--groups", str(path))["groups"]["A"] == ["a1", "a2"]
    wrong = file("wrong.txt", "a1 A\na2\n")
    with refused(exceptions.TrecFileFaults, "columns", lines=[2]):
        reuse(arguments, *MEASURES, "--groups", str(wrong))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--group", "A=a1,nobody"), "run_unknown"),
        (("--group", "A=a1", "--group", "B=a1"), "run_in_two_groups"),
        (("--group", "A=a1,a2,b1,c,d"), "too_few_groups"),
        (("--group", "A=a1", "--outside", "a1"), "run_outside"),
        (("--outside", "nobody"), "run_unknown"),
    ],
)
def test_groups_that_do_not_fit_are_refused(collection, options, code):
    _, _, arguments = collection
    with refused(exceptions.RunsUnfit, code):
        reuse(arguments, *MEASURES, *options)


def test_runs_that_were_not_pooled_are_refused_without_a_depth(file):
    runs = {name: f"1 Q0 {name} 1 1 {name}\n" for name in "ab"}
    arguments = ["--qrels", file("q", "1 0 z 1\n"), *run_arguments(file, runs)]
    with pytest.raises(exceptions.PoolDepthUnknown):
        reuse(arguments, *MEASURES)


def test_people_read_what_to_expect_and_the_depth_is_inferred(collection):
    _, _, arguments = collection
    text = command_output("evaluate_runs", *arguments, *MEASURES, *GROUPS, "--reusability")
    record = reuse(arguments, *MEASURES, *GROUPS)
    for row in record["expectations"]:
        assert row["measure"] in text
        assert f"{abs(row['underestimate']):.4f}" in text
    assert {"A", "B"} & set(text.split())
    record = reuse(arguments, *MEASURES)
    assert (record["pool_depth"], record["is_depth_inferred"]) == (DEPTH, True)
    assert len(record["notes"]) > len(reuse(arguments, *MEASURES, f"--pool-depth={DEPTH}")["notes"])
    for option in (("--pool-depth", "3"), ("--group", "A=a"), ("--outside", "a")):
        with refused_naming(CommandError, option[0], "--reusability"):
            command_output("evaluate_runs", *arguments, *option)


def test_fewer_than_four_left_out_have_no_interval(collection, file):
    _, runs, arguments = collection
    some = files_of({name: runs[name] for name in ("a1", "b1", "c")})
    row = reuse([*arguments[:2], *run_arguments(file, some)], *MEASURES, "--pool-depth", "5")[
        "expectations"
    ][0]
    assert row["ci_low"] is None
    assert row["reason"]
    assert row["underestimate"] is not None


def test_charts_draw_the_record(collection):
    _, _, arguments = collection
    record = reuse(arguments, *MEASURES, *GROUPS)
    rows = [
        effect | {"unit": row["unit"]}
        for row in record["left_out"]
        for effect in row["effects"]
        if effect["is_left_out"] and effect["measure"] == "nDCG@10"
    ]
    own = pd.DataFrame(rows)
    depths = pd.DataFrame(record["depths"])
    for chart in (charts.left_out_forest(own, measure="nDCG@10"), charts.relevant_by_depth(depths)):
        assert rendered(themed(chart), "svg").startswith(b"<svg")
    drawn = charts.relevant_by_depth(depths).to_dict()["encoding"]
    assert [drawn[axis]["axis"]["tickMinStep"] for axis in "xy"] == [1, 1]
    least = f"{own['change'].min():+.3f}".replace("-", "\N{MINUS SIGN}")
    assert least in charts.left_out_in_words(own, "nDCG@10")
    assert f" {record['depths'][-1]['n_relevant']:,} " in f" {charts.depths_in_words(depths)} "


def test_a_zero_for_missing_topics_counts_with_all_judgments_and_without_some(file):
    grades, files = easy_and_hard_topics()
    arguments = ["--qrels", file("q", qrels_text(grades)), "--measure", "RR"]
    arguments += run_arguments(file, files)
    for options, mean in (([], 0.7), (["--missing", "zero"], 0.35)):
        record = reuse(arguments, "--pool-depth", "5", *options)
        effects = {(row["run"], row["measure"]): row for row in record["left_out"][0]["effects"]}
        of_a = effects["A", "RR"]
        assert of_a["mean"] == pytest.approx(mean)
        assert (of_a["rank"], effects["B", "RR"]["rank"]) == (2, 1)


RUNS = ("own1", "own2", "other1", "other2", "other3")


def judged_by_both(seed, *, n_topics=60, favour=0.35):
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
        says = (truth ^ flipped) | ((own > 0.8) & (rng.random(20) < favour))
        people[topic] = {name: int(each) for name, each in zip(names, truth, strict=True)}
        machine[topic] = {name: int(each) for name, each in zip(names, says, strict=True)}
    return people, machine, runs


def options_of(file, people, machine, runs):
    arguments = ["--qrels", file("people", qrels_text(people))]
    arguments += ["--machine", file("machine", qrels_text(machine))]
    return arguments + run_arguments(file, files_of(runs))


def compared(file, people, machine, runs, *options):
    return record_of("evaluate_runs", *options_of(file, people, machine, runs), *options)["machine"]


def by_topic(grades, run, name):
    evaluated = pytrec_eval.RelevanceEvaluator(grades, {name}).evaluate(run)
    return {topic: row[name] for topic, row in evaluated.items()}


OWN = ("--shares-model", "own1", "--shares-model", "own2.run")


def test_bias_is_the_difference_of_the_gaps_over_topics(file):
    people, machine, runs = judged_by_both(1)
    record = compared(file, people, machine, runs, "--measure", "nDCG@10", *OWN)
    values = np.array(
        [
            [list(by_topic(grades, runs[name], "ndcg_cut_10").values()) for name in RUNS]
            for grades in (people, machine)
        ]
    )
    gaps = values[1] - values[0]
    own, others = gaps[:2].mean(axis=0), gaps[2:].mean(axis=0)
    (row,) = record["biases"]
    expected = stats.ttest_rel(own, others)
    assert row["difference"] == pytest.approx(np.mean(own - others), abs=1e-6)
    interval = expected.confidence_interval()
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((interval.low, interval.high), abs=1e-6)
    assert row["difference"] > 0.02
    assert row["p"] < 0.01
    means = values.mean(axis=2)
    assert row["tau"] == pytest.approx(stats.kendalltau(*means).statistic)
    assert row["tau_without"] == pytest.approx(stats.kendalltau(*means[:, 2:]).statistic)
    assert record["sharing"] == ["own1", "own2"]


def test_a_sample_of_topics_calibrates_every_measure_as_prediction_powered_inference_does(file):
    people, machine, runs = judged_by_both(2)
    some = {topic: people[topic] for topic in list(people)[:20]}
    record = compared(file, some, machine, runs, "--measure", "AP")
    assert record["sample"] == "topics"
    assert (record["n_topics_both"], record["n_topics_machine"]) == (20, 60)
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
    with refused(exceptions.RunsUnfit, "run_unknown"):
        compared(file, people, machine, runs, "--shares-model", "nobody")
    elsewhere = {f"x{topic}": row for topic, row in people.items()}
    with refused(exceptions.RunsUnfit, "nothing_in_common"):
        compared(file, people, elsewhere, runs)
    with refused_naming(CommandError, "--human-sample", "--machine"):
        record_of("evaluate_runs", "--qrels", "q", "--run", "r", "--human-sample", "labels")


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
    options = ("--measure", "nDCG@5", "--confidence", "0.99")
    record = compared(file, some, machine, {"one": run}, *options)
    (row,) = record["estimates"]
    assert row["calibrated_ci_low"] == 0.0 < row["calibrated"] < row["calibrated_ci_high"]
    note = record["notes"][record["note_codes"].index("few_other_values")]
    assert note.startswith("nDCG@5 of one: ")
    assert " 4 " in note

from itertools import combinations

import krippendorff
import numpy as np
import pandas as pd
import pytest
from django.core.management.base import CommandError
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from retrieval import charts, exceptions
from retrieval.rankings.comparison import NO_CHOICE, ONE_EACH
from stats.ranking.resampled_topics import UNMOVED
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.retrieval import conftest


@pytest.fixture
def compare(file):
    def compared(labels, runs, *options, assessors=""):
        arguments = [*qrels_arguments(file, labels), *conftest.run_arguments(file, runs)]
        if assessors:
            arguments += ["--assessors", file("qrels_jg", assessors)]
        return conftest.record_of("compare_qrels", *arguments, "--resamples", "200", *options)

    return compared


def qrels_arguments(file, labels):
    return [f"--qrels={n}={file(f'{n}.qrels', conftest.qrels_text(labels[n]))}" for n in labels]


def relabelled(grades, seed, share=0.3):
    rng = np.random.default_rng(seed)
    return {
        topic: {
            document: int(rng.integers(0, 3)) if rng.random() < share else grade
            for document, grade in documents.items()
        }
        for topic, documents in grades.items()
    }


def collection(n_runs=5):
    grades, runs = conftest.seeded_collection(n_runs, seed=2)
    labels = {"a": grades, "b": relabelled(grades, 1), "c": relabelled(grades, 2)}
    return labels, {f"{n}.run": conftest.run_text(run, f"s{n}") for n, run in enumerate(runs)}


def means(record, qrels, measure="nDCG@10"):
    of = {"qrels": qrels, "measure": measure}
    (ranking,) = [each for each in record["rankings"] if each | of == each]
    return {system["run"]: system["mean"] for system in ranking["systems"]}


def pair(record, first, second):
    return next(p for p in record["pairs"] if (p["first"], p["second"]) == (first, second))


def test_each_ranking_is_that_of_evaluate_runs(compare, file):
    labels, runs = collection()
    record = compare(labels, runs)
    for name, grades in labels.items():
        qrels = ("--qrels", file("one.qrels", conftest.qrels_text(grades)), "--measure", "nDCG@10")
        results = conftest.record_of("evaluate_runs", *qrels, *conftest.run_arguments(file, runs))[
            "results"
        ]
        expected = {row["run"]: row["mean"] for row in results}
        assert means(record, name) == pytest.approx(expected)


def test_tau_b_and_swaps_of_every_two_rankings_are_those_of_their_means(compare):
    labels, runs = collection()
    record = compare(labels, runs, "--missing", "zero")
    assert {(p["first"], p["second"]) for p in record["pairs"]} == set(
        combinations(["a", "b", "c", "union", "intersection", "majority"], 2)
    )
    for each in record["pairs"]:
        one, other = (means(record, each[side]) for side in ("first", "second"))
        names = list(one)
        tau = stats.kendalltau([one[n] for n in names], [other[n] for n in names]).statistic
        assert each["tau_b"]["value"] == pytest.approx(tau)
        swapped = {
            frozenset(two)
            for two in combinations(names, 2)
            if (one[two[0]] - one[two[1]]) * (other[two[0]] - other[two[1]]) < 0
        }
        assert {frozenset((s["a"], s["b"])) for s in each["swapped"]} == swapped
        assert sum(each["significance"].values()) == each["n_pairs"] == 10


def test_runs_are_ranked_on_the_topics_that_they_share_unless_missing_ones_count_0(compare):
    """A run of easy topics has the higher mean, and the other beats it on each topic of both."""
    labels, runs = conftest.easy_and_hard_topics()
    other = {topic: grades | {"m0": int(topic > "t25")} for topic, grades in labels.items()}
    record = compare({"x": labels, "y": other}, runs, "--measure", "RR")
    for ranking in record["rankings"]:
        assert [one["run"] for one in ranking["systems"]] == ["B", "A"]
        assert [one["rank"] for one in ranking["systems"]] == [1, 2]
        assert ranking["groups"] == [["B"], ["A"]]
    one = pair(record, "x", "y")
    assert (one["n_swapped"], one["significance"]["kept"]) == (0, 1)
    assert (one["tau_b"]["value"], one["tau_b"]["ci_low"]) == (1, None)
    assert one["tau_b"]["reason"] == UNMOVED
    assert "no_interval" in record["note_codes"]
    record = compare({"x": labels, "y": labels}, runs, "--measure", "RR", "--missing", "zero")
    for ranking in record["rankings"]:
        assert ranking["groups"] == [["B"], ["A"]]
        of_a = ranking["systems"][1]
        assert (of_a["run"], of_a["n_topics"]) == ("A", 50)
        assert of_a["mean"] == pytest.approx(0.35)
        assert 0.2 < of_a["ci_low"] < 0.35 < of_a["ci_high"] < 0.5


def test_the_truth_is_first_and_makes_tau_ap_one_sided(compare):
    labels, runs = collection()
    record = compare(labels, runs, "--truth", "b", "--top", "3", "--missing", "zero")
    others = ["a", "c", "union", "intersection", "majority"]
    assert [p["second"] for p in record["pairs"] if p["first"] == "b"] == others
    one = pair(record, "b", "a")
    assert one["tau_ap"]["coefficient"] == "tau_ap_a"
    assert pair(record, "a", "c")["tau_ap"]["coefficient"] == "tau_ap_b"
    best = sorted(means(record, "b"), key=means(record, "b").__getitem__, reverse=True)[:3]
    assert one["top"]["systems"] == best
    of_best = [[means(record, name)[run] for run in best] for name in ("b", "a")]
    assert one["top"]["value"] == pytest.approx(stats.kendalltau(*of_best).statistic)


def test_labels_agree_on_the_documents_that_both_judged(compare):
    labels, runs = collection()
    record = compare(labels, runs)
    (one,) = [each for each in record["labels"] if (each["first"], each["second"]) == ("a", "b")]
    both = [
        (grade, labels["b"][topic][document])
        for topic, documents in labels["a"].items()
        for document, grade in documents.items()
        if grade >= 0 and labels["b"][topic][document] >= 0
    ]
    first, second = (np.array(side) for side in zip(*both, strict=True))
    assert one["n_documents"] == len(both)
    overlap = ((first > 0) & (second > 0)).sum() / ((first > 0) | (second > 0)).sum()
    assert one["overlap"]["value"] == pytest.approx(overlap)
    assert one["overlap"]["ci_low"] < overlap < one["overlap"]["ci_high"]
    assert one["kappa"]["value"] == pytest.approx(cohen_kappa_score(first > 0, second > 0))
    assert one["kappa"]["ci_method"] == "jackknife-t-clusters"
    assert one["kappa_of_grades"]["value"] == pytest.approx(cohen_kappa_score(first, second))
    weighted = cohen_kappa_score(first, second, weights="linear")
    assert one["weighted_kappa"]["value"] == pytest.approx(weighted)
    assert np.sum(one["counts"]) == len(both)


def test_union_intersection_and_majority_are_over_those_who_judged(compare):
    grades = {
        "a": {"1": {"d": 1, "e": 0, "f": 1, "g": -1}},
        "b": {"1": {"d": 0, "e": 0, "f": -1, "g": -1}},
        "c": {"1": {"d": 1, "e": 1}},
    }
    run = "".join(f"1 Q0 {document} 1 {score} s\n" for score, document in enumerate("defg"))
    record = compare(grades, {"s": run})
    counts = {each["name"]: (each["n_relevant"], each["n_judged"]) for each in record["qrels"]}
    assert counts["union"] == (3, 3)
    assert counts["intersection"] == (1, 3)
    assert counts["majority"] == (2, 3)
    assert [each["n_unjudged"] for each in record["qrels"] if each["kind"] == "derived"] == [1] * 3


def jg(labels):
    return "".join(
        f"{topic} {name} {document} {grade}\n"
        for name, grades in labels.items()
        for topic, documents in grades.items()
        for document, grade in documents.items()
    )


@pytest.mark.slow
def test_assessors_of_one_file_are_as_qrels_of_each(compare):
    labels, runs = collection()
    of_files, of_one = compare(labels, runs), compare({}, runs, assessors=jg(labels))
    assert [each["kind"] for each in of_one["qrels"]] == ["assessor"] * 3 + ["derived"] * 3
    for name in ("pairs", "labels", "rankings", "random_assessor", "crossed"):
        assert of_one[name] == of_files[name]


def test_assessors_of_some_topics_are_drawn_unless_each_topic_has_one(compare):
    labels, runs = collection()
    topics = list(labels["a"])

    def judged(n_of_a):
        parts = {"a": topics[:n_of_a], "b": topics[20:]}
        return jg({name: {t: labels[name][t] for t in part} for name, part in parts.items()})

    record = compare({}, runs, assessors=judged(30))
    assert [each["name"] for each in record["qrels"]] == ["union", "intersection"]
    (design,) = record["random_assessor"]
    assert (design["n_topics_with_choice"], design["merged"]) == (10, "union")
    assert design["n_draws"] == 1000
    assert design["tau_b"]["min"] <= design["tau_b"]["median"] <= design["tau_b"]["max"] <= 1
    assert [each["n_assessors"] for each in record["crossed"]] == [2] * 5
    assert record["crossed"][0]["n_topics"] <= 40 <= record["crossed"][0]["n_assessments"]
    record = compare({}, runs, assessors=judged(20))
    assert {each["reason"] for each in record["crossed"]} == {ONE_EACH}
    assert record["random_assessor"] == []
    assert {ONE_EACH, NO_CHOICE} <= set(record["notes"])
    for each in record["crossed"]:
        assert 0 <= each["ci_low"] < each["mean"] < each["ci_high"] <= 1
    overlap = record["assessors"]["overlap"]
    assert overlap["value"] is None
    assert overlap["reason"]


def test_any_two_assessors_of_a_document_are_compared_whoever_they_are(compare):
    labels, runs = collection(2)
    both = {name: labels[name] for name in "ab"}
    record = compare(both, runs)
    (of_pair,) = record["labels"]
    assert record["assessors"]["overlap"] == of_pair["overlap"]
    swapped = {name: {} for name in "ab"}
    for number, topic in enumerate(labels["a"]):
        first, second = "ab" if number % 2 else "ba"
        swapped["a"][topic], swapped["b"][topic] = labels[first][topic], labels[second][topic]
    others = compare({}, runs, assessors=jg(swapped))["assessors"]
    assert others["overlap"] == of_pair["overlap"]
    assert others["alpha"] == record["assessors"]["alpha"]
    ratings = [
        [grades[topic][document] > 0 if grades[topic][document] >= 0 else np.nan
         for topic in grades for document in grades[topic]]
        for grades in both.values()
    ]  # fmt: skip
    alpha = krippendorff.alpha(np.array(ratings, float), level_of_measurement="nominal")
    assert others["alpha"]["value"] == pytest.approx(alpha)


def test_a_machines_labels_are_not_merged_with_peoples(compare):
    labels, runs = collection()
    record = compare(labels, runs, "--machine", "c")
    kinds = {each["name"]: each["kind"] for each in record["qrels"]}
    assert kinds["c"] == "machine"
    assert "majority" not in kinds
    only_people = compare({name: labels[name] for name in "ab"}, runs)
    assert record["random_assessor"] == only_people["random_assessor"]
    assert means(record, "union") == means(only_people, "union")


def test_topics_that_not_all_have_or_without_relevant_documents_are_left_out(compare):
    labels, runs = collection()
    fewer = {"a": labels["a"], "b": {t: labels["b"][t] for t in list(labels["b"])[:25]}}
    record = compare(fewer, runs)
    assert record["n_topics"] == 25
    assert {each["name"]: each["n_topics_left_out"] for each in record["qrels"]}["a"] == 15
    assert record["notes"][record["note_codes"].index("topics_not_shared")].startswith("a has 15 ")
    record = compare(labels, runs, "--leave-out-without-relevant")
    kept = [t for t in labels["a"] if all(max(labels[n][t].values()) > 0 for n in "abc")]
    assert record["n_topics"] == len(kept) < 40


def test_it_is_printed_as_tables_too(file):
    labels, runs = collection(3)
    arguments = [*qrels_arguments(file, labels), *conftest.run_arguments(file, runs)]
    text = command_output("compare_qrels", *arguments, "--top", "2", "--resamples", "50")
    assert "0.67" in text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--qrels", "a.qrels"], ["a.qrels"]),
        (["--qrels", "a=x", "--qrels", "a=y"], ["--qrels", " a."]),
        (["--primary", "AP"], ["--primary", "--measure"]),
    ],
)
def test_options_that_do_not_fit_are_refused(compare, options, named):
    labels, runs = collection(2)
    with refused_naming(CommandError, *named):
        compare(labels, runs, *options)


def test_qrels_that_cannot_be_compared_are_refused(compare):
    labels, runs = collection(2)
    for names, options, code in (
        ("a", [], "too_few_qrels"),
        ("ab", ["--truth", "z"], "qrels_unknown"),
        ("ab", ["--machine", "z"], "qrels_unknown"),
    ):
        with refused(exceptions.RunsUnfit, code):
            compare({name: labels[name] for name in names}, runs, *options)
    with refused(exceptions.RunsUnfit, "no_common_topic"):
        compare({"a": {"1": {"d": 1}}, "b": {"2": {"d": 1}}}, runs)
    for content, line, code in (
        ("1 x d 1\n1 y d 0\n1 x d 1\n", 3, "twice"),
        ("1 0 d 1\n1 0 e 0\n", None, "one_assessor"),
        ("1 x d 1.5\n", 1, "grade"),
    ):
        with refused(exceptions.TrecFileFaults, code, lines=[line]):
            compare({}, runs, assessors=content)


def test_a_legend_shows_what_long_names_differ_in():
    study = "Instead of it? " * 3
    ends = ["round 1, any", "round 1, majority", "round 2, majority"]
    names = charts.legend_names([f"{study}, {end}" for end in ends] + ["by hand"])
    assert list(names.values()) == [*(f"… {end}" for end in ends), "by hand"]
    [*apart] = charts.legend_names([f"{'a' * 40} {n} {'b' * 40}" for n in range(3)]).values()
    assert len(set(apart)) == 3
    assert max(map(len, apart)) <= charts.LONGEST_NAME + 3
    columns = ["run", "qrels", "rank", "mean", "ci_low", "ci_high"]
    rows = [("bm25", f"{study}, {end}", 1, 0.5, 0.4, 0.6) for end in ends]
    drawn = charts.means_by_qrels(pd.DataFrame(rows, columns=columns), measure="AP")
    assert drawn.data["qrels"].tolist() == [f"… {end}" for end in ends]

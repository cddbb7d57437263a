import re

import numpy as np
import pytest
import pytrec_eval
from django.core.management.base import CommandError
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from config.commandline import BAD_INPUT, main
from retrieval.exceptions import RunsUnfit
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.retrieval.conftest import (
    easy_and_hard_topics,
    qrels_text,
    record_of,
    run_arguments,
    run_text,
    seeded_collection,
)

OF_PYTREC_EVAL = {
    "nDCG@10": "ndcg_cut_10",
    "RR": "recip_rank",
    "AP": "map",
    "P@5": "P_5",
    "R@10": "recall_10",
    "Bpref": "bpref",
    "infAP": "infAP",
    "Success@1": "success_1",
}


@pytest.fixture
def evaluate(file):
    def evaluated(qrels, runs, *options):
        arguments = ["--qrels", file("qrels.txt", qrels), *run_arguments(file, runs)]
        return record_of("evaluate_runs", *arguments, *options)

    return evaluated


def files_of(runs):
    return {f"{n}.run": run_text(run, f"s{n}") for n, run in enumerate(runs)}


def row(record, run, measure):
    return next(r for r in record["results"] if (r["run"], r["measure"]) == (run, measure))


def notes(record, code):
    coded = zip(record["note_codes"], record["notes"], strict=True)
    return [note for of_note, note in coded if of_note == code]


@pytest.mark.parametrize("measure", OF_PYTREC_EVAL)
def test_every_topic_has_pytrec_evals_value_from_the_same_files(evaluate, measure):
    grades, runs = seeded_collection(3)
    record = evaluate(qrels_text(grades), files_of(runs), "--measure", measure)
    theirs = OF_PYTREC_EVAL[measure]
    for n, run in enumerate(runs):
        expected = pytrec_eval.RelevanceEvaluator(grades, {theirs}).evaluate(run)
        result = row(record, f"s{n}", measure)
        assert result["per_topic"].keys() == expected.keys()
        for topic, value in result["per_topic"].items():
            assert value == pytest.approx(expected[topic][theirs], abs=1e-6)
        values = [each[theirs] for each in expected.values()]
        assert result["mean"] == pytest.approx(np.mean(values), abs=1e-6)
        assert result["mean_complete"] == pytest.approx(np.sum(values) / len(grades), abs=1e-6)
        assert result["n_topics"] == len(values)


def test_a_run_says_which_topics_it_lacks_and_which_nobody_judged(evaluate):
    qrels = "1 0 a 1\n2 0 a 1\n3 0 a 0\n"
    record = evaluate(qrels, {"a": "1 Q0 a 1 1 a\n9 Q0 a 1 1 a\n"}, "--measure", "RR")
    assert record["runs"] == [{"run": "a", "n_topics": 1, "n_missing": 2, "n_foreign": 1}]
    result = row(record, "a", "RR")
    assert (result["mean"], result["mean_complete"]) == (1.0, pytest.approx(1 / 3))
    assert record["n_without_relevant"] == 1
    options = ("--measure", "RR", "--leave-out-without-relevant")
    left_out = evaluate(qrels, {"a": "1 Q0 a 1 1 a\n"}, *options)
    assert row(left_out, "a", "RR")["mean_complete"] == pytest.approx(0.5)


def test_differences_are_tested_on_the_topics_that_both_runs_have(evaluate):
    grades, runs = seeded_collection(2, seed=3)
    files = files_of(runs)
    options = ("--measure", "AP", "--test", "t")
    record = evaluate(qrels_text(grades), files, *options)
    (pair,) = record["comparisons"]
    a, b = (row(record, name, "AP")["per_topic"] for name in ("s0", "s1"))
    both = sorted(a.keys() & b.keys())
    expected = stats.ttest_rel([a[t] for t in both], [b[t] for t in both])
    assert (pair["a"], pair["b"], pair["n_topics"]) == ("s0", "s1", len(both))
    assert pair["p"] == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert (pair["ci_low"], pair["ci_high"]) == pytest.approx((interval.low, interval.high))
    zeros = evaluate(qrels_text(grades), files, *options, "--missing", "zero")
    full = [[values.get(t, 0.0) for t in grades] for values in (a, b)]
    assert zeros["comparisons"][0]["p"] == pytest.approx(stats.ttest_rel(*full).pvalue)


def test_missing_topics_are_left_out_or_count_0_in_every_number(evaluate):
    grades, files = easy_and_hard_topics()
    record = evaluate(qrels_text(grades), files, "--measure", "RR")
    (pair,) = record["comparisons"]
    assert pair["delta"] == pytest.approx(-0.3)
    assert row(record, "A", "RR")["mean"] > row(record, "B", "RR")["mean"]
    assert record["groups"] == [{"measure": "RR", "groups": [["B"], ["A"]]}]
    assert "means_of_different_topics" in record["note_codes"]
    record = evaluate(qrels_text(grades), files, "--measure", "RR", "--missing", "zero")
    of_a = row(record, "A", "RR")
    values = [of_a["per_topic"][topic] for topic in grades]
    limits = stats.t.interval(0.95, 49, np.mean(values), stats.sem(values))
    assert of_a["mean"] == of_a["mean_complete"] == of_a["mean_other_ties"] == pytest.approx(0.35)
    assert (of_a["ci_low"], of_a["ci_high"]) == pytest.approx(limits)
    assert record["groups"][0]["groups"] == [["B"], ["A"]]
    assert record["comparisons"][0]["delta"] == pytest.approx(0.35 - row(record, "B", "RR")["mean"])


def test_randomisation_agrees_with_scipys_permutation_test(evaluate):
    grades, runs = seeded_collection(2, n_topics=12, seed=5)
    record = evaluate(qrels_text(grades), files_of(runs), "--measure", "nDCG@10")
    a, b = (row(record, name, "nDCG@10")["per_topic"] for name in ("s0", "s1"))
    gaps = [a[t] - b[t] for t in sorted(a.keys() & b.keys())]
    expected = stats.permutation_test(
        (gaps,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert record["comparisons"][0]["p"] == pytest.approx(expected.pvalue)


def test_success_is_compared_by_mcnemars_exact_test(evaluate):
    grades, runs = seeded_collection(2, n_topics=80, seed=6)
    record = evaluate(qrels_text(grades), files_of(runs), "--measure", "Success@1")
    (pair,) = record["comparisons"]
    a, b = (row(record, name, "Success@1")["per_topic"] for name in ("s0", "s1"))
    table = np.zeros((2, 2))
    for topic in a.keys() & b.keys():
        table[int(a[topic]), int(b[topic])] += 1
    assert pair["test"] == "mcnemar"
    assert pair["p"] == pytest.approx(mcnemar(table, exact=True).pvalue)


@pytest.mark.slow
def test_only_declared_primary_measures_are_corrected_together(evaluate):
    grades, runs = seeded_collection(3, seed=7)
    files = files_of(runs)
    options = ("--measure", "AP", "--measure", "RR", "--primary", "AP", "--test", "t")
    record = evaluate(qrels_text(grades), files, *options)
    of_ap = [pair for pair in record["comparisons"] if pair["measure"] == "AP"]
    expected = multipletests([pair["p"] for pair in of_ap], method="holm")[1]
    assert [pair["p_adjusted"] for pair in of_ap] == pytest.approx(list(expected))
    others = [pair["p_adjusted"] for pair in record["comparisons"] if pair["measure"] == "RR"]
    assert others == [None] * 3


def test_groups_are_apart_where_all_above_differ_from_all_below(evaluate):
    topics = [str(n) for n in range(30)]
    qrels = "".join(f"{t} 0 a 1\n" for t in topics)
    first = "".join(f"{t} Q0 a 1 2 {{tag}}\n{t} Q0 b 2 1 {{tag}}\n" for t in topics)
    fourth = "".join(f"{t} Q0 a 1 0 {{tag}}\n" for t in topics)
    fourth += "".join(f"{t} Q0 {d} 1 {9} {{tag}}\n" for t in topics for d in "bcd")
    files = {name: first.format(tag=name) for name in ("good", "fine")}
    record = evaluate(qrels, files | {"poor": fourth.format(tag="poor")}, "--measure", "RR")
    assert record["groups"] == [{"measure": "RR", "groups": [["fine", "good"], ["poor"]]}]


def test_notes_say_what_ties_move_and_tell_infinite_scores_from_single_precision(evaluate):
    record = evaluate("1 0 a 1\n", {"x": "1 Q0 a 1 1 x\n1 Q0 b 2 1 x\n"}, "--measure", "RR")
    assert row(record, "x", "RR")["mean"] == 0.5
    assert row(record, "x", "RR")["mean_other_ties"] == 1.0
    assert "ties_move_mean" in record["note_codes"]
    close = {"x": "1 Q0 a 1 0.9000000002 x\n1 Q0 b 2 0.9000000001 x\n"}
    large = {"a.run": "1 Q0 a 1 inf x\n1 Q0 b 2 1e39 x\n1 Q0 c 3 1e38 x\n"}
    for options, is_single in (((), True), (("--double",), False)):
        record = evaluate("1 0 a 1\n", close, "--measure", "RR", *options)
        assert row(record, "x", "RR")["mean"] == (0.5 if is_single else 1.0)
        assert ("tied_in_single_precision" in record["note_codes"]) is is_single
        codes = evaluate("1 0 a 1\n", large, "--measure", "RR", *options)["note_codes"]
        assert "infinite_scores" in codes
        assert ("beyond_single_precision" in codes) is is_single


def test_notes_say_where_ranks_contradict_scores_and_targets_come_first(evaluate):
    runs = {"x": "1 Q0 a 1 1 x\n1 Q0 b 2 2 x\n", "y": "1 Q0 a 1 2 y\n1 Q0 b 2 1 y\n"}
    record = evaluate("1 0 a 1\n", runs, "--measure", "RR")
    assert (row(record, "x", "RR")["mean"], row(record, "y", "RR")["mean"]) == (0.5, 1.0)
    [note] = notes(record, "ranks_contradict_scores")
    assert re.findall(r"\b[xy]\b|\d+", note) == ["x", "1"]
    runs = {
        "x": "a Q0 a 1 2 x\na Q0 b 2 1 x\nb Q0 b 1 2 x\nb Q0 a 2 1 x\nc Q0 a 1 2 x\n",
        "y": "a Q0 b 1 2 y\na Q0 a 2 1 y\n",
    }
    record = evaluate("a 0 b 1\nb 0 a 1\nc 0 a 1\n", runs, "--measure", "RR")
    [note] = notes(record, "begins_with_target")
    assert re.findall(r"\b[xy]\b|\d+", note) == ["x", "2", "3"]


def test_an_interval_that_nothing_or_little_supports_is_not_given_or_noted(evaluate):
    record = evaluate("1 0 a 1\n2 0 a 1\n", {"x": "1 Q0 a 1 1 x\n2 Q0 a 1 1 x\n"})
    result = row(record, "x", "RR@10")
    assert (result["ci_low"], result["ci_high"]) == (None, None)
    assert result["reason"]
    qrels = "".join(f"{n} 0 a 1\n" for n in range(60))
    for n_found, is_noted in ((9, True), (12, False)):
        run = "".join(f"{n} Q0 {'a' if n < n_found else 'b'} 1 1 x\n" for n in range(60))
        record = evaluate(qrels, {"x": run}, "--measure", "AP")
        assert ("few_other_values" in record["note_codes"]) is is_noted


def test_runs_are_called_by_their_tags_or_where_those_are_the_same_by_their_files(evaluate):
    line = "1 Q0 a 1 1 same\n"
    record = evaluate("1 0 a 1\n", {"one.run": line, "two.run": line}, "--measure", "RR")
    assert [each["run"] for each in record["runs"]] == ["one.run", "two.run"]


def test_runs_and_options_that_do_not_fit_are_refused(evaluate):
    with refused(RunsUnfit, "grade_beyond_scale"):
        evaluate("1 0 a 2\n", {"a": "1 Q0 a 1 1 x\n"}, "--measure", "RBP(max_rel=1)")
    with refused(RunsUnfit, "no_topic"):
        evaluate("1 0 a 1\n", {"a.run": "07 Q0 a 1 1 x\n"})
    for options, named in (
        (("--measure", "ERR"), ["--measure"]),
        (("--measure", "AP", "--primary", "RR"), ["--primary", "RR"]),
        (("--measure", "AP", "--test", "mcnemar"), ["Success"]),
    ):
        with refused_naming(CommandError, *named):
            evaluate("1 0 a 1\n", {"a": "1 Q0 a 1 1 x\n"}, *options)


def test_without_json_people_read_means_differences_and_groups(file):
    grades, runs = seeded_collection(2)
    arguments = ["--qrels", file("q", qrels_text(grades)), *run_arguments(file, files_of(runs))]
    text = command_output("evaluate_runs", *arguments, "--measure", "nDCG@10")
    assert "s1 > s0" in text or "s1, s0" in text or "s0, s1" in text
    assert "s0 - s1" in text
    assert len(text.splitlines()) > 10


def drawn_targets(file):
    """Of 900 targets on which a run mostly fails, and 100 easy ones, 20 and 20 are drawn."""
    rows = [f"{'hard' if n < 900 else 'easy'}{n},{int(n >= 900)}" for n in range(1000)]
    targets = file("all.csv", "target,price\n" + "\n".join(rows) + "\n")
    drawn = targets.with_name("drawn.csv")
    record = record_of(
        *("sample_targets", "--n", "40", "--targets", targets, "--column", "price"),
        *("--strata", "2", "--output", drawn),
    )
    topics = [row["topic"] for row in record["targets"]]
    assert "evaluate_runs --weights" in record["notes"][0]
    qrels = "".join(f"{t} 0 d {int(t.startswith('easy') or t[-1] < '3')}\n" for t in topics)
    return drawn, qrels, "".join(f"{t} Q0 d 1 1 a\n" for t in topics)


def test_topics_drawn_with_unequal_probabilities_are_weighed_by_weights_that_fit(evaluate, file):
    drawn, qrels, run = drawn_targets(file)
    record = evaluate(qrels, {"a": run}, "--measure", "P@1", "--weights", drawn)
    per_topic = row(record, "a", "P@1")["per_topic"]
    hard = np.mean([value for topic, value in per_topic.items() if topic.startswith("hard")])
    assert row(record, "a", "P@1")["mean"] == pytest.approx((hard + 1) / 2)
    (weighted,) = record["weighted"]["means"]
    assert weighted["mean"] == pytest.approx(0.9 * hard + 0.1)
    assert weighted["ci_low"] < weighted["mean"] < weighted["ci_high"] < 0.6
    assert record["weighted"]["effective_n"] == pytest.approx(1000**2 / (20 * 45**2 + 20 * 25))
    lines = drawn.read_text().splitlines()
    wrong = [*lines[:-1], lines[-1].rpartition(",")[0] + ",2"]
    for kept, code in ((lines[:-1], "topic_missing"), (wrong, "probability")):
        weights = file("weights.csv", "\n".join(kept) + "\n")
        with refused(RunsUnfit, code):
            evaluate(qrels, {"a": run}, "--measure", "P@1", "--weights", weights)
    tiny = file("tiny.csv", "\n".join([lines[0], lines[1].rpartition(",")[0] + ",1e-320"]))
    topic = lines[1].split(",")[0]
    with refused_naming(RunsUnfit, "tiny.csv", 2, "1e-12"):
        evaluate(f"{topic} 0 d 1\n", {"a": f"{topic} Q0 d 1 1 a\n"}, "--weights", tiny)


def test_a_relevant_document_is_one_of_a_grade_above_0_for_all_measures(evaluate):
    qrels = "1 0 a 1\n1 0 b 0\n2 0 a 2\n2 0 c 0\n3 0 a 0\n"
    run = {"a": "".join(f"{n} Q0 a 1 1 a\n" for n in (1, 2, 3))}
    options = ("--measure", "AP(rel=2)", "--leave-out-without-relevant")
    record = evaluate(qrels, run, *options)
    assert (record["results"][0]["mean"], record["results"][0]["n_topics"]) == (0.5, 2)
    [left_out] = notes(record, "without_relevant")
    [counted] = notes(evaluate(qrels, run, "--measure", "AP"), "without_relevant")
    assert left_out[0] == counted[0] == "1"
    assert left_out != counted


def test_names_steer_no_terminal(file, capsys):
    tag = "\x1b[31m\x1b]0;owned\x07red"
    run = file("esc.run", f"1 Q0 a 1 1 {tag}\n2 Q0 a 1 1 {tag}\n")
    arguments = ["--qrels", file("q", "1 0 a 1\n3 0 b 1\n"), "--run", run]
    text = command_output("evaluate_runs", *arguments)
    assert "\ufffd[31m\ufffd]0;owned\ufffdred" in text
    assert all(character.isprintable() or character == "\n" for character in text)
    run = file("esc.run", "9 Q0 a 1 1 \x1b[31mred\n")
    arguments = ["evaluate_runs", "--qrels", str(file("q", "1 0 a 1\n")), "--run", str(run)]
    assert main(["manage.py", *arguments]) == BAD_INPUT
    assert "esc.run (\ufffd[31mred)" in capsys.readouterr().err


def test_pairs_of_more_than_ten_runs_are_tested_on_request(evaluate):
    grades, runs = seeded_collection(11, n_topics=20)
    files, options = files_of(runs), ("--measure", "AP", "--test", "t")
    means = evaluate(qrels_text(grades), files, *options)
    assert (means["comparisons"], means["settings"]["pairs"]) == ([], False)
    assert means["groups"] == [{"measure": "AP", "groups": []}]
    [note] = notes(means, "pairs_not_tested")
    assert note.split()[0] == "55"
    tested = evaluate(qrels_text(grades), files, *options, "--pairs")
    assert (len(tested["comparisons"]), tested["settings"]["pairs"]) == (55, True)
    assert means["results"] == tested["results"]
    assert notes(tested, "pairs_not_tested") == []
    fewer = evaluate(qrels_text(grades), dict(list(files.items())[:10]), *options)
    assert len(fewer["comparisons"]) == 45


def test_runs_are_ordered_by_their_differences_without_tests_too(evaluate):
    grades, files = easy_and_hard_topics()
    lists = [line.split() for line in files["A.run"].splitlines()]
    copies = {f"copy{n}": "".join(f"{' '.join(x[:5])} copy{n}\n" for x in lists) for n in range(9)}
    record = evaluate(qrels_text(grades), files | copies, "--measure", "RR")
    assert record["comparisons"] == []
    assert "means_of_different_topics" in record["note_codes"]

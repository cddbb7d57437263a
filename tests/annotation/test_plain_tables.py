import csv
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from stats.aggregation import METHODS
from tests.annotation.importing import numbers_in
from tests.annotation.test_commands import ROOT, exit_code

NAMED = ("--item", "item", "--annotator", "annotator", "--value", "label")
NO_DATABASE = "postgres://nobody@127.0.0.1:1/nothing"
SMALL = [
    ("a", "ann", "yes"),
    ("a", "bob", "yes"),
    ("a", "cyd", "no"),
    ("b", "ann", "no"),
    ("b", "bob", "no"),
    ("c", "cyd", "yes"),
    ("c", "bob", "yes"),
]
RATED = [
    (f"i{item}", who, str(10 * item + more))
    for item in range(6)
    for who, more in (("ann", 0), ("bob", 3), ("cyd", item))
]
Captured = pytest.CaptureFixture[str]
Run = Callable[..., dict[str, Any]]


def table(
    path: Path, rows: Iterable[tuple[str, ...]], header: str = "item,annotator,label"
) -> Path:
    path.write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    return path


@pytest.fixture
def run(capsys: Captured) -> Run:
    """A command's JSON; a test that asked for the database would be refused it."""

    def record_of(command: str, path: Path, *options: str) -> dict[str, Any]:
        assert exit_code(command, path, *NAMED, *options, "--json") == 0
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return record_of


def value_of(answer: dict[str, Any], name: str) -> Any:
    [match] = [row for row in answer["coefficients"] if row["name"] == name]
    return match


def refusal(capsys: Captured, command: str, path: Path, *options: str) -> str:
    assert exit_code(command, path, *NAMED, *options) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


class TestAggregate:
    def test_labels_stay_as_they_were_written(self, tmp_path, run):
        rows = [("01", "ann", "007"), ("01", "bob", "007"), ("2", "ann", "1e3")]
        answer = run("aggregate", table(tmp_path / "labels.csv", rows), "--method", "majority")
        assert answer["labels"] == {"01": "007", "2": "1e3"}
        assert (answer["converged"], answer["iterations"]) == (None, None)
        assert (answer["n_items"], answer["n_annotators"], answer["n_judgments"]) == (2, 2, 3)

    def test_means_have_an_interval_or_a_reason(self, tmp_path, run):
        answer = run("aggregate", table(tmp_path / "l.csv", RATED), "--method", "mean")
        assert answer["labels"]["i3"] == pytest.approx((30 + 33 + 33) / 3)
        first = answer["items"][0]
        assert first["ci_low"] < first["label"] < first["ci_high"]
        assert "mean" in answer["signature"]
        path = table(tmp_path / "l.csv", [("a", "ann", "5"), ("b", "ann", "6"), ("b", "bob", "7")])
        first = run("aggregate", path, "--method", "mean")["items"][0]
        assert (first["se"], first["reason"]) == (None, "one_label")

    def test_repeats_count_if_asked(self, tmp_path, run, capsys):
        path = table(tmp_path / "l.csv", [*SMALL, ("a", "ann", "no"), ("a", "bob", "no")])
        message = refusal(capsys, "aggregate", path, "--method", "majority")
        assert all(named in message for named in ("'ann'", "'a'", "line 2"))
        answer = run("aggregate", path, "--method", "majority", "--repeats", "count")
        assert answer["labels"]["a"] == "no"
        assert "repeats:count" in answer["signature"]
        assert [2] in [numbers_in(warning) for warning in answer["warnings"]]
        assert refusal(capsys, "aggregate", path, "--method", "dawid_skene", "--repeats", "refuse")

    def test_ties_and_convergence_are_reported(self, tmp_path, run, capsys):
        path = table(tmp_path / "l.csv", [("a", "ann", "x"), ("a", "bob", "y"), ("b", "ann", "x")])
        assert exit_code("aggregate", path, *NAMED, "--method", "majority") == 0
        assert numbers_in(capsys.readouterr().out.splitlines()[0]) == [2, 3, 2, 1]
        path = table(tmp_path / "l.csv", SMALL)
        answer = run("aggregate", path, "--method", "dawid_skene")
        assert answer["converged"] is True
        assert answer["iterations"] >= 1
        exit_code("aggregate", path, *NAMED, "--method", "dawid_skene")
        assert numbers_in(capsys.readouterr().out)[:4] == [3, 7, 3, answer["iterations"]]

    def test_labels_are_written(self, tmp_path, capsys):
        path = table(tmp_path / "l.csv", SMALL)
        for name in ("found.csv", "found.json"):
            output = tmp_path / name
            options = ("--method", "majority", "--output", output)
            assert exit_code("aggregate", path, *NAMED, *options) == 0
            assert capsys.readouterr().out.startswith(f"{output}: 3 ")
        labels = {"a": "yes", "b": "no", "c": "yes"}
        assert json.loads(output.read_text())["labels"] == labels
        rows = csv.DictReader((tmp_path / "found.csv").read_text().splitlines())
        assert {row["item"]: row["label"] for row in rows} == labels

    @pytest.mark.parametrize("method", sorted({*METHODS} - {"bradley_terry"}))
    def test_every_method_labels_every_item(self, tmp_path, run, method):
        answer = run("aggregate", table(tmp_path / "l.csv", RATED), "--method", method)
        assert set(answer["labels"]) == {f"i{item}" for item in range(6)}
        assert answer["method"] == method

    def test_only_preferences_of_what_was_shown_give_strengths(self, tmp_path, run, capsys):
        rows = [("a|b", "ann", "a"), ("a|b", "ann", "a"), ("a|b", "bob", "b")]
        labels = run("aggregate", table(tmp_path / "l.csv", rows), "--method", "bradley_terry")
        strengths = labels["labels"]
        assert strengths["a"] - strengths["b"] == pytest.approx(math.log(2))
        path = table(tmp_path / "l.csv", [("a|b", "ann", "a"), ("a|b", "bob", "c")])
        message = refusal(capsys, "aggregate", path, "--method", "bradley_terry")
        assert all(named in message for named in ("l.csv", "'c'", "'a|b'"))
        path, output = table(tmp_path / "l.csv", SMALL), str(tmp_path / "none" / "l.csv")
        message = refusal(capsys, "aggregate", path, "--method", "majority", "--output", output)
        assert output in message
        assert exit_code("aggregate", path, *NAMED, "--method", "most") == 2
        assert "'most'" in capsys.readouterr().err


# The content, and what the message names of it.
BAD_FILES = {
    "item,annotator,label\n": ["l.csv"],
    "": ["l.csv"],
    "item,annotator\na,b\n": ["Line 1 of l.csv", "label"],
    "item,annotator,label\na,ann,1\nb,,2\n": ["Line 3 of l.csv", "annotator"],
    "item,annotator,label\na,ann,1\nb,ann,2\n\na,ann,3\n": ["Line 5 of l.csv", "ann", "line 2"],
    "item,annotator,label\na,ann,1\nb,ann,many\n": ["Line 3 of l.csv", "label", "'many'"],
}
COMMANDS = [("aggregate", "--method", "mean"), ("agreement", "--level", "interval")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
class TestBadInput:
    def test_a_bad_file_is_refused(self, tmp_path, capsys, command):
        path = tmp_path / "l.csv"
        assert "l.csv" in refusal(capsys, command[0], path, *command[1:])
        for content, names in BAD_FILES.items():
            path.write_text(content)
            message = refusal(capsys, command[0], path, *command[1:])
            assert all(named in message for named in names)
            assert "imported" not in message

    def test_no_database_is_asked(self, tmp_path, command):
        path = table(tmp_path / "l.csv", RATED)
        ended = subprocess.run(
            [sys.executable, "manage.py", command[0], str(path), *NAMED, *command[1:], "--json"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": NO_DATABASE},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert json.loads(ended.stdout)["n_items"] == 6


NAMES = [
    *("percent_agreement", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic"),
    *("scott_pi", "fleiss_kappa", "conger_kappa", "krippendorff_alpha", "gwet_ac1"),
    *("gwet_ac2_quadratic", "brennan_prediger", "icc1", "icc1k", "icc2", "icc2k", "icc3", "icc3k"),
]
LEVELS = ("nominal", "ordinal", "interval", "ratio")


class TestAgreement:
    def test_counts_coefficients_and_pairs_are_reported(self, tmp_path, run):
        import krippendorff

        answer = run("agreement", table(tmp_path / "l.csv", SMALL), "--level", "nominal")
        assert (answer["n_items"], answer["n_annotators"], answer["n_judgments"]) == (3, 3, 7)
        columns = [["yes", "no", None], ["yes", "no", "yes"], ["no", None, "yes"]]
        codes = [[{"yes": 1, "no": 0, None: math.nan}[v] for v in row] for row in columns]
        expected = krippendorff.alpha(codes, level_of_measurement="nominal")
        assert value_of(answer, "krippendorff_alpha")["value"] == pytest.approx(expected)
        pairs = [(row["annotator_a"], row["annotator_b"]) for row in answer["pairs"]]
        assert pairs == [("ann", "bob"), ("ann", "cyd"), ("bob", "cyd")]

    @pytest.mark.parametrize("level", LEVELS)
    def test_each_coefficient_is_explained(self, tmp_path, run, level):
        answer = run("agreement", table(tmp_path / "l.csv", RATED), "--level", level)
        assert [row["name"] for row in answer["coefficients"]] == NAMES
        for row in answer["coefficients"]:
            assert (row["value"] is None) == (row["reason"] is not None)
        assert value_of(answer, "krippendorff_alpha")["value"] is not None
        assert (value_of(answer, "icc2")["value"] is None) == (level in ("nominal", "ordinal"))

    def test_an_interval_says_how_it_was_made(self, tmp_path, run):
        path = table(tmp_path / "l.csv", RATED)
        for ci, method in (("jackknife",) * 2, ("analytic", "linear"), ("bootstrap",) * 2):
            answer = run("agreement", path, "--level", "ordinal", "--ci", ci)
            assert value_of(answer, "fleiss_kappa")["ci_method"].startswith(method)

    def test_clusters_widen_what_is_left_out(self, tmp_path, run):
        rows = [(*row, row[0][:1] + str(int(row[0][1:]) // 2)) for row in RATED]
        path = table(tmp_path / "l.csv", rows, "item,annotator,label,page")
        apart = run("agreement", path, "--level", "interval")
        together = run("agreement", path, "--level", "interval", "--cluster", "page")
        one, other = (value_of(answer, "krippendorff_alpha") for answer in (apart, together))
        assert one["value"] == other["value"]
        assert one["se"] != other["se"]
        assert other["ci_method"] == "jackknife-t-clusters"

    def test_unfit_rows_are_refused(self, tmp_path, capsys):
        rows = [("a", "ann", "1", "p"), ("a", "bob", "1", "q")]
        path = table(tmp_path / "l.csv", rows, "item,annotator,label,page")
        message = refusal(capsys, "agreement", path, "--level", "nominal", "--cluster", "page")
        assert all(named in message for named in ("Line 3 of l.csv", "page", "line 2"))
        path = table(tmp_path / "l.csv", [("a", "ann", "1"), ("a", "bob", "-2")])
        message = refusal(capsys, "agreement", path, "--level", "ratio")
        assert all(named in message for named in ("Line 3 of l.csv", "label", "'-2'"))

    def test_a_person_reads_a_table_with_reasons(self, tmp_path, capsys):
        path = table(tmp_path / "l.csv", SMALL)
        assert exit_code("agreement", path, *NAMED, "--level", "nominal") == 0
        lines = capsys.readouterr().out.splitlines()
        assert numbers_in(lines[0]) == [7, 3, 3]
        [alpha] = [line for line in lines if line.startswith("krippendorff_alpha")]
        assert "[" in alpha
        [icc] = [line for line in lines if line.startswith("icc1 ")]
        assert not numbers_in(icc)
        end = next(at for at, line in enumerate(lines) if line.startswith("Read 7 "))
        assert numbers_in(lines[end - 1]) == [3]
        assert not re.search(r"\bnan\b", " ".join(lines))


class TestRefusedOptions:
    def test_the_labels_are_not_written_over(self, tmp_path, capsys):
        path = table(tmp_path / "l.csv", SMALL)
        (tmp_path / "link.csv").symlink_to(path)
        before = path.read_text()
        for name in ("l.csv", "link.csv"):
            options = ("--method", "majority", "--output", str(tmp_path / name))
            message = refusal(capsys, "aggregate", path, *options)
            assert all(named in message for named in (name, "--output"))
        assert path.read_text() == before

    def test_comparisons_have_options_of_their_own(self, tmp_path, capsys):
        method = ("--method", "bradley_terry")
        rows = [("a", "ann", "1"), ("a", "ann", "2"), ("b", "ann", "2")]
        message = refusal(capsys, "aggregate", table(tmp_path / "l.csv", rows), *method)
        assert message.startswith("l.csv:")
        assert "repeats" not in message
        path = table(tmp_path / "l.csv", SMALL)
        for repeats in ("count", "refuse"):
            assert "--repeats" in refusal(capsys, "aggregate", path, *method, "--repeats", repeats)
        # Where nothing was compared, a table without rows is written.
        path = table(tmp_path / "l.csv", [("a", "ann", "1"), ("b", "bob", "2")])
        output = tmp_path / "found.csv"
        assert exit_code("aggregate", path, *NAMED, *method, "--output", output) == 0
        assert output.read_text() == "item,label,n_labels\n"

    @pytest.mark.parametrize("method", ["majority", "dawid_skene"])
    def test_free_text_is_refused(self, tmp_path, capsys, method):
        path = table(tmp_path / "l.csv", [(f"i{n}", "ann", f"text {n}") for n in range(10_001)])
        assert "10,001" in refusal(capsys, "aggregate", path, "--method", method)

    def test_a_seed_is_a_whole_number(self, tmp_path, capsys):
        path = table(tmp_path / "l.csv", SMALL)
        for seed in ("-1", "1.5", "x"):
            options = ("--level", "nominal", "--seed", seed)
            assert exit_code("agreement", path, *NAMED, *options) == 2
            assert f"--seed: '{seed}'" in capsys.readouterr().err


@pytest.mark.shared_data
class TestRealCrowds:
    """Numbers that were published, or computed by others, on real crowds."""

    def test_agreement(self, shared_data, run, tmp_path):
        labels = shared_data / "crowd" / "rte" / "labels.csv"
        answer = run("agreement", labels, "--level", "nominal")
        assert (answer["n_items"], answer["n_annotators"]) == (800, 164)
        assert value_of(answer, "krippendorff_alpha")["value"] == pytest.approx(0.2415, abs=5e-5)
        with (shared_data / "crowd" / "affect" / "labels.csv").open(newline="") as file:
            anger = [row for row in csv.DictReader(file) if row["emotion"] == "anger"]
        rows = [(row["item"], row["annotator"], row["label"]) for row in anger]
        answer = run("agreement", table(tmp_path / "anger.csv", rows), "--level", "interval")
        alpha = value_of(answer, "krippendorff_alpha")
        assert alpha["value"] == pytest.approx(0.353, abs=5e-4)
        assert alpha["ci_low"] < alpha["value"] < alpha["ci_high"]

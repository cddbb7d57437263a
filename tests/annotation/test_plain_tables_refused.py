"""What `agreement` and `aggregate` refuse of a command line, and what they say of nothing."""

from pathlib import Path

import pytest

from tests.annotation.test_commands import exit_code
from tests.annotation.test_plain_tables import NAMED, SMALL, Captured, refusal, table

STRANGERS = [("a", "ann", "1"), ("b", "bob", "2")]
RATED_AGAIN = [("a", "ann", "1"), ("a", "ann", "2"), ("b", "ann", "2")]


@pytest.mark.parametrize("name", ["l.csv", "link.csv"])
def test_the_labels_are_not_written_over(tmp_path: Path, capsys: Captured, name: str) -> None:
    path = table(tmp_path / "l.csv", SMALL)
    (tmp_path / "link.csv").symlink_to(path)
    before, output = path.read_text(), tmp_path / name
    message = refusal(capsys, "aggregate", path, "--method", "majority", "--output", str(output))
    assert message == f"{output} holds the labels themselves; name another --output.\n"
    assert path.read_text() == before


def test_where_nothing_was_compared_a_table_without_rows_is_written(
    tmp_path: Path, capsys: Captured
) -> None:
    path, output = table(tmp_path / "l.csv", STRANGERS), tmp_path / "found.csv"
    options = ("--method", "bradley_terry", "--output", str(output))
    assert exit_code("aggregate", path, *NAMED, *options) == 0
    assert capsys.readouterr().out.endswith(" of 2 annotators; no comparisons.\n")
    assert output.read_text() == "item,label,n_labels\n"


def test_a_candidate_rated_again_is_refused_with_advice_that_helps(
    tmp_path: Path, capsys: Captured
) -> None:
    path = table(tmp_path / "l.csv", RATED_AGAIN)
    message = refusal(capsys, "aggregate", path, "--method", "bradley_terry")
    assert message.startswith("l.csv: annotators rate a candidate more than once in 1 rows")
    assert "repeats" not in message


@pytest.mark.parametrize("repeats", ["count", "refuse"])
def test_an_option_that_comparisons_do_not_have_is_refused(
    tmp_path: Path, capsys: Captured, repeats: str
) -> None:
    path = table(tmp_path / "l.csv", SMALL)
    message = refusal(capsys, "aggregate", path, "--method", "bradley_terry", "--repeats", repeats)
    assert message.startswith("bradley_terry compares candidates and takes no --repeats")


@pytest.mark.parametrize("method", ["majority", "dawid_skene"])
def test_free_text_is_not_taken_for_categories(
    tmp_path: Path, capsys: Captured, method: str
) -> None:
    rows = [(f"i{n}", "ann", f"what they said of {n}") for n in range(10_001)]
    path = table(tmp_path / "l.csv", rows)
    message = refusal(capsys, "aggregate", path, "--method", method)
    assert message.startswith("l.csv: values would take a table of ")
    assert "10,001" in message


@pytest.mark.parametrize("seed", ["-1", "1.5", "x"])
def test_a_seed_that_is_no_whole_number_is_not_blamed_on_the_file(
    tmp_path: Path, capsys: Captured, seed: str
) -> None:
    path = table(tmp_path / "l.csv", SMALL)
    assert exit_code("agreement", path, *NAMED, "--level", "nominal", "--seed", seed) == 2
    assert f"argument --seed: '{seed}' is not a whole number" in capsys.readouterr().err

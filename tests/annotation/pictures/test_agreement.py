import re

import pandas as pd
import pytest

from annotation.charts import (
    MOST_WITH_NUMBERS,
    agreement_forest,
    annotator_scatter,
    forest_in_words,
    matrix_in_words,
    pairwise_matrix,
    scatter_in_words,
)
from presentation.theme import axis_title, rendered, themed

NOTHING = float("nan")


def forest(*rows):
    columns = ["label", "part", "value", "ci_low", "ci_high", "n_items"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float, "ci_low": float})


def pairs(*rows):
    columns = ["annotator_a", "annotator_b", "n_shared", "value", "reason"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float})


def annotators(*rows):
    columns = ["annotator", "agreement", "n_judgments", "seconds", "n_flagged"]
    return pd.DataFrame(rows, columns=columns).astype({"agreement": float, "seconds": float})


FOREST = forest(
    ("empathy", "all", 0.4, 0.3, 0.5, 80),
    ("fluency", "all", 0.1, -0.1, 0.3, 80),
    ("tone", "all", NOTHING, NOTHING, NOTHING, 0),
)
PAIRS = pairs(
    ("Ann", "Bob", 9, 0.5, None),
    ("Ann", "Cyd", 9, -0.25, None),
    ("Bob", "Cyd", 1, NOTHING, "single_item"),
)
ANNOTATORS = annotators(
    ("Ann", 0.6, 80, 4.0, 0),
    ("Bob", 0.5, 40, 6.0, 0),
    ("Cyd", -0.1, 20, 1.5, 3),
    ("Dan", NOTHING, 1, NOTHING, 0),
)


def test_a_forest_draws_the_defined_with_intervals_and_a_line_at_chance():
    spec = agreement_forest(FOREST).to_dict()
    chance, spans, points = spec["layer"]
    assert chance["encoding"] == {"x": {"datum": 0}}
    assert [spans["encoding"][name]["field"] for name in ("x", "x2")] == ["ci_low", "ci_high"]
    assert points["encoding"]["x"]["scale"]["domain"] == pytest.approx([-0.12, 1.02])
    rows = spec["datasets"][points["data"]["name"]]
    assert [row["label"] for row in rows] == ["empathy", "fluency"]


def test_a_forest_distinguishes_parts_only_where_there_are_several():
    assert "color" not in agreement_forest(FOREST).to_dict()["layer"][2]["encoding"]
    both = pd.concat([FOREST, FOREST.assign(part="without flagged")])
    points = agreement_forest(both).to_dict()["layer"][2]
    assert points["encoding"]["color"]["scale"]["domain"] == ["all", "without flagged"]


def test_a_matrix_shows_each_pair_both_ways_best_first():
    spec = pairwise_matrix(PAIRS, statistic="Cohen's kappa").to_dict()
    filled, *numbers = spec["layer"]
    assert filled["encoding"]["x"]["sort"] == ["Bob", "Ann", "Cyd"]
    assert filled["encoding"]["color"]["scale"]["domain"] == [-1, 0, 1]
    assert {layer["mark"]["type"] for layer in numbers} == {"text"}
    [rows] = spec["datasets"].values()
    assert {(row["annotator_a"], row["annotator_b"], row["value"]) for row in rows} == {
        ("Ann", "Bob", 0.5),
        ("Bob", "Ann", 0.5),
        ("Ann", "Cyd", -0.25),
        ("Cyd", "Ann", -0.25),
    }


def test_numbers_are_white_in_cells_that_are_dark_and_missing_in_a_large_matrix():
    both = pairs(("Ann", "Bob", 9, 0.9, None), ("Ann", "Cyd", 9, 0.2, None))
    drawing = rendered(themed(pairwise_matrix(both, statistic="Cohen's kappa")), "svg").decode()
    assert drawing.count('fill="white"') == 2
    many = pairs(*(("Ann", f"P{n}", 9, 0.5, None) for n in range(MOST_WITH_NUMBERS)))
    assert "layer" not in pairwise_matrix(many, statistic="Pearson's r").to_dict()


@pytest.mark.parametrize("against", ["n_judgments", "seconds"])
def test_a_scatter_shows_those_who_share_candidates_and_names_least_and_most(against):
    spec = annotator_scatter(ANNOTATORS, against=against, statistic="Kappa").to_dict()
    chance, points, *names = spec["layer"]
    assert chance["encoding"] == {"y": {"datum": 0}}
    assert points["encoding"]["x"]["field"] == against
    assert points["encoding"]["x"]["scale"]["type"] == "log"
    assert points["encoding"]["color"]["legend"] is not None
    drawn = spec["datasets"][points["data"]["name"]]
    assert [row["annotator"] for row in drawn] == ["Ann", "Bob", "Cyd"]
    named = [spec["datasets"][name["data"]["name"]] for name in names]
    assert [[row["annotator"] for row in rows] for rows in named] == [["Cyd"], ["Ann"]]


def test_no_name_in_a_scatter_covers_another_however_near_the_points():
    near = [(f"A{n}", 0.4 + n / 1000, 80, 5.0, 0) for n in range(9)]
    chart = annotator_scatter(annotators(*near), against="seconds", statistic="Kappa")
    drawing = rendered(themed(chart), "svg").decode()
    assert [name for name, *_ in near if f">{name}<" in drawing] == ["A0", "A8"]
    chart = annotator_scatter(ANNOTATORS[:1], against="seconds", statistic="Kappa")
    assert rendered(themed(chart), "svg").decode().count(">Ann<") == 1
    # Without flags, there is nothing that a legend would say.
    unflagged = ANNOTATORS.assign(n_flagged=0)
    spec = annotator_scatter(unflagged, against="n_judgments", statistic="Kappa").to_dict()
    assert spec["layer"][1]["encoding"]["color"]["legend"] is None


def test_words_say_what_the_pictures_show():
    undefined = FOREST[:1].assign(ci_low=NOTHING, ci_high=NOTHING)
    ten = [(f"A{n}", n / 10, 80 + n, 5.0 - n, 0) for n in range(10)]
    for text, names, numbers in (
        (forest_in_words(FOREST), ("empathy", "fluency"), "0.40 0.30 0.50 0.10 -0.10 0.30"),
        (forest_in_words(pd.concat([FOREST] * 4)), ("fluency", "empathy"), "8 0.10 0.40"),
        (forest_in_words(undefined), ("empathy",), "0.40"),
        (matrix_in_words(PAIRS, "kappa"), ("Ann", "Bob", "Cyd"), "2 -0.25 0.50 0.12"),
        (scatter_in_words(ANNOTATORS, "n_judgments", "Kappa"), ("Cyd", "Ann"), "3 -0.10 0.60"),
        (scatter_in_words(annotators(*ten), "n_judgments", "K"), (), "10 0.00 0 0.90 9 1.00"),
    ):
        assert re.findall(r"-?\d+(?:\.\d+)?", text) == numbers.split()
        assert all(name in text for name in names)


def test_pictures_of_nothing_are_drawn_and_said():
    assert agreement_forest(FOREST[2:]).to_dict()
    assert pairwise_matrix(PAIRS[2:], statistic="Cohen's kappa").to_dict()
    assert annotator_scatter(ANNOTATORS[3:], against="seconds", statistic="Kappa").to_dict()
    for text in (
        forest_in_words(FOREST[2:]),
        matrix_in_words(PAIRS[2:], "r"),
        scatter_in_words(ANNOTATORS[3:], "seconds", "Kappa"),
    ):
        assert text
        assert not re.search(r"\d|nan", text)


def test_a_long_axis_title_takes_several_lines():
    assert axis_title("Judgments given") == ["Judgments given"]
    title = "Pairwise accuracy with calibrated ties, by item, with its interval"
    assert " ".join(axis_title(title)) == title
    assert len(axis_title(title)) == 2

import json
from math import nan

import pandas as pd
import pytest

from presentation.theme import DARK, OKABE_ITO, rendered, themed
from validation.charts.descriptions import (
    curve_in_words,
    forest_in_words,
    heat_map_in_words,
    ranks_in_words,
    scatter_in_words,
    significance_in_words,
)
from validation.charts.forest import correlation_forest
from validation.charts.heat_map import correlation_heat_map
from validation.charts.ranks import HUMAN_RATINGS, system_rank_bump
from validation.charts.sample_size import power_curve
from validation.charts.scatter import density, human_metric_scatter
from validation.charts.significance import significance_matrix, upper_cells
from validation.charts.sizes import MOST_POINTS, MOST_WITH_NUMBERS

TAU = "Kendall's tau-b, by item"


def correlation(
    metric, value, low=nan, high=nan, part="", question="style", reason="", ceiling=0.7
):
    return {
        "metric": metric,
        "part": part,
        "question": question,
        "value": value,
        "ci_low": low,
        "ci_high": high,
        "ceiling": ceiling,
        "reason": reason,
        "n_used": 40,
    }


FOREST = pd.DataFrame(
    [
        correlation("NLL", 0.3, 0.2, 0.4),
        correlation("BLEU", -0.1, -0.2, 0.05),
        correlation("constant", nan, reason="the metric gave all the same score"),
    ]
)


def test_of(metric_a, metric_b, delta, p):
    names = {"metric_a": metric_a, "metric_b": metric_b, "delta": delta}
    return names | {"p": p, "p_holm": p, "p_bh": p, "reason": ""}


test_of.__test__ = False
TESTS = pd.DataFrame(
    [
        test_of("BLEU", "NLL", -0.4, 0.0004),
        test_of("BLEU", "SBERT", -0.1, 0.2),
        test_of("SBERT", "NLL", -0.3, nan),
    ]
)
RANKS = pd.DataFrame(
    [
        {"system": system, "by": by, "rank": float(rank), "mean": 5.0 - rank}
        for by, ranked in [(HUMAN_RATINGS, (1, 2, 3)), ("NLL", (1, 3, 2)), ("BLEU", (3, 1.5, 1.5))]
        for system, rank in zip(("alpha", "beta", "gamma"), ranked, strict=True)
    ]
)
CURVE = pd.DataFrame(
    {
        "n_items": [50, 100, 50, 100],
        "n_annotators": [1.0, 1.0, 3.0, 3.0],
        "delta": [0.1] * 4,
        "se": [0.1] * 4,
        "power": [0.3, 0.6, 0.7, 0.9],
    }
)
CELLS = pd.DataFrame({"human": [1.0, 2.0, 3.0, nan], "score": [0.2, nan, 0.9, 0.5]})
CHARTS = {
    "forest": correlation_forest(FOREST, statistic=TAU),
    "heat map": correlation_heat_map(FOREST, statistic=TAU),
    "scatter": human_metric_scatter(CELLS, human="style, mean rating", metric="NLL, score"),
    "density": human_metric_scatter(density(CELLS), human="style", metric="NLL"),
    "significance": significance_matrix(TESTS, order=["NLL", "SBERT", "BLEU"]),
    "ranks": system_rank_bump(RANKS),
    "curve": power_curve(CURVE, metric_a="NLL", metric_b="BLEU"),
}


def drawn(chart):
    """The rows of a chart's largest data set."""
    return max(chart.to_dict()["datasets"].values(), key=len)


def texts(chart):
    return json.dumps(chart.to_dict(), ensure_ascii=False)


@pytest.mark.parametrize("name", CHARTS)
def test_every_picture_can_be_taken_away_in_every_form(name):
    spec = themed(CHARTS[name])
    assert rendered(spec, "svg").startswith(b"<svg")
    assert rendered(spec, "png").startswith(b"\x89PNG")
    pdf = rendered(spec, "pdf")
    assert pdf.startswith(b"%PDF-")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type/Page\n") == 1 or b"/Count 1" in pdf


@pytest.mark.parametrize("name", CHARTS)
def test_a_picture_has_no_ground_of_its_own_and_turns_dark_with_the_page(name):
    assert "background" not in CHARTS[name].to_dict()
    assert themed(CHARTS[name], DARK)["background"] == DARK.ground


def test_a_forest_draws_each_metric_with_its_interval_and_ceiling():
    rows = {row["metric"]: row for row in drawn(CHARTS["forest"])}
    assert list(rows) == ["NLL", "BLEU", "constant"]
    assert (rows["NLL"]["value"], rows["NLL"]["ci_low"], rows["NLL"]["ci_high"]) == (0.3, 0.2, 0.4)
    assert rows["NLL"]["ceiling"] == 0.7
    assert '"ceiling"' in texts(CHARTS["forest"])


def test_a_forest_shows_zero_and_says_why_a_metric_has_no_point():
    spec = CHARTS["forest"].to_dict()
    rules = [layer for layer in spec["layer"] if layer["mark"]["type"] == "rule"]
    assert rules[0]["encoding"]["x"] == {"datum": 0}
    [undefined] = [row for row in drawn(CHARTS["forest"]) if row["value"] is None]
    assert undefined["explanation"] == "undefined: the metric gave all the same score"


def test_the_word_beside_a_ceiling_is_above_all_rows():
    marks = CHARTS["forest"].to_dict()["layer"]
    [word] = [mark for mark in marks if mark["encoding"].get("text") == {"value": "ceiling"}]
    assert word["encoding"]["y"] == {"value": 0}
    assert word["mark"]["dy"] < 0


def test_a_ceiling_does_not_cross_out_why_a_metric_is_undefined():
    data = CHARTS["forest"].to_dict()
    [tick] = [mark for mark in data["layer"] if mark["mark"]["type"] == "tick"]
    rows = data["datasets"][tick["data"]["name"]]
    assert [row["metric"] for row in rows] == ["NLL", "BLEU"]


def test_a_forest_without_any_defined_metric_is_drawn_empty():
    chart = correlation_forest(FOREST.tail(1).assign(ceiling=nan), statistic=TAU)
    assert rendered(themed(chart), "svg").startswith(b"<svg")


def test_conditions_of_a_forest_have_colours_of_their_own():
    parts = pd.concat([FOREST.assign(part=part) for part in ("calm", "angry")])
    chart = correlation_forest(parts, statistic=TAU)
    assert OKABE_ITO[0] in texts(chart)
    assert {row["part"] for row in drawn(chart)} == {"calm", "angry"}


def test_an_undefined_cell_of_a_heat_map_holds_a_dash():
    assert '"–"' in texts(CHARTS["heat map"])
    assert rendered(themed(CHARTS["heat map"]), "svg").decode().count(">–<") == 1


def test_a_large_heat_map_leaves_its_numbers_out():
    many = pd.DataFrame(
        [correlation("NLL", 0.3, question=f"q{n}") for n in range(MOST_WITH_NUMBERS + 1)]
    )
    assert ">0.30<" in rendered(themed(CHARTS["heat map"]), "svg").decode()
    assert (
        ">0.30<" not in rendered(themed(correlation_heat_map(many, statistic=TAU)), "svg").decode()
    )


def test_a_heat_map_of_many_metrics_and_few_questions_keeps_its_numbers():
    many = pd.DataFrame([correlation(f"m{n}", 0.3) for n in range(MOST_WITH_NUMBERS + 1)])
    drawing = rendered(themed(correlation_heat_map(many, statistic=TAU)), "svg").decode()
    assert drawing.count(">0.30<") == MOST_WITH_NUMBERS + 1


def test_a_scatter_leaves_out_candidates_without_both_values():
    assert [row["human"] for row in drawn(CHARTS["scatter"])] == [1.0, 3.0]


def test_beyond_two_thousand_points_a_scatter_counts_the_candidates_of_each_part():
    n = MOST_POINTS + 1
    cells = pd.DataFrame({"human": [k % 7 for k in range(n)], "score": [k % 11 for k in range(n)]})
    rows = drawn(human_metric_scatter(cells, human="style", metric="NLL"))
    assert sum(row["n"] for row in rows) == n
    assert len(rows) == 7 * 11
    assert len(drawn(human_metric_scatter(cells[1:], human="style", metric="NLL"))) == MOST_POINTS


def test_a_part_of_a_scatter_of_few_values_lies_around_each_of_them():
    parts = density(pd.DataFrame({"human": [1, 1, 2, 4], "score": [0.0, 0.0, 1.0, 1.0]}))
    low, high = parts["human_low"].tolist(), parts["human_high"].tolist()
    assert list(zip(low, high, strict=True)) == [(0.5, 1.5), (1.5, 3.0), (3.0, 5.0)]
    assert parts["n"].tolist() == [2, 1, 1]


def test_a_significance_matrix_sets_the_better_metric_against_the_worse():
    cells = upper_cells(TESTS, order=["NLL", "SBERT", "BLEU"], p="p_holm")
    rows = {(row.better, row.worse): row for row in cells.itertuples()}
    assert set(rows) == {("NLL", "BLEU"), ("SBERT", "BLEU"), ("NLL", "SBERT")}
    best = rows["NLL", "BLEU"]
    assert (best.delta, best.degree, best.text) == (0.4, "p < .001", "<.001")
    assert (rows["SBERT", "BLEU"].degree, rows["SBERT", "BLEU"].text) == ("p ≥ .05", ".200")
    assert (rows["NLL", "SBERT"].degree, rows["NLL", "SBERT"].text) == ("– undefined", "–")


@pytest.mark.parametrize("n_metrics", [3, MOST_WITH_NUMBERS + 1])
def test_a_pair_without_a_p_is_drawn_as_undefined_in_matrices_of_any_size(n_metrics):
    order = ["NLL", "SBERT", "BLEU", *(f"m{n}" for n in range(n_metrics - 3))]
    drawing = rendered(themed(significance_matrix(TESTS, order=order)), "svg").decode()
    assert drawing.count(">–<") == 1
    assert ">– undefined<" in drawing
    assert drawing.count("Adjusted (Holm): p ≥ .05") == 1


def test_a_significance_matrix_without_undefined_pairs_does_not_speak_of_them():
    drawing = rendered(
        themed(significance_matrix(TESTS[:2], order=["NLL", "SBERT", "BLEU"])), "svg"
    )
    assert "undefined" not in drawing.decode()


def test_a_bump_chart_names_the_systems_at_both_ends():
    svg = rendered(themed(CHARTS["ranks"]), "svg").decode()
    for name in ("alpha 1", "beta 2", "gamma 3", "1.5 beta, gamma", "3 alpha"):
        assert f">{name}<" in svg


def test_a_sample_size_curve_is_a_line_for_each_number_of_ratings():
    svg = rendered(themed(CHARTS["curve"]), "svg").decode()
    assert ">1 rating each<" in svg
    assert ">3 ratings each<" in svg
    assert ">Power to tell NLL from BLEU<" in svg
    assert ">Items in the study<" in svg


def test_every_picture_is_described_in_words():
    assert forest_in_words(FOREST, TAU) == (
        f"{TAU}: NLL 0.30 [0.20, 0.40]; BLEU -0.10 [-0.20, 0.05]. Ceiling 0.70; 1 undefined."
    )
    assert "from -0.10 (BLEU for style) to 0.30 (NLL for style); 1 undefined" in heat_map_in_words(
        FOREST, TAU
    )
    assert scatter_in_words(CELLS, "style", "NLL") == (
        "NLL against style, 2 candidates; their correlation is r = 1.00."
    )
    assert significance_in_words(TESTS) == (
        "1 of 2 pairs of metrics differ at 0.05, by adjusted p: NLL over BLEU."
    )
    assert ranks_in_words(RANKS) == (
        "By human ratings, from best to worst: alpha, beta, gamma. NLL is nearest to this order, "
        "BLEU farthest from it."
    )
    assert curve_in_words(CURVE) == (
        "With 1 rating each, 100 items reach a power of 60% only. With 3 ratings each, 100 items "
        "reach a power of 80%."
    )


def orders(**ranks: list[int]) -> str:
    rows = [
        {"by": by, "system": system, "rank": rank}
        for by, column in {"human ratings": [1, 2, 3], **ranks}.items()
        for system, rank in zip(("alpha", "beta", "gamma"), column, strict=True)
    ]
    return ranks_in_words(pd.DataFrame(rows)).removeprefix(
        "By human ratings, from best to worst: alpha, beta, gamma. "
    )


def test_metrics_that_have_the_order_of_people_are_all_named():
    assert orders(NLL=[1, 2, 3], BLEU=[1, 2, 3]) == "NLL, BLEU have this order."
    assert orders(NLL=[1, 2, 3]) == "NLL has this order."
    assert orders(NLL=[2, 1, 3], BLEU=[1, 3, 2]) == "The metrics are equally far from this order."
    assert orders(NLL=[1, 2, 3], BLEU=[1, 2, 3], chrf=[3, 2, 1]) == (
        "NLL, BLEU are nearest to this order, chrf farthest from it."
    )


def test_words_say_so_where_nothing_is_defined():
    assert forest_in_words(FOREST.tail(1), TAU) == f"{TAU} is defined for no metric."
    assert "no metric and question" in heat_map_in_words(FOREST.tail(1), TAU)
    assert significance_in_words(TESTS.tail(1)) == "No two metrics could be tested."
    assert ranks_in_words(RANKS.head(0)) == "There are no systems to rank."
    assert curve_in_words(CURVE.assign(power=nan)) == "The power is undefined at every size."

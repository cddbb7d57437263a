import json
import re
from math import nan

import pandas as pd
import pytest

from presentation.theme import SERIES, rendered, themed
from tests.codes import codes_of
from validation.charts import metrics, systems
from validation.charts.systems import (
    curve_in_words,
    forest_in_words,
    heat_map_in_words,
    ranks_in_words,
    scatter_in_words,
    significance_in_words,
)

TAU = "Kendall's tau-b, by item"


def correlation(
    metric, value, low=nan, high=nan, part="", question="style", reason="", ceiling=0.7
):
    row = {"metric": metric, "part": part, "question": question, "value": value}
    limits = {"ci_low": low, "ci_high": high, "ceiling": ceiling}
    return row | limits | {"reason": reason, "n_used": 40}


FOREST = pd.DataFrame(
    [
        correlation("NLL", 0.3, 0.2, 0.4),
        correlation("BLEU", -0.1, -0.2, 0.05),
        correlation("constant", nan, reason="the metric gave all the same score"),
    ]
)


TESTS = pd.DataFrame(
    [("BLEU", "NLL", -0.4, 0.0004), ("BLEU", "SBERT", -0.1, 0.2), ("SBERT", "NLL", -0.3, nan)],
    columns=["metric_a", "metric_b", "delta", "p"],
).assign(p_holm=lambda rows: rows["p"], p_bh=lambda rows: rows["p"], reason="")
RANKS = pd.DataFrame(
    [
        {"system": system, "by": by, "rank": float(rank), "mean": 5.0 - rank}
        for by, ranked in [
            (systems.HUMAN_RATINGS, (1, 2, 3)),
            ("NLL", (1, 3, 2)),
            ("BLEU", (3, 1.5, 1.5)),
        ]
        for system, rank in zip(("alpha", "beta", "gamma"), ranked, strict=True)
    ]
)
CURVE = pd.DataFrame(
    [(50, 1.0, 0.3), (100, 1.0, 0.6), (50, 3.0, 0.7), (100, 3.0, 0.9)],
    columns=["n_items", "n_annotators", "power"],
).assign(delta=0.1, se=0.1)
CELLS = pd.DataFrame({"human": [1.0, 2.0, 3.0, nan], "score": [0.2, nan, 0.9, 0.5]})
CHARTS = {
    "forest": metrics.correlation_forest(FOREST, statistic=TAU),
    "heat map": metrics.correlation_heat_map(FOREST, statistic=TAU),
    "scatter": systems.human_metric_scatter(CELLS, human="style, mean rating", metric="NLL, score"),
    "density": systems.human_metric_scatter(systems.density(CELLS), human="style", metric="NLL"),
    "significance": metrics.significance_matrix(TESTS, order=["NLL", "SBERT", "BLEU"]),
    "ranks": systems.system_rank_bump(RANKS),
    "curve": systems.power_curve(CURVE, metric_a="NLL", metric_b="BLEU"),
}


def drawn(chart):
    return max(chart.to_dict()["datasets"].values(), key=len)


def texts(chart):
    return json.dumps(chart.to_dict(), ensure_ascii=False)


@pytest.mark.parametrize("name", CHARTS)
def test_every_picture_can_be_taken_away_in_every_form_and_turns_dark_with_the_page(name):
    spec = themed(CHARTS[name])
    assert rendered(spec, "svg").startswith(b"<svg")
    assert rendered(spec, "png").startswith(b"\x89PNG")
    pdf = rendered(spec, "pdf")
    assert pdf.startswith(b"%PDF-")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type/Page\n") == 1 or b"/Count 1" in pdf
    assert "background" not in CHARTS[name].to_dict()
    page = themed(CHARTS[name], is_on_page=True)
    # Only the ends of a scale that Vega mixes are no variables; data are left as they are.
    assert not re.search("#[0-9a-f]{6}", json.dumps(page | {"datasets": None}))
    assert page["datasets"] == spec["datasets"]


def test_a_forest_draws_metrics_ceilings_and_conditions_or_nothing():
    rows = {row["metric"]: row for row in drawn(CHARTS["forest"])}
    assert list(rows) == ["NLL", "BLEU", "constant"]
    assert (rows["NLL"]["value"], rows["NLL"]["ci_low"], rows["NLL"]["ci_high"]) == (0.3, 0.2, 0.4)
    assert rows["NLL"]["ceiling"] == 0.7
    [undefined] = [row for row in rows.values() if row["value"] is None]
    assert undefined["explanation"].endswith(undefined["reason"])
    layers = CHARTS["forest"].to_dict()["layer"]
    rules = [layer for layer in layers if layer["mark"]["type"] == "rule"]
    assert rules[0]["encoding"]["x"] == {"datum": 0}
    data = CHARTS["forest"].to_dict()
    [word] = [mark for mark in data["layer"] if "value" in mark["encoding"].get("text", {})]
    assert word["encoding"]["y"] == {"value": 0}
    assert word["mark"]["dy"] < 0
    [tick] = [mark for mark in data["layer"] if mark["mark"]["type"] == "tick"]
    rows = data["datasets"][tick["data"]["name"]]
    assert [row["metric"] for row in rows] == ["NLL", "BLEU"]
    chart = metrics.correlation_forest(FOREST.tail(1).assign(ceiling=nan), statistic=TAU)
    assert rendered(themed(chart), "svg").startswith(b"<svg")
    parts = pd.concat([FOREST.assign(part=part) for part in ("calm", "angry")])
    chart = metrics.correlation_forest(parts, statistic=TAU)
    assert SERIES[0] in texts(chart)
    assert {row["part"] for row in drawn(chart)} == {"calm", "angry"}


def heat_map_svg(rows):
    return rendered(themed(metrics.correlation_heat_map(rows, statistic=TAU)), "svg").decode()


def test_heat_maps_scatters_and_matrices_show_what_is_undefined_many_or_better():
    small = heat_map_svg(FOREST)
    assert (small.count(">–<"), small.count(">0.30<")) == (1, 1)
    n = metrics.MOST_WITH_NUMBERS + 1
    large = heat_map_svg(
        pd.DataFrame([correlation("NLL", 0.3, question=f"q{k}") for k in range(n)])
    )
    assert ">0.30<" not in large
    narrow = heat_map_svg(pd.DataFrame([correlation(f"m{k}", 0.3) for k in range(n)]))
    assert narrow.count(">0.30<") == n
    n = metrics.MOST_POINTS + 1
    cells = pd.DataFrame({"human": [k % 7 for k in range(n)], "score": [k % 11 for k in range(n)]})
    rows = drawn(systems.human_metric_scatter(cells, human="style", metric="NLL"))
    assert sum(row["n"] for row in rows) == n
    assert len(rows) == 7 * 11
    assert (
        len(drawn(systems.human_metric_scatter(cells[1:], human="style", metric="NLL")))
        == metrics.MOST_POINTS
    )
    parts = systems.density(pd.DataFrame({"human": [1, 1, 2, 4], "score": [0.0, 0.0, 1.0, 1.0]}))
    low, high = parts["human_low"].tolist(), parts["human_high"].tolist()
    assert list(zip(low, high, strict=True)) == [(0.5, 1.5), (1.5, 3.0), (3.0, 5.0)]
    assert parts["n"].tolist() == [2, 1, 1]
    cells = metrics.upper_cells(TESTS, order=["NLL", "SBERT", "BLEU"], p="p_holm")
    rows = {(row.better, row.worse): row for row in cells.itertuples()}
    assert set(rows) == {("NLL", "BLEU"), ("SBERT", "BLEU"), ("NLL", "SBERT")}
    assert rows["NLL", "BLEU"].delta == 0.4
    assert [(row.degree, row.text) for row in rows.values()] == [
        ("p < .001", "<.001"),
        ("p ≥ .05", ".200"),
        ("– undefined", "–"),
    ]


@pytest.mark.parametrize("n_metrics", [3, metrics.MOST_WITH_NUMBERS + 1])
def test_a_pair_without_a_p_is_drawn_as_undefined_in_matrices_of_any_size(n_metrics):
    order = ["NLL", "SBERT", "BLEU", *(f"m{n}" for n in range(n_metrics - 3))]
    drawing = rendered(themed(metrics.significance_matrix(TESTS, order=order)), "svg").decode()
    assert drawing.count(">–<") == 1
    assert ">– undefined<" in drawing
    assert drawing.count("p ≥ .05") >= 1
    drawing = rendered(themed(metrics.significance_matrix(TESTS[:2], order=order)), "svg").decode()
    assert "undefined" not in drawing


def test_bumps_name_systems_at_both_ends_and_curves_have_a_line_for_each_number():
    svg = rendered(themed(CHARTS["ranks"]), "svg").decode()
    for name in ("alpha 1", "beta 2", "gamma 3", "1.5 beta, gamma", "3 alpha"):
        assert f">{name}<" in svg
    svg = rendered(themed(CHARTS["curve"]), "svg").decode()
    assert f">{systems.ratings_text(1.0)}<" in svg
    assert f">{systems.ratings_text(3.0)}<" in svg
    assert re.search(">[^<]*NLL[^<]*BLEU<", svg)


def test_every_picture_is_described_with_its_names_and_numbers():
    both, of_all = r"NLL|BLEU|-?\d\.\d\d|\b\d\b", "NLL 0.30 0.20 0.40 BLEU -0.10 -0.20 0.05 0.70 1"
    for text, pattern, named in (
        (forest_in_words(FOREST, TAU), both, of_all),
        (heat_map_in_words(FOREST, TAU), both, "3 1 -0.10 BLEU 0.30 NLL 1"),
        (scatter_in_words(CELLS, "style", "NLL"), r"NLL|style|\d[.\d]*\d|\d", "NLL style 2 1.00"),
        (significance_in_words(TESTS), r"NLL|BLEU|SBERT|\d[.\d]*\d|\d", "1 3 0.05 NLL BLEU"),
        (ranks_in_words(RANKS), "alpha|beta|gamma|NLL|BLEU", "alpha beta gamma NLL BLEU"),
        (curve_in_words(CURVE), r"\d+%?", "1 100 60% 3 100 80%"),
    ):
        assert re.findall(pattern, text.removeprefix(TAU)) == named.split()


def test_metrics_are_named_by_how_near_they_are_to_the_order_of_people():
    for ranks, code, named in (
        ({"NLL": [1, 2, 3], "BLEU": [1, 2, 3]}, "same_order", "NLL BLEU"),
        ({"NLL": [1, 2, 3]}, "same_order", "NLL"),
        ({"NLL": [2, 1, 3], "BLEU": [1, 3, 2]}, "equally_far", ""),
        ({"NLL": [1, 2, 3], "BLEU": [1, 2, 3], "chrf": [3, 2, 1]}, "nearest", "NLL BLEU chrf"),
    ):
        rows = [
            {"by": by, "system": system, "rank": rank}
            for by, column in {"human ratings": [1, 2, 3], **ranks}.items()
            for system, rank in zip(("alpha", "beta", "gamma"), column, strict=True)
        ]
        text = ranks_in_words(pd.DataFrame(rows))
        assert (text.code, re.findall("NLL|BLEU|chrf", text)) == (code, named.split())


def test_words_say_so_where_nothing_is_defined():
    texts = [
        forest_in_words(FOREST.tail(1), TAU),
        heat_map_in_words(FOREST.tail(1), TAU),
        significance_in_words(TESTS.tail(1)),
        ranks_in_words(RANKS.head(0)),
        curve_in_words(CURVE.assign(power=nan)),
    ]
    assert codes_of(texts) == ["undefined"] * 5

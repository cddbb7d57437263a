import json
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError

from annotation.exceptions import TableRefused
from metrics.exceptions import ColumnsUnfit
from stats.inference import looks, preferences_with_ties, rogan_gladen
from stats.inference.annotator_wins import Undecided
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.stats.worked_examples import worked_example
from tests.validation.validation_tables import written
from validation.analysis.rated_systems import ESTIMANDS, ORDERED

RATINGS = ("--item=item", "--annotator=annotator", "--value=value")
WHO = ("--item=item", "--annotator=who", "--value=value")
JUDGED = ("--human=human", "--judge=judge", "--item=item", "--system=system")
VERSIONS = ("--before=v1", "--after=v2")
PREFERRED = ("--first=one", "--second=two", "--winner=best")


def answer(*arguments: object) -> dict:
    return json.loads(command_output(*(str(a) for a in arguments), "--json"))


@pytest.fixture
def labels(tmp_path):
    inputs = worked_example(1)["inputs"]
    rows = [
        {"item": item, "annotator": name, "value": value, "cluster": inputs["clusters"][item]}
        for name, of in {**inputs["humans"], "gpt": inputs["judge"]}.items()
        for item, value in of.items()
    ]
    return written(tmp_path / "labels.csv", rows)


def test_alt_test_prints_published_numbers_and_reads_files_of_people_and_models(labels, tmp_path):
    options = ("--judge=gpt", "--epsilon=.15", "--min-items=25")
    found = answer("alt_test", labels, *RATINGS, *options)
    expected = worked_example(1)["expected"]
    assert found["winning_rate"] == expected["winning_rate"]
    assert found["advantage_probability"] == pytest.approx(expected["advantage_probability"])
    assert found["passes"] is True
    assert found["conclusion"] == "may_replace"
    assert set(found["controls"]) == {"constant", "shuffled"}
    assert [row["p_adjusted"] for row in found["annotators"]] == pytest.approx(
        expected["by_adjusted_p"]
    )
    assert {"annotator", "n", "mean_difference", "p"} <= set(found["annotators"][0])
    clustered = answer("alt_test", labels, *RATINGS, *options, "--cluster=cluster")
    assert clustered["annotators"][0]["p"] == pytest.approx(
        expected["annotators"][0]["p_clustered"]
    )
    first_line, *rest = command_output("alt_test", labels, *RATINGS, *options).splitlines()
    assert f"{found['winning_rate']:.2f}" in first_line
    assert len(rest) >= len(found["controls"]) + len(found["annotators"])
    with refused(ColumnsUnfit, "judge_unknown"):
        command_output("alt_test", labels, *RATINGS, "--judge=claude")
    inputs = worked_example(1)["inputs"]
    people, models = tmp_path / "human_annotations.json", tmp_path / "llm_annotations.json"
    people.write_text(json.dumps(inputs["humans"], indent=1))
    # Labels of another model are not used.
    other = dict.fromkeys(inputs["judge"], "a")
    models.write_text(json.dumps({"gpt": inputs["judge"], "gemini": other}))
    in_one_file = found
    found = answer("alt_test", people, f"--judge-file={models}", *options)
    reading = found.pop("reading")
    assert {**in_one_file, "reading": reading} == {**found, "reading": reading}
    n_labels = sum(map(len, inputs["humans"].values())) + len(inputs["judge"])
    assert reading["n_used"] == n_labels
    assert reading["n_rows"] == n_labels + len(other)
    with refused(ColumnsUnfit, "judge_unknown"):
        command_output("alt_test", people, *options)


@pytest.mark.parametrize(
    ("annotators", "n_items", "reason"),
    [("aJ", 40, Undecided.NO_JUDGE), ("abcJ", 9, Undecided.TOO_FEW_ANNOTATORS)],
)
def test_alt_test_concludes_nothing_from_too_little_data(tmp_path, annotators, n_items, reason):
    rows = [{"item": i, "who": who, "value": i % 3} for i in range(n_items) for who in annotators]
    path = written(tmp_path / "labels.csv", rows)
    found = answer("alt_test", path, *WHO, "--judge=J")
    assert (found["conclusion"], found["reason"]) == ("too_little_data", reason)
    assert found["winning_rate"] is None
    assert "nan" not in command_output("alt_test", path, *WHO, "--judge=J")


def test_prediction_powered_gives_each_system_and_every_difference_or_one_mean(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for item in range(200):
        base = rng.normal()
        for system, lift in (("A", 0.5), ("B", 0.0)):
            truth = base + lift + 0.3 * rng.normal()
            human = f"{truth:.4f}" if item < 60 else ""
            judge = f"{truth + 0.3 * rng.normal():.4f}"
            rows.append({"item": item, "system": system, "human": human, "judge": judge})
    path = written(tmp_path / "scores.csv", rows)
    found = answer("prediction_powered", path, *JUDGED)
    first = found["estimates"][0]
    keys = {"system", "value", "ci_low", "ci_high", "lambda", "n_labelled", "n", "effective_n"}
    assert keys | {"people_only"} <= set(first)
    assert (first["system"], first["n_labelled"], first["n"]) == ("A", 60, 200)
    assert first["effective_n"] > 100
    people = first["people_only"]
    assert first["ci_high"] - first["ci_low"] < people["ci_high"] - people["ci_low"]
    [pair] = found["differences"]
    assert (pair["a"], pair["b"]) == ("A", "B")
    assert pair["ci_low"] < 0.5 < pair["ci_high"]
    assert pair["p_adjusted"] < 0.001
    text = command_output("prediction_powered", path, *JUDGED)
    assert f"p = {pair['p_adjusted']:.4f} " in text
    inputs = worked_example(3)["inputs"]
    rows = [
        {"human": human, "judge": judge}
        for human, judge in zip(inputs["human"], inputs["judge_on_labelled"], strict=True)
    ]
    rows += [{"human": "", "judge": judge} for judge in inputs["judge_on_unlabelled"]]
    found = answer(
        "prediction_powered", written(tmp_path / "s.csv", rows), "--human=human", "--judge=judge"
    )
    expected = worked_example(3)["expected"]
    assert found["estimates"][0]["system"] is None
    assert found["estimates"][0]["value"] == pytest.approx(
        expected["ppi_plus_plus"]["estimate"], abs=1e-8
    )
    assert found["differences"] == []


@pytest.fixture
def lengths(tmp_path):
    rng = np.random.default_rng(5)
    rows = []
    for item in range(300):
        for system in "AB":
            length = rng.normal()
            truth = 3 + 0.5 * length + 0.5 * rng.normal()
            human = f"{truth:.4f}" if item < 40 else ""
            judge = f"{truth + 0.2 * rng.normal():.4f}"
            row = {"item": item, "system": system, "human": human, "judge": judge}
            rows.append(row | {"length": f"{length:.4f}"})
    return written(tmp_path / "lengths.csv", rows)


def test_prediction_powered_spends_the_error_over_its_looks_and_gives_quantiles(lengths):
    alone = answer("prediction_powered", lengths, *JUDGED)
    looked = answer("prediction_powered", lengths, *JUDGED, "--looks=5", "--look=2")
    assert "look" not in alone
    assert looked["look"]["level"] == pytest.approx(looks.confidence_at_look(2, 5))
    for one, other in zip(
        alone["estimates"] + alone["differences"],
        looked["estimates"] + looked["differences"],
        strict=True,
    ):
        ratio = (other["ci_high"] - other["ci_low"]) / (one["ci_high"] - one["ci_low"])
        assert 1.25 < ratio < 1.35
    [one], [other] = alone["differences"], looked["differences"]
    assert other["p"] == pytest.approx(min(1, one["p"] * 0.05 / (1 - looked["look"]["level"])))
    assert (looked["look"]["number"], looked["look"]["planned"]) == (2, 5)
    n_lines, n_looked = (
        len(command_output("prediction_powered", lengths, *JUDGED, *look).splitlines())
        for look in ((), ("--looks=5", "--look=2"))
    )
    assert n_looked == n_lines + 1
    found = answer("prediction_powered", lengths, *JUDGED, "--quantile=.5")
    assert found["estimand"] == "quantile 0.5"
    assert [row["system"] for row in found["estimates"]] == ["A", "B"]
    assert found["differences"] == []
    for row in found["estimates"]:
        people = row["people_only"]
        assert row["ci_low"] < 3 < row["ci_high"]
        assert row["ci_high"] - row["ci_low"] < people["ci_high"] - people["ci_low"]
    text = command_output("prediction_powered", lengths, *JUDGED, "--quantile=.5")
    assert text.startswith(f"A: {found['estimand']} ")
    few = answer("prediction_powered", lengths, *JUDGED, "--quantile=.95")["estimates"][0]
    assert (few["reason"], few["ci_low"]) == ("too_few_beyond_the_quantile", None)
    assert "nan" not in command_output("prediction_powered", lengths, *JUDGED, "--quantile=.95")
    for coefficient, truth in (("pearson", 0.7071), ("kendall", 0.5)):
        options = ("--correlation=length", f"--coefficient={coefficient}")
        found = answer("prediction_powered", lengths, *JUDGED, *options)
        assert found["estimand"] == f"{coefficient} with length"
        for row in found["estimates"]:
            assert row["ci_low"] < truth < row["ci_high"]
            assert row["effective_n"] > 60
    with refused(TableRefused, path=lengths):
        command_output("prediction_powered", lengths, *JUDGED, "--correlation=judge")


def test_prediction_powered_says_what_ratings_rise_by(lengths):
    found = answer("prediction_powered", lengths, *JUDGED, "--covariate=length")
    for row in found["estimates"]:
        intercept, slope = row["coefficients"]
        assert (intercept["name"], slope["name"]) == ("intercept", "length")
        assert slope["value"] == pytest.approx(0.5, abs=0.1)
        assert slope["ci_low"] < slope["value"] < slope["ci_high"]
        assert slope["ci_high"] - slope["ci_low"] < 0.2
        assert slope["p"] < 0.001
        assert row["lambda"] > 0.5
    text = command_output("prediction_powered", lengths, *JUDGED, "--covariate=length")
    assert "A: length +0." in text
    options = (*JUDGED, "--covariate=length", "--looks=3", "--look=1")
    found = answer("prediction_powered", lengths, *options)
    rows = [row for one in found["estimates"] for row in one["coefficients"]]
    assert len(rows) == 4
    # P goes by the level of the look, as the interval does.
    for row in rows:
        assert (row["p"] < 0.05) == (row["ci_low"] > 0 or row["ci_high"] < 0)


def test_options_that_do_not_fit_are_named():
    for command, options, named in (
        ("prediction_powered", (*JUDGED, "--looks=2", "--look=3"), ["--look"]),
        ("prediction_powered", (*JUDGED, "--quantile=.5", "--correlation=x"), ["--correlation"]),
        ("compare_systems", ("--item=one",), ["--annotator", "--system", "--value"]),
        ("judge_drift", (*VERSIONS, "--tolerance=nan"), ["--tolerance", "nan"]),
    ):
        with refused_naming(CommandError, *named):
            command_output(command, "none.csv", *options)


LABELS = [{"item": i, "who": who, "value": i % 3} for i in range(40) for who in "abcJ"]
OUTPUTS = [{"item": i // 4, "system": i % 2, "human": 3, "judge": i} for i in range(8)]
WINNERS = [{"one": "A", "two": "B", "best": winner} for winner in "AC"]
IN_CLUSTERS = [
    {"item": i, "who": who, "system": s, "value": i, "dialogue": i // 4}
    for i in range(8)
    for who in "ab"
    for s in "xy"
]


def test_a_row_that_cannot_be_used_is_refused_with_line_and_field(tmp_path):
    clustered = (*WHO, "--system=system", "--cluster=dialogue")
    moved = [*IN_CLUSTERS[:-1], IN_CLUSTERS[-1] | {"dialogue": 0}]
    twice = [{"item": at % 40, "v1": at % 4, "v2": at % 3} for at in range(41)]
    for command, options, rows, line, field in (
        ("prediction_powered", JUDGED, OUTPUTS, 4, "judge"),
        ("compare_systems", PREFERRED, WINNERS, 3, "best"),
        ("compare_systems", clustered, moved, 33, "dialogue"),
        ("judge_drift", (*VERSIONS, "--item=item"), twice, 42, None),
        ("judge_drift", VERSIONS, [{"v1": 1, "v2": 2}, {"v1": "good", "v2": 3}], 3, "v1"),
        ("alt_test", (*WHO, "--judge=J"), [*LABELS, LABELS[5]], 162, None),
        ("variance_components", WHO, [*LABELS, LABELS[5]], 162, None),
    ):
        path = written(tmp_path / "table.csv", rows)
        with refused(TableRefused, line=line, field=field):
            command_output(command, path, *options)


def test_rogan_gladen_prints_the_corrected_share():
    counts = ("--tp=27", "--fn=5", "--tn=22", "--fp=6", "--positives=131", "--n=220")
    found = answer("rogan_gladen", *counts)
    expected = worked_example(9)["expected"]
    assert found["value"] == pytest.approx(expected["estimate"])
    assert [found["ci_low"], found["ci_high"]] == pytest.approx(list(expected["lee2025"].values()))
    assert found["sensitivity"] == expected["sensitivity"]
    assert "0.606 [0.414, 0.812]" in command_output("rogan_gladen", *counts)
    with refused_naming(CommandError, "positives"):
        command_output("rogan_gladen", *counts[:-1], "--n=100")
    counts = ("--tp=0", "--fn=0", "--tn=9", "--fp=1", "--positives=2", "--n=10")
    found = answer("rogan_gladen", *counts)
    assert (found["reason"], found["value"]) == (rogan_gladen.Uninformative.NO_CALIBRATION, None)
    assert (found["sensitivity"], found["specificity"]) == (None, 0.9)
    assert "nan" not in command_output("rogan_gladen", *counts)


def test_compare_systems_compares_over_items_and_annotators_and_fits_davidsons_model(tmp_path):
    rng = np.random.default_rng(1)
    severity = rng.normal(size=8)
    rows = []
    for item in range(25):
        quality = rng.normal(size=3) + np.array([1, 0, 0])
        for system, annotator in np.ndindex(3, 8):
            value = round(quality[system] + severity[annotator] + rng.normal(), 3)
            named = {"item": item, "system": "ABC"[system], "annotator": annotator}
            rows.append(named | {"value": value})
    path = written(tmp_path / "ratings.csv", rows)
    found = answer("compare_systems", path, *RATINGS, "--system=system")
    assert found["systems"][0]["system"] == "A"
    assert {"system", "mean", "ci_low", "ci_high"} <= set(found["systems"][0])
    by_pair = {(row["a"], row["b"]): row for row in found["comparisons"]}
    assert by_pair["A", "B"]["p_adjusted"] < 0.05
    assert by_pair["B", "C"]["p"] > 0.05
    assert by_pair["A", "B"]["test"] == "quasi-f"
    assert by_pair["A", "B"]["estimand"] == ESTIMANDS["quasi-f"]
    conclusions = [by_pair[pair]["conclusion"] for pair in (("A", "B"), ("B", "C"))]
    assert conclusions == ["better", "undecided"]
    rows = []
    for pair in worked_example(14)["inputs"]["pairs"]:
        for count, winner in (("a_wins", pair["a"]), ("b_wins", pair["b"]), ("ties", "")):
            rows += [{"one": pair["a"], "two": pair["b"], "best": winner}] * pair[count]
    path = written(tmp_path / "pairs.csv", rows)
    found = answer("compare_systems", path, *PREFERRED)
    expected = worked_example(14)["expected"]
    assert found["abilities"] == pytest.approx(expected["davidson"]["abilities"], abs=1e-4)
    assert found["tie_parameter"] == pytest.approx(expected["davidson"]["nu"], abs=1e-4)
    assert (found["model"], found["converged"]) == ("davidson", True)
    assert len(found["comparisons"]) == 6
    other = answer("compare_systems", path, *PREFERRED, "--model=rao_kupper")
    assert other["abilities"] == pytest.approx(expected["rao_kupper"]["abilities"], abs=1e-4)
    path = written(tmp_path / "p.csv", [{"one": "A", "two": "B", "best": "A"}] * 5)
    found = answer("compare_systems", path, *PREFERRED)
    assert (found["converged"], found["abilities"]) == (False, {"A": None, "B": None})
    assert (found["reason"], found["comparisons"]) == (preferences_with_ties.Reason.UNBEATEN, [])
    marked = answer("compare_systems", path, *PREFERRED, "--half-wins")
    assert marked["converged"] is True
    assert marked["smoothed"] == ["A"]


def test_variance_components_prints_components_and_plans_unless_there_is_no_noise(tmp_path):
    example = worked_example(13)
    table = np.array(example["inputs"]["ratings_item_system_rater"])
    rows = [
        {"item": i, "system": s, "annotator": r, "value": table[i, s, r]}
        for i, s, r in np.ndindex(table.shape)
    ]
    path = written(tmp_path / "r.csv", rows)
    found = answer("variance_components", path, *RATINGS, "--system=system")
    assert found["components"]["item_system"] == pytest.approx(
        example["expected"]["components"]["item_system"]
    )
    assert found["components"]["item_annotator"] == 0
    assert found["estimates"]["item_annotator"] < 0
    assert found["plans"][0]["n_items"] == 6
    text = command_output("variance_components", path, *RATINGS, "--system=system")
    assert f"{found['plans'][0]['se_of_difference']:.4g}" in text
    rows = [{"item": i, "who": who, "value": i % 3 + 0.1} for i in range(40) for who in "abc"]
    found = answer("variance_components", written(tmp_path / "alike.csv", rows), *WHO)
    assert found["components"]["annotator"] == found["components"]["residual"] == 0
    assert found["plans"] == []
    assert min(found["estimates"].values()) >= 0


def test_plan_rounds_up_states_its_assumptions_and_refuses_what_it_cannot_compute():
    for arguments, n in (
        (("correlation", "--rho=-.281", "--power=.9"), 129),
        (("correlation-width", "--rho=.5", "--width=.2"), 219),
        (("kappa", "--kappa=.8", "--null=.6", "--prevalence=.3"), 149),
        (("kappa", "--kappa=.7", "--null=.5", "--margins", "0.2", "0.3", "0.5"), 98),
        (("icc", "--icc=.8", "--null=.6", "--raters=2"), 39),
        (("icc-width", "--icc=.8", "--width=.2", "--raters=3"), 36),
        (("difference", "--difference=.5", "--sd=1"), 34),
    ):
        found = answer("plan", *arguments)
        assert found["n"] == n
        assert found["n_exact"] <= n
        assert found["assumptions"]["alpha"] == 0.05
        assert command_output("plan", *arguments).startswith(f"{n} items")
    for arguments, named in (
        (("kappa", "--kappa=.8", "--prevalence=.3"), ["--null"]),
        (("correlation", "--rho=1e-9"), []),
        (("difference", "--difference=1e-12", "--sd=1e10"), []),
    ):
        with refused_naming(CommandError, *named):
            command_output("plan", *arguments)


def anchors(tmp_path, shift: float) -> Path:
    rng = np.random.default_rng(2)
    rows = []
    for item in range(60):
        human = rng.integers(1, 6)
        before = human + 0.3 * rng.normal()
        after = before + shift + 0.2 * rng.normal()
        rows.append({"item": item, "human": human, "v1": round(before, 3), "v2": round(after, 3)})
    return written(tmp_path / "anchors.csv", rows)


def test_judge_drift_stops_a_pipeline_and_honours_clusters(tmp_path, capsys):
    named = (*VERSIONS, "--human=human")
    steady = answer("judge_drift", anchors(tmp_path, 0.0), *named)
    assert steady["drifted"] is False
    moved = anchors(tmp_path, 0.4)
    with pytest.raises(SystemExit) as stopped:
        command_output("judge_drift", moved, *named)
    assert stopped.value.code == 3
    tolerated = answer("judge_drift", moved, *named, "--tolerance=.6")
    assert tolerated["drifted"] is False
    assert tolerated["shift"] == pytest.approx(0.4, abs=0.1)
    assert tolerated["distance_shift"] > 0
    rows = [{"dialogue": at // 5, "v1": at % 4, "v2": at % 4 + (at in (3, 4))} for at in range(60)]
    path = written(tmp_path / "anchors.csv", rows)
    one = answer("judge_drift", path, *VERSIONS, "--human=v1")
    other = answer("judge_drift", path, *VERSIONS, "--cluster=dialogue")
    assert other["n_clusters"] == 12
    assert other["ci_high"] > one["ci_high"]
    assert (one["note_codes"], one["n_moved"]) == (["few_moved"], 2)
    assert other["note_codes"] == ["few_anchors", "few_moved"]
    assert "nan" not in command_output("judge_drift", path, *VERSIONS[:1], "--after=v1")


def test_what_programs_write_for_no_number_is_refused_as_a_class(tmp_path):
    rows = [
        {"item": item, "annotator": who, "value": "inf" if (item, who) == (1, "b") else "yes"}
        for item in range(3)
        for who in ("a", "b", "j")
    ]
    path = written(tmp_path / "labels.csv", rows)
    for command, option in (("alt_test", "--judge=j"), ("agreement", "--level=nominal")):
        with refused(TableRefused, "no_label", line=6, field="value"):
            command_output(command, path, *RATINGS, option)


def test_systems_on_an_ordinal_scale_are_compared_by_who_is_rated_above(tmp_path):
    rng = np.random.default_rng(4)
    rows = [
        {"item": item, "annotator": who, "system": system, "value": round(min(max(value, 1), 5))}
        for item, who in np.ndindex(30, 8)
        for system, lead in (("A", 1.0), ("B", 0.0))
        for value in [2.5 + lead + rng.normal()]
    ]
    path, options = written(tmp_path / "ordinal.csv", rows), (*RATINGS, "--system=system")
    [row] = answer("compare_systems", path, *options, "--scale=ordinal")["comparisons"]
    assert row["test"] == "order-quasi-f"
    assert row["delta"] == pytest.approx(row["above"] - row["below"])
    assert row["above"] + row["below"] + row["tied"] == pytest.approx(1)
    assert row["odds_ratio"] == pytest.approx(row["above"] / row["below"])
    assert row["odds_low"] > 1
    assert row["p_adjusted"] < 0.05
    assert row["estimand"] == ORDERED
    [plain] = answer("compare_systems", path, *options)["comparisons"]
    assert row["mean_difference"] == plain["delta"]
    assert "odds_ratio" not in plain
    text = command_output("compare_systems", path, *options, "--scale=ordinal")
    assert f"{row['odds_ratio']:.3g}" in text
    with refused_naming(TableRefused, "value", 5):
        command_output("compare_systems", path, *options, "--scale=binary")


def test_systems_and_preferences_are_compared_over_clusters_of_items(tmp_path):
    rng = np.random.default_rng(9)
    rows = []
    for dialogue in range(12):
        lead = rng.normal()
        for turn in range(8):
            for who in ("a", "b", "c"):
                for system in ("one", "two"):
                    value = lead * (system == "one") + 0.3 * rng.normal()
                    named = {"dialogue": dialogue, "item": f"{dialogue}-{turn}", "who": who}
                    rows.append(named | {"system": system, "value": round(value, 3)})
    path = written(tmp_path / "turns.csv", rows)
    for scale in ("interval", "ordinal"):
        asked = (*WHO, "--system=system", f"--scale={scale}")
        [alone] = answer("compare_systems", path, *asked)["comparisons"]
        clustered = answer("compare_systems", path, *asked, "--cluster=dialogue")
        [pair] = clustered["comparisons"]
        assert pair["se"] > 2 * alone["se"]
        assert clustered["note_codes"] == ["few_items"]
    rng = np.random.default_rng(10)
    rows = [
        {"dialogue": d, "item": f"{d}-{turn}", "one": "A", "two": "B", "best": winner}
        for d in range(20)
        for winner in [rng.choice(["A", "B"])]
        for turn in range(6)
    ]
    path = written(tmp_path / "preferred.csv", rows)
    named = (*PREFERRED, "--item=item")
    [alone] = answer("compare_systems", path, *named)["comparisons"]
    [pair] = answer("compare_systems", path, *named, "--cluster=dialogue")["comparisons"]
    assert pair["se"] > 2 * alone["se"]

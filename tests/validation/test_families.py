import json
import re
from dataclasses import replace
from math import nan

import pytest

from error_codes import InvalidValue
from metrics.models import ScoringRun
from metrics.score_tables import import_scores
from metrics.scorers.registry import build
from metrics.study_scores import score_study
from presentation.html import document_html
from stats.significance import holm, significance_clusters
from tests.annotation.importing import command_output
from tests.codes import refused
from tests.validation.hostile import SETTINGS
from tests.validation.test_study_validation import SYSTEMS, judged_study, score
from tests.validation.validation_tables import random_tables
from validation.analysis import Settings, report_from_tables
from validation.documents.full import full_report
from validation.documents.methods import methods_paragraph
from validation.documents.metrics_answers import top_groups
from validation.documents.terms import family
from validation.results import TableResults
from validation.study_validation import PrimaryUnknown, study_report
from validation.versions import StoredResults, list_validations

QUICK = Settings(n_resamples=60, n_permutations=200, n_splits=2)


def declared(variants=("m2", "m3")):
    human, scores = random_tables(n_metrics=4)
    return human, scores.assign(is_primary=~scores["metric"].isin(variants))


def test_only_primary_metrics_are_tested_and_variants_are_shown_when_asked_for():
    report = report_from_tables(*declared(), QUICK)
    assert {(row.metric_a, row.metric_b) for row in report.comparisons} == {("m0", "m1")}
    for row in report.comparisons:
        assert row.p_holm == row.p_bh == row.p
    for row in report.correlations:
        is_variant = row.metric in ("m2", "m3")
        assert (row.rank is None, row.cluster is None) == (is_variant, is_variant)
        assert row.value is not None
    assert {row.rank for row in report.correlations} <= {None, 1.0, 1.5, 2.0}
    assert {row.metric for row in report.sensitivity} == {"m0", "m1"}
    for with_variants, metrics in ((False, {"m0", "m1"}), (True, {"m0", "m1", "m2", "m3"})):
        content = TableResults("t", report, with_variants=with_variants).content()
        for name in ("correlations", "disagreements", "worst"):
            assert {row["metric"] for row in content[name]} == metrics, name
        assert {one["metric"] for row in content["systems"] for one in row["metrics"]} == metrics
        assert {one["metric"] for one in content["inputs"]["score_sets"]} == metrics


def test_a_variant_changes_no_other_number():
    human, scores = declared()
    alone = report_from_tables(human, scores[scores["is_primary"]], QUICK)
    beside = report_from_tables(human, scores, QUICK)

    def number(row):
        return (row.metric_a, row.level, row.coefficient, row.delta, row.p, row.p_holm, row.p_bh)

    assert list(map(number, beside.comparisons)) == list(map(number, alone.comparisons))


def test_the_family_can_be_chosen_by_name():
    chosen = Settings(n_resamples=60, n_permutations=200, n_splits=2, primary=("m1", "m2", "m3"))
    report = report_from_tables(*declared(), chosen)
    [*tests] = [r for r in report.comparisons if (r.level, r.coefficient) == ("item", "kendall")]
    assert {(row.metric_a, row.metric_b) for row in tests} == {
        ("m1", "m2"),
        ("m1", "m3"),
        ("m2", "m3"),
    }
    assert [row.p_holm for row in tests] == pytest.approx(holm([row.p for row in tests]))


MEASURE = {"scope": "all", "level": "item", "coefficient": "kendall"}


def results_with(values, p_values):
    human, scores = random_tables(n_metrics=len(values))
    report = report_from_tables(human, scores, QUICK)

    def is_of(row):
        return all(getattr(row, name) == value for name, value in MEASURE.items())

    ranks = significance_clusters(
        {name: nan if value is None else value for name, value in values.items()},
        {pair: nan if p is None else p for pair, p in p_values.items()},
    )
    correlations = tuple(
        replace(row, value=values[row.metric], cluster=ranks.get(row.metric))
        for row in report.correlations
        if is_of(row)
    )
    comparisons = tuple(
        replace(row, p_holm=p_values[row.metric_a, row.metric_b])
        for row in report.comparisons
        if is_of(row)
    )
    return TableResults("t", replace(report, correlations=correlations, comparisons=comparisons))


@pytest.mark.parametrize(
    ("p_values", "group"),
    [
        # m2 does not differ from the greatest, though m1, which lies between them, does.
        ({("m0", "m1"): 0.01, ("m0", "m2"): 0.2, ("m1", "m2"): 0.3}, ["m0", "m2"]),
        # m2 differs from m1 alone, which is not the greatest.
        ({("m0", "m1"): 0.9, ("m0", "m2"): 0.2, ("m1", "m2"): 0.01}, ["m0", "m1", "m2"]),
        ({("m0", "m1"): 0.01, ("m0", "m2"): 0.049, ("m1", "m2"): 0.3}, ["m0"]),
        ({("m0", "m1"): 0.05, ("m0", "m2"): 0.01, ("m1", "m2"): 0.3}, ["m0", "m1"]),
        # What could not be tested does not differ.
        ({("m0", "m1"): None, ("m0", "m2"): 0.01, ("m1", "m2"): None}, ["m0", "m1"]),
    ],
)
def test_the_top_group_has_every_metric_that_does_not_differ_from_the_greatest(p_values, group):
    results = results_with({"m0": 0.5, "m1": 0.4, "m2": 0.3}, p_values)
    groups = [[row.metric for row in rows] for rows in top_groups(results, **MEASURE).values()]
    assert groups == [group] * len(results.questions)


def test_a_metric_without_a_value_is_in_no_top_group():
    p_values = {("m0", "m1"): 0.2, ("m0", "m2"): None, ("m1", "m2"): None}
    results = results_with({"m0": 0.4, "m1": 0.5, "m2": None}, p_values)
    groups = [[row.metric for row in rows] for rows in top_groups(results, **MEASURE).values()]
    assert groups == [["m1", "m0"]] * len(results.questions)


@pytest.mark.slow
def test_a_report_says_of_what_its_tests_are():
    results = TableResults("t", report_from_tables(*declared(), QUICK))
    text = family(results.all_inputs).removesuffix(".")
    assert re.findall(r"\d+", text) == ["2", "1", "2"]  # metrics, pairs, variants
    assert f"{text} (m0 and m1;" in methods_paragraph(results.settings, results.all_inputs)
    document = full_report(results, title="t")
    [table] = [t for t in document.tables if t.name == "comparisons-q1"]
    assert text in table.note
    assert text in document_html(document)
    assert SETTINGS.primary == ()


@pytest.mark.django_db
def test_a_scorer_declares_what_of_it_was_chosen():
    study = judged_study()
    score(study)
    score_study(study=study, scorer=build("length"))
    runs = dict(ScoringRun.objects.of(study).values_list("metric", "is_primary"))
    assert runs == {"m": True, "length": True, "length_characters": False}
    report = study_report(study, QUICK)
    assert [one.metric for one in report.inputs.primary] == ["m", "length"]
    assert {(row.metric_a, row.metric_b) for row in report.comparisons} == {("m", "length")}


@pytest.mark.django_db
def test_a_family_of_metrics_without_scores_is_refused():
    study = judged_study()
    score(study)
    with refused(PrimaryUnknown, unknown=["chrf"], known=["m"]):
        study_report(study, replace(QUICK, primary=("m", "chrf")))
    with refused(PrimaryUnknown, unknown=["chrf"]):
        command_output("validate_study", "judged", primary=["chrf"])
    human, scores = declared()
    with refused(InvalidValue, "primary_unknown"):
        report_from_tables(human, scores, replace(QUICK, primary=("m1", "chrf")))


@pytest.mark.django_db
def test_the_command_says_variants_when_asked_for():
    study = judged_study()
    score(study)
    score_study(study=study, scorer=build("length"))
    options = {"resamples": 20, "permutations": 20}
    lines = command_output("validate_study", "judged", **options)
    assert "length_characters" not in lines
    assert family(StoredResults(list_validations(study).get()).all_inputs) in lines
    options["variants"] = True
    assert "length_characters" in command_output("validate_study", "judged", **options)
    report = json.loads(command_output("validate_study", "judged", json=True, **options))
    assert {row["metric"] for row in report["correlations"]} == {"m", "length", "length_characters"}
    assert {row["metric_b"] for row in report["comparisons"]} == {"length"}


@pytest.mark.django_db
def test_an_imported_file_of_a_scorers_outputs_declares_them(tmp_path):
    study = judged_study()
    rows = [
        f"d0,{system},{metric},s|v:1,{number}"
        for metric in ("rougeL", "rougeL_precision", "bleu")
        for number, system in enumerate(SYSTEMS)
    ]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(["item,candidate,metric,signature,value", *rows]) + "\n")
    import_scores(study=study, path=path)
    runs = dict(ScoringRun.objects.of(study).values_list("metric", "is_primary"))
    assert runs == {"rougeL": True, "rougeL_precision": False, "bleu": True}

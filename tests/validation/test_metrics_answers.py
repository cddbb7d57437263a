import json
import re
from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd
import pytest
from django.utils.translation import gettext

from error_codes import InvalidValue
from metrics import models, score_tables, study_scores
from metrics.scorers.registry import build
from presentation import numbers, writers
from stats.ceilings import NoCeiling
from stats.significance import holm, significance_clusters
from tests.annotation.importing import command_output
from tests.codes import codes_of, refused
from tests.validation.hostile import SETTINGS as HOSTILE
from tests.validation.test_study_validation import SYSTEMS, judged_study, score
from tests.validation.validation_tables import random_tables
from validation.analysis import Settings, report_from_tables
from validation.analysis.ceilings import REASONS
from validation.analysis.human_results import QuestionScale, question_result
from validation.analysis.records import CeilingRecord, ComparisonRecord
from validation.documents import full, methods, metric_tables, terms
from validation.documents.metrics_answers import metrics_answers, top_groups
from validation.management.commands.validate_study import lines_of
from validation.results import TableResults
from validation.study_validation import PrimaryUnknown, study_report
from validation.versions import StoredResults, list_validations

SETTINGS = Settings(levels=("item",), coefficients=("pearson",), n_resamples=200, n_splits=0)


def answer_of(strength):
    """Of a metric that follows the ratings so far, beside one that says nothing of them."""
    rng = np.random.default_rng(1)
    cells = pd.DataFrame(
        [{"item": f"i{i}", "system": f"s{s}"} for i in range(30) for s in range(4)]
    )
    truth = rng.normal(size=len(cells))
    human = cells.assign(question="q", annotator="a", value=truth)
    noise = rng.normal(size=(2, len(cells)))
    scores = pd.concat(
        cells.assign(metric=name, value=share * truth + noise[row])
        for row, (name, share) in enumerate((("near", strength), ("nothing", -0.2)))
    )
    [(_question, answer)] = metrics_answers(
        TableResults("study", report_from_tables(human, scores, SETTINGS))
    )
    return answer


def ceiling_answer(coefficient, *, level="item", steps=False):
    """Of a metric that follows the truth from afar, where three annotators rate it nearly alike."""
    settings = replace(SETTINGS, levels=(level,), coefficients=(coefficient,), n_splits=10)
    rng = np.random.default_rng(1)
    rows = [(f"i{i}", f"s{s}") for i in range(40) for s in range(5)]
    cells = pd.DataFrame(rows, columns=["item", "system"])
    truth = rng.normal(size=len(cells)) + 2 * (cells["system"] == "s0").to_numpy()
    people = [truth + rng.normal(0, 0.3, len(cells)) for _ in range(3)]
    people = [(value > 0).astype(float) for value in people] if steps else people
    human = pd.concat(
        cells.assign(question="q", annotator=f"a{n}", value=value) for n, value in enumerate(people)
    )
    scores = cells.assign(metric="far", value=truth + rng.normal(0, 2, len(cells)))
    [(_question, answer)] = metrics_answers(
        TableResults("study", report_from_tables(human, scores, settings))
    )
    return answer


def test_the_ceiling_speaks_of_these_annotators_and_two_values_have_none():
    answer = ceiling_answer("pearson")
    assert answer.below_ceiling.code == "below_ceiling"
    assert ceiling_answer("kendall").below_ceiling.code == "below_ceiling_of_ties"
    # Means of systems are not equal.
    of_systems = ceiling_answer("kendall", level="system")
    assert getattr(of_systems.below_ceiling, "code", "below_ceiling") == "below_ceiling"
    low = replace(answer, ceiling=replace(answer.ceiling, attainable=0.1))
    codes = [{*codes_of(one.ceiling_sentences)} for one in (low, answer)]
    assert codes[0] - codes[1] == {"above_ceiling"} < codes[0] >= {"ceiling_interval"}
    assert of_systems.ceiling.attainable is not None
    assert "ceiling_interval" not in codes_of(of_systems.ceiling_sentences)
    answer = ceiling_answer("acc_eq", steps=True)
    assert answer.ceiling.split_half > 0.6
    assert answer.ceiling.reason == REASONS[NoCeiling.TIED]
    assert codes_of(answer.ceiling_sentences) == ["ceiling_unknown"]
    assert answer_of(-0.1).answer.code == "chance"
    best = answer_of(2.0).answer
    assert best.code == "best"
    assert "near" in best


FEW_DRAWS = Settings(n_resamples=60, n_permutations=60, n_splits=10)
CUT_AT_TWO = gettext(terms.CUT_DIFFERENCES) % {"least": "\N{MINUS SIGN}2", "most": "2"}


def results_of(n_items, *, seed=0, settings=FEW_DRAWS):
    return TableResults(
        "few", report_from_tables(*random_tables(n_items=n_items, seed=seed), settings)
    )


def test_intervals_of_three_items_end_where_differences_do_and_those_of_many_are_kept():
    results = results_of(3, seed=2)
    records = results.rows(
        ComparisonRecord, scope="all", level=results.level, coefficient=results.coefficient
    )
    assert max(record.ci_high for record in records) > 2  # as it is computed
    table = metric_tables.comparisons_table(results, "q")
    differences = [row[2] for row in table.rows]
    assert {-2 <= cell.low <= cell.high <= 2 for cell in differences} == {True}
    assert CUT_AT_TWO in table.note
    ceilings = results.rows(CeilingRecord)
    may_be_none = [one.attainable_low is not None and one.attainable_low <= 0 for one in ceilings]
    assert any(may_be_none)
    table = metric_tables.ceilings_table(results)
    without = [cell.low is None and cell.high is None for cell in [row[-1] for row in table.rows]]
    assert all(gone for gone, none in zip(without, may_be_none, strict=True) if none)
    assert str(metric_tables.NO_SHARE_INTERVAL) in table.full_note
    results = results_of(60)
    table = metric_tables.comparisons_table(results, "q")
    records = results.rows(
        ComparisonRecord, scope="all", level=results.level, coefficient=results.coefficient
    )
    assert [(row[2].low, row[2].high) for row in table.rows] == [
        (record.ci_low, record.ci_high) for record in records
    ]
    assert CUT_AT_TWO not in table.note
    rows = zip(results.rows(CeilingRecord), metric_tables.ceilings_table(results).rows, strict=True)
    sure = [row[-1] for one, row in rows if one.level != "system"]
    assert len(sure) == 6
    assert all(share.low < share.value < share.high for share in sure)


@pytest.mark.parametrize(
    ("coefficient", "limits"),
    [("kendall", (-2.0, 2.0)), ("pearson", (-2.0, 2.0)), ("acc_eq", (-1.0, 1.0))],
)
def test_shares_of_pairs_lie_no_further_apart_than_one(coefficient, limits):
    assert terms.difference_within(0.4, (-5.44, 4.29), coefficient) == limits
    assert terms.difference_within(None, (None, None), coefficient) == (None, None)


def judgments(values: list[float]) -> pd.DataFrame:
    rows = range(len(values))
    return pd.DataFrame(
        {
            "item": [f"item {row // 2}" for row in rows],
            "candidate": [f"candidate {row}" for row in rows],
            "system": ["meadow", "harbour"] * (len(values) // 2),
            "annotator": "ann",
            "value": values,
        }
    )


def counts(scale: QuestionScale, values: list[float]) -> list[tuple[str, int]]:
    bins = question_result(scale, judgments(values), []).bins
    return [(one.label, one.n) for one in bins if one.system == "meadow"]


@pytest.mark.parametrize("level", ["interval", "ordinal"])
def test_whole_numbers_of_a_short_scale_have_a_bin_each(level: str) -> None:
    """Tenths of seven values would leave gaps that nobody answered around."""
    answered = counts(QuestionScale("quality", "line", level, 1.0, 7.0), [1, 2, 3, 2, 7, 2, 7, 2])
    assert answered == [
        ("1", 1), ("2", 0), ("3", 1), ("4", 0), ("5", 0), ("6", 0), ("7", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(("high", "values"), [(7.0, [1.5, 2, 3, 2]), (100.0, [20, 30, 40, 50])])
def test_other_values_are_counted_by_tenths_of_the_scale(high: float, values: list[float]) -> None:
    assert len(counts(QuestionScale("quality", "line", "interval", 1.0, high), values)) == 10


def test_a_list_of_many_names_ends_with_how_many_others_there_are():
    for names, text in (
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "a, b and 2 others"),
        (list("abcdefgh"), "a, b and 6 others"),
    ):
        assert numbers.shorten_names(names) == text


def test_an_unreliable_ceiling_is_said_to_be_so_on_the_page_in_tables_and_lines():
    settings = replace(SETTINGS, n_splits=5)
    rng = np.random.default_rng(2)
    cells = pd.DataFrame(
        [(f"i{i}", f"s{s}") for i in range(40) for s in range(5)], columns=["item", "system"]
    )
    truth = rng.normal(4.5, 1, size=len(cells))
    for shift, expected in ((0.0, "top_heavy_scale"), (-1.5, None)):
        people = [truth + shift + rng.normal(0, 0.4, len(cells)) for _ in range(3)]
        human = pd.concat(
            cells.assign(question="q", annotator=f"a{n}", value=value.round().clip(1, 5))
            for n, value in enumerate(people)
        )
        scores = cells.assign(metric="far", value=truth + rng.normal(0, 2, len(cells)))
        results = TableResults("study", report_from_tables(human, scores, settings))
        [ceiling] = results.rows(CeilingRecord)
        assert ceiling.warning == expected
        [(_question, answer)] = metrics_answers(results)
        is_warned = expected is not None
        assert ("ceiling_unreliable" in codes_of(answer.ceiling_sentences)) == is_warned
        warnings = list(metric_tables.ceiling_warnings([ceiling]))
        assert codes_of(warnings) == ["ceiling_unreliable"] * is_warned
        assert all(warning in metric_tables.ceilings_table(results).note for warning in warnings)
        assert all(f"Note: {warning}" in lines_of(results) for warning in warnings)


QUICK = Settings(n_resamples=60, n_permutations=200, n_splits=2)


def declared(variants=("m2", "m3")):
    human, scores = random_tables(n_metrics=4)
    return human, scores.assign(is_primary=~scores["metric"].isin(variants))


def test_variants_are_shown_when_asked_for_and_the_family_can_be_chosen_by_name():
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
    human, scores = declared()
    alone = report_from_tables(human, scores[scores["is_primary"]], QUICK)
    beside = report_from_tables(human, scores, QUICK)

    def number(row):
        return (row.metric_a, row.level, row.coefficient, row.delta, row.p, row.p_holm, row.p_bh)

    assert list(map(number, beside.comparisons)) == list(map(number, alone.comparisons))
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


def test_the_top_group_has_every_metric_that_does_not_differ_from_the_greatest():
    for p_values, group in (
        # m2 does not differ from the greatest, though m1, which lies between them, does.
        ({("m0", "m1"): 0.01, ("m0", "m2"): 0.2, ("m1", "m2"): 0.3}, ["m0", "m2"]),
        # m2 differs from m1 alone, which is not the greatest.
        ({("m0", "m1"): 0.9, ("m0", "m2"): 0.2, ("m1", "m2"): 0.01}, ["m0", "m1", "m2"]),
        ({("m0", "m1"): 0.01, ("m0", "m2"): 0.049, ("m1", "m2"): 0.3}, ["m0"]),
        ({("m0", "m1"): 0.05, ("m0", "m2"): 0.01, ("m1", "m2"): 0.3}, ["m0", "m1"]),
        # What could not be tested does not differ.
        ({("m0", "m1"): None, ("m0", "m2"): 0.01, ("m1", "m2"): None}, ["m0", "m1"]),
    ):
        results = results_with({"m0": 0.5, "m1": 0.4, "m2": 0.3}, p_values)
        groups = [[row.metric for row in rows] for rows in top_groups(results, **MEASURE).values()]
        assert groups == [group] * len(results.questions)
    p_values = {("m0", "m1"): 0.2, ("m0", "m2"): None, ("m1", "m2"): None}
    results = results_with({"m0": 0.4, "m1": 0.5, "m2": None}, p_values)
    groups = [[row.metric for row in rows] for rows in top_groups(results, **MEASURE).values()]
    assert groups == [["m1", "m0"]] * len(results.questions)


@pytest.mark.slow
def test_a_report_says_of_what_its_tests_are():
    results = TableResults("t", report_from_tables(*declared(), QUICK))
    text = terms.family(results.all_inputs).removesuffix(".")
    assert re.findall(r"\d+", text) == ["2", "1", "2"]  # metrics, pairs, variants
    assert f"{text} (m0 and m1;" in methods.methods_paragraph(results.settings, results.all_inputs)
    document = full.full_report(results, title="t")
    [table] = [t for t in document.tables if t.name == "comparisons-q1"]
    assert text in table.note
    assert text in writers.document_html(document)
    assert HOSTILE.primary == ()


@pytest.mark.django_db
def test_a_scorer_declares_its_main_output_and_the_command_shows_variants_when_asked_for():
    study = judged_study()
    score(study)
    with refused(PrimaryUnknown, unknown=["chrf"], known=["m"]):
        study_report(study, replace(QUICK, primary=("m", "chrf")))
    with refused(PrimaryUnknown, unknown=["chrf"]):
        command_output("validate_study", "judged", primary=["chrf"])
    human, scores = declared()
    with refused(InvalidValue, "primary_unknown"):
        report_from_tables(human, scores, replace(QUICK, primary=("m1", "chrf")))
    study_scores.score_study(study=study, scorer=build("length"))
    runs = dict(models.ScoringRun.objects.of(study).values_list("metric", "is_primary"))
    assert runs == {"m": True, "length": True, "length_characters": False}
    report = study_report(study, QUICK)
    assert [one.metric for one in report.inputs.primary] == ["m", "length"]
    assert {(row.metric_a, row.metric_b) for row in report.comparisons} == {("m", "length")}
    options = {"resamples": 20, "permutations": 20}
    lines = command_output("validate_study", "judged", **options)
    assert "length_characters" not in lines
    assert terms.family(StoredResults(list_validations(study).get()).all_inputs) in lines
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
    score_tables.import_scores(study=study, path=path)
    runs = dict(models.ScoringRun.objects.of(study).values_list("metric", "is_primary"))
    assert runs == {"rougeL": True, "rougeL_precision": False, "bleu": True}

import json
import math
from dataclasses import replace
from statistics import mean

import pytest
from django.core.management import CommandError
from django.utils import timezone
from scipy import stats

from annotation import exceptions, study_facts
from annotation.models import Candidate, Item, Protocol, Submission
from annotation.protocols.versions import freeze
from metrics.exceptions import NothingToValidate
from metrics.stored_scores import write_scores
from stats.correlation import Reason
from tests.annotation import studies
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.validation.validation_tables import content_of
from validation.analysis import Settings
from validation.study_validation import study_report

pytestmark = pytest.mark.django_db

SYSTEMS = ("alpha", "beta", "gamma", "delta")
# By item: what Ann gave and what Bob gave each system, and the metric's score of it.
ANN = [[10, 40, 70, 90], [20, 10, 60, 80], [55, 45, 35, 65]]
BOB = [[30, 20, 90, 70], [25, 35, 50, 85], [50, 60, 45, 70]]
SCORES = [[0.1, 0.3, 0.2, 0.9], [0.5, 0.1, 0.6, 0.7], [0.2, 0.8, 0.3, 0.6]]


def by_system(values):
    return dict(zip(SYSTEMS, values, strict=True))


def judged_study(slug="judged", ratings=(("Ann", ANN), ("Bob", BOB)), systems=SYSTEMS, **fields):
    study = studies.rating_study(slug, systems=systems, **fields)
    for person, values_of_items in ratings:
        for position, values in enumerate(values_of_items):
            studies.rate(study, person, f"d{position}", dict(zip(systems, values, strict=True)))
    return study


def score(study, table=SCORES, metric="m", leaving_out=(), systems=SYSTEMS, **options):
    values = {
        (f"d{position}", system): value
        for position, row in enumerate(table)
        for system, value in zip(systems, row, strict=True)
        if (f"d{position}", system) not in leaving_out
    }
    write_scores(study=study, metric=metric, signature=f"{metric}|v:1", values=values, **options)


def correlations(study, **options):
    return {
        (row.level, row.coefficient): replace(row, input="")
        for row in table(study, **options)
        if row.scope == "all"
    }


def table(study, **options):
    quick = {"n_resamples": 0, "n_permutations": 1, "n_splits": 0, "n_worst": 0}
    return study_report(study, Settings(**quick | options)).correlations


def means(*tables):
    return [[mean(cell) for cell in zip(*rows, strict=True)] for rows in zip(*tables, strict=True)]


@pytest.fixture(scope="module")
def study(stored_for_module):
    study = judged_study()
    score(study)
    return study


def test_a_report_has_every_level_and_coefficient_of_every_metric_and_question():
    study = judged_study("two", questions=("appropriateness", "style"))
    for position, values in enumerate(ANN):
        studies.rate(study, "Ann", f"d{position}", by_system(values), question="style")
    score(study, metric="first")
    score(study, metric="second")
    rows = [(row.question, row.level, row.coefficient, row.metric) for row in table(study)]
    assert rows == [
        (question, level, coefficient, metric)
        for question in ("appropriateness", "style")
        for level in Settings.levels
        for coefficient in Settings.coefficients
        for metric in ("first", "second")
    ]
    chosen = table(study, questions_of=(("first", ("style",)),))
    assert {(row.metric, row.question) for row in chosen} == {("first", "style")}


def test_submissions_count_unless_they_were_rejected(study):
    before = correlations(study)
    Submission.objects.update(status=Submission.Status.SUBMITTED)
    assert correlations(study) == before
    alone = judged_study("alone", ratings=[("Ann", ANN)])
    score(alone)
    bobs = Submission.objects.of(study).filter(annotator__pseudonym="Bob")
    bobs.update(status=Submission.Status.REJECTED)
    assert before != correlations(study) == correlations(alone)


def test_each_round_is_validated_by_itself():
    study = judged_study("rounds", ratings=[("Ann", ANN)])
    score(study)
    for position, values in enumerate(BOB):
        studies.rate(study, "Ann", f"d{position}", by_system(values), round=2)
    only_bob = judged_study("bob", ratings=[("Bob", BOB)])
    score(only_bob)
    assert correlations(study) != correlations(study, round=2) == correlations(only_bob)


def test_judged_candidates_without_a_score_are_left_out_and_counted():
    study = judged_study("gaps")
    score(study, leaving_out={("d0", "alpha"), ("d1", "beta")})
    write_scores(study=study, metric="m", signature="m|v:1", values={("d2", "gamma"): math.nan})
    correlation = correlations(study)["pooled", "pearson"]
    assert (correlation.n_rows, correlation.n_missing) == (9, 3)
    human = [
        cell
        for position, row in enumerate(means(ANN, BOB))
        for system, cell in by_system(row).items()
        if (position, system) not in {(0, "alpha"), (1, "beta"), (2, "gamma")}
    ]
    scores = [0.3, 0.2, 0.9, 0.5, 0.6, 0.7, 0.2, 0.8, 0.6]
    assert correlation.value == pytest.approx(stats.pearsonr(human, scores).statistic)


def test_scores_are_matched_by_candidate_and_those_without_judgments_have_no_part(study):
    before = correlations(study)
    unjudged = Item.objects.create(study=study, key="d9", position=9)
    Candidate.objects.create(item=unjudged, key="alpha", system="alpha", text="?")
    write_scores(study=study, metric="m", signature="m|v:1", values={("d9", "alpha"): 1.0})
    assert correlations(study) == before
    Candidate.objects.filter(key="delta").update(position=0)
    Candidate.objects.filter(key="alpha").update(position=3)
    for key, correlation in correlations(study).items():
        assert correlation.value == pytest.approx(before[key].value)


def test_conditions_are_validated_together_and_each_by_itself():
    study = judged_study("conditions", conditions=("calm", "angry", "calm"))
    score(study)
    rows = table(study, levels=("item",), coefficients=("kendall",))
    by_item = [
        stats.kendalltau(*rows).statistic for rows in zip(means(ANN, BOB), SCORES, strict=True)
    ]
    values_by_condition = {row.by: row.value for row in rows if row.scope != "mean_of_conditions"}
    assert values_by_condition == pytest.approx(
        {"": mean(by_item), "calm": mean([by_item[0], by_item[2]]), "angry": by_item[1]}
    )
    calm = judged_study("calm", conditions=("calm",))
    score(calm)
    assert {row.by for row in table(calm)} == {""}


def test_what_is_constant_is_named():
    constant = judged_study("constant", ratings=[("Ann", [[50] * 4] * 3)])
    score(constant)
    reasons = {row.reason for row in correlations(constant, n_resamples=50).values()}
    assert reasons == {Reason.CONSTANT_HUMAN, Reason.NO_DEFINED_ITEM}
    assert "undefined (constant_human)" in command_output("validate_study", "constant")


def test_alternatives_have_no_systems_and_are_correlated_without():
    study = studies.ticked_study()
    studies.tick(study, "Bob", "gown", {"coat"})
    products = [("boot", "clog"), ("boot", "pump"), ("boot", "flat"), ("gown", "skirt")]
    values = dict(zip([*products, ("gown", "coat")], [0.9, 0.7, 0.1, 0.2, 0.6], strict=True))
    write_scores(study=study, metric="cosine", signature="cosine|v:1", values=values)
    coefficients = correlations(study, n_resamples=50)
    expected = stats.pearsonr([1, 1, 0, 0, 0.5], list(values.values())).statistic
    assert coefficients["pooled", "pearson"].value == pytest.approx(expected)
    assert coefficients["item", "kendall"].n_used == 2
    assert coefficients["system", "pearson"].reason == Reason.TOO_FEW
    assert coefficients["system", "pearson"].n_rows == 0


def test_a_pool_may_hold_several_products_of_one_system():
    study = studies.alternatives_study(pools={"boot": ("a", "b", "c"), "gown": ("d", "e", "f")})
    for key, system in zip("abcdef", ["bm25", "bm25", "knn"] * 2, strict=True):
        Candidate.objects.filter(key=key).update(system=system)
    studies.tick(study, "Ann", "boot", {"a", "b"})
    studies.tick(study, "Ann", "gown", {"d"})
    values = {("boot" if key in "abc" else "gown", key): ord(key) / 7 for key in "abcdef"}
    write_scores(study=study, metric="m", signature="m|v:1", values=values)
    coefficients = correlations(study, n_resamples=50)
    # bm25's products were ticked more often (3 of 4) than knn's, and scored lower.
    assert coefficients["system", "pearson"].value == pytest.approx(-1)
    assert coefficients["system", "pearson"].n_systems == 2
    assert coefficients["item", "pearson"].n_used == 2


def test_without_judgments_or_scores_there_is_nothing_to_validate(study):
    with refused(NothingToValidate, "no_scores"):
        study_report(studies.rated_study())
    with refused(NothingToValidate, "no_judgments"):
        study_report(study, Settings(round=2))
    Submission.objects.update(status=Submission.Status.REJECTED)
    for empty in (
        study,
        studies.rating_study(n_items=0),
        studies.rating_study("unrated", n_items=2),
    ):
        with refused(NothingToValidate, "no_judgments"):
            study_report(empty)


def test_the_command_says_first_that_answers_are_simulated(study):
    content = json.loads(command_output("validate_study", "judged", resamples=50, json=True))
    assert content["simulation"] == ""
    studies.make_simulated(study)
    notice, best, *_ = command_output("validate_study", "judged", resamples=50).splitlines()
    assert notice == study_facts.simulation_notice(study) != ""
    assert str(study_facts.Raters.SIMULATED.named) in best
    content = json.loads(command_output("validate_study", "judged", resamples=50, json=True))
    assert content["simulation"] == notice


def test_the_command_prints_correlations_or_json_and_refuses_what_does_not_fit(study):
    best, *lines = command_output("validate_study", "judged", resamples=50).splitlines()
    assert best.startswith("appropriateness: ")
    notes = [line for line in lines if line.startswith("Note: ")]
    assert len(notes) == 1  # the ceilings are of few items
    assert len(lines) == len(list(Settings().measures())) + 1 + len(notes)
    value = correlations(study)["pooled", "pearson"].value
    assert f"{value:.3f} [" in lines[0]
    chosen = command_output("validate_study", "judged", resamples=50, metric=["m"]).splitlines()
    assert chosen[:-1] == lines[: len(chosen) - 1]
    with pytest.raises(CommandError):
        command_output("validate_study", "judged", resamples=50, question=["none"])
    assert lines[0].split()[:5] == ["appropriateness", "all", "m", "pooled", "pearson"]
    report = json.loads(command_output("validate_study", "judged", json=True, resamples=30, seed=5))
    assert (report["study"], report["version"], report["is_new"]) == ("judged", 2, True)
    settings = report["settings"]
    assert (settings["round"], settings["n_resamples"], settings["seed"]) == (1, 30, 5)
    computed = content_of(study_report(study, Settings(n_resamples=30, seed=5)))
    assert report == report | computed
    for option in (
        *("--resamples=-1", "--round=-1", "--seed=-1", "--seed=x"),
        *("--resamples=1000000000000", "--permutations=1000000000000", "--permutations=0"),
        *("--undefined=ignore", "--level=segment", "--plan=item:tau"),
    ):
        with refused_naming(CommandError, option.partition("=")[0]):
            command_output("validate_study", "judged", option)
    twice = ["--coefficient=kendall"] * 2 + ["--level=sample"] * 2 + ["--plan=sample:kendall"] * 2
    report = json.loads(command_output("validate_study", "judged", *twice, json=True, resamples=0))
    settings = report["settings"]
    assert (settings["coefficients"], settings["levels"]) == (["kendall"], ["item"])
    assert settings["planned"] == [["item", "kendall"]]


@pytest.fixture
def of_two_versions(study):
    first = freeze(study=study)
    second = Protocol.objects.create(
        study=study,
        number=2,
        document=first.document,
        fingerprint="2" * 16,
        frozen_at=timezone.now(),
    )
    for name, version in (("Ann", first), ("Bob", second)):
        Submission.objects.filter(annotator__pseudonym=name).update(protocol=version)
    return study


@pytest.mark.parametrize(("number", "person", "values"), [(1, "Ann", ANN), (2, "Bob", BOB)])
def test_a_version_of_the_protocol_is_validated_by_its_own_judgments(
    of_two_versions, number, person, values
):
    alone = judged_study("alone", ratings=((person, values),))
    score(alone)
    of_version = correlations(of_two_versions, protocol=number)
    assert {pair: row.value for pair, row in of_version.items()} == {
        pair: row.value for pair, row in correlations(alone).items()
    }
    of_all = correlations(of_two_versions)
    assert of_version["pooled", "pearson"].value != of_all["pooled", "pearson"].value


def test_the_command_validates_a_version_and_refuses_one_without_judgments(of_two_versions):
    slug, quick = of_two_versions.slug, ("--resamples", "20", "--permutations", "20", "--json")
    record = json.loads(command_output("validate_study", slug, "--protocol", "2", *quick))
    assert record["settings"]["protocol"] == 2
    with refused_naming(exceptions.ProtocolUnknown, slug, 3):
        command_output("validate_study", slug, "--protocol", "3", *quick)
    Submission.objects.filter(annotator__pseudonym="Bob").update(protocol=None)
    with refused(NothingToValidate, "no_judgments"):
        table(of_two_versions, protocol=2)

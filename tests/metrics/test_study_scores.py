import json
import math
from collections import Counter

import pytest
from django.db import IntegrityError

from accounts import models, teams
from annotation.exceptions import StudyUnknown
from annotation.models import Candidate, Study
from error_codes import InvalidValue
from metrics import exceptions, file_scores, study_files
from metrics.models import Score, ScoringRun
from metrics.scorers.errors import ModelUnavailableError, UntokenisedTextWarning
from metrics.scorers.interface import Score as Value, undefined
from metrics.scorers.registry import build
from metrics.stored_scores import write_scores
from metrics.study_scores import plan_scoring, score_study
from tests.annotation.importing import command_output
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import refused, refused_naming
from tests.metrics.counting import Constant, Counting, SwitchedOff

pytestmark = pytest.mark.django_db


def values(study):
    """Every score by metric, item and candidate, or its reason."""
    return {
        (row.metric, row.item, row.candidate): row.reason if math.isnan(row.value) else row.value
        for row in study_files.score_frame(study).itertuples()
    }


def test_every_candidate_gets_every_output_of_a_scorer_once():
    study = rating_study(n_items=2)
    result = score_study(study=study, scorer=Counting())
    assert (result.n_scored, result.n_known) == (4, 0)
    assert values(study) == {
        (metric, item, name): value
        for item in ("d0", "d1")
        for name in ("alpha", "beta")
        for metric, value in (("counting", len(f"{name} on {item}")), ("counting_words", 3))
    }
    before = list(Score.objects.order_by("pk").values_list())
    again = Counting()
    result = score_study(study=study, scorer=again)
    assert (result.n_scored, result.n_known, again.seen) == (0, 4, [])
    assert list(Score.objects.order_by("pk").values_list()) == before
    # Candidates that came later are scored then.
    item = study.items.first()
    Candidate.objects.create(item=item, key="gamma", system="gamma", text="late")
    assert score_study(study=study, scorer=again).n_scored == 1
    assert again.seen == [("d0", "gamma")]


def test_scoring_that_broke_off_goes_on_where_it_stopped():
    broken, complete = rating_study("broken", n_items=5), rating_study("whole", n_items=5)
    first = Counting(batch_size=3, fails_at_batch=3)
    with pytest.raises(SwitchedOff):
        score_study(study=broken, scorer=first)
    assert len(first.seen) == 6
    assert Score.objects.filter(run__study=broken).count() == 12
    second = Counting(batch_size=3)
    result = score_study(study=broken, scorer=second)
    assert (result.n_scored, result.n_known) == (4, 6)
    assert ", 6 " in str(result)
    assert not set(first.seen) & set(second.seen)
    score_study(study=complete, scorer=Counting(batch_size=100))
    assert values(broken) == values(complete)


def test_a_metric_gets_the_items_reference_and_each_signature_has_a_run_of_its_own():
    study = rating_study(n_items=1)
    study.items.update(reference="alpha on d0")
    for tokenizer in ("unicode", "google"):
        score_study(study=study, scorer=build("rouge1", tokenizer=tokenizer))
    runs = ScoringRun.objects.of(study).filter(metric="rouge1")
    assert len({run.signature for run in runs}) == 2
    assert [run.n_scores for run in runs.counted()] == [2, 2]
    scores = values(study)
    assert scores["rouge1", "d0", "alpha"] == 1
    assert 0 < scores["rouge1", "d0", "beta"] < 1
    without = alternatives_study()
    score_study(study=without, scorer=build("rouge1"))
    [reason] = set(values(without).values())
    assert "reference" in reason


def test_an_empty_study_or_a_missing_model_cannot_be_scored():
    class Missing(Counting):
        def measure(self, examples):
            raise ModelUnavailableError("E17", code="absent")

    with refused_naming(exceptions.NothingToScore, "empty"):
        score_study(study=rating_study("empty", n_items=0), scorer=Counting())
    assert not ScoringRun.objects.exists()
    with refused(exceptions.ModelUnfit, "absent") as raised:
        score_study(study=rating_study(), scorer=Missing())
    assert "E17" in str(raised.value)


def test_progress_is_reported_by_candidates():
    steps = []

    def progress(things, total):
        for thing in things:
            steps.append((total, Score.objects.filter(run__metric="counting").count()))
            yield thing

    score_study(study=rating_study(n_items=5), scorer=Counting(batch_size=4), progress=progress)
    assert steps == [(10, 4)] * 4 + [(10, 8)] * 4 + [(10, 10)] * 2


def test_scores_written_again_replace_those_they_name_and_no_others():
    study = rating_study(n_items=1)
    for scores in ({("d0", "alpha"): 0.5, ("d0", "beta"): 0.25}, {("d0", "beta"): 1.5}):
        write_scores(study=study, metric="nll", signature="nll|v:1", values=scores)
    assert values(study) == {("nll", "d0", "alpha"): 0.5, ("nll", "d0", "beta"): 1.5}
    # The better direction is the one last given; NaN and infinity are undefined.
    scores = {("d0", "alpha"): math.nan, ("d0", "beta"): math.inf}
    write_scores(
        study=study, metric="nll", signature="nll|v:1", values=scores, higher_is_better=False
    )
    assert set(Score.objects.values_list("value")) == {(None,)}
    assert "inf" in values(study)["nll", "d0", "beta"]
    assert values(study)["nll", "d0", "alpha"]
    assert not ScoringRun.objects.get().higher_is_better


def test_a_batch_that_cannot_be_written_whole_leaves_nothing():
    class Careless(Counting):
        def measure(self, examples):
            return [{"counting": scores["counting"]} for scores in super().measure(examples)]

    study = rating_study(n_items=2)
    with refused(InvalidValue, "wrong_outputs"):
        score_study(study=study, scorer=Careless())
    scores = {("d0", "alpha"): 0.5, ("d7", "alpha"): 0.5}
    with refused_naming(InvalidValue, "alpha", "d7", "ratings"):
        write_scores(study=study, metric="nll", signature="nll|v:1", values=scores)
    assert not Score.objects.exists()
    assert not ScoringRun.objects.filter(metric="nll").exists()


def test_undefined_and_infinite_scores_keep_a_reason():
    class Boundless(Counting):
        def measure(self, examples):
            counted = super().measure(examples)
            return [
                {name: score._replace(value=math.inf) for name, score in scores.items()}
                if example.system == "alpha"
                else scores
                for example, scores in zip(examples, counted, strict=True)
            ]

    study, other = rating_study(n_items=1), rating_study("other")
    Candidate.objects.filter(item__study=study, key="beta").update(text="")
    score_study(study=study, scorer=Boundless())
    reasons = values(study)
    assert "inf" in reasons["counting", "d0", "alpha"]
    assert reasons["counting", "d0", "beta"] == "no response"
    [run] = ScoringRun.objects.of(study).counted().filter(metric="counting")
    assert (run.n_scores, run.n_undefined) == (2, 2)
    # Studies are scored apart.
    assert values(other) == {}
    assert score_study(study=other, scorer=Counting()).n_known == 0


def test_the_command_scores_a_study_with_each_metric_named_if_it_knows_them_all():
    command = ("score_study", "ratings", "--metric=rouge1", "--metric=ter")
    with refused_naming(StudyUnknown, "ratings"):
        command_output(*command)
    rating_study(n_items=2)
    with refused_naming(exceptions.MetricUnknown, "bleurt"):
        command_output(*command, "--metric=bleurt")
    assert not ScoringRun.objects.exists()
    lines = command_output(*command, "--set=rouge1.tokenizer=unicode").splitlines()
    assert [line.partition(" candidates")[0] for line in lines] == ["rouge1: 4", "ter: 4"]
    assert Score.objects.filter(run__metric="rouge1").count() == 4
    runs = {run.metric: run for run in ScoringRun.objects.all()}
    assert "tokenizer:unicode" in runs["rouge1"].signature
    assert (runs["rouge1"].higher_is_better, runs["ter"].higher_is_better) == (True, False)


def test_a_program_may_read_what_was_and_what_would_be_scored_and_at_which_cost(settings):
    settings.JUDGE = {"JUDGE_MODEL": "tiny"}
    rating_study(n_items=2)
    command = ("score_study", "ratings", "--json", "--metric=rouge1")
    [plan] = json.loads(command_output(*command[:3], "--metric=judge", "--dry-run"))
    assert plan["estimate"]["requests"] == 4
    assert plan["estimate"]["prompt_tokens"] > 4 * 10
    assert float(plan["estimate"]["usd"]) == 0
    [plan] = json.loads(command_output(*command, "--dry-run"))
    assert (plan["metric"], plan["examples"], plan["n_candidates"]) == ("rouge1", 4, 4)
    assert plan["estimate"] is None  # it asks no endpoint
    assert not ScoringRun.objects.exists()
    assert command_output(*command[:2], "--metric=rouge1", "--dry-run").startswith("rouge1: 4 ")
    command_output(*command)
    [scored, _] = json.loads(command_output(*command, "--metric=chrf"))
    assert (scored["metric"], scored["n_scored"], scored["n_known"]) == ("rouge1", 0, 4)


@pytest.mark.parametrize("values", [[None], [1, 2]])
def test_a_candidate_has_one_score_in_a_run_with_a_value_or_a_reason(values):
    run = ScoringRun.objects.create(study=rating_study(), metric="nll", signature="nll|v:1")
    candidate = Candidate.objects.first()
    *before, last = values
    for value in before:
        Score.objects.create(run=run, candidate=candidate, value=value)
    with pytest.raises(IntegrityError):
        Score.objects.create(run=run, candidate=candidate, value=last)


def test_rows_follow_the_runs_the_items_and_the_candidates_and_take_one_query(
    django_assert_num_queries,
):
    study = rating_study(n_items=2)
    assert list(study_files.score_frame(study).columns) == list(study_files.COLUMNS)
    assert study_files.score_frame(study).dtypes["value"] == "float64"
    candidates = [("d1", "beta"), ("d0", "beta"), ("d0", "alpha"), ("d1", "alpha")]
    for metric in ("zeta", "eta"):
        values = {key: float(number) for number, key in enumerate(candidates)}
        write_scores(study=study, metric=metric, signature=f"{metric}|v:1", values=values)
    with django_assert_num_queries(1):
        frame = study_files.score_frame(study)
    assert list(frame["metric"]) == ["zeta"] * 4 + ["eta"] * 4
    assert list(frame["item"][:4]) == ["d0", "d0", "d1", "d1"]
    assert list(frame["candidate"][:4]) == ["alpha", "beta", "alpha", "beta"]
    assert list(frame["value"][:4]) == [2, 1, 3, 0]
    values = {("d0", "alpha"): math.nan, ("d0", "beta"): 0.0}
    write_scores(study=study, metric="nll", signature="nll|v:1", values=values)
    undefined, zero = study_files.score_frame(study)[8:].itertuples()
    assert math.isnan(undefined.value)
    assert undefined.reason
    assert (zero.value, zero.reason) == (0, "")


WORDS = "length|unit:words|tokenizer:unicode|version:1"
CHARACTERS = "length|unit:characters|version:1"


def test_lengths_in_words_and_in_characters_are_signed_apart_and_both_reused():
    study, other = rating_study("one"), rating_study("two")
    assert f"({WORDS})" in str(score_study(study=study, scorer=build("length")))
    signatures = dict(ScoringRun.objects.of(study).values_list("metric", "signature"))
    assert signatures == {"length": WORDS, "length_characters": CHARACTERS}
    plan = plan_scoring(study=other, scorer=build("length"))
    assert plan.n_reusable == plan.n_candidates > 0
    score_study(study=other, scorer=build("length"))
    metrics = Score.objects.filter(run__study=other).values_list("run__metric", flat=True)
    assert Counter(metrics) == dict.fromkeys(signatures, plan.n_candidates)


def test_a_file_of_scores_signs_each_output(tmp_path):
    items, output = tmp_path / "items.jsonl", tmp_path / "scores.csv"
    items.write_text('{"item": "1", "system": "a", "response": "So it is."}\n')
    file_scores.score_file(path=items, scorers=[build("length")], output=output)
    stored = {row.metric: (row.signature, row.value) for row in file_scores.read_scores(output)}
    assert stored == {"length": (WORDS, 3.0), "length_characters": (CHARACTERS, 9.0)}
    again = file_scores.score_file(path=items, scorers=[build("length")], output=output)
    assert [one.n_computed for one in again.outputs] == [0, 0]
    assert [one.signature for one in again.outputs] == [WORDS, CHARACTERS]


def twins(**fields):
    first, second = rating_study("first", **fields), rating_study("second", **fields)
    score_study(study=first, scorer=Counting())
    return first, second


def by_candidate(study):
    rows = Score.objects.filter(run__study=study)
    return sorted(
        rows.values_list(
            "run__metric", "candidate__item__key", "candidate__key", "value", "reason", "raw"
        )
    )


def test_texts_that_another_study_had_scored_are_not_computed_again():
    first, second = twins()
    scorer = Counting()
    result = score_study(study=second, scorer=scorer)
    assert (result.n_scored, result.n_reused, scorer.seen) == (6, 6, [])
    assert str(result).count("6 ") == 2
    assert by_candidate(first) == by_candidate(second)
    # Only what no study had, and nothing of another signature.
    third = rating_study("third")
    Candidate.objects.filter(item__study=third, item__key="d1", key="beta").update(text="new")
    result = score_study(study=third, scorer=scorer)
    assert (result.n_reused, scorer.seen) == (5, [("d1", "beta")])

    class Later(Counting):
        signature = "counting|version:2"

    assert score_study(study=second, scorer=Later()).n_reused == 0


@pytest.mark.parametrize("field", ["context", "reference", "condition"])
def test_the_same_response_to_something_else_is_another_text(field):
    _, second = twins(n_items=1)
    second.items.update(**{field: "something else"})
    scorer = Counting()
    score_study(study=second, scorer=scorer)
    assert len(scorer.seen) == 2


def test_equal_texts_are_computed_once_and_the_longest_first():
    study = rating_study(n_items=3)
    Candidate.objects.update(text="the same")
    study.items.update(context="", reference="")
    Candidate.objects.filter(item__key="d1", key="alpha").update(text="long " * 50)
    Candidate.objects.filter(item__key="d2", key="beta").update(text="longer " * 50)
    scorer = Counting(batch_size=1)
    assert score_study(study=study, scorer=scorer).n_scored == 6
    assert scorer.seen[:2] == [("d2", "beta"), ("d1", "alpha")]
    assert len(scorer.seen) == 3
    equal = Score.objects.filter(run__metric="counting", candidate__text="the same")
    assert list(equal.values_list("value")) == [(8,)] * 4


@pytest.mark.parametrize(
    ("value", "stored"),
    [(Value(3, None, '["3"]'), ("", '["3"]')), (undefined("E17", "As an AI"), ("E17", "As an AI"))],
)
def test_what_a_judge_replied_is_kept_beside_the_reason_and_reused(value, stored):
    for slug in ("first", "second"):
        study = rating_study(slug, n_items=1)
        score_study(study=study, scorer=Constant(value))
        assert {row[-2:] for row in by_candidate(study)} == {stored}


def test_a_plan_says_what_would_be_computed_and_computes_nothing():
    _, second = twins()
    Candidate.objects.filter(item__study=second, item__key="d1").update(text="the same")
    before = Score.objects.count()
    plan = plan_scoring(study=second, scorer=Counting())
    assert (plan.n_candidates, plan.n_known, plan.n_reusable) == (6, 0, 4)
    assert [example.response for example in plan.examples] == ["the same"]
    assert Score.objects.count() == before
    score_study(study=second, scorer=Counting())
    plan = plan_scoring(study=second, scorer=Counting())
    assert (plan.n_known, plan.n_reusable, plan.examples) == (6, 0, ())


def test_the_number_of_queries_grows_with_batches_and_not_with_candidates(
    django_assert_max_num_queries,
):
    study = rating_study(n_items=100)
    with django_assert_max_num_queries(40):
        score_study(study=study, scorer=Counting(batch_size=100))


def test_what_was_undefined_is_scored_anew_in_another_study_or_if_one_asks_for_it():
    study, other = rating_study(n_items=2), rating_study("other", n_items=2)
    Candidate.objects.filter(item__key="d1", key="beta").update(text="")
    for scored, expected in ((study, 4), (other, 1)):
        scorer = Counting()
        score_study(study=scored, scorer=scorer)
        assert len(scorer.seen) == expected
    assert score_study(study=study, scorer=Constant(Value(7))).n_scored == 0
    scorer = Constant(Value(7))
    result = score_study(study=study, scorer=scorer, retry_undefined=True)
    assert (result.n_scored, result.n_known, scorer.seen) == (1, 3, [("d1", "beta")])
    assert Score.objects.filter(run__study=study, value=None).count() == 0
    assert Score.objects.filter(run__study=study).count() == 8


class Judge(Counting):
    """Named as one that asks an endpoint, whose replies are stored with its scores."""

    name = "geval"
    outputs = ("counting", "counting_words")


@pytest.mark.parametrize("same", ["team", "owner", ""])
def test_a_judges_replies_are_reused_by_the_same_people_alone(same):
    rosa, carl = models.User.objects.create_user("rosa"), models.User.objects.create_user("carl")
    first, second = rating_study("first", owner=rosa), rating_study("second", owner=carl)
    if same == "team":
        team = teams.create_team(name="Lab", owner=rosa)
        Study.objects.update(team=team)
    elif same == "owner":
        Study.objects.update(owner=rosa)
    score_study(study=first, scorer=Judge())
    second.refresh_from_db()
    assert plan_scoring(study=second, scorer=Judge()).n_reusable == (6 if same else 0)
    assert score_study(study=second, scorer=Judge()).n_reused == (6 if same else 0)


@pytest.mark.filterwarnings("default::metrics.scorers.errors.UntokenisedTextWarning")
def test_what_a_metric_warns_of_stays_with_its_scores():
    study = rating_study(n_items=2)
    Candidate.objects.filter(item__key="d0", key="alpha").update(text="привет, мир")
    with pytest.warns(UntokenisedTextWarning):
        result = score_study(study=study, scorer=build("rouge1"))
    run = ScoringRun.objects.get(leader=None)
    assert run.warnings == {"untokenised": [1, 4]}
    assert [each.code for each in run.coded_warnings] == ["untokenised"]
    assert str(result.warnings[0]) in str(result)
    # Scores that come later add to it, and those that are there are not counted again.
    item = study.items.last()
    Candidate.objects.create(item=item, key="gamma", system="gamma", text="ещё")
    for _ in range(2):
        score_study(study=study, scorer=build("rouge1"))
        run.refresh_from_db()
        assert run.warnings == {"untokenised": [2, 5]}

import json
import math

import pytest

from annotation.exceptions import StudyUnknown
from annotation.models import Candidate
from error_codes import InvalidValue
from metrics.exceptions import MetricUnknown, ModelUnfit, NothingToScore
from metrics.frames import score_frame
from metrics.models import Score, ScoringRun
from metrics.scorers.errors import ModelUnavailableError
from metrics.scorers.registry import build
from metrics.stored_scores import write_scores
from metrics.study_scores import named_scorer, score_study
from tests.annotation.importing import command_output
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import refused, refused_naming
from tests.metrics.counting import Counting, SwitchedOff

pytestmark = pytest.mark.django_db


def values(study):
    """Every score by metric, item and candidate, or its reason."""
    return {
        (row.metric, row.item, row.candidate): row.reason if math.isnan(row.value) else row.value
        for row in score_frame(study).itertuples()
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


def test_each_signature_has_a_run_of_its_own():
    study = rating_study(n_items=1)
    for tokenizer in ("google", "unicode"):
        score_study(study=study, scorer=build("rouge1", tokenizer=tokenizer))
    runs = ScoringRun.objects.of(study).filter(metric="rouge1")
    assert len({run.signature for run in runs}) == 2
    assert [run.n_scores for run in runs.counted()] == [2, 2]


def test_what_a_reference_based_metric_gets_is_the_items_reference():
    study = rating_study(n_items=1)
    study.items.update(reference="alpha on d0")
    score_study(study=study, scorer=build("rouge1"))
    scores = values(study)
    assert scores["rouge1", "d0", "alpha"] == 1
    assert 0 < scores["rouge1", "d0", "beta"] < 1
    without = alternatives_study()
    score_study(study=without, scorer=build("rouge1"))
    [reason] = set(values(without).values())
    assert "reference" in reason


def test_an_empty_study_or_an_unknown_metric_cannot_be_scored():
    study = rating_study(n_items=0)
    with refused_naming(NothingToScore, "ratings"):
        score_study(study=study, scorer=Counting())
    assert not ScoringRun.objects.exists()
    with refused(MetricUnknown, "unknown_metric"):
        named_scorer("bleurt")


def test_a_missing_model_is_reported_to_the_person_who_asked():
    class Missing(Counting):
        def measure(self, examples):
            raise ModelUnavailableError("E17", code="absent")

    with refused(ModelUnfit, "absent") as raised:
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


def test_the_command_scores_a_study_with_each_metric_named():
    rating_study(n_items=2)
    command = ("score_study", "ratings", "--metric=rouge1", "--metric=ter")
    lines = command_output(*command, "--set=rouge1.tokenizer=unicode").splitlines()
    assert [line.partition(" candidates")[0] for line in lines] == ["rouge1: 4", "ter: 4"]
    assert Score.objects.filter(run__metric="rouge1").count() == 4
    runs = {run.metric: run for run in ScoringRun.objects.all()}
    assert "tokenizer:unicode" in runs["rouge1"].signature
    assert (runs["rouge1"].higher_is_better, runs["ter"].higher_is_better) == (True, False)


def test_an_unknown_study_or_metric_stops_the_command_before_anything_is_scored():
    with refused_naming(StudyUnknown, "ratings"):
        command_output("score_study", "ratings", "--metric=rouge1")
    rating_study()
    with refused_naming(MetricUnknown, "bleurt"):
        command_output("score_study", "ratings", "--metric=rouge1", "--metric=bleurt")
    assert not ScoringRun.objects.exists()


def test_a_program_may_read_what_was_and_what_would_be_scored():
    rating_study(n_items=2)
    command = ("score_study", "ratings", "--json", "--metric=rouge1")
    [plan] = json.loads(command_output(*command, "--dry-run"))
    assert (plan["metric"], plan["examples"], plan["n_candidates"]) == ("rouge1", 4, 4)
    assert plan["estimate"] is None  # it asks no endpoint
    assert not ScoringRun.objects.exists()
    assert command_output(*command[:2], "--metric=rouge1", "--dry-run").startswith("rouge1: 4 ")
    command_output(*command)
    [scored, _] = json.loads(command_output(*command, "--metric=chrf"))
    assert (scored["metric"], scored["n_scored"], scored["n_known"]) == ("rouge1", 0, 4)


def test_a_dry_run_of_a_judge_estimates_what_it_would_cost(settings):
    settings.JUDGE = {"JUDGE_MODEL": "tiny"}
    rating_study(n_items=2)
    [plan] = json.loads(
        command_output("score_study", "ratings", "--metric=judge", "--dry-run", "--json")
    )
    assert plan["estimate"]["requests"] == 4
    assert plan["estimate"]["prompt_tokens"] > 4 * 10
    assert float(plan["estimate"]["usd"]) == 0

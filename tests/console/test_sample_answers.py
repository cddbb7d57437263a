import pytest

from annotation.models import Judgment, Study
from config.samples import (
    load_sample_answers,
    sample_metrics,
)
from metrics.models import ScoringRun
from metrics.score_comparisons import prompt_effects, system_scores

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_the_sample_answers_are_scored_under_both_prompts_and_judged_by_nobody():
    study = load_sample_answers()
    leaders = ScoringRun.objects.of(study).filter(leader=None).counted()
    assert {(run.metric, run.n_scores, run.n_undefined) for run in leaders} == {
        (name, 120, 0) for name in sample_metrics()
    }
    assert not Judgment.objects.exists()
    means = {(row.metric, row.system, row.condition): row.mean for row in system_scores(study)}
    for metric in sample_metrics():
        for system in ("terse", "careful", "cheerful"):
            assert means[metric, system, "enhanced"] > means[metric, system, "standard"]
    overall = {row.metric: row for row in prompt_effects(study) if row.system == ""}
    assert all(overall[metric].wilcoxon_p_holm < 0.01 for metric in sample_metrics())
    # Loading them again changes nothing.
    before = list(ScoringRun.objects.order_by("pk").values_list("pk", "metric", "signature"))
    load_sample_answers()
    after = list(ScoringRun.objects.order_by("pk").values_list("pk", "metric", "signature"))
    assert after == before
    assert Study.objects.count() == 1

"""Scoring in the background."""

from annotation.exceptions import AnnotationError
from annotation.study_jobs import SCORE, study_of
from metrics.exceptions import MetricsError, RunBusy
from metrics.study_scores import Scored, named_scorer, score_study
from work.exceptions import JobPostponed
from work.execution import RunningJob
from work.registry import SCORING, register


@register(SCORE, label="Scoring", queue=SCORING, refusals=(AnnotationError, MetricsError))
def score(running: RunningJob) -> str:
    """Score a study's candidates with each of the metrics."""
    return " ".join(str(_score(running, name)) for name in running.arguments["names"])


def _score(running: RunningJob, name: str) -> Scored:
    try:
        return score_study(
            study=study_of(running), scorer=named_scorer(name), progress=running.progress(name)
        )
    except RunBusy as busy:
        # Perhaps by a process that was killed, and whose lease has still to lapse.
        raise JobPostponed(str(busy)) from busy

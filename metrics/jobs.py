"""Scoring in the background."""

from django.utils.translation import gettext_lazy

from annotation.exceptions import AnnotationError
from annotation.models import Upload
from annotation.study_jobs import PLAN_SCORE, SCORE, study_of
from annotation.uploads import JOBS
from metrics.exceptions import MetricsError, RunBusy
from metrics.score_uploads import import_scores_upload, read_scores_upload
from metrics.scoring_requests import plan_request, score_request
from metrics.study_scores import Scored, named_scorer, score_study
from work.exceptions import JobPostponed
from work.execution import RunningJob
from work.registry import INTERACTIVE, SCORING, register

REFUSALS = (AnnotationError, MetricsError)
READ_SCORES, IMPORT_SCORES = JOBS[Upload.Content.SCORES]
register(READ_SCORES, label=gettext_lazy("Reading the file"), queue=INTERACTIVE, refusals=REFUSALS)(
    read_scores_upload
)
register(IMPORT_SCORES, label=gettext_lazy("Importing"), queue=INTERACTIVE, refusals=REFUSALS)(
    import_scores_upload
)


register(PLAN_SCORE, label=gettext_lazy("Estimating"), queue=SCORING, refusals=REFUSALS)(
    plan_request
)


@register(SCORE, label=gettext_lazy("Scoring"), queue=SCORING, refusals=REFUSALS)
def score(running: RunningJob) -> str:
    """Score a study's candidates with each of the metrics."""
    return " ".join(str(_score(running, name)) for name in running.arguments["names"])


def _score(running: RunningJob, name: str) -> Scored:
    try:
        if "request" in running.arguments:
            return score_request(running)
        return score_study(
            study=study_of(running), scorer=named_scorer(name), progress=running.progress(name)
        )
    except RunBusy as busy:
        # Perhaps by a process that was killed, and whose lease has still to lapse.
        raise JobPostponed(str(busy)) from busy

from django.utils.translation import gettext as _, gettext_lazy

from annotation.exceptions import AnnotationError
from annotation.jobs import fail_with_fault
from annotation.models import Upload
from annotation.study_facts import PLAN_SCORE, SCORE, study_of
from annotation.uploads import JOBS
from metrics.exceptions import MetricsError, NotScored, RunBusy
from metrics.result_kinds.scores import ScoresKind
from metrics.score_uploads import import_scores_upload, read_scores_upload
from metrics.scorer_options import lacks_model
from metrics.scoring_requests import plan_request, score_request
from metrics.study_scores import Scored, named_scorer, score_study
from work.exceptions import JobPostponed
from work.execution import RunningJob
from work.registry import INTERACTIVE, SCORING, register

REFUSALS = (AnnotationError, MetricsError)
READ_SCORES, IMPORT_SCORES = JOBS[Upload.Content.SCORES]
register(READ_SCORES, label=gettext_lazy("Reading the file"), queue=INTERACTIVE, refusals=REFUSALS)(
    fail_with_fault(*REFUSALS)(read_scores_upload)
)
register(IMPORT_SCORES, label=gettext_lazy("Importing"), queue=INTERACTIVE, refusals=REFUSALS)(
    fail_with_fault(*REFUSALS)(import_scores_upload)
)


register(PLAN_SCORE, label=gettext_lazy("Estimating"), queue=SCORING, refusals=REFUSALS)(
    plan_request
)


@register(SCORE, label=gettext_lazy("Scoring"), queue=SCORING, refusals=REFUSALS)
def score(running: RunningJob) -> str:
    """Score a study's candidates with each of the metrics: one that fails holds up no other."""
    names = running.arguments["names"]
    scored, failed = [], []
    for name in names:
        try:
            scored.append(str(_score(running, name)))
        except REFUSALS as error:
            if len(names) == 1 and not lacks_model(error):
                raise
            failed.append(_not_scored(name, error))
    if not scored:
        raise NotScored(" ".join(failed))
    ScoresKind().request(study_of(running), None)
    return " ".join([*scored, *failed])


def _not_scored(name: str, error: Exception) -> str:
    if lacks_model(error):
        return _(
            "%(metric)s was not scored: its model is not on this server. Whoever runs the site can "
            "add it."
        ) % {"metric": name}
    return _("%(metric)s was not scored: %(reason)s") % {"metric": name, "reason": error}


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

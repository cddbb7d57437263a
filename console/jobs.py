"""What pages show, computed in the background, and labels."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.exceptions import AnnotationError
from annotation.label_sets import make_label_set
from annotation.study_jobs import LABEL, RESULT, study_of
from console.api.idempotency import delete_old_answers
from console.exceptions import ConsoleError
from console.forms import rule_of
from console.results import compute
from metrics.exceptions import MetricsError
from presentation.exceptions import PresentationError
from work.execution import RunningJob
from work.registry import INTERACTIVE, MARKETPLACE, register

REFUSALS = (AnnotationError, ConsoleError, MetricsError, PresentationError)


@register(LABEL, label=gettext_lazy("Labelling"), queue=INTERACTIVE, refusals=REFUSALS)
def label(running: RunningJob) -> str:
    """Make a set of labels by the rule that was requested."""
    rule = running.arguments["rule"]
    question = study_of(running).questions.get(name=rule["question"])
    result = make_label_set(
        question=question, rule=rule_of(rule), created_by=running.job.requested_by
    )
    text = _("Labels {version} of {question}, by {method}.").format(
        version=result.label_set.version, question=question.name, method=result.label_set.method
    )
    return text if result.is_new else " ".join([text, _("They were made of the same before.")])


@register(RESULT, label=gettext_lazy("Computing"), queue=INTERACTIVE, refusals=REFUSALS)
def result(running: RunningJob) -> str:
    """Compute and store what a page shows."""
    for name in running.arguments["names"]:
        compute(study_of(running), name, progress=running.progress(_("step")))
    return ""


@register(
    "delete_stored_answers",
    label=gettext_lazy("Deleting stored answers of the API"),
    queue=MARKETPLACE,
    every_seconds=3600,
)
def delete_stored_answers(running: RunningJob) -> str:
    """Forget answers under idempotency keys after their day."""
    return _("Answers deleted: {n}.").format(n=delete_old_answers())

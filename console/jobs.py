"""What pages show, computed in the background, and labels."""

from annotation.exceptions import AnnotationError
from annotation.label_sets import make_label_set
from annotation.study_jobs import LABEL, RESULT, study_of
from console.exceptions import ConsoleError
from console.forms import rule_of
from console.results import compute
from metrics.exceptions import MetricsError
from presentation.exceptions import PresentationError
from work.execution import RunningJob
from work.registry import INTERACTIVE, register

REFUSALS = (AnnotationError, ConsoleError, MetricsError, PresentationError)


@register(LABEL, label="Labelling", queue=INTERACTIVE, refusals=REFUSALS)
def label(running: RunningJob) -> str:
    """Make a set of labels by the rule that was requested."""
    rule = running.arguments["rule"]
    question = study_of(running).questions.get(name=rule["question"])
    made = make_label_set(question=question, rule=rule_of(rule), made_by=running.job.requested_by)
    note = "" if made.is_new else " They were made of the same before."
    return f"Labels {made.label_set.version} of {question.name}, by {made.label_set.method}.{note}"


@register(RESULT, label="Computing", queue=INTERACTIVE, refusals=REFUSALS)
def result(running: RunningJob) -> str:
    """Compute and store what a page shows."""
    for name in running.arguments["names"]:
        compute(study_of(running), name, progress=running.progress("step"))
    return ""

"""What `annotation` does in the background: uploaded files, results and labels."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.exceptions import AnnotationError
from annotation.label_sets import make_label_set, rule_of
from annotation.label_uploads import import_labels, read_labels
from annotation.models import Upload
from annotation.study_jobs import LABEL, RESULT, study_of
from annotation.study_results import compute
from annotation.unexpected_errors import fail_with_fault
from annotation.uploads import (
    IMPORT_UPLOAD,
    JOBS,
    READ_UPLOAD,
    forget_uploads,
    import_upload,
    read_upload,
)
from error_codes import CorrectableError
from work.execution import RunningJob
from work.registry import INTERACTIVE, MARKETPLACE, register

REFUSALS = (AnnotationError,)

READ_LABELS, IMPORT_LABELS = JOBS[Upload.Content.LABELS]

for name, title, handler in (
    (READ_UPLOAD, gettext_lazy("Reading the file"), read_upload),
    (IMPORT_UPLOAD, gettext_lazy("Importing"), import_upload),
    (READ_LABELS, gettext_lazy("Reading the file"), read_labels),
    (IMPORT_LABELS, gettext_lazy("Importing"), import_labels),
):
    register(name, label=title, queue=INTERACTIVE, refusals=REFUSALS)(
        fail_with_fault(*REFUSALS)(handler)
    )


@register(
    "forget_uploads",
    label=gettext_lazy("Forgetting uploads"),
    queue=MARKETPLACE,
    every_seconds=3600,
)
def forget(running: RunningJob) -> str:
    n = forget_uploads()
    return ngettext("%(n)d upload deleted.", "%(n)d uploads deleted.", n) % {"n": n}


@register(LABEL, label=gettext_lazy("Labelling"), queue=INTERACTIVE, refusals=REFUSALS)
def label(running: RunningJob) -> str:
    rule = running.arguments["rule"]
    question = study_of(running).questions.get(name=rule["question"])
    result = make_label_set(
        question=question, rule=rule_of(rule), created_by=running.job.requested_by
    )
    text = _("Labels {version} of {question}, by {method}.").format(
        version=result.label_set.version, question=question.name, method=result.label_set.method
    )
    return text if result.is_new else " ".join([text, _("They were made of the same before.")])


@register(RESULT, label=gettext_lazy("Computing"), queue=INTERACTIVE, refusals=(CorrectableError,))
def result(running: RunningJob) -> str:
    for name in running.arguments["names"]:
        compute(study_of(running), name, progress=running.progress(_("step")))
    return ""

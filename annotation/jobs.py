"""What `annotation` does in the background: uploaded files and labels.

An error of the program while a file is read is a fault of that file: another attempt would end
alike, so the job fails at once, and the file's page shows why.
"""

import logging
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from django.db import DatabaseError
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.exceptions import AnnotationError, ImportRefused
from annotation.label_sets import make_label_set, rule_of
from annotation.label_uploads import import_labels, read_labels
from annotation.models import Upload
from annotation.readers.drafts import Faults
from annotation.study_facts import LABEL, study_of
from annotation.uploads import (
    IMPORT_UPLOAD,
    JOBS,
    READ_UPLOAD,
    forget_uploads,
    import_upload,
    note_faults,
    read_upload,
)
from error_codes import CodedText
from work.exceptions import WorkError
from work.execution import RunningJob
from work.registry import INTERACTIVE, MARKETPLACE, register

logger = logging.getLogger(__name__)
# What may be gone at the next attempt: the database or the disk was away, or the job was stopped.
PASSING = (DatabaseError, OSError, WorkError)


def fail_with_fault(
    *refusals: type[Exception],
) -> Callable[[Callable[[RunningJob], str]], Callable[[RunningJob], str]]:
    """Decorate the handler of a job on an upload: an unexpected error becomes the file's fault.

    `refusals` are the errors that the handler raises for people.
    """
    expected: tuple[type[Exception], ...] = (*refusals, *PASSING)

    def decorate(handler: Callable[[RunningJob], str]) -> Callable[[RunningJob], str]:
        @wraps(handler)
        def handle(running: RunningJob) -> str:
            try:
                return handler(running)
            except expected:
                raise
            except Exception as error:
                logger.exception("'%s' (job %s) broke off", running.job, running.job.pk)
                upload = Upload.objects.get(pk=running.arguments["upload"])
                problem = unexpected_problem(error)
                faults = Faults()
                faults.add(ImportRefused(Path(upload.file_name), problem))
                note_faults(upload, faults)
                raise AnnotationError(str(problem), code=problem.code) from error

        return handle

    return decorate


def unexpected_problem(error: Exception) -> CodedText:
    return CodedText(
        _(
            "An error in the program stopped the import ({name}). Report it to the site's "
            "operator, with the file if you may share it; the server's log has the details."
        ).format(name=type(error).__name__),
        "unexpected_error",
    )


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

"""What `annotation` does in the background: uploaded files, of items or of labels."""

from django.utils.translation import gettext_lazy, ngettext

from annotation.exceptions import AnnotationError
from annotation.label_uploads import import_labels, read_labels
from annotation.models import Upload
from annotation.unexpected_errors import fail_with_fault
from annotation.uploads import (
    IMPORT_UPLOAD,
    JOBS,
    READ_UPLOAD,
    forget_uploads,
    import_upload,
    read_upload,
)
from work.execution import RunningJob
from work.registry import INTERACTIVE, MARKETPLACE, register

REFUSALS = (AnnotationError,)

READ_LABELS, IMPORT_LABELS = JOBS[Upload.Content.LABELS]

for name, label, handler in (
    (READ_UPLOAD, gettext_lazy("Reading the file"), read_upload),
    (IMPORT_UPLOAD, gettext_lazy("Importing"), import_upload),
    (READ_LABELS, gettext_lazy("Reading the file"), read_labels),
    (IMPORT_LABELS, gettext_lazy("Importing"), import_labels),
):
    register(name, label=label, queue=INTERACTIVE, refusals=REFUSALS)(
        fail_with_fault(*REFUSALS)(handler)
    )


@register(
    "forget_uploads",
    label=gettext_lazy("Forgetting uploads"),
    queue=MARKETPLACE,
    every_seconds=3600,
)
def forget(running: RunningJob) -> str:
    """Delete files that nobody imported."""
    n = forget_uploads()
    return ngettext("%(n)d upload deleted.", "%(n)d uploads deleted.", n) % {"n": n}

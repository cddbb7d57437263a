"""What `annotation` does in the background: uploaded files, of items or of labels."""

from django.utils.translation import gettext_lazy, ngettext

from annotation.exceptions import AnnotationError
from annotation.label_uploads import import_labels, read_labels
from annotation.models import Upload
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

register(READ_UPLOAD, label=gettext_lazy("Reading the file"), queue=INTERACTIVE, refusals=REFUSALS)(
    read_upload
)
register(IMPORT_UPLOAD, label=gettext_lazy("Importing"), queue=INTERACTIVE, refusals=REFUSALS)(
    import_upload
)
READ_LABELS, IMPORT_LABELS = JOBS[Upload.Content.LABELS]
register(READ_LABELS, label=gettext_lazy("Reading the file"), queue=INTERACTIVE, refusals=REFUSALS)(
    read_labels
)
register(IMPORT_LABELS, label=gettext_lazy("Importing"), queue=INTERACTIVE, refusals=REFUSALS)(
    import_labels
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

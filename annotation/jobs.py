"""What `annotation` does in the background: uploaded files."""

from django.utils.translation import ngettext

from annotation.exceptions import AnnotationError
from annotation.uploads import (
    IMPORT_UPLOAD,
    READ_UPLOAD,
    forget_uploads,
    import_upload,
    read_upload,
)
from work.execution import RunningJob
from work.registry import INTERACTIVE, MARKETPLACE, register

REFUSALS = (AnnotationError,)

register(READ_UPLOAD, label="Reading the file", queue=INTERACTIVE, refusals=REFUSALS)(read_upload)
register(IMPORT_UPLOAD, label="Importing", queue=INTERACTIVE, refusals=REFUSALS)(import_upload)


@register("forget_uploads", label="Forgetting uploads", queue=MARKETPLACE, every_seconds=3600)
def forget(running: RunningJob) -> str:
    """Delete files that nobody imported."""
    n = forget_uploads()
    return ngettext("%(n)d upload deleted.", "%(n)d uploads deleted.", n) % {"n": n}

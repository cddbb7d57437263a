"""Errors of the program while a file is read, as faults of that file.

Another attempt would end alike, so the job fails at once, and the file's page shows why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import DatabaseError
from django.utils.translation import gettext as _

from annotation.exceptions import AnnotationError, ImportRefused
from annotation.models import Upload
from annotation.readers.file_faults import Faults
from annotation.uploads import note_faults
from error_codes import CodedText
from work.exceptions import WorkError

if TYPE_CHECKING:
    from work.execution import RunningJob

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
    """What a page shows about an error of the program, which the caller logs."""
    text = _(
        "An error in the program stopped the import ({name}). Report it to the site's operator, "
        "with the file if you may share it; the server's log has the details."
    )
    return CodedText(text.format(name=type(error).__name__), "unexpected_error")

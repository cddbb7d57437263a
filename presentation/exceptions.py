"""What can go wrong in presentation.

PresentationError
└── FileUnwritable         a file cannot be written where a person wants it
"""

from error_codes import CorrectableError


class PresentationError(CorrectableError):
    """Something a person can mend; its text says what and how."""


class FileUnwritable(PresentationError):
    """A file cannot be written there."""

"""What can go wrong in replications.

ReplicationError
└── DatasetIncomplete   a published data set's folder lacks a file
"""

from error_codes import CodedError


class ReplicationError(CodedError):
    """Something a person can mend; its text says what and how."""


class DatasetIncomplete(ReplicationError):
    """A published data set's folder lacks a file."""

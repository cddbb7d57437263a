"""What can go wrong in the console.

ConsoleError
├── DatasetIncomplete   a published data set's folder lacks a file
├── FolderUnusable      results cannot be written to a folder
└── WorkStopped         someone asked for background work to end
"""


class ConsoleError(Exception):
    """Something a person can mend; its text says what and how."""


class DatasetIncomplete(ConsoleError):
    """A published data set's folder lacks a file."""


class FolderUnusable(ConsoleError):
    """Results cannot be written to a folder."""


class WorkStopped(ConsoleError):
    """Someone asked for background work to end."""

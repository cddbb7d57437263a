"""What can go wrong in the console.

ConsoleError
└── FolderUnusable      results cannot be written to a folder
"""


class ConsoleError(Exception):
    """Something a person can mend; its text says what and how."""


class FolderUnusable(ConsoleError):
    """Results cannot be written to a folder."""

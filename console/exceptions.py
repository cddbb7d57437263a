"""What can go wrong in the console.

ConsoleError
├── FolderUnusable      results cannot be written to a folder
└── LicenseUnknown      a license's name has a form that no license's has
"""

from collections.abc import Sequence

from error_codes import CorrectableError


class ConsoleError(CorrectableError):
    """Something a person can mend; its text says what and how."""


class FolderUnusable(ConsoleError):
    """Results cannot be written to a folder."""


class LicenseUnknown(ConsoleError):
    """A license's name has a form that no license's has."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"'{name[:64]}' is not the name of a license as Hugging Face has them, such as "
            f"{', '.join(known)}."
        )

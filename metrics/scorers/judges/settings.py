"""What judges' settings have in common: a fingerprint, and a form in a file."""

import json
from abc import abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, get_type_hints

from error_codes import InvalidValue
from metrics.scorers.judges.readings import UNSTORABLE
from metrics.scorers.scorer import check_kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """The instructions of a judge: a version of them, for a study to keep."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all that can change a score; it is part of the signature."""

    def to_json(self) -> str:
        """Write the settings down."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        JudgeSettings

        Raises
        ------
        ValueError
            If it is not of that form.
        """
        try:
            fields = json.loads(text)
            if not isinstance(fields, dict):
                raise InvalidValue(
                    "the settings must be a JSON object, in braces", code="settings_not_an_object"
                )
            _check_texts(fields)
            check_kinds(fields, get_type_hints(cls))
            return cls(**fields)
        except (TypeError, RecursionError) as error:
            raise InvalidValue(
                f"the settings do not fit: {error}", code="settings_unfit"
            ) from error

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Read the settings in a file, with or without the mark that some put before UTF-8.

        Parameters
        ----------
        path : str

        Returns
        -------
        JudgeSettings

        Raises
        ------
        ValueError
            If the file is not of that form.
        OSError
            If it cannot be read.
        """
        return cls.from_json(Path(path).read_text(encoding="utf-8-sig"))


def _check_texts(fields: dict[str, object]) -> None:
    for name, value in fields.items():
        if isinstance(value, str) and UNSTORABLE.search(value):
            raise InvalidValue(
                f"{name} holds NUL or half a surrogate pair, which nothing can keep",
                code="unstorable_text",
            )

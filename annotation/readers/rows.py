"""One record of a file, which refuses itself with its own line."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.exceptions import ImportRefused
from error_codes import CodedText
from presentation.spreadsheets import from_cell

# Numbers up to here are exact, and have a next one.
MOST = 1e15
# Words that programs and people write for a missing value, besides an empty cell.
MISSING_WORDS = frozenset(
    {"NA", "N/A", "n/a", "#N/A", "<NA>", "None", "null", "Null", "NULL", "NaN", "nan", "NAN", "-"}
)
REPLACEMENT = "\ufffd"
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Row:
    """One record of a file, or an object inside it, which refuses itself with its own line.

    Not frozen: a file has a million of them, and a frozen one takes three times as long to make.
    """

    path: Path
    line: int
    fields: dict[str, Any]
    inside: str = ""
    is_csv: bool = False

    def refuse(self, problem: str, field: str | None = None, *, code: str = "") -> ImportRefused:
        """The error to raise for what this row holds."""
        label = self.called(field) if field else self.inside or None
        return ImportRefused(self.path, problem, line=self.line, field=label, code=code)

    def called(self, field: str) -> str:
        """The field's name in the whole file."""
        return f"{self.inside}.{field}" if self.inside else field

    def text(self, field: str) -> str:
        """A field as text; absent is empty."""
        value = self.fields.get(field)
        if value is None:
            return ""
        if type(value) is str and not value:
            return value
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise self.refuse(f"expected text, not {type(value).__name__}.", field, code="not_text")
        text = str(value)
        if (problem := unstorable(text)) is not None:
            raise self.refuse(problem, field)
        return text

    @property
    def is_simulated(self) -> bool:
        """Whether the row has the mark that exports give to simulated answers."""
        return str(self.fields.get("simulated", "")).strip().casefold() == "true"

    def required(self, field: str, *, longest: int = 200) -> str:
        """A field that must hold something, without the space around it."""
        text = self.optional(field, longest=longest)
        if not text:
            raise self.refuse("this field must not be empty.", field, code="empty")
        return text

    def optional(self, field: str, *, longest: int = 200) -> str:
        """A field that may be empty or absent, without the space around it.

        In a CSV file it is what a cell holds once a spreadsheet has taken it for text: our own
        exports write names so. Texts to be judged are read as they stand.
        """
        text = self.text(field).strip()
        text = from_cell(text) if self.is_csv else text
        if len(text) > longest:
            raise self.refuse(
                f"{len(text)} characters, where {longest} fit.", field, code="too_long"
            )
        return text

    def number(self, field: str) -> float:
        """A field as a finite number."""
        text = self.text(field).strip()
        try:
            value = float("" if "_" in text else text)
        except ValueError:
            raise self.refuse(f"'{text[:40]}' is not a number.", field, code="not_number") from None
        if not math.isfinite(value):
            raise self.refuse(f"'{text[:40]}' is not a finite number.", field, code="not_finite")
        if abs(value) > MOST:
            raise self.refuse(f"'{text[:40]}' is beyond {MOST:g}.", field, code="out_of_range")
        return value

    def number_or_nan(self, field: str) -> float:
        """A field as a finite number, or NaN where it is empty: a value that is missing."""
        return self.number(field) if self.text(field).strip() else math.nan


def unstorable(text: str) -> CodedText | None:
    """Why no database keeps this text, if none does."""
    # Most texts are plain, and every cell of a file comes here.
    if text.isascii() and "\x00" not in text:
        return None
    if "\x00" in text:
        return CodedText("there is a NUL character in the text.", "nul")
    if SURROGATE.search(text):
        return CodedText("there is half a surrogate pair in the text.", "surrogate")
    return None


def storable(values: Any) -> Any:
    """JSON to display what cannot be imported: U+FFFD for what PostgreSQL refuses in it."""
    if isinstance(values, dict):
        return {storable(name): storable(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [storable(value) for value in values]
    if isinstance(values, str) and unstorable(values):
        return SURROGATE.sub(REPLACEMENT, values.replace("\x00", REPLACEMENT))
    return values

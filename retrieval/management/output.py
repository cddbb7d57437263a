"""The output of commands that read several files."""

import json
from typing import Any, Protocol

from annotation.readers.report import FileReadings
from presentation.text_tables import text_report


class Result(Protocol):
    """A result that can be printed as JSON."""

    def record(self) -> dict[str, Any]: ...


def with_readings(
    result: Result, text: str, readings: FileReadings, *, is_json: bool, **more: Any
) -> str:
    """The result as JSON, with `more`, or as text; the reading reports come last."""
    if is_json:
        return json.dumps({**result.record(), **more, "reading": readings.plain()}, indent=1)
    return text_report([text, "\n".join(readings.lines())])

"""Prolific's export of what participants told it, a CSV with a line for each submission."""

import csv
import io
import re
from collections.abc import Iterator

from marketplace.recruiting.problems import Refused
from marketplace.recruiting.records import Demographics

SUBMISSION, PARTICIPANT = "submission id", "participant id"
# What is no answer of the participant's, or leads back to the submission.
OTHERS = re.compile(
    r"\b(id|code|status|approved|reviewed|started|completed|archived|accepted)\b", re.IGNORECASE
)


def demographics_of(content: str) -> Iterator[Demographics]:
    """Each submission's answers, without the columns by which somebody could be found."""
    try:
        rows = list(csv.DictReader(io.StringIO(content)))
    except csv.Error as error:
        raise Refused(f"Prolific's file of demographics can't be read: {error}") from error
    for row in rows:
        cells = {name: value for name, value in row.items() if name and isinstance(value, str)}
        plain = {name.strip().lower().replace("_", " "): value for name, value in cells.items()}
        if SUBMISSION not in plain:
            raise Refused("Prolific's file of demographics has no column of submissions.")
        ids = {plain[SUBMISSION], plain.get(PARTICIPANT, "")}
        answers = {
            name.strip(): value
            for name, value in cells.items()
            if not OTHERS.search(name.replace("_", " ")) and value not in ids
        }
        yield Demographics(plain[SUBMISSION], answers)

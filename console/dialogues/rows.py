"""A report of a study of dialogues, read from its rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from presentation.row_files import Kind, RowFile
from simulation.dialogue_estimates import ATTAINABLE
from simulation.models import DialogueEstimate, DialogueReport
from simulation.recorded_dialogues import origin_of

KINDS: dict[str, Kind] = {
    "part": "text",
    "name": "text",
    "user": "text",
    "recommender": "text",
    "value": "number",
    "ci_low": "number",
    "ci_high": "number",
    "p": "number",
    "p_adjusted": "number",
    "is_equivalent": "boolean",
    "reason": "text",
}


class StoredReport:
    """The estimates of a report by what they are; all read once."""

    def __init__(self, report: DialogueReport) -> None:
        self.report = report

    @cached_property
    def estimates(self) -> list[DialogueEstimate]:
        return list(self.report.estimates.order_by("pk"))

    def part(self, part: str, name: str | None = None) -> list[DialogueEstimate]:
        """Those of a part, in the order in which they were computed."""
        rows = [row for row in self.estimates if row.part == part]
        return rows if name is None else [row for row in rows if row.name == name]

    def one(self, part: str, name: str, user: str = "") -> DialogueEstimate:
        return next(row for row in self.part(part, name) if row.user == user or not user)

    def attainable(self, name: str) -> float | None:
        """About what a user has who knows what people would say; None where annotators are too
        few, and in a report of before it was kept."""
        return next((row.value for row in self.part(ATTAINABLE, name)), None)

    @property
    def rows(self) -> RowFile:
        values = (tuple(getattr(row, name) for name in KINDS) for row in self.estimates)
        return RowFile(KINDS, values)

    def record(self) -> dict[str, Any]:
        """What made the numbers, and they, for programs."""
        report, dialogues = self.report, self.report.dialogues
        return {
            "study": dialogues.study.slug,
            "report": report.number,
            "kind": dialogues.kind,
            "fingerprint": report.fingerprint,
            "origin": origin_of(dialogues),
            "rules": report.rules,
            "n_answers": report.n_answers,
            "n_annotators": report.n_annotators,
            "n_targets": report.n_targets,
            "estimates": [{name: getattr(row, name) for name in KINDS} for row in self.estimates],
        }

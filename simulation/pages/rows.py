"""A version of an experiment, read from its rows; each table once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from presentation.row_files import Kind, RowFile
from simulation.models import (
    CauseRow,
    ComparisonRow,
    ExperimentNote,
    ExperimentVersion,
    ImprovementRow,
    SensitivityRow,
    SimulatedRecommender,
    SimulatedUser,
    SwitchCount,
    TurnResult,
)
from simulation.outcomes import EVALUATION_BY_MODE

USER_FIELDS = (
    *("name", "kind", "mode", "tolerance", "p_switch", "turn_base", "switches_on", "on_equal"),
    *("alternative", "target_among", "sticky", "accepts", "leave_hazard"),
)
RESULT_KINDS: dict[str, Kind] = {
    "recommender": "text",
    "user": "text",
    "kind": "text",
    "tolerance": "integer",
    "p_switch": "number",
    "measure": "text",
    "turn": "integer",
    "mean": "number",
    "ci_low": "number",
    "ci_high": "number",
    "ci_method": "text",
    "reason": "text",
    "n_targets": "integer",
    "judged": "number",
}
SEED_KINDS: dict[str, Kind] = {
    name: RESULT_KINDS[name] for name in ("recommender", "user", "measure", "turn", "mean")
} | {"seed": "integer"}
SENSITIVITY_KINDS: dict[str, Kind] = {
    "recommender": "text",
    "user": "text",
    "measure": "text",
    "choice": "text",
    "value": "text",
    "mean": "number",
    "tau": "number",
    "tau_low": "number",
    "tau_high": "number",
    "reason": "text",
}
TARGET_KINDS: dict[str, Kind] = {
    "recommender": "text",
    "user": "text",
    "measure": "text",
    "target": "text",
    "value": "number",
}


class StoredRun:
    """The rows of a version, with users and recommenders in place of their keys."""

    def __init__(self, version: ExperimentVersion) -> None:
        self.version = version

    @cached_property
    def users(self) -> dict[int, SimulatedUser]:
        return {row.pk: row for row in self.version.users.order_by("position")}

    @cached_property
    def recommenders(self) -> dict[int, SimulatedRecommender]:
        return {row.pk: row for row in self.version.recommenders.order_by("position")}

    @property
    def names(self) -> list[str]:
        return [row.name for row in self.recommenders.values()]

    @property
    def user_names(self) -> list[str]:
        return [row.name for row in self.users.values()]

    @property
    def measures(self) -> list[str]:
        measures: list[str] = self.version.rules["measures"]
        return measures

    @property
    def is_mixed(self) -> bool:
        """Whether each user is evaluated by what it accepts, SimBase by the target alone."""
        return bool(self.version.rules["qrels"] == "accepted")

    @property
    def is_articles(self) -> bool:
        """Whether lists are evaluated as in the article's Table 3."""
        rules = self.version.rules
        return (rules["qrels"], rules["carry"]) == EVALUATION_BY_MODE["paper"]

    @property
    def last_turn(self) -> int:
        return int(self.version.rules["n_turns"])

    @cached_property
    def n_targets(self) -> int:
        return next(iter(self.last.values())).n_targets

    @cached_property
    def last(self) -> dict[tuple[str, str, str], TurnResult]:
        """Results of the last turn, by user, recommender and measure."""
        rows = self._with_names(self.version.results.filter(turn=self.last_turn))
        return {(row.user.name, row.recommender.name, row.measure): row for row in rows}

    def by_turn(self, measure: str) -> list[TurnResult]:
        """All turns of a measure, recommenders in their own order."""
        rows = self._with_names(self.version.results.filter(measure=measure))
        return sorted(rows, key=lambda row: self.names.index(row.recommender.name))

    @cached_property
    def comparisons(self) -> list[ComparisonRow]:
        return list(self.version.comparisons.all())

    @cached_property
    def causes(self) -> list[CauseRow]:
        return list(self._with_names(self.version.causes.all()))

    @cached_property
    def switches(self) -> list[SwitchCount]:
        return list(self._with_names(self.version.switches.all()))

    @cached_property
    def improvements(self) -> list[ImprovementRow]:
        rows = list(self.version.improvements.all())
        for row in rows:
            row.recommender = self.recommenders[row.recommender_id]
        return rows

    def sensitivity(self, measure: str) -> list[SensitivityRow]:
        """The means of a measure under other choices; none in results of before they were kept."""
        return list(self._with_names(self.version.sensitivity.filter(measure=measure)))

    @cached_property
    def notes(self) -> list[ExperimentNote]:
        return list(self.version.notes.all())

    def _with_names(self, rows: Any) -> Iterator[Any]:
        for row in rows:
            row.recommender = self.recommenders[row.recommender_id]
            row.user = self.users[row.user_id]
            yield row

    def result_rows(self) -> RowFile:
        """Every mean with its interval."""
        return self._file(RESULT_KINDS, self.version.results)

    def seed_rows(self) -> RowFile:
        """Every mean of a seed."""
        return self._file(SEED_KINDS, self.version.seed_results)

    def target_rows(self) -> RowFile:
        """Every target's value at the last turn."""
        return self._file(TARGET_KINDS, self.version.target_values)

    def sensitivity_rows(self) -> RowFile:
        """Every mean under another choice of evaluation, and how the order agrees."""
        return self._file(SENSITIVITY_KINDS, self.version.sensitivity)

    def _file(self, kinds: dict[str, Kind], rows: Any) -> RowFile:
        """Rows as they are read, some thousands at once."""
        records = self._with_names(rows.iterator(chunk_size=2000))
        return RowFile(kinds, (tuple(_value(row, name) for name in kinds) for row in records))

    def record(self) -> dict[str, Any]:
        """What made the numbers, for programs."""
        experiment = self.version.experiment
        users = self.version.users.order_by("position").values(*USER_FIELDS)
        return {
            "experiment": experiment.slug,
            "version": self.version.number,
            "fingerprint": self.version.fingerprint,
            "catalogue": experiment.catalogue.name,
            "is_stand_in": experiment.catalogue.kind == "stand-in",
            "judgments": experiment.made_of,
            "n_targets": experiment.n_targets,
            "settings": self.version.rules,
            "users": list(users),
            "recommenders": self.names,
            "notes": [{"text": note.text, "is_fault": note.is_fault} for note in self.notes],
        }


def _value(row: Any, name: str) -> Any:
    if name in ("recommender", "user"):
        return getattr(row, name).name
    if name in ("kind", "tolerance", "p_switch"):
        return getattr(row.user, name)
    return getattr(row, name)

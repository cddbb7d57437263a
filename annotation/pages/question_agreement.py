from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext_lazy

from annotation.disagreement import STATISTICS
from annotation.models import Question, Study
from annotation.result_kinds.agreement import (
    STATISTICS as ANNOTATOR_STATISTICS,
    AgreementKind,
    JudgedQuestion,
    ProtocolCoefficient,
    QuestionCoefficient,
    RoundCoefficient,
    list_alphas,
    read_part,
)
from console.glossary import COEFFICIENTS, Term, title_of
from results.models import Result
from stats.libraries import pd

WITH = gettext_lazy("all submissions that are not rejected")
WITHOUT = gettext_lazy("without flagged ones")
# More rows would make the forest longer than a screen; then conditions are left to the table.
MOST_IN_FOREST = 24


@dataclass(frozen=True)
class CoefficientRow:
    term: Term | None
    title: str
    all: QuestionCoefficient
    unflagged: QuestionCoefficient | None

    @property
    def is_defined(self) -> bool:
        return self.all.value is not None or bool(
            self.unflagged and self.unflagged.value is not None
        )


@dataclass(frozen=True)
class AgreementView:
    version: Result
    judged: Sequence[JudgedQuestion]
    displayed: JudgedQuestion
    study_question: Question
    condition: str

    @classmethod
    def from_query(cls, study: Study, version: Result, query: Mapping[str, str]) -> AgreementView:
        """The view an address asks for; KeyError names what of it is not there."""
        judged = [JudgedQuestion(**row) for row in version.record["questions"]]
        round = query.get("round") or str(version.facts["first_round"])
        of_round = {row.question: row for row in judged if str(row.round) == round}
        if not of_round:
            raise KeyError(round)
        name = query.get("question") or next(iter(of_round))
        view = cls(
            version, judged, of_round[name], study.question(name), query.get("condition", "")
        )
        if view.condition and view.condition not in view.conditions:
            raise KeyError(view.condition)
        return view

    @property
    def query(self) -> str:
        return urlencode({"round": self.round, "question": self.question})

    @property
    def round(self) -> int:
        return self.displayed.round

    @property
    def rounds(self) -> list[int]:
        return list(dict.fromkeys(row.round for row in self.judged))

    @property
    def question(self) -> str:
        return self.displayed.question

    @property
    def questions(self) -> list[str]:
        return [row.question for row in self.judged if row.round == self.round]

    @property
    def has_kappas(self) -> bool:
        return self.study_question.level in STATISTICS

    @property
    def is_compared(self) -> bool:
        return any(row.n_items for row in self._of_question)

    @property
    def is_any_compared(self) -> bool:
        return self.is_compared or bool((self.forest["n_items"] > 0).any())

    @cached_property
    def conditions(self) -> list[str]:
        return [name for name in dict.fromkeys(row.by for row in self._of_question) if name]

    @cached_property
    def coefficients(self) -> list[CoefficientRow]:
        rows = [row for row in self._of_question if row.by == self.condition]
        unflagged = {row.name: row for row in rows if not row.with_flagged}
        of_all = [
            CoefficientRow(
                COEFFICIENTS.get(row.name), title_of(row.name), row, unflagged.get(row.name)
            )
            for row in rows
            if row.with_flagged
        ]
        # Alpha before the others: it is what every level and design has.
        return sorted(of_all, key=lambda row: not row.all.name.startswith("krippendorff"))

    @cached_property
    def _of_question(self) -> list[QuestionCoefficient]:
        return [QuestionCoefficient(**row) for row in self._rows("coefficients", round=self.round)]

    def _rows(self, table: str, **values: Any) -> list[dict[str, Any]]:
        values["question"] = self.question
        rows = self.version.record[table]
        return [row for row in rows if all(row[name] == one for name, one in values.items())]

    @cached_property
    def between_rounds(self) -> list[tuple[str, RoundCoefficient]]:
        rows = [RoundCoefficient(**row) for row in self._rows("between_rounds")]
        return [(title_of(row.name), row) for row in rows if row.value is not None]

    @cached_property
    def by_protocol(self) -> list[tuple[str, ProtocolCoefficient]]:
        stored = self._rows("by_protocol", round=self.round)
        rows = [ProtocolCoefficient(**row) for row in stored if row["value"] is not None]
        order = {name: n for n, name in enumerate(dict.fromkeys(row.name for row in rows))}
        # The versions of one coefficient stand together, alpha's first.
        in_order = sorted(
            rows,
            key=lambda row: (
                not row.name.startswith("krippendorff"),
                order[row.name],
                row.protocol,
            ),
        )
        return [(title_of(row.name), row) for row in in_order]

    @cached_property
    def _part(self) -> dict[str, list[dict[str, Any]]]:
        return read_part(self.version, self.displayed.part)

    @cached_property
    def position_effect(self) -> dict[str, Any] | None:
        return self.annotator_positions.get("")

    @cached_property
    def annotator_positions(self) -> dict[str, dict[str, Any]]:
        return {row["annotator"]: row for row in self._part["positions"]}

    @cached_property
    def forest(self) -> pd.DataFrame:
        alphas = [row for row in list_alphas(self.version) if row.round == self.round]
        if len({(row.question, row.by) for row in alphas}) > MOST_IN_FOREST:
            alphas = [row for row in alphas if not row.by]
        rows = [
            {
                "label": f"{row.question}, {row.by}" if row.by else row.question,
                "part": str(WITH if row.with_flagged else WITHOUT),
                **{name: getattr(row, name) for name in ("value", "ci_low", "ci_high", "n_items")},
            }
            for row in alphas
        ]
        return _numeric(pd.DataFrame(rows), ["value", "ci_low", "ci_high"])

    @cached_property
    def pairs(self) -> pd.DataFrame:
        columns = ["annotator_a", "annotator_b", "n_shared", "value", "reason"]
        return _numeric(pd.DataFrame(self._part["pairs"], columns=columns), ["value"])

    @cached_property
    def annotators(self) -> pd.DataFrame:
        columns = ["annotator", "agreement", "n_judgments", "seconds", "n_flagged", "alpha_change"]
        # As the page lists them: those who pull agreement down first.
        table = pd.DataFrame(self.annotator_rows("-alpha_change"), columns=columns)
        return _numeric(table, ["agreement", "seconds", "alpha_change"])

    @property
    def has_times(self) -> bool:
        return bool(self.annotators["seconds"].notna().any())

    @property
    def is_correlation(self) -> bool:
        return self.displayed.annotator_statistic == ANNOTATOR_STATISTICS["loo_correlation"]

    def annotator_rows(self, key: str) -> list[dict[str, Any]]:
        name = key.removeprefix("-")
        rows = self._part["annotators"]
        defined = [row for row in rows if row[name] is not None]
        in_order = sorted(defined, key=lambda row: row[name], reverse=key.startswith("-"))
        return in_order + [row for row in rows if row[name] is None]


def _numeric(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return table.astype(dict.fromkeys(columns, "float64"))


def newest_alphas(study: Study, round: int) -> list[QuestionCoefficient]:
    newest = AgreementKind().list_results(study).defer(None).first()
    return [row for row in list_alphas(newest) if row.round == round and not row.by]

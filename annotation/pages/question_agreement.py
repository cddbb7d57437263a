from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import F, QuerySet
from django.utils.translation import gettext_lazy

from annotation.disagreement import STATISTICS
from annotation.models import (
    AgreementCoefficient,
    AgreementVersion,
    AnnotatorAgreement,
    JudgedQuestion,
    PositionEffect,
    ProtocolCoefficient,
    RoundCoefficient,
    Study,
)
from annotation.stored_agreement import STATISTICS as ANNOTATOR_STATISTICS
from console.glossary import COEFFICIENTS, Term, title_of
from stats.libraries import pd

WITH, WITHOUT = gettext_lazy("all submissions"), gettext_lazy("without flagged ones")
# More rows would make the forest longer than a screen; then conditions are left to the table.
MOST_IN_FOREST = 24


@dataclass(frozen=True)
class CoefficientRow:
    term: Term | None
    title: str
    all: AgreementCoefficient
    unflagged: AgreementCoefficient | None

    @property
    def is_defined(self) -> bool:
        return self.all.value is not None or bool(
            self.unflagged and self.unflagged.value is not None
        )


@dataclass(frozen=True)
class AgreementView:
    version: AgreementVersion
    judged: Sequence[JudgedQuestion]
    displayed: JudgedQuestion
    condition: str

    @classmethod
    def from_query(
        cls, version: AgreementVersion, judged: Sequence[JudgedQuestion], query: Mapping[str, str]
    ) -> AgreementView:
        """The view an address asks for; KeyError names what of it is not there."""
        round = query.get("round") or str(version.first_round)
        of_round = {row.question.name: row for row in judged if str(row.round) == round}
        if not of_round:
            raise KeyError(round)
        question = query.get("question") or next(iter(of_round))
        view = cls(version, judged, of_round[question], query.get("condition", ""))
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
        return self.displayed.question.name

    @property
    def questions(self) -> list[str]:
        return [row.question.name for row in self.judged if row.round == self.round]

    @property
    def has_kappas(self) -> bool:
        return self.displayed.question.level in STATISTICS

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
    def _of_question(self) -> list[AgreementCoefficient]:
        rows = AgreementCoefficient.objects.of(self.version)
        return list(rows.judged(self.displayed.question, self.round))

    @cached_property
    def between_rounds(self) -> list[tuple[str, RoundCoefficient]]:
        rows = self.version.round_coefficients.filter(question=self.displayed.question)
        return [(title_of(row.name), row) for row in rows.filter(value__isnull=False)]

    @cached_property
    def by_protocol(self) -> list[tuple[str, ProtocolCoefficient]]:
        rows = self.version.protocol_coefficients.filter(
            question=self.displayed.question, round=self.round, value__isnull=False
        )
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
    def position_effect(self) -> PositionEffect | None:
        return self._position_effects.filter(annotator="").first()

    @cached_property
    def annotator_positions(self) -> dict[str, PositionEffect]:
        return {row.annotator: row for row in self._position_effects.exclude(annotator="")}

    @property
    def _position_effects(self) -> QuerySet[PositionEffect]:
        return self.version.position_effects.filter(
            question=self.displayed.question, round=self.round
        )

    @cached_property
    def forest(self) -> pd.DataFrame:
        alphas = list(AgreementCoefficient.objects.of(self.version).alphas(self.round))
        if len({(row.question_id, row.by) for row in alphas}) > MOST_IN_FOREST:
            alphas = [row for row in alphas if not row.by]
        rows = [
            {
                "label": f"{row.question.name}, {row.by}" if row.by else row.question.name,
                "part": str(WITH if row.with_flagged else WITHOUT),
                **{name: getattr(row, name) for name in ("value", "ci_low", "ci_high", "n_items")},
            }
            for row in alphas
        ]
        return _numeric(pd.DataFrame(rows), ["value", "ci_low", "ci_high"])

    @cached_property
    def pairs(self) -> pd.DataFrame:
        columns = ["annotator_a", "annotator_b", "n_shared", "value", "reason"]
        rows = self.version.pairs.filter(
            question=self.displayed.question, round=self.round, in_matrix=True
        )
        return _numeric(_table(rows, columns), ["value"])

    @cached_property
    def annotators(self) -> pd.DataFrame:
        columns = ["annotator", "agreement", "n_judgments", "seconds", "n_flagged", "alpha_change"]
        # As the page lists them: those who pull agreement down first.
        table = _table(self.annotator_rows("-alpha_change"), columns)
        return _numeric(table, ["agreement", "seconds", "alpha_change"])

    @property
    def has_times(self) -> bool:
        return bool(self.annotators["seconds"].notna().any())

    @property
    def is_correlation(self) -> bool:
        return self.displayed.annotator_statistic == ANNOTATOR_STATISTICS["loo_correlation"]

    def annotator_rows(self, key: str) -> QuerySet[AnnotatorAgreement]:
        column = F(key.removeprefix("-"))
        order = column.desc if key.startswith("-") else column.asc
        rows = self.version.annotators.filter(question=self.displayed.question, round=self.round)
        return rows.order_by(order(nulls_last=True), "pk")


def _table(rows: QuerySet[Any], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame.from_records(list(rows.values_list(*columns)), columns=columns)


def _numeric(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return table.astype(dict.fromkeys(columns, "float64"))


def alphas_of(study: Study, round: int) -> QuerySet[AgreementCoefficient]:
    newest = AgreementVersion.objects.of(study).order_by("-version")
    return AgreementCoefficient.objects.filter(version=newest.values("pk")[:1], by="").alphas(round)

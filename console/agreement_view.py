"""One round and one question of a study's stored agreement, as the address names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

import pandas as pd

from console.agreement_parts import Content
from console.glossary import ALPHA, COEFFICIENTS, Term, title_of
from console.pair_matrix import STATISTICS

WITH, WITHOUT = "all submissions", "without flagged ones"
# More rows would make the forest longer than a screen; then conditions are left to the table.
MOST_IN_FOREST = 24


@dataclass(frozen=True)
class CoefficientRow:
    """A coefficient with all submissions and, where some are flagged, without those."""

    term: Term | None
    title: str
    all: Content
    unflagged: Content | None

    @property
    def is_defined(self) -> bool:
        return self.all["value"] is not None or bool(
            self.unflagged and self.unflagged["value"] is not None
        )


@dataclass(frozen=True)
class AgreementView:
    """A round of the stored result, and the question and condition looked at more closely."""

    content: Content
    round: Content
    question: str
    condition: str

    @classmethod
    def from_query(cls, content: Content, query: Mapping[str, str]) -> AgreementView:
        """The view an address asks for; KeyError names what of it is not there."""
        rounds = {str(found["round"]): found for found in content["rounds"]}
        shown = rounds[query.get("round") or str(content["round"])]
        questions = [found["question"] for found in shown["questions"]]
        view = cls(
            content, shown, query.get("question") or questions[0], query.get("condition", "")
        )
        if view.question not in questions:
            raise KeyError(view.question)
        if view.condition not in ("", *view.conditions):
            raise KeyError(view.condition)
        return view

    @property
    def query(self) -> str:
        """What names this view in an address."""
        return urlencode({"round": self.round["round"], "question": self.question})

    @property
    def rounds(self) -> list[int]:
        return [found["round"] for found in self.content["rounds"]]

    @property
    def questions(self) -> list[str]:
        return [found["question"] for found in self.round["questions"]]

    @cached_property
    def question_content(self) -> Content:
        """Matrix, annotators and sizes of the question."""
        return next(row for row in self.round["questions"] if row["question"] == self.question)

    @property
    def has_kappas(self) -> bool:
        """Whether kappa is computed of every pair, beyond those of the matrix."""
        return self.question_content["level"] in STATISTICS

    @cached_property
    def conditions(self) -> list[str]:
        """The conditions of the question; none where there is but one."""
        found = (row["by"] for row in self._of_question())
        return [name for name in dict.fromkeys(found) if name]

    @cached_property
    def coefficients(self) -> list[CoefficientRow]:
        """Every coefficient of the question in the condition, those that are defined first."""
        rows = [row for row in self._of_question() if row["by"] == self.condition]
        unflagged = {row["name"]: row for row in rows if not row["with_flagged"]}
        found = [
            CoefficientRow(
                COEFFICIENTS.get(row["name"]),
                title_of(row["name"]),
                row,
                unflagged.get(row["name"]),
            )
            for row in rows
            if row["with_flagged"]
        ]
        # Alpha before the others: it is what every level and design has.
        return sorted(found, key=lambda row: not row.all["name"].startswith("krippendorff"))

    def _of_question(self) -> list[Content]:
        return [row for row in self.round["coefficients"] if row["question"] == self.question]

    @property
    def between_rounds(self) -> list[Content]:
        """How well the question's values in one round agree with those in another."""
        return [
            row | {"title": title_of(row["name"])}
            for row in self.content["between_rounds"]
            if row["question"] == self.question and row["value"] is not None
        ]

    def forest(self) -> pd.DataFrame:
        """Alpha of every question and, where they fit, of every condition."""
        alphas = [row for row in self.round["coefficients"] if row["name"] == ALPHA]
        if len({(row["question"], row["by"]) for row in alphas}) > MOST_IN_FOREST:
            alphas = [row for row in alphas if not row["by"]]
        rows = [
            {
                "label": f"{row['question']}, {row['by']}" if row["by"] else row["question"],
                "part": WITH if row["with_flagged"] else WITHOUT,
                **{name: row[name] for name in ("value", "ci_low", "ci_high", "n_items")},
            }
            for row in alphas
        ]
        return _numeric(pd.DataFrame(rows), ["value", "ci_low", "ci_high"])

    def pairs(self) -> pd.DataFrame:
        """The pairs of the question's annotators, those who judged most."""
        columns = ["annotator_a", "annotator_b", "n_shared", "value", "reason"]
        return _numeric(
            pd.DataFrame(self.question_content["matrix"]["pairs"], columns=columns), ["value"]
        )

    def annotators(self) -> pd.DataFrame:
        """The question's annotators with their agreement, volume and speed."""
        columns = ["annotator", "agreement", "n_judgments", "seconds", "n_flagged", "alpha_change"]
        table = pd.DataFrame(self.question_content["annotators"], columns=columns)
        return _numeric(table, ["agreement", "seconds", "alpha_change"])


def _numeric(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """None, which JSON has for an undefined number, as NaN."""
    return table.astype(dict.fromkeys(columns, "float64"))

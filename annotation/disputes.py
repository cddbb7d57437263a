"""What annotators agree on least: the queue in which someone decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from annotation.disagreement import unit_table
from annotation.models import Adjudication, Judgment, Question

MOST_SHOWN = 50


@dataclass(frozen=True)
class Opinion:
    """What one annotator gave, and why."""

    annotator: str
    value: float
    category: str
    justification: str
    flag_reason: str


@dataclass(frozen=True)
class Dispute:
    """A candidate that its annotators do not agree on, with the decision if there is one."""

    question: str
    round: int
    item_id: int
    item: str
    candidate_id: int
    candidate: str
    agreement: float
    opinions: tuple[Opinion, ...]
    decision: Adjudication | None

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        plain = asdict(self) | {"decision": None}
        if self.decision is not None:
            plain["decision"] = {
                "value": self.decision.value,
                "note": self.decision.note,
                "decided_by": str(self.decision.decided_by),
                "decided_at": self.decision.decided_at.isoformat(),
            }
        return plain


@dataclass(frozen=True)
class Queue:
    """The disputes to show, least agreement first, and how many there are in all."""

    disputes: tuple[Dispute, ...]
    n_disputed: int
    n_decided: int


def adjudication_queue(
    question: Question, *, round: int = 1, with_decided: bool = False, most: int = MOST_SHOWN
) -> Queue:
    """The candidates of a question that two annotators or more did not wholly agree on."""
    table = unit_table(question, round=round)
    disputed = table[table["agreement"] < 1]
    decisions = _decisions(question, round)
    is_decided = disputed["candidate_id"].isin(list(decisions))
    waiting = disputed if with_decided else disputed[~is_decided]
    shown = waiting.sort_values("agreement", kind="stable").head(most)
    return Queue(
        disputes=tuple(_disputes(question, round, shown, decisions)),
        n_disputed=len(disputed),
        n_decided=int(is_decided.sum()),
    )


def _decisions(question: Question, round: int) -> dict[int, Adjudication]:
    standing = Adjudication.objects.filter(question=question, round=round).standing()
    return {made.candidate_id: made for made in standing.select_related("decided_by")}


def _disputes(
    question: Question, round: int, shown: pd.DataFrame, decisions: dict[int, Adjudication]
) -> list[Dispute]:
    opinions = _opinions(question, round, shown["candidate_id"].tolist())
    return [
        Dispute(
            question=question.name,
            round=round,
            item_id=row["item_id"],
            item=row["item"],
            candidate_id=row["candidate_id"],
            candidate=row["candidate"],
            agreement=row["agreement"],
            opinions=tuple(opinions[row["candidate_id"]]),
            decision=decisions.get(row["candidate_id"]),
        )
        for row in shown.to_dict(orient="records")
    ]


def _opinions(
    question: Question, round: int, candidates: Sequence[int]
) -> dict[int, list[Opinion]]:
    judgments = Judgment.objects.accepted().filter(
        question=question, submission__round=round, candidate__in=candidates
    )
    found: dict[int, list[Opinion]] = defaultdict(list)
    ordered = judgments.order_by("submission__annotator__pseudonym")
    for judgment in ordered.select_related("submission__annotator"):
        given = judgment.submission
        named = question.categories[int(judgment.value)] if question.categories else ""
        found[judgment.candidate_id].append(
            Opinion(
                given.annotator.pseudonym,
                judgment.value,
                named,
                given.justification,
                given.flag_reason,
            )
        )
    return found

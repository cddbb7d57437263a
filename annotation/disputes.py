from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Count, F, Prefetch, Q, Value
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.names import is_seen
from annotation.access import record_in
from annotation.disagreement import default_threshold
from annotation.exceptions import CommentRefused, DecisionRefused, require
from annotation.models import (
    LONGEST_COMMENT,
    Adjudication,
    Candidate,
    DisputeComment,
    Judgment,
    Question,
    Submission,
    UnitAgreement,
    WrittenAnswer,
)
from annotation.result_kinds.agreement import AgreementKind
from presentation.numbers import group_values

MOST_ROWS = 50


@dataclass(frozen=True)
class Opinion:
    annotator: str
    value: float
    category: str
    justification: str
    flag_reason: str
    # Written answers of the page and about the candidate, by question.
    written: dict[str, str]


@dataclass(frozen=True)
class Dispute:
    """A candidate that its annotators do not agree on, with the decision if there is one.

    `blind_name` names it without its system, so that nobody decides by who wrote it.
    """

    question: str
    round: int
    item_id: int
    item: str
    candidate_id: int
    candidate: str
    blind_name: str
    agreement: float | None
    spread: float
    opinions: tuple[Opinion, ...]
    decision: Adjudication | None

    def record(self) -> dict[str, Any]:
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
    disputes: tuple[Dispute, ...]
    n_disputed: int
    n_decided: int
    threshold: float

    def record(self, question: Question, round: int) -> dict[str, Any]:
        return {
            "question": question.name,
            "round": round,
            "threshold": self.threshold,
            "n_disputed": self.n_disputed,
            "n_decided": self.n_decided,
            "disputes": [dispute.record() for dispute in self.disputes],
        }


def adjudication_queue(
    question: Question,
    *,
    round: int = 1,
    threshold: float | None = None,
    with_decided: bool = False,
    skip: int = 0,
    most: int = MOST_ROWS,
) -> Queue:
    """The candidates of a question whose judgments lie further apart than the threshold.

    They are read from the agreement that was computed last; without a threshold, the one that
    fits the question's scale is taken.
    """
    limit = default_threshold(question) if threshold is None else threshold
    version = AgreementKind().list_results(question.study).first()
    if version is None:
        return Queue((), 0, 0, limit)
    disputed = version.units.judged(question, round).disputed(limit)
    # Of an expression, so that a planner takes the index that gives the order, and stops early.
    waiting = (
        version.units.judged(question, round)
        .annotate(distance=F("spread") + Value(0.0))
        .filter(distance__gt=limit)
    )
    decided = Adjudication.objects.filter(question=question, round=round).values("candidate")
    waiting = waiting if with_decided else waiting.exclude(candidate__in=decided)
    counts = disputed.order_by().aggregate(
        n_disputed=Count("*"), n_decided=Count("pk", filter=Q(candidate__in=decided))
    )
    rows = waiting.select_related("candidate__item").order_by("agreement", "pk")
    return Queue(
        disputes=tuple(_disputes(question, round, list(rows[skip : skip + most]), with_decided)),
        threshold=limit,
        **counts,
    )


def _disputes(
    question: Question, round: int, rows: Sequence[UnitAgreement], with_decided: bool
) -> Iterator[Dispute]:
    candidates = [row.candidate_id for row in rows]
    opinions = _opinions(question, round, candidates)
    # What waits has no decision.
    decisions = _decisions(question, round, candidates) if with_decided else {}
    for row in rows:
        item = row.candidate.item
        yield Dispute(
            question=question.name,
            round=round,
            item_id=item.pk,
            item=item.key,
            candidate_id=row.candidate_id,
            candidate=row.candidate.key,
            blind_name=row.candidate.blind_name,
            agreement=row.agreement,
            spread=row.spread,
            opinions=tuple(opinions[row.candidate_id]),
            decision=decisions.get(row.candidate_id),
        )


def _decisions(
    question: Question, round: int, candidates: Sequence[int]
) -> dict[int, Adjudication]:
    return {
        decision.candidate_id: decision
        for decision in Adjudication.objects.filter(
            question=question, round=round, candidate__in=candidates
        )
        .standing()
        .select_related("decided_by")
    }


def _opinions(
    question: Question, round: int, candidates: Sequence[int]
) -> dict[int, list[Opinion]]:
    judgments = Judgment.objects.accepted().filter(
        question=question, submission__round=round, candidate__in=candidates
    )
    ordered = judgments.order_by("submission__annotator__pseudonym")
    about = WrittenAnswer.objects.filter(Q(candidate=None) | Q(candidate__in=candidates))
    ordered = ordered.prefetch_related(Prefetch("submission__written_answers", about))
    return group_values(
        (
            cast(int, judgment.candidate_id),  # by the filter above
            Opinion(
                judgment.submission.annotator.pseudonym,
                judgment.value,
                question.categories[int(judgment.value)] if question.categories else "",
                judgment.submission.justification,
                judgment.submission.flag_reason,
                {
                    one.question: one.text
                    for one in judgment.submission.written_answers.all()
                    if one.candidate_id in (None, judgment.candidate_id)
                },
            ),
        )
        for judgment in ordered.select_related("submission__annotator")
    )


@transaction.atomic
def decide(
    *,
    candidate: Candidate,
    question: Question,
    value: float,
    decided_by: AbstractBaseUser,
    round: int = 1,
    note: str = "",
) -> Adjudication:
    """Write a decision down; it stands until the next one, and deciding the same again is none."""
    require(
        candidate.item.study_id == question.study_id,
        DecisionRefused(
            f"'{candidate}' and '{question}' are of different studies.", code="other_study"
        ),
    )
    if (problem := question.validation_error(value)) is not None:
        raise DecisionRefused(f"{problem[0].upper()}{problem[1:]}", code=problem.code)
    require(
        Submission.objects.of(question.study).accepted().filter(round=round).exists(),
        DecisionRefused(
            f"Study '{question.study}' was not judged in round {round}.", code="not_judged"
        ),
    )
    subject = {"candidate": candidate, "question": question, "round": round}
    decision = {"value": value, "note": note.strip(), "decided_by_id": decided_by.pk}
    standing = Adjudication.objects.filter(**subject).standing().first()
    if standing is not None and all(getattr(standing, name) == decision[name] for name in decision):
        return standing
    adjudication = Adjudication.objects.create(**subject, **decision)
    record_in(
        question.study,
        actor=decided_by,
        action="adjudication",
        details={
            "item": candidate.item.key,
            "candidate": candidate.key,
            "question": question.name,
            "round": round,
            "value": value,
        },
    )
    return adjudication


def add_comment(
    *,
    candidate: Candidate,
    question: Question,
    text: str,
    written_by: AbstractBaseUser,
    round: int = 1,
) -> DisputeComment:
    require(
        candidate.item.study_id == question.study_id,
        CommentRefused(
            f"'{candidate}' and '{question}' are of different studies.", code="other_study"
        ),
    )
    return DisputeComment.objects.create(
        candidate=candidate,
        question=question,
        round=round,
        text=_checked(text),
        written_by_id=written_by.pk,
    )


def edit_comment(*, comment: DisputeComment, text: str, actor: AbstractBaseUser) -> None:
    _require_author(comment, actor)
    text = _checked(text)
    if text != comment.text:
        comment.text, comment.edited_at = text, timezone.now()
        comment.save(update_fields=["text", "edited_at"])


@transaction.atomic
def delete_comment(*, comment: DisputeComment, actor: AbstractBaseUser) -> None:
    """The team's log keeps that there was a comment, without its text."""
    _require_author(comment, actor)
    details: dict[str, Any] = {
        "item": comment.candidate.item.key,
        "candidate": comment.candidate.blind_name,
        "question": comment.question.name,
        "round": comment.round,
        "written_at": comment.written_at.isoformat(),
    }
    study = comment.question.study
    comment.delete()
    record_in(study, actor=actor, action="comment.delete", details=details)


def _require_author(comment: DisputeComment, actor: AbstractBaseUser) -> None:
    require(
        comment.written_by_id == actor.pk,
        CommentRefused(_("Only who wrote a comment changes or deletes it."), code="other_writer"),
    )


def _checked(text: str) -> str:
    text = text.strip()
    require(
        0 < len(text) <= LONGEST_COMMENT,
        CommentRefused(
            _("A comment has 1 to {most} characters.").format(most=LONGEST_COMMENT), code="length"
        ),
    )
    require(
        is_seen(text),
        CommentRefused(_("Nothing of this comment would be seen: write it anew."), code="unseen"),
    )
    return text

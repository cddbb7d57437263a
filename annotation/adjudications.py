"""Deciding what a candidate's value is, where annotators did not agree."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from annotation.audit import record_in
from annotation.exceptions import DecisionRefused
from annotation.models import Adjudication, Candidate, Question, Submission


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
    if candidate.item.study_id != question.study_id:
        raise DecisionRefused(
            f"'{candidate}' and '{question}' are of different studies.", code="other_study"
        )
    if (problem := question.validation_error(value)) is not None:
        raise DecisionRefused(f"{problem[0].upper()}{problem[1:]}", code=problem.code)
    if not Submission.objects.of(question.study).accepted().filter(round=round).exists():
        raise DecisionRefused(
            f"Study '{question.study}' was not judged in round {round}.", code="not_judged"
        )
    subject = {"candidate": candidate, "question": question, "round": round}
    decision = {"value": value, "note": note.strip(), "decided_by_id": decided_by.pk}
    standing = Adjudication.objects.filter(**subject).standing().first()
    if standing is not None and all(getattr(standing, name) == decision[name] for name in decision):
        return standing
    adjudication = Adjudication.objects.create(**subject, **decision)
    details = {
        "item": candidate.item.key,
        "candidate": candidate.key,
        "question": question.name,
        "round": round,
        "value": value,
    }
    record_in(question.study, actor=decided_by, action="adjudication", details=details)
    return adjudication

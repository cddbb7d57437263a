"""What a study's pages hold, counted: for the time that they take, and for when they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Sum
from django.db.models.functions import Length

from annotation.models import Candidate, Question, Study


@dataclass(frozen=True)
class StudyTexts:
    """The counts of a study's items and candidates, and its questions, in three statements."""

    study: Study
    of_items: dict[str, Any]
    of_candidates: dict[str, Any]
    questions: list[Question]


def study_texts(study: Study) -> StudyTexts:
    """Read the counts; a text that changes without changing its length is not noticed."""
    same = {"n": Count("*"), "last": Max("pk"), "n_pictures": Count("picture")}
    items = study.items.aggregate(**same, n_characters=Sum(Length("context")))
    candidates = Candidate.objects.filter(item__study=study.pk)
    of_candidates = candidates.aggregate(**same, n_characters=Sum(Length("text")))
    questions = sorted(study.questions.all(), key=lambda one: one.pk)
    return StudyTexts(study, items, of_candidates, questions)

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
from django.db.models import Q

from annotation.exceptions import StudyUnfit
from annotation.models import Question, Study
from annotation.models.studies import says_nothing
from presentation.numbers import plain_values
from stats.arguments import Integers
from stats.ranking.judged_lists import HIGHEST_GRADE

UNGRADED_KINDS = ("preference", "best_worst", "ranking")
GRADED_LEVELS = (Question.Level.NOMINAL, Question.Level.ORDINAL)


def _majority(grades: Sequence[int]) -> int:
    """The highest grade that more than half of the assessors reached."""
    return sorted(grades, reverse=True)[len(grades) // 2]


def _votes(grades: Sequence[int]) -> int:
    return min(sum(grade > 0 for grade in grades), HIGHEST_GRADE)


# One grade of those that assessors gave a document: of ticks, whether more than half, any or all
# of the assessors ticked it, or how many did; of grades, the highest that more than half, any or
# all of them reached.
GRADE: dict[str, Callable[[Sequence[int]], int]] = {
    "majority": _majority,
    "any": max,
    "all": min,
    "votes": _votes,
}
RULES = tuple(GRADE)


@dataclass(frozen=True)
class Scale:
    """The grades of a question's values.

    `names` are the categories' grades, None for those that say that nothing can be said;
    without categories a value's grade is what it is above `zero`.
    """

    question: str
    zero: float = 0
    names: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def is_binary(self) -> bool:
        return {grade for grade in self.names.values() if grade is not None} == {0, 1}

    @property
    def relevant_values(self) -> Q:
        if not self.names:
            return Q(value__gt=self.zero)
        return Q(value__in=[n for n, grade in enumerate(self.names.values()) if grade])

    def grade(self, value: float) -> int | None:
        if self.names:
            return list(self.names.values())[int(value)]
        grade = value - self.zero
        if grade != int(grade) or not 0 <= grade <= HIGHEST_GRADE:
            raise StudyUnfit(
                f"The value {value:g} under question '{self.question}' gives no grade: grades are "
                f"whole numbers from 0 to {HIGHEST_GRADE}, counted from {self.zero:g}.",
                code="value_no_grade",
            )
        return int(grade)

    def grade_of_label(self, value: float) -> int | None:
        """The grade of a label, which of ticks may be a mean: above a half it is relevant."""
        if self.is_binary and value != int(value):
            return int(value > 0.5)
        if self.names and value != int(value):
            raise StudyUnfit(
                f"The label {value:g} under question '{self.question}' is none of its answers. Use "
                "a label set by majority, median or Dawid and Skene's method.",
                code="label_no_grade",
            )
        return self.grade(value)


def scale_of(
    question: Question, *, cannot_judge: Sequence[str] = (), zero: float | None = None
) -> Scale:
    """How a question grades, or StudyUnfit: ticks, categories in their order, or labelled points.

    `cannot_judge` names the categories that say that nothing can be said, where their labels
    are not among those that are known; `zero` is the value that becomes grade 0.
    """
    study = question.study
    if study.kind != Study.Kind.ALTERNATIVES and not is_graded(question):
        raise StudyUnfit(
            f"Question '{question.name}' of study '{study.slug}' is asked at the {question.level} "
            "level; qrels are made of alternatives, or of grades: a question with categories or "
            "labelled points.",
            code="not_graded",
        )
    if unknown := [name for name in cannot_judge if name not in question.categories]:
        listed = ", ".join(question.categories) or "no categories"
        raise StudyUnfit(
            f"'{unknown[0]}' is no answer of '{question.name}': it has {listed}.",
            code="answer_unknown",
        )
    if zero is None:
        zero = question.scale_min if question.kind == "likert" else 0
    return Scale(question.name, zero, _grades_of_categories(question.categories, cannot_judge))


def is_graded(question: Question) -> bool:
    return question.level in GRADED_LEVELS and question.kind not in UNGRADED_KINDS


def _grades_of_categories(
    categories: Sequence[str], cannot_judge: Sequence[str]
) -> dict[str, int | None]:
    grades: dict[str, int | None] = {}
    for name in categories:
        is_none = name in cannot_judge or says_nothing(name)
        grades[name] = None if is_none else sum(one is not None for one in grades.values())
    return grades


@dataclass(frozen=True)
class CollectionSizes:
    """What is said of a collection in one table, of judged and of relevant documents by topic.

    Attributes
    ----------
    judged, relevant : ndarray of int, shape (n_topics,)
        Of each topic; a topic of which nothing is judged does not count as assessed.
    """

    judged: Integers
    relevant: Integers

    @property
    def n_topics(self) -> int:
        return len(self.judged)

    @property
    def n_assessed(self) -> int:
        return int((self.judged > 0).sum())

    @property
    def n_with_relevant(self) -> int:
        return int((self.relevant > 0).sum())

    @property
    def n_judgments(self) -> int:
        return int(self.judged.sum())

    @property
    def n_relevant(self) -> int:
        return int(self.relevant.sum())

    @property
    def mean_relevant(self) -> float:
        """Over the topics of which anything is relevant."""
        return self.n_relevant / self.n_with_relevant if self.n_with_relevant else nan

    @property
    def mean_relevant_of_all(self) -> float:
        """Over all topics that were assessed."""
        return self.n_relevant / self.n_assessed if self.n_assessed else nan

    @property
    def judged_per_topic(self) -> float:
        return self.n_judgments / self.n_assessed if self.n_assessed else nan

    @property
    def prevalence(self) -> float:
        return self.n_relevant / self.n_judgments if self.n_judgments else nan

    @property
    def histogram(self) -> dict[int, int]:
        numbers, counts = np.unique(self.relevant[self.judged > 0], return_counts=True)
        return dict(zip(numbers.tolist(), counts.tolist(), strict=True))

    def record(self) -> dict[str, Any]:
        values = {
            "n_topics": self.n_topics,
            "n_assessed": self.n_assessed,
            "n_with_relevant": self.n_with_relevant,
            "n_judgments": self.n_judgments,
            "n_relevant": self.n_relevant,
            "mean_relevant": self.mean_relevant,
            "mean_relevant_with_target": self.mean_relevant + 1,
            "mean_relevant_of_all": self.mean_relevant_of_all,
            "mean_relevant_of_all_with_target": self.mean_relevant_of_all + 1,
            "judged_per_topic": self.judged_per_topic,
            "prevalence": self.prevalence,
        }
        return {**plain_values(values), "histogram": {str(n): c for n, c in self.histogram.items()}}

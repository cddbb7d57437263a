"""SimplePlurality: what most workers answered, and how far they agree.

All scores are percentages rounded down, as in AWS's worked example, where two workers of
three make 66.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Values = frozenset[str]
LONGEST_ANSWER = 256


@dataclass(frozen=True)
class QuestionAgreement:
    """The answer most workers gave, if they agree on one, and how many in a hundred did."""

    agreed: Values | None
    percent: int | None


@dataclass(frozen=True)
class WorkerAgreement:
    """How often one worker agreed with the rest, where there was an answer to agree with."""

    correct: int
    incorrect: int

    @property
    def percent(self) -> int | None:
        """None where nothing was agreed."""
        count = self.correct + self.incorrect
        return 100 * self.correct // count if count else None


@dataclass(frozen=True)
class Plurality:
    """What SimplePlurality concludes about a HIT."""

    questions: Mapping[str, QuestionAgreement]
    workers: Mapping[str, WorkerAgreement]

    @property
    def percent(self) -> int:
        """Questions with an agreed answer, in a hundred."""
        agreed = sum(question.agreed is not None for question in self.questions.values())
        return 100 * agreed // len(self.questions)


def find_plurality(
    answers: Mapping[str, Mapping[str, Values]], question_ids: Sequence[str], threshold: int
) -> Plurality:
    """The agreement among assignments, each with its answers by question. A question has an
    agreed answer where one answer's share is greater than the threshold, or is everybody's."""
    if not question_ids:
        raise ValueError("question_ids must name at least one question")
    questions = {
        question: _agreement(
            [answer.get(question, frozenset()) for answer in answers.values()], threshold
        )
        for question in question_ids
    }
    workers = {worker: _compare(answer, questions) for worker, answer in answers.items()}
    return Plurality(questions, workers)


def _agreement(values: Sequence[Values], threshold: int) -> QuestionAgreement:
    counted = [answer for answer in values if _is_short(answer)]
    ranking = Counter(answer for answer in counted if answer).most_common(2)
    if not ranking or (len(ranking) == 2 and ranking[0][1] == ranking[1][1]):
        return QuestionAgreement(None, None)
    answer, count = ranking[0]
    percent = 100 * count // len(counted)
    if percent > threshold or percent == 100:
        return QuestionAgreement(answer, percent)
    return QuestionAgreement(None, None)


def _compare(
    answer: Mapping[str, Values], questions: Mapping[str, QuestionAgreement]
) -> WorkerAgreement:
    hits = [
        answer.get(question, frozenset()) == agreement.agreed
        for question, agreement in questions.items()
        if agreement.agreed is not None and _is_short(answer.get(question, frozenset()))
    ]
    return WorkerAgreement(correct=sum(hits), incorrect=len(hits) - sum(hits))


def _is_short(answer: Values) -> bool:
    return sum(map(len, answer)) <= LONGEST_ANSWER

"""ScoreMyKnownAnswers: how many of the answers that are known a worker got right."""

from collections.abc import Mapping
from dataclasses import dataclass

Values = frozenset[str]


@dataclass(frozen=True)
class KnownAnswerScore:
    """Which questions with a known answer were answered so."""

    is_correct: Mapping[str, bool]

    @property
    def correct_count(self) -> int:
        return sum(self.is_correct.values())

    @property
    def percent(self) -> int:
        """Correct ones in a hundred, rounded down."""
        return 100 * self.correct_count // len(self.is_correct)


def normalized(values: Mapping[str, tuple[str, ...]]) -> dict[str, Values]:
    """Each question's values as a set, without the blanks around them; an empty value is none."""
    return {
        question: frozenset(value.strip() for value in values_of_question if value.strip())
        for question, values_of_question in values.items()
    }


def score_known_answers(
    answers: Mapping[str, Values], answer_key: Mapping[str, Values]
) -> KnownAnswerScore:
    """The score; an answer is correct where it has all the values of the key and no others."""
    if not answer_key:
        raise ValueError("answer_key must hold at least one question")
    return KnownAnswerScore(
        {
            question: answers.get(question, frozenset()) == correct
            for question, correct in answer_key.items()
        }
    )

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marketplace.exceptions import InvalidParameter, require

Values = frozenset[str]


def normalized(values: Mapping[str, tuple[str, ...]]) -> dict[str, Values]:
    return {
        question: frozenset(value.strip() for value in values_of_question if value.strip())
        for question, values_of_question in values.items()
    }


def score_known_answers(
    answers: Mapping[str, Values], answer_key: Mapping[str, Values]
) -> dict[str, bool]:
    """By question, whether all values of the key were given, and no others."""
    return {
        question: answers.get(question, frozenset()) == correct
        for question, correct in answer_key.items()
    }


# The parameters of review policies, as data.

YEAR_SECONDS = 365 * 86_400
# What an assignment's feedback and a result's question id can hold.
LONGEST_REASON = 1024
LONGEST_QUESTION_ID = 128
LENGTH = f"each of at most {LONGEST_QUESTION_ID} characters"


Reader = Callable[[str, Sequence[str]], Any]


def _number(minimum: int, maximum: int) -> Reader:
    def read(name: str, values: Sequence[str]) -> int:
        text = values[0].strip() if len(values) == 1 else ""
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
        require(
            minimum <= number <= maximum,
            InvalidParameter(f"{name} must be one whole number from {minimum} to {maximum}."),
        )
        return number

    return read


def _read_words(name: str, values: Sequence[str]) -> str:
    require(
        len(values) == 1 and len(values[0]) <= LONGEST_REASON,
        InvalidParameter(f"{name} must be one text of at most {LONGEST_REASON} characters."),
    )
    return values[0]


def _read_names(name: str, values: Sequence[str]) -> tuple[str, ...]:
    # Each is a value of its own, or they are separated by commas.
    names = tuple(part.strip() for value in values for part in value.split(","))
    require(
        _are_question_ids(names),
        InvalidParameter(f"{name} must be one or more different question ids, {LENGTH}."),
    )
    return names


def _read_yes_or_no(name: str, values: Sequence[str]) -> bool:
    word = values[0].strip().lower() if len(values) == 1 else ""
    require(word in ("true", "t", "false", "f"), InvalidParameter(f"{name} must be true or false."))
    return word.startswith("t")


PERCENT = _number(0, 101)  # 0 is always reached, 101 never
SCORE_MY_KNOWN_ANSWERS = "ScoreMyKnownAnswers/2011-09-01"
SIMPLE_PLURALITY = "SimplePlurality/2011-09-01"
ANSWER_KEY = "AnswerKey"

PARAMETERS: dict[str, dict[str, Reader]] = {
    SCORE_MY_KNOWN_ANSWERS: {
        "ApproveIfKnownAnswerScoreIsAtLeast": PERCENT,
        "ApproveReason": _read_words,
        "RejectIfKnownAnswerScoreIsLessThan": PERCENT,
        "RejectReason": _read_words,
        "ExtendIfKnownAnswerScoreIsLessThan": PERCENT,
        "ExtendMaximumAssignments": _number(2, 25),
        "ExtendMinimumTimeInSeconds": _number(60, YEAR_SECONDS),
    },
    SIMPLE_PLURALITY: {
        "QuestionIds": _read_names,
        "QuestionAgreementThreshold": _number(0, 100),
        "DisregardAssignmentIfRejected": _read_yes_or_no,
        "DisregardAssignmentIfKnownAnswerScoreIsLessThan": PERCENT,
        "ExtendIfHITAgreementScoreIsLessThan": _number(1, 100),
        "ExtendMaximumAssignments": _number(1, 1_000_000_000),
        "ExtendMinimumTimeInSeconds": _number(3600, YEAR_SECONDS),
        "ApproveIfWorkerAgreementScoreIsAtLeast": PERCENT,
        "RejectIfWorkerAgreementScoreIsLessThan": PERCENT,
        "RejectReason": _read_words,
    },
}
REQUIRED = {
    SCORE_MY_KNOWN_ANSWERS: ("AnswerKey",),
    SIMPLE_PLURALITY: ("QuestionIds", "QuestionAgreementThreshold"),
}
# One asks for the others.
TOGETHER = {
    SCORE_MY_KNOWN_ANSWERS: {},
    SIMPLE_PLURALITY: {
        "ExtendIfHITAgreementScoreIsLessThan": (
            "ExtendMaximumAssignments",
            "ExtendMinimumTimeInSeconds",
        )
    },
}


@dataclass(frozen=True)
class PolicyParameters:
    values: Mapping[str, Any] = field(default_factory=dict)
    answer_key: Mapping[str, Values] = field(default_factory=dict)


def read_parameters(policy: str, parameters: Sequence[Mapping[str, Any]]) -> PolicyParameters:
    names = {name.casefold(): name for name in (*PARAMETERS[policy], *REQUIRED[policy])}
    by_name: dict[str, Mapping[str, Any]] = {}
    for parameter in parameters:
        key = parameter["Key"] or ""
        name = names.get(key.casefold())
        if name is None:
            raise InvalidParameter(f"{key!r} is not a parameter of {policy}.")
        require(name not in by_name, InvalidParameter(f"The parameter {name} is given twice."))
        by_name[name] = parameter
    _check_complete(policy, by_name)
    return PolicyParameters(
        {
            name: PARAMETERS[policy][name](name, parameter["Values"] or [])
            for name, parameter in by_name.items()
            if name != ANSWER_KEY
        },
        _answer_key(by_name.get(ANSWER_KEY)),
    )


def _check_complete(policy: str, parameters: Mapping[str, Any]) -> None:
    required = {*REQUIRED[policy]}
    for name, others in TOGETHER[policy].items():
        required |= {*others} if name in parameters else set()
    for name in sorted(required - parameters.keys()):
        raise InvalidParameter(f"{policy} needs the parameter {name}.")


def _answer_key(parameter: Mapping[str, Any] | None) -> dict[str, Values]:
    if parameter is None:
        return {}
    entries = parameter["MapEntries"] or []
    require(
        _are_question_ids([entry["Key"] for entry in entries]),
        InvalidParameter(
            f"AnswerKey needs MapEntries, each with the Key of a different question, {LENGTH}."
        ),
    )
    return normalized({entry["Key"]: tuple(entry["Values"] or ()) for entry in entries})


def _are_question_ids(names: Sequence[str | None]) -> bool:
    are_ids = all(name and len(name) <= LONGEST_QUESTION_ID for name in names)
    return bool(names) and are_ids and len(set(names)) == len(names)


# SimplePlurality: what most workers answered, and how far they agree.
#
# All scores are percentages rounded down, as in AWS's worked example, where two workers of three
# make 66.

LONGEST_ANSWER = 256


@dataclass(frozen=True)
class QuestionAgreement:
    agreed: Values | None
    percent: int | None


@dataclass(frozen=True)
class WorkerAgreement:
    correct: int
    incorrect: int

    @property
    def percent(self) -> int | None:
        count = self.correct + self.incorrect
        return 100 * self.correct // count if count else None


@dataclass(frozen=True)
class Plurality:
    questions: Mapping[str, QuestionAgreement]
    workers: Mapping[str, WorkerAgreement]

    @property
    def percent(self) -> int:
        agreed = sum(question.agreed is not None for question in self.questions.values())
        return 100 * agreed // len(self.questions)


def find_plurality(
    answers: Mapping[str, Mapping[str, Values]], question_ids: Sequence[str], threshold: int
) -> Plurality:
    """The agreement among assignments' answers by question. An answer is agreed if its share
    exceeds the threshold, or is 100 %."""
    require(question_ids, ValueError("question_ids must name at least one question"))
    questions = {
        question: _agreement(
            [answer.get(question, frozenset()) for answer in answers.values()], threshold
        )
        for question in question_ids
    }
    return Plurality(
        questions, {worker: _compare(answer, questions) for worker, answer in answers.items()}
    )


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

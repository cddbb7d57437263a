"""Reading a number out of what a judge says; what cannot be read is said, never guessed.

The released readings are here for replication. They always give a number: LMStyle's takes 50
where a reply holds none, G-Eval's takes 0, and neither looks at the scale.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from error_codes import CodedText
from metrics.scorers.judges.budget import Usage
from metrics.scorers.judges.score_mentions import find_score

RELEASED_GRADE = 50
REASONS = {
    "no_number": "no number in the reply",
    "no_score": "no score in the reply: its numbers are of something else",
    "ambiguous": "the reply is ambiguous: several numbers may be the score",
    "other_scale": "the reply is on another scale than the one asked for",
}


class Reading(NamedTuple):
    """A number, or NaN and why there is none."""

    value: float
    reason: str | None = None


def read_rating(text: str, aspect: str = "", low: float = 0, high: float = 100) -> Reading:
    """Read a rating, or a grade.

    Parameters
    ----------
    text : str
    aspect : str
        What is rated, if the prompt names it, as it does so.
    low, high : float
        The ends of the scale; both are legal.

    Returns
    -------
    Reading

    Examples
    --------
    >>> read_rating("On a scale of 0-100, I would give 85.")
    Reading(value=85.0, reason=None)
    >>> read_rating("Very appropriate!").reason
    'no number in the reply'
    >>> read_rating("4", "coherence", 1, 3).reason
    '4 is not on the scale from 1 to 3'
    """
    found = find_score(text, low, high, aspect)
    if found.value is None:
        code = found.problem or "no_score"
        return Reading(math.nan, CodedText(REASONS[code], code=code))
    if not low <= found.value <= high:
        problem = f"{found.value:g} is not on the scale from {low:g} to {high:g}"
        return Reading(math.nan, CodedText(problem, code="off_scale"))
    return Reading(found.value)


def count_unread(readings: Iterable[Reading]) -> dict[str, int]:
    """Count readings without a value by the code of their reason, the most frequent first.

    Parameters
    ----------
    readings : iterable of Reading

    Returns
    -------
    dict of str to int

    Examples
    --------
    >>> count_unread([read_rating("80 or 90"), read_rating("85"), read_rating("Good")])
    {'ambiguous': 1, 'no_number': 1}
    """
    reasons = (reading.reason for reading in readings)
    codes = (reason.code for reason in reasons if isinstance(reason, CodedText))
    return dict(Counter(codes).most_common())


def read_grade_as_released(text: str) -> Reading:
    """Read a grade as LMStyle's released script does: the first digits, or 50.

    Parameters
    ----------
    text : str

    Returns
    -------
    Reading
        Never NaN, and not held to the scale.

    References
    ----------
    .. [1] J. Chen (2024). LMStyle Benchmark: Evaluating Text Style Transfer for Chatbots.
       arXiv:2403.08943; the script is ``run_chatgpt.py`` of its repository.

    Examples
    --------
    >>> read_grade_as_released("Very appropriate!").value
    50.0
    """
    match = re.search(r"\d+", text)
    return Reading(float(match.group()) if match else float(RELEASED_GRADE))


def read_rating_as_released(text: str) -> Reading:
    """Read a rating as the G-Eval pipeline released with its samples: the first digit, or 0.

    Parameters
    ----------
    text : str

    Returns
    -------
    Reading
        Never NaN, and not held to the scale.

    References
    ----------
    .. [1] C.-H. Chiang and H. Lee (2023). A Closer Look into Using Large Language Models for
       Automatic Evaluation. Findings of EMNLP, 8928-8942. The rule is the one that gives the
       stored scores from the stored replies.

    Examples
    --------
    >>> read_rating_as_released("2.5").value, read_rating_as_released("N/A").value
    (2.0, 0.0)
    """
    match = re.search(r"[0-9]", text)
    return Reading(float(match.group()) if match else 0.0)


# NUL and halves of surrogate pairs: JSON can say them, databases and files cannot keep them.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# How far over 0 rounding may take the log-probability of a certainty.
CERTAIN_NATS = 1e-3


class Token(NamedTuple):
    """A token of a reply, and the alternatives it was chosen from, with log-probabilities.

    `offset` is where it begins in the text, in characters, where the endpoint says so.
    """

    text: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()
    offset: int | None = None


class Reply(NamedTuple):
    """One choice. `tokens` is empty where the endpoint gave no log-probabilities."""

    text: str
    finish: str | None = None
    tokens: tuple[Token, ...] = ()


class Answer(NamedTuple):
    """The replies to one request; `usage` is None where the endpoint does not count."""

    replies: tuple[Reply, ...]
    model: str
    usage: Usage | None


def read_answer(body: Any) -> Answer:
    """Read the body of chat completions, or of completions.

    Parameters
    ----------
    body : object
        Decoded JSON.

    Returns
    -------
    Answer

    Raises
    ------
    ValueError
        If it is not of that form, or holds no reply.

    Examples
    --------
    >>> read_answer({"choices": [{"message": {"content": "3"}}]}).replies
    (Reply(text='3', finish=None, tokens=()),)
    """
    try:
        replies = tuple(_reply(choice) for choice in body["choices"])
        model = storable(str(body.get("model") or ""))
        usage = _usage(body.get("usage"))
    except (TypeError, KeyError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError("the answer is not of the form of (chat) completions") from error
    if not replies:
        raise ValueError("the answer holds no choices")
    return Answer(replies, model, usage)


def storable(text: str) -> str:
    r"""Put a replacement character for each that cannot be kept.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        Of the same length.

    Examples
    --------
    >>> storable("3\x00")
    '3�'
    """
    return UNSTORABLE.sub("\ufffd", text)


def _reply(choice: Mapping[str, Any]) -> Reply:
    text = choice["message"].get("content") if "message" in choice else choice["text"]
    if text is not None and not isinstance(text, str):
        raise ValueError("content is not text")
    finish = choice.get("finish_reason")
    finish = None if finish is None else storable(str(finish))
    return Reply(storable(text or ""), finish, _tokens(choice.get("logprobs")))


def _tokens(logprobs: Mapping[str, Any] | None) -> tuple[Token, ...]:
    if not logprobs:
        return ()
    if logprobs.get("content"):
        return tuple(_chat_token(token) for token in logprobs["content"])
    return _legacy_tokens(logprobs)


def _chat_token(token: Mapping[str, Any]) -> Token:
    alternatives = (
        (one["token"], _logprob(one["logprob"])) for one in token.get("top_logprobs", ())
    )
    return Token(token["token"], _logprob(token["logprob"]), tuple(alternatives))


def _logprob(value: Any) -> float:
    logprob = float(value)
    if not logprob <= CERTAIN_NATS:
        raise ValueError(f"{logprob} is the logarithm of no probability")
    return logprob


def _legacy_tokens(logprobs: Mapping[str, Any]) -> tuple[Token, ...]:
    """Read the form of completions; the first token of an echoed prompt has no probability."""
    texts = logprobs.get("tokens") or ()
    values = logprobs.get("token_logprobs") or ()
    tops = logprobs.get("top_logprobs") or [None] * len(texts)
    offsets = logprobs.get("text_offset") or [None] * len(texts)
    return tuple(
        Token(
            text, math.nan if value is None else _logprob(value), tuple((top or {}).items()), offset
        )
        for text, value, top, offset in zip(texts, values, tops, offsets, strict=True)
    )


def _usage(usage: Mapping[str, Any] | None) -> Usage | None:
    if not usage or usage.get("prompt_tokens") is None:
        return None
    used = Usage(int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0))
    if min(used) < 0:
        raise ValueError("less than nothing cannot be used")
    return used

"""What an endpoint answers, read once at the border."""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from metrics.scorers.judges.budget import Usage

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL and halves of surrogate pairs: JSON can say them, databases and files cannot keep them."""
CERTAIN_NATS = 1e-3
"""How far over 0 rounding may take the log-probability of a certainty."""


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

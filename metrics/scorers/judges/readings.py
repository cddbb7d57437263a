"""Reading a number out of what a judge says; what cannot be read is said, never guessed.

The released readings are here for replication. They always give a number: LMStyle's takes 50
where a reply holds none, G-Eval's takes 0, and neither looks at the scale.
"""

import math
import re
from typing import NamedTuple

from error_codes import CodedText

RELEASED_GRADE = 50
INTEGER = re.compile(r"(?<![\d.])-?\d+")
NUMBER = r"(?<![\w.])-?\d+(?:\.\d+)?"
LIST_NUMBER = re.compile(r"^\s*\d+[.)]\s+(?=.*\d)", re.DOTALL)


class Reading(NamedTuple):
    """A number, or NaN and why there is none."""

    value: float
    reason: str | None = None


def read_grade(text: str, low: float = 0, high: float = 100) -> Reading:
    """Read a grade: the first integer of a reply.

    Parameters
    ----------
    text : str
    low, high : float
        The ends of the scale; both are legal.

    Returns
    -------
    Reading

    Examples
    --------
    >>> read_grade("I would give it 85 out of 100.")
    Reading(value=85.0, reason=None)
    >>> read_grade("Very appropriate!").reason
    'no number in the reply'
    """
    match = INTEGER.search(text)
    return _on_scale(float(match.group()) if match else math.nan, low, high)


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


def read_rating(text: str, aspect: str, low: float, high: float) -> Reading:
    """Read a rating on a short scale.

    The number after the last mention of the aspect, or of a score or rating, counts before the
    first number of the reply; the number of a list ("1. Coherence: 3") does not count.

    Parameters
    ----------
    text : str
    aspect : str
        What is rated, as the form names it.
    low, high : float
        The ends of the scale; both are legal.

    Returns
    -------
    Reading

    Examples
    --------
    >>> read_rating("1. Coherence: 3", "coherence", 1, 3).value
    3.0
    >>> read_rating("4", "coherence", 1, 3).reason
    '4 is not on the scale from 1 to 3'
    """
    names = "|".join([re.escape(aspect), "score", "rating"])
    labelled = rf"(?:{names})\b(?:[*_\"')\s]|is|of|[:=])*({NUMBER})"
    marks = re.findall(labelled, text, flags=re.IGNORECASE)
    if not marks:
        marks = re.findall(NUMBER, LIST_NUMBER.sub("", text))[:1]
    return _on_scale(float(marks[-1]) if marks else math.nan, low, high)


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


def _on_scale(value: float, low: float, high: float) -> Reading:
    if math.isnan(value):
        return Reading(math.nan, CodedText("no number in the reply", code="no_number"))
    if not low <= value <= high:
        problem = f"{value:g} is not on the scale from {low:g} to {high:g}"
        return Reading(math.nan, CodedText(problem, code="off_scale"))
    return Reading(value)

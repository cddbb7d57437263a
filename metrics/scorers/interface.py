"""The interface of every automatic metric: examples in, named scores out, kinds of parameters."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, formatannotation
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from error_codes import CodedText, InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One response, and what a metric may compare it with.

    Attributes
    ----------
    item, system : str
        Whose response to what this is; scorers carry them along and do not read them.
    response : str
        The text to score. An empty response is a response.
    context : str or None
        What the response answers.
    reference : str or None
        What a good response looks like.
    condition : str or None
        What the response was asked to be ("Formal"), where a study has such conditions.

    Examples
    --------
    >>> Example(item="7", system="llama", response="Good day.", reference="Hello.").context
    """

    item: str
    system: str
    response: str
    context: str | None = None
    reference: str | None = None
    condition: str | None = None


class Score(NamedTuple):
    """One value of one metric; NaN where it is undefined, and then ``reason`` says why.

    ``raw`` is what the value was read from, verbatim, where a metric has such a thing: a
    judge's replies, as one line of JSON. It is kept with the score, defined or not.
    """

    value: float
    reason: str | None = None
    raw: str | None = None


# The outputs of one scorer for one example, by name.
Scores: TypeAlias = dict[str, Score]


def undefined(reason: str, raw: str | None = None) -> Score:
    """Return the score of a response that cannot be scored.

    Parameters
    ----------
    reason : str
        Why, in words a reader of the report understands.
    raw : str, optional
        What could not be read, verbatim.

    Examples
    --------
    >>> undefined("no reference")
    Score(value=nan, reason='no reference', raw=None)
    """
    return Score(math.nan, reason, raw)


def sign(name: str, **fields: object) -> str:
    """Write a signature in sacrebleu's form: the metric, then ``key:value`` fields.

    Parameters
    ----------
    name : str
        The metric.
    **fields
        What the score depends on, in the order to be written; the version comes last.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If a value holds the separator ``|``.

    Examples
    --------
    >>> sign("rouge", variant="L", version=1)
    'rouge|variant:L|version:1'
    """
    for key, value in fields.items():
        if "|" in str(value):
            raise InvalidValue(f"{key} must not contain '|', got {value!r}", code="separator")
    return "|".join([name, *(f"{key}:{value}" for key, value in fields.items())])


def require_one_of(**arguments: tuple[str, Iterable[str]]) -> None:
    """Refuse an argument that is none of its choices.

    Parameters
    ----------
    **arguments
        The value of each, and its choices.

    Raises
    ------
    ValueError
        If a value is no choice; the message names the argument.

    Examples
    --------
    >>> require_one_of(lead=("verbatim", ("verbatim", "space")))
    """
    for name, (value, choices) in arguments.items():
        if value not in choices:
            raise InvalidValue(
                f"{name} must be one of {', '.join(choices)}, got {value!r}", code=f"unknown_{name}"
            )


def require_at_least(least: int, **numbers: int) -> None:
    """Refuse a number that is too small.

    Parameters
    ----------
    least : int
    **numbers

    Raises
    ------
    ValueError
        If a number is smaller; the message names the argument.

    Examples
    --------
    >>> require_at_least(1, n=1)
    """
    for name, number in numbers.items():
        if number < least:
            raise InvalidValue(
                f"{name} must be at least {least}, got {number}", code=f"{name}_out_of_range"
            )


class Scorer(ABC):
    """An automatic metric.

    A scorer is built with its parameters and is then a pure function of the examples: the same
    signature and the same texts give the same scores, whatever the order or the batch. One
    scorer may have several outputs (ROUGE has F, precision and recall); the first bears the
    scorer's own name, and all share one signature unless `signature_for` says otherwise.

    A new metric subclasses this, sets the attributes and writes ``measure`` and ``signature``.
    Heavy libraries are imported where the model is loaded, never at the head of a module.

    Attributes
    ----------
    name : str
        The metric, as in the registry.
    outputs : tuple of str
        The names of the scores given for each example; ``outputs[0] == name``.
    primary : tuple of str
        The outputs that a person who chose the scorer chose; the others are variants of them
        (precision and recall beside F, a complement, another unit), which enter no family of
        tests. By default the first alone.
    needs : frozenset of str
        The fields of `Example`, besides the response, without which the score is undefined.
    lower_is_better : frozenset of str
        The outputs of which a better response has the lower value; of all others the higher.
    batch_size : int
        How many examples to hand over at a time. Reusing work inside a batch is the scorer's
        affair; a caller who stores each batch loses at most one when interrupted.
    """

    name: str
    outputs: tuple[str, ...]
    needs: frozenset[str] = frozenset()
    lower_is_better: frozenset[str] = frozenset()
    batch_size: int = 1024

    @property
    def primary(self) -> tuple[str, ...]:
        return self.outputs[:1]

    def higher_is_better_for(self, output: str) -> bool:
        require_one_of(output=(output, self.outputs))
        return output not in self.lower_is_better

    @property
    @abstractmethod
    def signature(self) -> str:
        """What the scores depend on, as one line: ``metric|key:value|...|version:...``.

        It is cheap enough to ask before scoring (no model is loaded for it) and equal on every
        machine with the same parameters, weights and versions.
        """

    def signature_for(self, output: str) -> str:
        """Say what the scores of one output depend on.

        Parameters
        ----------
        output : str
            One of `outputs`.

        Returns
        -------
        str
            `signature`, where the outputs share it; that of the first output always is.
        """
        return self.signature

    @abstractmethod
    def measure(self, examples: Sequence[Example]) -> Sequence[Scores]:
        """Score one batch of examples which all have what `needs` names.

        Parameters
        ----------
        examples : sequence of Example, length n

        Returns
        -------
        sequence of dict, length n
            For each example in order, every name of `outputs` with its score.
        """

    def score(self, examples: Sequence[Example]) -> list[Scores]:
        """Score examples, in batches.

        Parameters
        ----------
        examples : sequence of Example, length n

        Returns
        -------
        list of dict, length n
            For each example in order, every name of `outputs` with its score. The value is NaN,
            with the reason, where a field named by `needs` is missing or blank.
        """
        starts = range(0, len(examples), self.batch_size)
        batches = (examples[start : start + self.batch_size] for start in starts)
        return [scores for batch in batches for scores in self._score_batch(batch)]

    def _score_batch(self, batch: Sequence[Example]) -> list[Scores]:
        missing = [self._missing(example) for example in batch]
        complete = [example for example, gap in zip(batch, missing, strict=True) if not gap]
        measured = self.measure(complete) if complete else []
        if len(measured) != len(complete):
            raise InvalidValue(
                f"{self.name} gave {len(measured)} scores for {len(complete)} texts",
                code="unequal_lengths",
            )
        remaining = iter(measured)
        return [
            dict.fromkeys(self.outputs, undefined(CodedText(f"no {gap}", code="missing_field")))
            if gap
            else self._checked(next(remaining))
            for gap in missing
        ]

    def _missing(self, example: Example) -> str:
        """Name the fields that are needed and blank; a blank cell of a file is no reference."""
        blank = (need for need in self.needs if not (getattr(example, need) or "").strip())
        return " and no ".join(sorted(blank))

    def _checked(self, scores: Scores) -> Scores:
        """Hold a scorer to its word: its outputs, and a reason with every NaN."""
        if tuple(scores) != self.outputs and scores.keys() != set(self.outputs):
            raise InvalidValue(
                f"{self.name} gave {sorted(scores)}, not {sorted(self.outputs)}",
                code="wrong_outputs",
            )
        for output, (value, reason, _) in scores.items():
            if value != value and not reason:
                raise InvalidValue(
                    f"{self.name} gave {output} = NaN without a reason", code="reason_missing"
                )
        return scores


NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    NoneType: "null",
}


def check_kinds(values: Mapping[str, object], declared: Mapping[str, Any]) -> None:
    """Refuse a value of another kind than its annotation says, before it is computed with.

    Parameters
    ----------
    values : mapping of str to object
        Values by name; those that are not declared are not checked.
    declared : mapping of str to annotation

    Raises
    ------
    ValueError
        If a value is of another kind; the message names it.

    Examples
    --------
    >>> check_kinds({"n": 2, "model": "tiny"}, {"n": int, "model": str | Path})
    >>> check_kinds({"lowercase": "no"}, {"lowercase": bool})
    Traceback (most recent call last):
    error_codes.InvalidValue: lowercase must be true or false, got 'no'
    """
    for name, value in values.items():
        kind = declared.get(name, Parameter.empty)
        if kind is not Parameter.empty and not _is_of(kind, value):
            raise InvalidValue(
                f"{name} must be {_description(kind)}, got {value!r}", code="wrong_kind"
            )


def _is_of(kind: Any, value: Any) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_of(one, value) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) for one in inner)
    if origin is Sequence:
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        return is_list and all(_is_of(inner[0], part) for part in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _is_of(inner[0], key) and _is_of(inner[1], part) for key, part in value.items()
        )
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _description(kind: Any) -> str:
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return " or ".join(
        NAMES.get(part) or formatannotation(part).removeprefix("collections.abc.") for part in parts
    )

"""The metrics by name: one line for each."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from error_codes import InvalidValue
from metrics.scorers.bertscore import BertScore
from metrics.scorers.bleu import Bleu, Chrf, Ter
from metrics.scorers.embedding import Embedding
from metrics.scorers.interface import Scorer, check_kinds
from metrics.scorers.judges.geval import GEval
from metrics.scorers.judges.grade import Grade
from metrics.scorers.nll import Nll
from metrics.scorers.plain import DistinctN, Length, Repetition
from metrics.scorers.rouge import Rouge
from metrics.scorers.style import Style
from metrics.scorers.use import UniversalSentenceEncoder

OWN_LICENCE = "Apache-2.0 (Assay's own code)"
OF_THE_MODEL = "that of the model asked"


class Entry(NamedTuple):
    """How to make a scorer, a sentence about it, and what it takes besides the texts.

    `licence` is that of what computes the score, with the default model's; `size` what the default
    model takes on disk, empty where there is none.
    """

    factory: Callable[..., Scorer]
    summary: str
    requires: str = ""
    licence: str = OWN_LICENCE
    size: str = ""


SCORERS: Mapping[str, Entry] = {
    "rouge1": Entry(partial(Rouge, "1"), "ROUGE-1: overlap in words with the reference, 0 to 1"),
    "rouge2": Entry(partial(Rouge, "2"), "ROUGE-2: overlap in pairs of words, 0 to 1"),
    "rougeL": Entry(partial(Rouge, "L"), "ROUGE-L: longest common subsequence of words, 0 to 1"),
    "rougeLsum": Entry(partial(Rouge, "Lsum"), "ROUGE-Lsum: ROUGE-L over lines, 0 to 1"),
    "sacrebleu": Entry(
        Bleu, "Sentence BLEU with effective order, 0 to 100", licence="sacrebleu: Apache-2.0"
    ),
    "chrf": Entry(Chrf, "chrF: F of character n-grams, 0 to 100", licence="sacrebleu: Apache-2.0"),
    "ter": Entry(
        Ter,
        "TER: edits per word of the reference, from 0; lower is better",
        licence="sacrebleu: Apache-2.0",
    ),
    "bertscore": Entry(
        BertScore,
        "BERTScore: greedy matches of token embeddings with the reference; F, at most 1",
        "an encoder of transformers (1.4 GB for the default, roberta-large)",
        licence="roberta-large: MIT",
        size="1.4 GB",
    ),
    "embedding": Entry(
        Embedding,
        "Cosine of sentence embeddings, -1 to 1",
        "a sentence-transformers model; the default comes with the requirements",
        licence="all-MiniLM-L6-v2: Apache-2.0",
        size="91 MB, installed with the requirements",
    ),
    "use": Entry(
        UniversalSentenceEncoder,
        "Cosine of Universal Sentence Encoder embeddings, -1 to 1",
        "the package tensorflow, and the encoder's SavedModel in a folder",
        licence="TensorFlow and the encoder: Apache-2.0",
        size="1 GB",
    ),
    "style": Entry(
        Style,
        "Probability of the style that was asked for, 0 to 1",
        "a sequence classifier of transformers (0.5 GB for the default, which is licensed"
        " CC BY-NC-SA 4.0: not for commercial use), or one trained here from labelled texts",
        licence="roberta-base-formality-ranker: CC BY-NC-SA 4.0, not for commercial use",
        size="0.5 GB",
    ),
    "nll": Entry(
        Nll,
        "Mean loss of the response under a language model, in nats; lower is better",
        "a causal language model of transformers (14 GB for the default, bigscience/bloom-7b1),"
        " or an endpoint that returns the log-probabilities of a prompt",
        licence="bloom-7b1: BigScience RAIL 1.0, which restricts some uses",
        size="14 GB",
    ),
    "judge": Entry(
        Grade,
        "A grade by a language model, from 0 to 100",
        "an OpenAI-compatible endpoint: JUDGE_BASE_URL, JUDGE_MODEL, JUDGE_API_KEY",
        licence=OF_THE_MODEL,
    ),
    "geval": Entry(
        GEval,
        "G-Eval: a rating by a language model, weighted by probability, on its aspect's scale",
        "an OpenAI-compatible endpoint: JUDGE_BASE_URL, JUDGE_MODEL, JUDGE_API_KEY",
        licence=OF_THE_MODEL,
    ),
    "length": Entry(Length, "Words, and characters, of the response: a control"),
    "distinct_n": Entry(DistinctN, "Distinct n-grams of a response, as a share, 0 to 1"),
    "repetition": Entry(Repetition, "Share of a response's 4-grams that are repeats, 0 to 1"),
}


@dataclass(frozen=True, slots=True)
class Description:
    """What a person choosing a metric wants to know.

    Attributes
    ----------
    name, summary : str
    outputs : tuple of str
        The scores it gives, the plain name first.
    needs : frozenset of str
        The fields it needs besides the response, with its parameters at their defaults.
    lower_is_better : frozenset of str
        Those of its outputs of which a better response has the lower value.
    requires : str
        The packages, the model or the endpoint it takes; empty where the requirements suffice.
    parameters : mapping of str to object
        What `build` takes by name, with the default of each.
    licence : str
        Of what computes the score, with the default model's.
    size : str
        What the default model takes on disk; empty where there is none.
    """

    name: str
    summary: str
    outputs: tuple[str, ...]
    needs: frozenset[str]
    lower_is_better: frozenset[str]
    requires: str
    parameters: Mapping[str, object]
    licence: str
    size: str


def available() -> list[Description]:
    """Describe every metric, in the order of the registry.

    Returns
    -------
    list of Description

    Examples
    --------
    >>> [description.name for description in available()][:6]
    ['rouge1', 'rouge2', 'rougeL', 'rougeLsum', 'sacrebleu', 'chrf']
    >>> available()[0].parameters
    {'tokenizer': 'google'}
    """
    return [_describe(name, entry) for name, entry in SCORERS.items()]


def defaults_of(name: str) -> dict[str, object]:
    """Say what `build` takes for a metric by name, with the default of each.

    Parameters
    ----------
    name : str
        One of those `available` lists; any other has no parameters.

    Returns
    -------
    dict of str to object

    Examples
    --------
    >>> defaults_of("repetition"), defaults_of("bleurt")
    ({'n': 4}, {})
    """
    if name not in SCORERS:
        return {}
    parameters = inspect.signature(SCORERS[name].factory).parameters
    return {each: parameter.default for each, parameter in parameters.items()}


def build(name: str, **parameters: object) -> Scorer:
    """Make a scorer by its name.

    Parameters
    ----------
    name : str
        One of those `available` lists.
    **parameters
        The scorer's own; those left out have its defaults.

    Returns
    -------
    Scorer

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter is unknown, of another kind or out of range.

    Examples
    --------
    >>> build("rougeL", tokenizer="unicode").signature
    'rouge|nrefs:1|variant:L|tokenizer:unicode|stemmer:no|version:2'
    >>> build("bleurt")
    Traceback (most recent call last):
    error_codes.InvalidValue: name must be one of rouge1, rouge2, ..., got 'bleurt'
    """
    if name not in SCORERS:
        raise InvalidValue(
            f"name must be one of {', '.join(SCORERS)}, got {name!r}", code="unknown_metric"
        )
    factory = SCORERS[name].factory
    known = inspect.signature(factory, eval_str=True).parameters
    for parameter in parameters:
        if parameter not in known:
            raise InvalidValue(
                f"{parameter} is not a parameter of {name}; it has {', '.join(known)}",
                code="unknown_parameter",
            )
    check_kinds(parameters, {each: known[each].annotation for each in known})
    return factory(**parameters)


@cache
def _describe(name: str, entry: Entry) -> Description:
    """Making a scorer looks at its model's files: once in a process is enough."""
    defaults = defaults_of(name)
    scorer = entry.factory()
    return Description(
        name=name,
        summary=entry.summary,
        outputs=scorer.outputs,
        needs=scorer.needs,
        lower_is_better=scorer.lower_is_better,
        requires=entry.requires,
        parameters=defaults,
        licence=entry.licence,
        size=entry.size,
    )

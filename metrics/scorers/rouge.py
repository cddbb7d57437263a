"""ROUGE-N, ROUGE-L and ROUGE-Lsum, equal to rouge-score 0.1.2 with and without its stemmer.

The trap: with the default ``google`` tokeniser only ``a-z`` and ``0-9`` count. A text in Arabic,
Chinese, Russian or Hindi has no tokens and scores 0 against anything, itself included. That zero
is what the published numbers contain, so it is kept, with an `UntokenisedTextWarning`; ask for
``tokenizer="unicode"``, or ``"characters"`` where words are not spaced, to score such texts.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from error_codes import CodedText, InvalidValue
from metrics.scorers.errors import UntokenisedTextWarning
from metrics.scorers.interface import (
    Example,
    Score,
    Scorer,
    Scores,
    require_at_least,
    require_one_of,
    sign,
    undefined,
)
from metrics.scorers.tokenization import TOKENIZERS, loses_most

NO_WORDS = CodedText("no words in the response", code="no_words")

VERSION = 2
_CACHED_TEXTS = 4096  # texts; a reference returns once for every system


class Overlap(NamedTuple):
    """How far a response and a reference overlap, each from 0 to 1."""

    precision: float
    recall: float
    f: float


NOTHING = Overlap(0.0, 0.0, 0.0)


def rouge_n(response: str, reference: str, n: int, tokenizer: str = "google") -> Overlap:
    """ROUGE-N: overlap in n-grams, each counted as often as both texts have it.

    Parameters
    ----------
    response, reference : str
    n : int
        At least 1.
    tokenizer : {"google", "google-stemmed", "unicode", "characters"}

    Returns
    -------
    Overlap
        Precision ``matches / n-grams of the response``, recall ``matches / n-grams of the
        reference`` and their harmonic mean; 0 where there is nothing to divide by.

    Raises
    ------
    ValueError
        If `n` is below 1 or `tokenizer` unknown.

    References
    ----------
    .. [1] C.-Y. Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. Text
       Summarization Branches Out, 74-81.

    Examples
    --------
    >>> rouge_n("the cat sat", "the cat ran off", n=2)
    Overlap(precision=0.5, recall=0.3333333333333333, f=0.4)
    """
    require_at_least(1, n=n)
    reference_counts, n_reference = _counts(reference, n, tokenizer)
    tokens = _tokens(response, tokenizer)
    matched: dict[Hashable, int] = {}
    matches = 0
    for ngram in _ngrams(tokens, n):
        if count := reference_counts.get(ngram):
            so_far = matched.get(ngram, 0)
            if so_far < count:
                matched[ngram] = so_far + 1
                matches += 1
    return _overlap(matches, max(len(tokens) - n + 1, 0), n_reference)


def rouge_l(response: str, reference: str, tokenizer: str = "google") -> Overlap:
    """ROUGE-L: overlap in the longest common subsequence of tokens.

    Parameters
    ----------
    response, reference : str
    tokenizer : {"google", "google-stemmed", "unicode", "characters"}

    Returns
    -------
    Overlap
        Precision ``LCS / tokens of the response``, recall ``LCS / tokens of the reference`` and
        their harmonic mean (beta = 1); 0 where there is nothing to divide by.

    Raises
    ------
    ValueError
        If `tokenizer` is unknown.

    References
    ----------
    .. [1] C.-Y. Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. Text
       Summarization Branches Out, 74-81.

    Examples
    --------
    >>> rouge_l("the cat sat", "the black cat")
    Overlap(precision=0.6666666666666666, recall=0.6666666666666666, f=0.6666666666666666)
    """
    tokens = _tokens(response, tokenizer)
    n_reference = len(_tokens(reference, tokenizer))
    return _overlap(
        lcs_length(_positions(reference, tokenizer), n_reference, tokens), len(tokens), n_reference
    )


def rouge_lsum(response: str, reference: str, tokenizer: str = "google") -> Overlap:
    r"""ROUGE-Lsum: ROUGE-L over sentences, which newlines separate.

    For each sentence of the reference the union of its longest common subsequences with all
    sentences of the response is taken, no token counting more often than either text has it.

    Parameters
    ----------
    response, reference : str
        One sentence per line.
    tokenizer : {"google", "google-stemmed", "unicode", "characters"}

    Returns
    -------
    Overlap

    Raises
    ------
    ValueError
        If `tokenizer` is unknown.

    References
    ----------
    .. [1] C.-Y. Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. Text
       Summarization Branches Out, 74-81, section 3.2; the clipping is that of ROUGE-1.5.5.

    Examples
    --------
    >>> rouge_lsum("ran off\nthe cat sat", "the cat ran off").recall
    1.0
    """
    response_lines = [_tokens(line, tokenizer) for line in response.split("\n")]
    reference_lines = [_tokens(line, tokenizer) for line in reference.split("\n")]
    left = Counter(chain.from_iterable(response_lines))
    total, n_reference = left.total(), sum(map(len, reference_lines))
    matches = 0
    for sentence in reference_lines:
        union = set(chain.from_iterable(lcs_indices(sentence, other) for other in response_lines))
        for index in union:
            if left[sentence[index]] > 0:
                left[sentence[index]] -= 1
                matches += 1
    return _overlap(matches, total, n_reference)


class Rouge(Scorer):
    """One ROUGE variant: F under the plain name, its precision and recall, and what is not there.

    ``_hallucination`` is 1 - precision, the share of the response that the reference has not:
    the estimate of hallucination of the end-to-end chatbot benchmark [2]_. An empty response has
    ROUGE 0 and hallucinates nothing, so that estimate is NaN. A blank reference is no reference:
    all are NaN.

    Parameters
    ----------
    variant : str
        ``"1"`` to ``"9"`` for ROUGE-N, ``"L"`` or ``"Lsum"``.
    tokenizer : {"google", "google-stemmed", "unicode", "characters"}
        ``"google"`` gives the published numbers, and 0 to any text not in the Latin alphabet;
        ``"google-stemmed"`` takes suffixes off, as ``use_stemmer`` of rouge-score.

    Raises
    ------
    ValueError
        If `variant` or `tokenizer` is unknown.

    References
    ----------
    .. [1] C.-Y. Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. Text
       Summarization Branches Out, 74-81.

    Examples
    --------
    >>> scorer = Rouge("1")
    >>> scorer.signature
    'rouge|nrefs:1|variant:1|tokenizer:google|stemmer:no|version:2'
    >>> example = Example(item="1", system="a", response="so it is", reference="it is so")
    >>> scorer.score([example])[0]["rouge1"]
    Score(value=1.0, reason=None, raw=None)
    """

    needs = frozenset({"reference"})

    def __init__(self, variant: str, *, tokenizer: str = "google") -> None:
        if not re.fullmatch("[1-9]|L|Lsum", variant):
            raise InvalidValue(
                f"variant must be 1 to 9, L or Lsum, got {variant!r}", code="unknown_variant"
            )
        require_one_of(tokenizer=(tokenizer, TOKENIZERS))
        self.variant = variant
        self.tokenizer = tokenizer
        self.name = f"rouge{variant}"
        self.outputs = tuple(
            self.name + part for part in ("", "_precision", "_recall", "_hallucination")
        )
        self.lower_is_better = frozenset(self.outputs[3:])

    @property
    def signature(self) -> str:
        return sign(
            "rouge",
            nrefs=1,
            variant=self.variant,
            tokenizer=self.tokenizer.removesuffix("-stemmed"),
            stemmer="porter" if self.tokenizer.endswith("-stemmed") else "no",
            version=VERSION,
        )

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        pairs = [(example.response, example.reference or "") for example in examples]
        if self.tokenizer.startswith("google"):
            _warn_of_untokenised(pairs)
        overlap = self._overlap()
        return [
            self._scores(response, overlap(response, reference)) for response, reference in pairs
        ]

    def _scores(self, response: str, overlap: Overlap) -> Scores:
        plain, precise, recalled, invented = self.outputs
        precision, recall, f = overlap
        has_words = precision > 0 or _tokens(response, self.tokenizer)
        return {
            plain: Score(f),
            precise: Score(precision),
            recalled: Score(recall),
            invented: Score(1 - precision) if has_words else undefined(NO_WORDS),
        }

    def _overlap(self) -> Callable[[str, str], Overlap]:
        if self.variant == "L":
            return partial(rouge_l, tokenizer=self.tokenizer)
        if self.variant == "Lsum":
            return partial(rouge_lsum, tokenizer=self.tokenizer)
        return partial(rouge_n, n=int(self.variant), tokenizer=self.tokenizer)


def _overlap(matches: int, n_response: int, n_reference: int) -> Overlap:
    if matches == 0:
        return NOTHING
    precision, recall = matches / n_response, matches / n_reference
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


@lru_cache(maxsize=_CACHED_TEXTS)
def _tokens(text: str, tokenizer: str) -> list[str]:
    require_one_of(tokenizer=(tokenizer, TOKENIZERS))
    return TOKENIZERS[tokenizer](text)


def _ngrams(tokens: list[str], n: int) -> Iterable[Hashable]:
    if n == 1:
        return tokens
    return zip(*[tokens[start:] for start in range(n)], strict=False)


@lru_cache(maxsize=_CACHED_TEXTS)
def _counts(text: str, n: int, tokenizer: str) -> tuple[Mapping[Hashable, int], int]:
    tokens = _tokens(text, tokenizer)
    counts: dict[Hashable, int] = {}
    for ngram in _ngrams(tokens, n):  # on short texts a loop is faster than a Counter
        counts[ngram] = counts.get(ngram, 0) + 1
    return counts, max(len(tokens) - n + 1, 0)


@lru_cache(maxsize=_CACHED_TEXTS)
def _positions(text: str, tokenizer: str) -> Mapping[str, int]:
    return positions(_tokens(text, tokenizer))


def _warn_of_untokenised(pairs: Sequence[tuple[str, str]]) -> None:
    texts = {text for pair in pairs for text in pair if not text.isascii()}
    n_lost = sum(loses_most(text, _tokens(text, "google")) for text in texts)
    if n_lost:
        counted = f"{n_lost} text" if n_lost == 1 else f"{n_lost} texts"
        warnings.warn(
            UntokenisedTextWarning(
                f"{counted} in {len(pairs)} pairs mostly outside a-z and 0-9, where ROUGE with "
                "the google tokenizer is 0; tokenizer='unicode' or 'characters' reads them",
                n_texts=n_lost,
                n_all=len(pairs),
            ),
            stacklevel=2,
        )


def positions(sequence: Sequence[str]) -> dict[str, int]:
    """Map each token to a bit mask of where it stands (bit ``i`` for index ``i``).

    Parameters
    ----------
    sequence : sequence of str, length n

    Returns
    -------
    dict of str to int
        One mask of n bits for each distinct token.

    Examples
    --------
    >>> positions(["a", "b", "a"])
    {'a': 5, 'b': 2}
    """
    masks: dict[str, int] = {}
    for index, token in enumerate(sequence):
        masks[token] = masks.get(token, 0) | 1 << index
    return masks


def lcs_length(masks: Mapping[str, int], length: int, other: Sequence[str]) -> int:
    """Length of the longest common subsequence of two sequences.

    Parameters
    ----------
    masks : mapping of str to int
        `positions` of the first sequence.
    length : int
        Number of tokens of the first sequence.
    other : sequence of str, length m
        The second sequence.

    Returns
    -------
    int
        In m steps, each on integers of `length` bits.

    References
    ----------
    .. [1] H. Hyyrö (2004). Bit-parallel LCS-length computation revisited. AWOCA, 16-27.

    Examples
    --------
    >>> lcs_length(positions(["a", "b", "c", "d"]), 4, ["b", "x", "d"])
    2
    """
    full = (1 << length) - 1
    row = full
    for token in other:
        mask = masks.get(token)
        if mask is not None:
            hit = row & mask
            row = ((row + hit) | (row - hit)) & full
    return length - row.bit_count()


def lcs_indices(sequence: Sequence[str], other: Sequence[str]) -> list[int]:
    """Where, in the first of two sequences, one longest common subsequence stands.

    Of several longest ones it takes that of rouge-score's backtracking: from the ends, a match is
    taken; else a step back in `other` where that loses nothing and the other step would; else a
    step back in `sequence`.

    Parameters
    ----------
    sequence : sequence of str, length n
    other : sequence of str, length m

    Returns
    -------
    list of int
        Increasing indices into `sequence`.

    References
    ----------
    .. [1] rouge-score 0.1.2, ``rouge_scorer.py``, ``_backtrack_norec``.

    Examples
    --------
    >>> lcs_indices(["a", "b", "c", "d"], ["b", "x", "d"])
    [1, 3]
    """
    rows = _rows(sequence, other)

    def common(i: int, j: int) -> int:
        return i - (rows[j] & ((1 << i) - 1)).bit_count()

    i, j = len(sequence), len(other)
    indices: list[int] = []
    while i > 0 and j > 0:
        if sequence[i - 1] == other[j - 1]:
            i, j = i - 1, j - 1
            indices.append(i)
        elif common(i, j - 1) > common(i - 1, j):
            j -= 1
        else:
            i -= 1
    return indices[::-1]


def _rows(sequence: Sequence[str], other: Sequence[str]) -> list[int]:
    """Row j has a 0 at bit i where token i lengthens the LCS with the first j of `other`."""
    masks = positions(sequence)
    full = (1 << len(sequence)) - 1
    rows = [full]
    for token in other:
        hit = rows[-1] & masks.get(token, 0)
        rows.append(((rows[-1] + hit) | (rows[-1] - hit)) & full)
    return rows

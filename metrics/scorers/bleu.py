"""Sentence BLEU and chrF, from 0 to 100, and TER, from 0, by sacrebleu.

Scores of one sentence changed between sacrebleu's versions (pairs with no common n-gram are
exactly 0 now and were not in 2023), which is why its own signature is stored with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metrics.scorers.interface import (
    Example,
    Score,
    Scorer,
    Scores,
    require_at_least,
    require_one_of,
)

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER


# Those of sacrebleu's tokenisers that need neither a download nor another package.
TOKENIZERS = ("13a", "intl", "zh", "char", "none")


class SacreScorer(Scorer):
    """A metric of sacrebleu: its sentence score and its signature.

    An empty response scores 0, in TER 100: all of the reference is missing. A blank reference is
    no reference: NaN.
    """

    needs = frozenset({"reference"})

    def __init__(self, metric: BLEU | CHRF | TER) -> None:
        self._metric = metric
        # Once a sentence is scored, sacrebleu's signature knows the number of references.
        self._label = metric.sentence_score("a", ["a"]).name

    @property
    def signature(self) -> str:
        return f"{self._label}|{self._metric.get_signature()}"

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        return [
            {
                self.name: Score(
                    self._metric.sentence_score(example.response, [example.reference or ""]).score
                )
            }
            for example in examples
        ]


class Bleu(SacreScorer):
    """Sentence BLEU with effective order, as sacrebleu recommends for single sentences.

    Parameters
    ----------
    tokenize : {"13a", "intl", "zh", "char", "none"}
        sacrebleu's tokeniser; those that download a model are not offered.
    lowercase : bool
        Whether case is ignored.

    Raises
    ------
    ValueError
        If `tokenize` is not one of those.

    References
    ----------
    .. [1] K. Papineni et al. (2002). BLEU: a Method for Automatic Evaluation of Machine
       Translation. ACL, 311-318.
    .. [2] M. Post (2018). A Call for Clarity in Reporting BLEU Scores. WMT, 186-191.

    Examples
    --------
    >>> scorer = Bleu()
    >>> scorer.signature
    'BLEU|nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:...'
    >>> example = Example(item="1", system="a", response="It is so.", reference="It is so.")
    >>> round(scorer.score([example])[0]["sacrebleu"].value, 9)
    100.0
    """

    name = "sacrebleu"
    outputs = ("sacrebleu",)

    def __init__(self, *, tokenize: str = "13a", lowercase: bool = False) -> None:
        from sacrebleu.metrics.bleu import BLEU

        require_one_of(tokenize=(tokenize, TOKENIZERS))
        super().__init__(BLEU(effective_order=True, tokenize=tokenize, lowercase=lowercase))


class Chrf(SacreScorer):
    """chrF: F of character n-grams; with ``word_order=2`` it is chrF++.

    Parameters
    ----------
    char_order : int
        Longest character n-gram, at least 1.
    word_order : int
        Longest word n-gram, 0 for none.
    beta : int
        How many times recall counts as much as precision, at least 1.
    lowercase : bool
        Whether case is ignored.

    Raises
    ------
    ValueError
        If `char_order` or `beta` is below 1 or `word_order` below 0.

    References
    ----------
    .. [1] M. Popović (2015). chrF: character n-gram F-score for automatic MT evaluation. WMT,
       392-395.

    Examples
    --------
    >>> Chrf(word_order=2).signature
    'chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:...'
    """

    name = "chrf"
    outputs = ("chrf",)

    def __init__(
        self, *, char_order: int = 6, word_order: int = 0, beta: int = 2, lowercase: bool = False
    ) -> None:
        from sacrebleu.metrics.chrf import CHRF

        require_at_least(1, char_order=char_order, beta=beta)
        require_at_least(0, word_order=word_order)
        super().__init__(CHRF(char_order, word_order, beta, lowercase))


class Ter(SacreScorer):
    """TER: edits, moves of phrases among them, per 100 words of the reference; lower is better.

    A response much longer than its reference has more than 100.

    Parameters
    ----------
    normalized : bool
        Whether punctuation is cut from words first.
    no_punct : bool
        Whether punctuation is removed.
    case_sensitive : bool
        Whether case counts.

    References
    ----------
    .. [1] M. Snover et al. (2006). A Study of Translation Edit Rate with Targeted Human
       Annotation. AMTA, 223-231.

    Examples
    --------
    >>> scorer = Ter()
    >>> scorer.signature
    'TER|nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:...'
    >>> example = Example(item="1", system="a", response="it is so", reference="so it is")
    >>> round(scorer.score([example])[0]["ter"].value, 9)
    33.333333333
    """

    name = "ter"
    outputs = ("ter",)
    lower_is_better = frozenset({"ter"})

    def __init__(
        self, *, normalized: bool = False, no_punct: bool = False, case_sensitive: bool = False
    ) -> None:
        from sacrebleu.metrics.ter import TER

        super().__init__(
            TER(normalized=normalized, no_punct=no_punct, case_sensitive=case_sensitive)
        )

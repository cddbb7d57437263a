"""Ways to cut a text into tokens for word-overlap metrics."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache, lru_cache

_LATIN_WORD = re.compile(r"[a-z0-9]+")
_JOINERS = {0x200C, 0x200D, *range(0xFE00, 0xFE10)}  # zero-width (non-)joiner, variation selectors


def google(text: str) -> list[str]:
    """Cut as rouge-score does: lower-case, then every run of ``a-z`` and ``0-9``.

    Anything else separates tokens, so a text in another script has no tokens at all and every
    ROUGE of it is 0, and "café" becomes "caf".

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str

    References
    ----------
    .. [1] rouge-score 0.1.2, ``tokenize.py``, without the stemmer.

    Examples
    --------
    >>> google("It's a café, No. 7!")
    ['it', 's', 'a', 'caf', 'no', '7']
    >>> google("Привет")
    []
    """
    return _LATIN_WORD.findall(text.lower())


def google_stemmed(text: str) -> list[str]:
    """Cut as rouge-score does with its stemmer: words of four letters and more lose suffixes.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str

    References
    ----------
    .. [1] M. Porter (1980). An algorithm for suffix stripping. Program 14 (3), 130-137; with the
       extensions of nltk, which rouge-score takes.

    Examples
    --------
    >>> google_stemmed("The cats were running")
    ['the', 'cat', 'were', 'run']
    """
    return [_stem(word) if len(word) > 3 else word for word in google(text)]


@lru_cache(maxsize=65_536)  # words: nltk takes 14 us for one, a dictionary 0.1
def _stem(word: str) -> str:
    return _stemmer()(word)


@cache
def _stemmer() -> Callable[[str], str]:
    # Imported with the first word: nltk takes a second, and few ask for stems.
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    return stem


class _WordCharacters(dict[int, int | str | None]):
    """A table for ``str.translate`` that keeps letters, marks and numbers of every script."""

    def __missing__(self, code: int) -> int | str | None:
        if code in _JOINERS:
            replacement: int | str | None = None
        else:
            replacement = code if unicodedata.category(chr(code))[0] in "LMN" else " "
        self[code] = replacement
        return replacement


_WORD_CHARACTERS = _WordCharacters()


def unicode_words(text: str) -> list[str]:
    """Cut into case-folded runs of letters, marks and numbers of any script.

    Chinese, Japanese and Thai write no spaces between words, so there a token is a whole phrase;
    use `characters` for them.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str

    Examples
    --------
    >>> unicode_words("It's a café, Привет!")
    ['it', 's', 'a', 'café', 'привет']
    """
    words = unicodedata.normalize("NFKC", text).casefold().translate(_WORD_CHARACTERS).split()
    return [word for word in words if any(map(str.isalnum, word))]


def characters(text: str) -> list[str]:
    """Cut into single letters and numbers of any script, each with the marks upon it.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str

    Examples
    --------
    >>> characters("你好, no.")
    ['你', '好', 'n', 'o']
    """
    letters: list[str] = []
    for character in "".join(unicode_words(text)):
        if letters and unicodedata.category(character).startswith("M"):
            letters[-1] += character
        else:
            letters.append(character)
    return letters


TOKENIZERS: Mapping[str, Callable[[str], list[str]]] = {
    "google": google,
    "google-stemmed": google_stemmed,
    "unicode": unicode_words,
    "characters": characters,
}


def loses_most(text: str, tokens: list[str]) -> bool:
    """Say whether tokens hold fewer than half of the letters and digits of their text.

    Parameters
    ----------
    text : str
    tokens : list of str
        What a tokeniser made of it.

    Returns
    -------
    bool
        False for a text with no letters or digits, which has nothing to lose.

    Examples
    --------
    >>> loses_most("Привет", google("Привет")), loses_most("café", google("café"))
    (True, False)
    """
    return 2 * sum(map(len, tokens)) < sum(map(str.isalnum, text))

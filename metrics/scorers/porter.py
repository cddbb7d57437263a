"""Porter's stemmer with NLTK's extensions, as ROUGE uses it.

References
----------
.. [1] M. F. Porter (1980). An algorithm for suffix stripping. Program 14(3), 130-137.
.. [2] NLTK, ``nltk.stem.porter``, mode NLTK_EXTENSIONS: irregular forms, short words, and the
   rules for -ies, -ied, -y, -bli, -alli, -fulli and -logi.
"""

from functools import lru_cache

IRREGULAR = {
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "innings": "inning",
    "outings": "outing",
    "cannings": "canning",
    **{
        word: word
        for word in (
            *("sky", "news", "inning", "outing", "canning"),
            *("howe", "proceed", "exceed", "succeed"),
        )
    },
}
STEP_2 = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance")),
    *(("izer", "ize"), ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e")),
    *(("ousli", "ous"), ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al")),
    *(("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al")),
    *(("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful")),
)
STEP_3 = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic")),
    *(("ful", ""), ("ness", "")),
)
STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion"),
    *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Strip the suffixes of an English word.

    Parameters
    ----------
    word : str
        In lower case.

    Returns
    -------
    str

    References
    ----------
    .. [1] M. F. Porter (1980). An algorithm for suffix stripping. Program 14(3), 130-137.

    Examples
    --------
    >>> [stem(word) for word in ("running", "happiness", "relational", "dies", "sky")]
    ['run', 'happi', 'relat', 'die', 'sky']
    """
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past, _final_y, _step_2, _step_3, _step_4, _final_e, _final_l):
        word = step(word)
    return word


def _consonants(word: str) -> str:
    """One letter for each: c for a consonant, v for a vowel; y is a vowel after a consonant."""
    kinds: list[str] = []
    for letter in word:
        after_consonant = bool(kinds) and kinds[-1] == "c"
        is_vowel = letter in "aeiou" or (letter == "y" and after_consonant)
        kinds.append("v" if is_vowel else "c")
    return "".join(kinds)


def _measure(word: str) -> int:
    """How many times a consonant follows a vowel: Porter's m."""
    return _consonants(word).count("vc")


def _ends_short(word: str) -> bool:
    """Porter's *o: consonant, vowel, consonant but w, x, y; or just a vowel and a consonant."""
    kinds = _consonants(word)
    return (kinds.endswith("cvc") and word[-1] not in "wxy") or kinds == "vc"


def _plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        left = word.removesuffix(suffix)
        if left != word and "v" in _consonants(left):
            return _mended(left)
    return word


def _mended(word: str) -> str:
    """Give back the e that -ed and -ing have taken, and take the letter they have doubled."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and _consonants(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _final_y(word: str) -> str:
    if word.endswith("y") and len(word) > 2 and _consonants(word)[-2] == "c":
        return word[:-1] + "i"
    return word


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step_2(word[:-2])
    if word.endswith("logi"):  # the l counts for the stem: theologi, not only archaeologi
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replaced(word, STEP_2)


def _step_3(word: str) -> str:
    return _replaced(word, STEP_3)


def _replaced(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    """The first suffix that fits decides, whether its stem is long enough or not."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            left = word.removesuffix(suffix)
            return left + replacement if _measure(left) > 0 else word
    return word


def _step_4(word: str) -> str:
    for suffix in STEP_4:
        if word.endswith(suffix):
            left = word.removesuffix(suffix)
            fits = _measure(left) > 1 and (suffix != "ion" or left[-1] in "st")
            return left if fits else word
    return word


def _final_e(word: str) -> str:
    left = word.removesuffix("e")
    if left == word:
        return word
    measure = _measure(left)
    return left if measure > 1 or (measure == 1 and not _ends_short(left)) else word


def _final_l(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word

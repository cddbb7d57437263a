import re
from pathlib import Path

import nltk
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from metrics.scorers.porter import IRREGULAR, STEP_2, STEP_3, STEP_4, stem

ORACLE = PorterStemmer()
ENDINGS = [suffix for suffix, _ in (*STEP_2, *STEP_3)] + [*STEP_4, "logi", "ies", "ied", "eed"]
ENDINGS += ["ed", "ing", "y", "e", "ll", "s", "sses", "ational", "bl", "at", "iz"]


def test_it_stems_the_words_of_nltks_own_source_as_nltk_does():
    folder = Path(nltk.__file__).parent
    text = " ".join(path.read_text("utf-8", "ignore") for path in folder.glob("*.py"))
    words = set(re.findall("[a-z]+", text.lower())) | IRREGULAR.keys()
    assert len(words) > 5000
    assert {word: stem(word) for word in words} == {word: ORACLE.stem(word) for word in words}


@given(st.text("abeilosty", min_size=1, max_size=7), st.lists(st.sampled_from(ENDINGS), max_size=2))
def test_it_stems_any_letters_as_nltk_does(start, endings):
    word = start + "".join(endings)
    assert stem(word) == ORACLE.stem(word)


def test_digits_and_short_words_stay():
    assert [stem(word) for word in ("a", "is", "2026", "ok7")] == ["a", "is", "2026", "ok7"]

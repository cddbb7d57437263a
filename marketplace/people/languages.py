"""Languages that workers say they know, by the ISO 639 codes that profiles and HITs share."""

from functools import lru_cache
from typing import Any

import pycountry
from django.utils.translation import gettext as _

MOST_LANGUAGES = 20


def language_code(text: str) -> str | None:
    """The code of a language by its name or code: two letters where it has such, else three."""
    # Codes first: En is the name of a language too, though not of English.
    language = _of_code(text.strip().lower())
    if language is None:
        try:
            language = pycountry.languages.lookup(text.strip())
        except LookupError:
            return None
    return _code(language)


@lru_cache(1000)
def language_name(code: str) -> str:
    """Its name in English."""
    return str(_of_code(code).name)


@lru_cache(1000)
def code_of_three_letters(letters: str) -> str | None:
    """The code of the language of three capital letters, such as DEU."""
    is_code = len(letters) == 3 and letters.isupper()
    language = _of_code(letters.lower()) if is_code else None
    return _code(language) if language else None


@lru_cache(1000)
def three_letters(code: str) -> str:
    """Of a language's code, in capitals: every language has them."""
    return str(_of_code(code).alpha_3).upper()


def read_languages(text: str) -> tuple[list[str], list[str]]:
    """Codes of the languages that a text lists with commas, and what is wrong with the others."""
    words = [word.strip() for word in text.replace(";", ",").split(",") if word.strip()]
    codes = {word: language_code(word) for word in words}
    errors = [
        _("“%(word)s” is not a language that ISO 639 has. Write its name in English, or its code.")
        % {"word": word[:40]}
        for word, code in codes.items()
        if code is None
    ]
    if len(words) > MOST_LANGUAGES:
        errors.append(_("At most %(n)d languages fit.") % {"n": MOST_LANGUAGES})
    return list(dict.fromkeys(code for code in codes.values() if code)), errors


def _of_code(code: str) -> Any:
    languages = pycountry.languages
    return languages.get(alpha_2=code) if len(code) == 2 else languages.get(alpha_3=code)


def _code(language: Any) -> str:
    return str(getattr(language, "alpha_2", language.alpha_3))

"""A pseudo-locale: every translatable text in brackets with accented letters.

With `PSEUDO_LOCALE=1` pages show which texts are not marked for translation, and page tests show
that they do not depend on wording.
"""

import re
from collections.abc import Callable

from django.utils.translation import _trans, trans_real  # type: ignore[attr-defined]

LETTERS = str.maketrans("aceinoruyACEINORUY", "áçéíñóřúýÁÇÉÍÑÓŘÚÝ")
# Tags, placeholders and entities stay as they are.
KEPT = re.compile(r"(<[^>]*>|%\(\w+\)[-+#0 .,\d]*[a-z]|%[sd%]|\{\w*(?:[.!:][^{}]*)?\}|&\w+;)")


def accent(message: str) -> str:
    if not message.strip():
        return message
    parts = KEPT.split(message)
    parts[::2] = [part.translate(LETTERS) for part in parts[::2]]
    return f"⟦{''.join(parts)}⟧"


def install_pseudo_locale() -> None:
    for name in ("gettext", "ngettext", "pgettext", "npgettext"):
        setattr(_trans, name, _accented(getattr(trans_real, name)))


def remove_pseudo_locale() -> None:
    for name in ("gettext", "ngettext", "pgettext", "npgettext"):
        setattr(_trans, name, getattr(trans_real, name))


def _accented(translate: Callable[..., str]) -> Callable[..., str]:
    def translate_and_accent(*args: object) -> str:
        return accent(translate(*args))

    return translate_and_accent

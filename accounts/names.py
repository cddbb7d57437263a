"""Names by which people know teams, studies and each other: what they hold is seen."""

import unicodedata

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

# Letters and signs by their category, of which nothing is seen.
BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def require_visible(name: str) -> None:
    """ValidationError where a name holds what is not seen, or turns the direction of what is.

    With such characters a name is read as another's, or as what it is not.
    """
    for character in name:
        if not character.isprintable() or character in BLANK:
            raise ValidationError(
                _("The name holds an invisible character (U+%(code)s). Type it anew without it.")
                % {"code": f"{ord(character):04X}"},
                code="invisible",
            )


def is_seen(text: str) -> bool:
    """Whether anything of a text is seen; an accent alone, with no letter under it, is not much."""
    return any(
        character.isprintable()
        and not character.isspace()
        and character not in BLANK
        and not unicodedata.category(character).startswith("M")
        for character in text
    )

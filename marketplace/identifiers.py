"""Ids that strangers see. They are unguessable, so that an assignment id can
serve as the right to submit that assignment."""

import re
import secrets
import string

ALPHABET = string.ascii_uppercase + string.digits


def new_entity_id() -> str:
    # 155 bits.
    return _draw(ALPHABET, 30)


def is_entity_id(text: str) -> bool:
    return re.fullmatch("[A-Z0-9]{1,64}", text) is not None


def new_person_id() -> str:
    return "A" + _draw(ALPHABET, 13)


def new_access_key_id() -> str:
    # As long as Amazon's, and not to be confused with them.
    return "ASSAY" + _draw(string.ascii_uppercase + "234567", 15)


def new_token() -> str:
    return _draw(string.ascii_lowercase + string.digits, 32)


def _draw(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))

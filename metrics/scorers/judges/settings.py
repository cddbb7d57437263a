"""What judges' settings have in common: a fingerprint, a form in a file, and prompts as templates.

In a template ``$name`` stands for a text and ``$$`` for a dollar sign. `string.Template` does
nothing else: a response with a ``$`` or a brace in it is not changed.
"""

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Self, get_type_hints

from error_codes import InvalidValue
from metrics.scorers.interface import Example, check_kinds
from metrics.scorers.judges.client import Messages
from metrics.scorers.judges.readings import UNSTORABLE

# What a prompt may say of an example; the dialogue is the context with the response.
EXAMPLE_FIELDS = frozenset({"response", "context", "reference", "condition", "dialogue"})
# Without those of them that it uses, a prompt cannot be filled.
NEEDED_FIELDS = frozenset({"context", "reference", "condition"})


def check_template(name: str, text: str, known: Iterable[str]) -> frozenset[str]:
    """Check a template when it is given, not when the thousandth text is put in.

    Parameters
    ----------
    name : str
        What the template is called where it was given.
    text : str
    known : iterable of str
        The names it may use.

    Returns
    -------
    frozenset of str
        The names it uses.

    Raises
    ------
    ValueError
        If it is malformed or uses another name.

    Examples
    --------
    >>> sorted(check_template("user", "$context -> $response", EXAMPLE_FIELDS))
    ['context', 'response']
    >>> check_template("user", "$answer", ["response"])
    Traceback (most recent call last):
    error_codes.InvalidValue: user uses $answer; there are $response
    """
    template = Template(text)
    if not template.is_valid():
        raise InvalidValue(
            f"{name} has a '$' that begins no name; write '$$' for a dollar sign",
            code="stray_dollar",
        )
    names = frozenset(template.get_identifiers())
    known = sorted(known)
    for unknown in sorted(names - set(known)):
        raise InvalidValue(
            f"{name} uses ${unknown}; there are {', '.join(f'${one}' for one in known)}",
            code="unknown_field",
        )
    return names


def fill(text: str, example: Example, **fields: str) -> str:
    """Put an example, and further texts, into a template.

    Parameters
    ----------
    text : str
    example : Example
    **fields

    Returns
    -------
    str

    Examples
    --------
    >>> fill("$aspect: $response", Example(item="1", system="a", response="$5"), aspect="Tone")
    'Tone: $5'
    """
    texts = {
        "response": example.response,
        "context": example.context or "",
        "reference": example.reference or "",
        "condition": example.condition or "",
        "dialogue": "\n".join(part for part in (example.context, example.response) if part),
    }
    return Template(text).substitute(texts | fields)


def chat(system: str, user: str) -> Messages:
    """Make a chat of a system message, left out where blank, and a user's.

    Parameters
    ----------
    system, user : str

    Returns
    -------
    list of dict

    Examples
    --------
    >>> chat("", "Hello.")
    [{'role': 'user', 'content': 'Hello.'}]
    """
    messages = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": user}]


def digest(settings: Mapping[str, object]) -> str:
    """Hash a judge's instructions, for the signature.

    Parameters
    ----------
    settings : mapping of str to object
        Whatever JSON can hold.

    Returns
    -------
    str
        12 hexadecimal digits.

    Examples
    --------
    >>> digest({"user": "$response"}) == digest({"user": "$response "})
    False
    """
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all that can change a score; it is part of the signature."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        JudgeSettings

        Raises
        ------
        ValueError
            If it is not of that form.
        """
        try:
            fields = json.loads(text)
            if not isinstance(fields, dict):
                raise InvalidValue(
                    "the settings must be a JSON object, in braces", code="settings_not_an_object"
                )
            for name, value in fields.items():
                if isinstance(value, str) and UNSTORABLE.search(value):
                    raise InvalidValue(
                        f"{name} holds NUL or half a surrogate pair, which nothing can keep",
                        code="unstorable_text",
                    )
            check_kinds(fields, get_type_hints(cls))
            return cls(**fields)
        except (TypeError, RecursionError) as error:
            raise InvalidValue(
                f"the settings do not fit: {error}", code="settings_unfit"
            ) from error

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Read the settings in a file, with or without the mark that some put before UTF-8.

        Parameters
        ----------
        path : str

        Returns
        -------
        JudgeSettings

        Raises
        ------
        ValueError
            If the file is not of that form.
        OSError
            If it cannot be read.
        """
        return cls.from_json(Path(path).read_text(encoding="utf-8-sig"))

"""The JSON object that a request of Assay's own, beside the Requester API, has as its body."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest

from marketplace.exceptions import InvalidParameter


def read_object(request: HttpRequest) -> dict[str, Any]:
    """The body, every text of which a database takes; InvalidParameter for any other."""
    try:
        content = json.loads(request.body)
        # Half a character, such as "\ud800", is JSON and no text.
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidParameter("The body is not JSON.") from error
    if not isinstance(content, dict):
        raise InvalidParameter("The body is not a JSON object.")
    if any("\x00" in text for text in _texts_in(content)):
        raise InvalidParameter("The body has a NUL character in a text.", code="nul_character")
    return content


def _texts_in(content: Any) -> Iterator[str]:
    """Each text, keys too; json.loads has refused what nests too deep to be walked."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        for key, value in content.items():
            yield key
            yield from _texts_in(value)
    elif isinstance(content, list):
        for value in content:
            yield from _texts_in(value)

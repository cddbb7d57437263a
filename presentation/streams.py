"""JSON written as it is read, so that no file is ever in memory whole."""

import json
from collections.abc import Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any


def json_chunks(
    record: Mapping[str, Any], name: str, chunks: Iterable[Iterable[Mapping[str, Any]]]
) -> Iterator[str]:
    """A JSON object that ends with a list of this name, as `json.dumps(..., indent=1)` has it."""
    yield json.dumps(record, indent=1).removesuffix("\n}").removesuffix("}")
    yield f',\n "{name}": [' if record else f'\n "{name}": ['
    between = "\n"
    for rows in chunks:
        for row in rows:
            yield between + indent(json.dumps(row, indent=1), "  ")
            between = ",\n"
    yield "]\n}" if between == "\n" else "\n ]\n}"

"""Compare a downloaded openapi.yaml of Prolific's with the operations that are used:
``python -m benchmarks.fake_prolific.drift FILE``.

It prints what the vendor's OpenAPI document says otherwise than `schema.yaml`.

Operations are matched by method and path: their names change. Of a request we look for what is
sent and not known there, and what is wanted there and may not be sent; of an answer, for what is
read here and not promised there, and for words that may be said and are not known here.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from benchmarks.fake_prolific.server import Operation, document, known_operations
from error_codes import InvalidValue
from presentation.numbers import group_values

Schema = dict[str, Any]
PREFIX = "/api/v1"
JSON = "application/json"
COMBINED = ("allOf", "oneOf", "anyOf")
DEEPEST = 12


@dataclass(frozen=True)
class Drift:
    operation: str
    part: str
    field: str
    code: str
    text: str

    @property
    def known(self) -> str:
        """Why it is right here though the document says otherwise; "" where nobody knows."""
        for each in document()["known"]:
            if (each["part"], each["field"]) == (self.part, self.field):
                return str(each["why"])
        return ""

    def __str__(self) -> str:
        where = f"{self.operation} {self.part} {self.field}".rstrip()
        return f"{where}: {self.text}" + (f" Known: {self.known}." if self.known else "")

    def facts(self) -> dict[str, str]:
        return asdict(self) | {"known": self.known}


def read_document(path: Path) -> Schema:
    """Read an OpenAPI document; InvalidValue if the file is none."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        text = f"{path} can't be read: {error.strerror}."
        raise InvalidValue(text, code="unreadable_file") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidValue(f"{path} is no YAML: {error}", code="not_yaml") from error
    if not isinstance(content, dict) or not isinstance(content.get("paths"), dict):
        text = f"{path} is no OpenAPI document: it has no `paths`."
        raise InvalidValue(text, code="not_openapi")
    return content


def drift(theirs: Schema) -> list[Drift]:
    by_path = {_plain(path): item for path, item in theirs["paths"].items()}
    found: list[Drift] = []
    for operation in known_operations():
        item = _resolved(by_path.get(_plain(operation.path), {}), theirs)
        there = item.get(operation.method.lower())
        if there is None:
            text = f"{operation.method} {operation.path} is not in the document."
            found.append(Drift(operation.name, "operation", "", "missing_operation", text))
        else:
            found += _of_operation(operation, there, theirs)
    return found


def _of_operation(operation: Operation, there: Schema, theirs: Schema) -> Iterator[Drift]:
    answers = {str(status): body for status, body in there.get("responses", {}).items()}
    status = str(operation.status)
    if status not in answers:
        listed = ", ".join(sorted(answers)) or "nothing"
        text = f"{status} is expected here, and the document lists {listed}."
        yield Drift(operation.name, "status", "", "other_status", text)
    for part, shape, schema in (
        ("request", operation.request, _content(there.get("requestBody", {}), theirs)),
        ("answer", operation.answer, _content(answers.get(status, {}), theirs)),
    ):
        if shape is None:
            continue
        if schema is None:
            if part == "request" or status in answers:
                text = "the document describes no JSON body."
                yield Drift(operation.name, part, "", "missing_body", text)
            continue
        comparison = _Comparison(operation.name, part, theirs)
        yield from comparison.compare({"$ref": f"#/shapes/{shape}"}, schema, "", 0)


@dataclass(frozen=True)
class _Comparison:
    operation: str
    part: str
    theirs: Schema

    def compare(self, ours: Schema, there: Schema, field: str, depth: int) -> Iterator[Drift]:
        here, variants = _resolved(ours, document()), _variants(there, self.theirs)
        if depth > DEEPEST:
            return
        yield from self._words(here, variants, field)
        yield from self._types(here, variants, field)
        yield from self._fields(here, variants, field, depth)
        items = [variant["items"] for variant in variants if "items" in variant]
        if "items" in here and items:
            yield from self.compare(here["items"], {"anyOf": items}, f"{field}[]", depth + 1)

    def _fields(
        self, here: Schema, variants: list[Schema], field: str, depth: int
    ) -> Iterator[Drift]:
        known = group_values(
            pair for variant in variants for pair in variant.get("properties", {}).items()
        )
        if not known:
            return  # the document says no more than that there is an object
        for name, schema in here.get("properties", {}).items():
            inner = f"{field}.{name}".lstrip(".")
            if name in known:
                yield from self.compare(schema, {"anyOf": known[name]}, inner, depth + 1)
            else:
                does = "sent" if self.part == "request" else "read"
                yield self._drift(inner, "unknown_field", f"{does} here, and not in the document.")
        yield from self._wanted(here, variants, field)

    def _wanted(self, here: Schema, variants: list[Schema], field: str) -> Iterator[Drift]:
        if self.part != "request":
            return
        # what every variant wants; of one variant alone nobody knows whether it is meant
        having = [set(each.get("required", ())) for each in variants if "properties" in each]
        for name in sorted(set.intersection(*having) - set(here.get("required", ()))):
            inner = f"{field}.{name}".lstrip(".")
            is_known = name in here.get("properties", {})
            code = "required_field" if is_known else "missing_field"
            does = "may be left out" if is_known else "never sent"
            yield self._drift(inner, code, f"required there, and {does} here.")

    def _words(self, here: Schema, variants: list[Schema], field: str) -> Iterator[Drift]:
        listed = [variant["enum"] for variant in variants if "enum" in variant]
        if "enum" not in here or not listed:
            return
        ours, said = set(here["enum"]), set(chain.from_iterable(listed))
        is_request = self.part == "request"
        text = "is sent here, and not listed there." if is_request else "may be said there."
        for word in sorted(map(str, ours - said if is_request else said - ours)):
            code = "unlisted_word" if is_request else "new_word"
            yield self._drift(field, code, f"“{word}” {text}")

    def _types(self, here: Schema, variants: list[Schema], field: str) -> Iterator[Drift]:
        ours = _types(here)
        theirs = set().union(*map(_types, variants))
        if "integer" in ours | theirs and "number" in ours | theirs:
            theirs |= ours & {"integer", "number"}
        if ours and theirs and not ours & theirs:
            yield self._drift(
                field,
                "other_type",
                f"{', '.join(sorted(ours))} here, {', '.join(sorted(theirs))} there.",
            )

    def _drift(self, field: str, code: str, text: str) -> Drift:
        return Drift(self.operation, self.part, field or "(whole)", code, text)


def _plain(path: str) -> str:
    """A path as it can be compared: without the prefix, the ids' names and the last slash."""
    parts = path.removeprefix(PREFIX).strip("/").split("/")
    return "/".join("{id}" if part.startswith("{") else part for part in parts)


def _content(holder: Schema, theirs: Schema) -> Schema | None:
    return _resolved(holder, theirs).get("content", {}).get(JSON, {}).get("schema")


def _variants(schema: Schema, root: Schema, depth: int = 0) -> list[Schema]:
    """All schemas that a value may have to meet, one by one; which of them together, is left."""
    schema = _resolved(schema, root)
    if depth > DEEPEST:
        return []
    inner = chain.from_iterable(schema.get(word) or () for word in COMBINED)
    return [schema, *chain.from_iterable(_variants(each, root, depth + 1) for each in inner)]


def _resolved(schema: Any, root: Schema) -> Schema:
    for _step in range(DEEPEST):
        if not isinstance(schema, dict):
            return {}
        if "$ref" not in schema:
            return schema
        schema = _pointed(schema["$ref"], root)
    return {}


def _pointed(reference: str, root: Schema) -> Any:
    place: Any = root
    for part in reference.removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        place = place.get(name, {}) if isinstance(place, dict) else {}
    return place


def _types(schema: Schema) -> set[str]:
    said = schema.get("type", [])
    return {said} if isinstance(said, str) else set(said)


def main(words: Sequence[str] | None = None) -> None:
    """Print the differences; exit code 1 if one is not listed as known, or the file is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the vendor's document, YAML or JSON")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    options = parser.parse_args(words)
    try:
        found = drift(read_document(options.file))
    except InvalidValue as error:
        raise SystemExit(str(error)) from error
    lines = [str(each) for each in found]
    if options.json:
        facts = {"operations": len(known_operations()), "drift": [each.facts() for each in found]}
        lines = [json.dumps(facts)]
    elif not found:
        lines = [f"The document agrees on all {len(known_operations())} operations."]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if n_new := sum(not each.known for each in found):
        places = "1 place that is" if n_new == 1 else f"{n_new} places that are"
        raise SystemExit(f"The document differs in {places} not known of.")


if __name__ == "__main__":
    main()

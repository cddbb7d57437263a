"""What a requester's page says an answer must be: a JSON Schema that it carries in its HTML.

    <script type="application/schema+json" data-field="answer">{"type": "object"}</script>

The form field of that name must hold JSON that meets the schema. A page without one takes
whatever comes.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import ge, gt, le, lt
from typing import Any

from marketplace.exceptions import InvalidQuestion, require

# JSON Schema, as much of draft 2020-12 as an answer needs and can be checked at a bounded cost.
#
# There are no regular expressions, no references and no recursion. Every loop over a schema or an
# answer counts its steps, and the checks of one submission share a `Budget` of steps and of time:
# an answer that exceeds it is refused.

MOST_NODES = 3_000
DEEPEST = 20
MOST_STEPS = 200_000
# Some steps cost more than others: keys can be long, and hashes of numbers can collide.
MOST_SECONDS = 1.0
STEPS_BETWEEN_CLOCKS = 100
MOST_ERRORS = 5
ANNOTATIONS = {"$schema", "$comment", "title", "description"}
SUBSCHEMA = {"items", "contains", "not", "if", "then", "else", "additionalProperties"}
SUBSCHEMAS = {"allOf", "anyOf", "oneOf", "prefixItems"}
# What the value of a keyword has to be.
VALUES: dict[str, type | tuple[type, ...]] = {
    "type": (str, list), "enum": list, "required": list, "uniqueItems": bool,
    "minimum": (int, float), "maximum": (int, float), "exclusiveMinimum": (int, float),
    "exclusiveMaximum": (int, float), "minLength": int, "maxLength": int, "minItems": int,
    "maxItems": int, "minContains": int, "maxContains": int, "minProperties": int,
    "maxProperties": int,
}  # fmt: skip
TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


class TooManySteps(Exception):
    """The answer is too large to be checked against its schema."""


def check_schema(schema: Any) -> None:
    """Refuse a schema that this module would read differently from JSON Schema."""
    nodes = list(_subschemas(schema, "#", 0))
    require(
        len(nodes) <= MOST_NODES,
        InvalidQuestion(
            f"The answer's schema has more than {MOST_NODES} parts.", code="schema_too_large"
        ),
    )
    for path, node in nodes:
        if not isinstance(node, bool):
            _check_keywords(node, path)


def _check_keywords(node: Any, path: str) -> None:
    if not isinstance(node, dict):
        raise InvalidQuestion(f"The answer's schema has something else than a schema at {path}.")
    for keyword, value in node.items():
        if keyword in VALUES:
            right = isinstance(value, VALUES[keyword])
            right = right and (keyword == "uniqueItems" or not isinstance(value, bool))
        else:
            right = keyword in _KNOWN
        require(
            right,
            InvalidQuestion(
                f"The answer's schema has “{keyword}” at {path}, which this marketplace does not "
                "offer, or not with this value; docs/marketplace.md names the keywords there are."
            ),
        )
    names = node.get("type", [])
    unknown = set([names] if isinstance(names, str) else names) - TYPES.keys()
    require(not unknown, InvalidQuestion(f"The answer's schema has an unknown type at {path}."))


def _subschemas(schema: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    require(
        depth <= DEEPEST,
        InvalidQuestion(
            f"The answer's schema is more than {DEEPEST} levels deep.", code="schema_too_deep"
        ),
    )
    yield path, schema
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in SUBSCHEMA:
            yield from _subschemas(value, f"{path}/{keyword}", depth + 1)
        elif keyword in SUBSCHEMAS and isinstance(value, list):
            for number, each in enumerate(value):
                yield from _subschemas(each, f"{path}/{keyword}/{number}", depth + 1)
        elif keyword == "properties" and isinstance(value, dict):
            for name, each in value.items():
                yield from _subschemas(each, f"{path}/{keyword}/{name}", depth + 1)
        elif keyword in SUBSCHEMAS | {"properties"}:
            raise InvalidQuestion(f"The answer's schema has no schemas in “{keyword}” at {path}.")


@dataclass
class Budget:
    steps_left: int = MOST_STEPS
    steps_to_clock: int = STEPS_BETWEEN_CLOCKS
    # Of this thread alone: other requests of the same process do not count.
    ends_at: float = field(default_factory=lambda: time.thread_time() + MOST_SECONDS)

    def spend(self, steps: int = 1) -> None:
        """Count a loop's steps before it runs. Raises TooManySteps."""
        self.steps_left -= steps
        self.steps_to_clock -= steps
        if self.steps_left < 0:
            raise TooManySteps
        if self.steps_to_clock <= 0:
            self.steps_to_clock = STEPS_BETWEEN_CLOCKS
            if time.thread_time() > self.ends_at:
                raise TooManySteps


def errors_of(value: Any, schema: Any, budget: Budget | None = None) -> list[str]:
    check = _Check(budget or Budget())
    check.run(value, schema, "")
    return check.errors


@dataclass
class _Check:
    budget: Budget
    errors: list[str] = field(default_factory=list)

    def canonical(self, value: Any) -> Any:
        """Equal if and only if the JSON values are equal (true != 1, 1 == 1.0)."""
        self.budget.spend()
        if isinstance(value, list):
            return ("array", *map(self.canonical, value))
        if isinstance(value, dict):
            return ("object", frozenset((key, self.canonical(each)) for key, each in value.items()))
        return ("boolean" if isinstance(value, bool) else "", value)

    def run(self, value: Any, schema: Any, path: str) -> bool:
        self.budget.spend()
        if isinstance(schema, bool):
            return schema or self.fail(path, "is not expected")
        return all(
            check(self, value, schema, path)
            for kind, check in (_KEYWORDS[key] for key in schema if key in _KEYWORDS)
            if kind is None or TYPES[kind](value)
        )

    def fits(self, value: Any, schema: Any) -> bool:
        errors, self.errors = self.errors, []
        result = self.run(value, schema, "")
        self.errors = errors
        return result

    def fail(self, path: str, problem: str) -> bool:
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(f"{path or 'the answer'} {problem}")
        return False


Keyword = Callable[[_Check, Any, Any, str], bool]


def _bound(
    keyword: str,
    problem: str,
    is_within: Callable[[Any, Any], bool],
    size: Callable[[Any], Any] = lambda value: value,
) -> Keyword:
    def check(run: _Check, value: Any, schema: Any, path: str) -> bool:
        return is_within(size(value), schema[keyword]) or run.fail(
            path, problem.format(schema[keyword])
        )

    return check


def _type(run: _Check, value: Any, schema: Any, path: str) -> bool:
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    run.budget.spend(len(names))
    return any(TYPES[name](value) for name in names) or run.fail(
        path, f"is not of type {' or '.join(names)}"
    )


def _enum(run: _Check, value: Any, schema: Any, path: str) -> bool:
    canonical = run.canonical(value)
    return any(run.canonical(each) == canonical for each in schema["enum"]) or run.fail(
        path, "is not one of its values"
    )


def _const(run: _Check, value: Any, schema: Any, path: str) -> bool:
    return bool(run.canonical(value) == run.canonical(schema["const"])) or run.fail(
        path, f"is not {schema['const']!r}"
    )


def _required(run: _Check, value: Any, schema: Any, path: str) -> bool:
    run.budget.spend(len(schema["required"]))
    missing = [key for key in schema["required"] if key not in value]
    return not missing or run.fail(path, f"lacks {', '.join(map(str, missing))}")


def _properties(run: _Check, value: Any, schema: Any, path: str) -> bool:
    run.budget.spend(len(schema["properties"]))
    known = [(key, each) for key, each in schema["properties"].items() if key in value]
    return all(run.run(value[key], each, f"{path}.{key}".lstrip(".")) for key, each in known)


def _additional(run: _Check, value: Any, schema: Any, path: str) -> bool:
    run.budget.spend(len(value))
    others = [key for key in value if key not in schema.get("properties", {})]
    rest = schema["additionalProperties"]
    return all(run.run(value[key], rest, f"{path}.{key}".lstrip(".")) for key in others)


def _prefix_items(run: _Check, value: Any, schema: Any, path: str) -> bool:
    pairs = enumerate(zip(value, schema["prefixItems"], strict=False))
    return all(run.run(item, each, f"{path}[{number}]") for number, (item, each) in pairs)


def _items(run: _Check, value: Any, schema: Any, path: str) -> bool:
    start = len(schema.get("prefixItems", []))
    rest = enumerate(value[start:], start)
    return all(run.run(item, schema["items"], f"{path}[{number}]") for number, item in rest)


def _contains(run: _Check, value: Any, schema: Any, path: str) -> bool:
    count = sum(run.fits(item, schema["contains"]) for item in value)
    least, most = schema.get("minContains", 1), schema.get("maxContains", count)
    return least <= count <= most or run.fail(path, "lacks a part, or has it too often")


def _unique(run: _Check, value: Any, schema: Any, path: str) -> bool:
    if not schema["uniqueItems"]:
        return True
    return len({run.canonical(item) for item in value}) == len(value) or run.fail(
        path, "has the same part twice"
    )


def _all_of(run: _Check, value: Any, schema: Any, path: str) -> bool:
    return all(run.run(value, each, path) for each in schema["allOf"])


def _any_of(run: _Check, value: Any, schema: Any, path: str) -> bool:
    return any(run.fits(value, each) for each in schema["anyOf"]) or run.fail(
        path, "is not as it may be"
    )


def _one_of(run: _Check, value: Any, schema: Any, path: str) -> bool:
    return sum(run.fits(value, each) for each in schema["oneOf"]) == 1 or run.fail(
        path, "is not as it may be"
    )


def _not(run: _Check, value: Any, schema: Any, path: str) -> bool:
    return not run.fits(value, schema["not"]) or run.fail(path, "is as it may not be")


def _if(run: _Check, value: Any, schema: Any, path: str) -> bool:
    return run.run(
        value, schema.get("then" if run.fits(value, schema["if"]) else "else", True), path
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# By keyword: the type of the values that it is about, None for all, and the check.
_KEYWORDS: dict[str, tuple[str | None, Keyword]] = {
    "type": (None, _type), "enum": (None, _enum), "const": (None, _const),
    "allOf": (None, _all_of), "anyOf": (None, _any_of), "oneOf": (None, _one_of),
    "not": (None, _not), "if": (None, _if),
    "required": ("object", _required), "properties": ("object", _properties),
    "additionalProperties": ("object", _additional),
    "prefixItems": ("array", _prefix_items), "items": ("array", _items),
    "contains": ("array", _contains), "uniqueItems": ("array", _unique),
    "minimum": ("number", _bound("minimum", "is less than {}", ge)),
    "maximum": ("number", _bound("maximum", "is more than {}", le)),
    "exclusiveMinimum": ("number", _bound("exclusiveMinimum", "is not more than {}", gt)),
    "exclusiveMaximum": ("number", _bound("exclusiveMaximum", "is not less than {}", lt)),
    "minLength": ("string", _bound("minLength", "has fewer than {} characters", ge, len)),
    "maxLength": ("string", _bound("maxLength", "has more than {} characters", le, len)),
    "minItems": ("array", _bound("minItems", "has fewer than {} parts", ge, len)),
    "maxItems": ("array", _bound("maxItems", "has more than {} parts", le, len)),
    "minProperties": ("object", _bound("minProperties", "has fewer than {} fields", ge, len)),
    "maxProperties": ("object", _bound("maxProperties", "has more than {} fields", le, len)),
}  # fmt: skip
_KNOWN = _KEYWORDS.keys() | ANNOTATIONS | {"then", "else", "minContains", "maxContains"}


# Attributes are bounded, so that many scripts without an end are not each read to the end.
SCRIPT = re.compile(r"<script\b([^>]{0,1000})>", re.IGNORECASE)
END = re.compile(r"</script[\s/>]", re.IGNORECASE)
SCHEMA_TYPE = "application/schema+json"
TYPE = re.compile(r"""\btype\s*=\s*["']?application/schema\+json\b""", re.IGNORECASE)
FIELD = re.compile(r"""\bdata-field\s*=\s*["']?([\w.-]{1,100})""", re.IGNORECASE)
LARGEST_SCHEMA = 30_000  # characters
LARGEST_ANSWER = 500_000


def answer_schemas(html: str) -> dict[str, Any]:
    scripts = [(attributes, text) for attributes, text in _scripts(html) if TYPE.search(attributes)]
    named = [(FIELD.search(attributes), text) for attributes, text in scripts]
    return {field[1]: _schema(text) for field, text in named if field}


def _scripts(html: str) -> Iterator[tuple[str, str]]:
    position = 0
    while start := SCRIPT.search(html, position):
        end = END.search(html, start.end())
        if end is None:
            return
        yield start[1], html[start.end() : end.start()]
        position = end.end()


def answer_errors(html: str, fields: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    values = dict(fields)
    budget = Budget()
    return [
        error
        for name, schema in answer_schemas(html).items()
        for error in _field_errors(name, values.get(name, []), schema, budget)
    ]


def _schema(text: str) -> Any:
    require(
        len(text) <= LARGEST_SCHEMA,
        InvalidQuestion(
            f"An answer's schema has more than {LARGEST_SCHEMA:,} characters.",
            code="schema_too_long",
        ),
    )
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidQuestion(
            f"An answer's schema is not JSON: {error}.", code="schema_not_json"
        ) from error
    check_schema(schema)
    return schema


def _field_errors(name: str, values: Sequence[str], schema: Any, budget: Budget) -> list[str]:
    if len(values) != 1:
        return [f"the field “{name}” is missing, or there twice"]
    if len(values[0]) > LARGEST_ANSWER:
        return [f"“{name}” has more than {LARGEST_ANSWER:,} characters"]
    try:
        return errors_of(json.loads(values[0], parse_constant=_refuse), schema, budget)
    except TooManySteps:
        return [f"“{name}” is too large to be checked"]
    except (ValueError, RecursionError):
        return [f"“{name}” is not JSON"]


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Schema = Mapping[str, Any]
Link = Callable[[str], str]
LONGEST_ENUM = 12
LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "minItems": "items at least",
    "maxItems": "items at most",
    "maxLength": "characters at most",
}


def cell(text: str) -> str:
    listed = re.sub(r"\s*^\* ", "; ", text, flags=re.MULTILINE).removeprefix("; ")
    return " ".join(listed.split()).replace("|", "\\|")


def table(head: list[str], rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, ["---"] * len(head), *rows])


def reference_name(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]


def field_rows(schema: Schema, link: Link) -> list[list[str]]:
    required = schema.get("required", ())
    return [
        [
            f"`{name}`",
            cell(type_text(field, link)),
            "yes" if name in required else "",
            cell(field.get("description", "")),
        ]
        for name, field in schema.get("properties", {}).items()
    ]


def type_text(schema: Schema, link: Link) -> str:
    if "$ref" in schema:
        return link(reference_name(schema["$ref"]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return _choices(schema["enum"])
    for several, joint in (("allOf", " and "), ("oneOf", " or "), ("anyOf", " or ")):
        if several in schema:
            return joint.join(type_text(each, link) for each in schema[several])
    if schema.get("type") == "array":
        return f"list of {type_text(schema.get('items', {}), link)}{_limits(schema)}"
    return _plain_type(schema) + _limits(schema)


def _choices(values: list[Any]) -> str:
    return ", ".join([f"`{value}`" for value in values[:LONGEST_ENUM]]) + (
        ", …" if len(values) > LONGEST_ENUM else ""
    )


def _plain_type(schema: Schema) -> str:
    kind = schema.get("type", "anything")
    name = " or ".join(kind) if isinstance(kind, list) else str(kind)
    form = schema.get("format")
    words = f"{name} ({form})" if form else name
    return f"{words} or null" if schema.get("nullable") else words


def _limits(schema: Schema) -> str:
    said = [
        f"{words} {_number(schema[key])}" if key in ("minimum", "maximum") else
        f"{_number(schema[key])} {words}"
        for key, words in LIMITS.items()
        if schema.get(key)
    ]  # fmt: skip
    return f"; {', '.join(said)}" if said else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


FOLDER = "reference/api"
METHODS = ("get", "post", "put", "patch", "delete")
# Answered alike everywhere; docs/api.md says what each means.
COMMON = ("400", "401", "403", "404", "406", "409", "415", "429")
INTRODUCTION = """# API reference

Every address of the API, made of [openapi.yaml](../../openapi.yaml), which a program may read
instead. [The API](../../api.md) says how to sign in, what a page of rows is and how errors answer;
[the Python client](../../client.md) calls it.

"""
Operation = tuple[str, str, Mapping[str, Any]]


def api_pages(root: Path) -> dict[str, str]:
    document = yaml.load((root / "docs" / "openapi.yaml").read_text("utf-8"), yaml.CSafeLoader)
    by_tag: dict[str, list[Operation]] = defaultdict(list)
    for path, methods in document["paths"].items():
        for method in METHODS:
            if operation := methods.get(method):
                by_tag[(operation.get("tags") or ["root"])[0]].append((method, path, operation))
    pages = {
        f"{FOLDER}/{tag}.md": f"# API: {tag}\n\n" + "\n".join(_operation(*each) for each in found)
        for tag, found in by_tag.items()
    }
    return pages | {
        f"{FOLDER}/index.md": INTRODUCTION + "\n".join(_contents(by_tag)),
        f"{FOLDER}/records.md": _records_page(document["components"]["schemas"]),
    }


def _contents(by_tag: Mapping[str, list[Operation]]) -> Iterator[str]:
    for tag, operations in sorted(by_tag.items()):
        yield f"## {tag.capitalize()}\n"
        rows = [
            [
                f"`{method.upper()}`",
                f"[`{path}`]({tag}.md#{_anchor(operation)})",
                _summary(operation),
            ]
            for method, path, operation in operations
        ]
        yield table(["method", "address", "what it does"], rows)
    yield "\n[Records](records.md) that requests and answers hold.\n"


def _anchor(operation: Mapping[str, Any]) -> str:
    return str(operation["operationId"]).replace("_", "-")


def _summary(operation: Mapping[str, Any]) -> str:
    return cell(operation.get("description", "").partition("\n\n")[0].partition("Access:")[0])


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    title = str(operation["operationId"]).replace("_", " ")
    parts = [
        f"## {title} {{ #{_anchor(operation)} }}\n",
        f"    {method.upper()} {path}\n",
        f"{operation.get('description', '').strip()}\n",
    ]
    if parameters := operation.get("parameters"):
        parts.append(table(["parameter", "in", "value", "", "meaning"], [*map(_row, parameters)]))
    if body := operation.get("requestBody"):
        parts.append(f"Request: {_content(body)}.\n")
    parts.append(f"Answers: {'; '.join(_answers(operation['responses']))}.\n")
    return "\n".join(parts)


def _row(parameter: Mapping[str, Any]) -> list[str]:
    return [
        f"`{parameter['name']}`",
        parameter["in"],
        cell(type_text(parameter.get("schema", {}), _record_link)),
        "required" if parameter.get("required") else "",
        cell(parameter.get("description", "")),
    ]


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    for status, response in responses.items():
        if status not in COMMON:
            content = _content(response)
            yield f"**{status}** {content}" if content else f"**{status}** without a body"
    if refused := [status for status in responses if status in COMMON]:
        yield f"{', '.join(refused)} {_record_link('Error')}"


def _content(body: Mapping[str, Any]) -> str:
    said = [
        type_text(content.get("schema", {}), _record_link)
        + ("" if kind == "application/json" else f" as `{kind}`")
        for kind, content in body.get("content", {}).items()
    ]
    return " or ".join(dict.fromkeys(said))


def _record_link(name: str) -> str:
    return f"[{name}](records.md#{name.lower()})"


def _records_page(schemas: Mapping[str, Any]) -> str:
    parts = ["# API: records\n"]
    for name, schema in schemas.items():
        parts.append(f"## {name} {{ #{name.lower()} }}\n")
        if description := schema.get("description", "").strip():
            parts.append(f"{description}\n")
        if schema.get("properties"):
            parts.append(
                table(["field", "value", "always", "meaning"], field_rows(schema, _local_link))
            )
        else:
            parts.append(f"{type_text(schema, _local_link)}\n")
    return "\n".join(parts)


def _local_link(name: str) -> str:
    return f"[{reference_name(name)}](#{name.lower()})"

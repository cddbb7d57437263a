"""Between the plain values of JSON or YAML and the records of a protocol, and their JSON Schema.

A record is read leniently, since a draft may be wrong while it is written: what does not fit is
as if it were left out (`validation.py` says what is wrong). A valid document is read without
loss, and written without what only repeats a default. `docs/protocol.schema.json` is the schema.
"""

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from annotation.protocols.fields import KINDS, SCHEMA, Kind, default_of, fields_of_kind, is_required
from annotation.protocols.records import (
    Check,
    CheckCase,
    Completion,
    Condition,
    Consent,
    Display,
    Example,
    GradedCase,
    Order,
    Pairs,
    Practice,
    PracticeCandidate,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
    Qualifications,
    QualificationTest,
    QuestionCheck,
    Reason,
    Time,
)
from annotation.protocols.scales import with_numbers

Record = TypeVar("Record")
FORMAT = 1
EMPTY: dict[type, Any] = {str: "", bool: False, int: 0, float: 0.0}


def read_document(values: object) -> ProtocolDocument:
    document = _record(ProtocolDocument, values)
    if not isinstance(values, Mapping):
        return document
    return _record(ProtocolDocument, with_numbers(values, document.questions))


def plain_document(document: ProtocolDocument) -> dict[str, Any]:
    return {"assay_protocol": FORMAT, **_plain(document)}


def fingerprint(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps(values, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()


def _record(kind: type[Record], values: object) -> Record:
    mapping = values if isinstance(values, Mapping) else {}
    hints = _hints(cast(Hashable, kind))
    read = {}
    for one in fields(kind):  # type: ignore[arg-type]
        default = EMPTY.get(hints[one.name], ()) if is_required(one) else default_of(one)
        read[one.name] = _value(hints[one.name], mapping.get(one.name, default), default)
    return kind(**read)


_hints = cache(get_type_hints)


def _value(hint: Any, value: Any, default: Any) -> Any:
    if origin := get_origin(hint):
        return _container(origin, get_args(hint), value, default)
    if is_dataclass(hint):
        return _record(cast(type, hint), value) if isinstance(value, Mapping) else default
    if hint is str and isinstance(value, str):
        return _storable(value)
    if isinstance(value, bool) is not (hint is bool):
        return default
    if hint is float and isinstance(value, int | float):
        return int(value) if float(value).is_integer() else value
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, hint) else default


def _container(origin: Any, args: tuple[Any, ...], value: Any, default: Any) -> Any:
    if origin is tuple:
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        items = [_value(args[0], each, None) for each in value] if is_list else []
        return tuple(each for each in items if each is not None) if is_list else default
    if origin is Mapping:
        if not isinstance(value, Mapping):
            return default
        read = {_storable(str(name)): _value(args[1], each, None) for name, each in value.items()}
        return {name: each for name, each in read.items() if each is not None}
    if value is None:  # the other of a union
        return None
    return _value(next(arg for arg in args if arg is not NoneType), value, default)


def _storable(text: str) -> str:
    text = text.replace("\0", "\ufffd")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((one, getattr(value, one.name)) for one in fields(value))
        stored = ((one, each) for one, each in pairs if is_required(one) or each != default_of(one))
        return {one.name: _plain(each) for one, each in stored}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


DEFINITIONS = {
    "condition": Condition,
    "question_check": QuestionCheck,
    "question": ProtocolQuestion,
    "example": Example,
    "consent": Consent,
    "display": Display,
    "order": Order,
    "pairs": Pairs,
    "reason": Reason,
    "time": Time,
    "case": CheckCase,
    "check": Check,
    "graded_case": GradedCase,
    "qualification_test": QualificationTest,
    "practice_candidate": PracticeCandidate,
    "practice_item": PracticeItem,
    "practice": Practice,
    "qualifications": Qualifications,
    "completion": Completion,
}


def protocol_schema() -> dict[str, Any]:
    whole = _object(ProtocolDocument)
    properties = {"assay_protocol": {"const": FORMAT, "description": "The format's version."}}
    definitions = {name: _object(kind) for name, kind in DEFINITIONS.items()}
    definitions["question"]["allOf"] = [_options(name, kind) for name, kind in KINDS.items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Assay protocol",
        **whole,
        "properties": properties | whole["properties"],
        "required": ["assay_protocol", *whole["required"], "title", "questions"],
        "$defs": definitions,
    }


def _object(kind: type) -> dict[str, Any]:
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {one.name: one.metadata[SCHEMA] for one in fields(kind)},
        "required": [one.name for one in fields(kind) if is_required(one)],
        "additionalProperties": False,
    }


def _options(name: str, kind: Kind) -> dict[str, Any]:
    return {
        "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
        "then": {"required": list(kind.required), "propertyNames": {"enum": fields_of_kind(name)}},
    }

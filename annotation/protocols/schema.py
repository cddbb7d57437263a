"""The JSON Schema of a protocol, made of its records; `docs/protocol.schema.json` is this."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from annotation.protocols.documents import FORMAT
from annotation.protocols.fields import SCHEMA, is_required
from annotation.protocols.kinds import KINDS, Kind, fields_of_kind
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
    Practice,
    PracticeCandidate,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
    Qualifications,
    QualificationTest,
    Reason,
    Time,
)

DEFINITIONS = {
    "condition": Condition,
    "question": ProtocolQuestion,
    "example": Example,
    "consent": Consent,
    "display": Display,
    "order": Order,
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

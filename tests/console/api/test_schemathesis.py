"""Requests that are made up from the committed schema: whatever comes, no answer is an error of the
server's, or other than the schema says. `make long` tries more of them (API_EXAMPLES)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import yaml
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from accounts.models import User
from accounts.roles import Scope
from accounts.tokens import create_personal_token
from annotation.models import Study
from tests.console.api.operations import value_of
from tests.console.api.test_writing import send_file
from tests.console.test_openapi import KEPT

pytestmark = pytest.mark.django_db
SEED = 20261123
EXAMPLES = int(os.environ.get("API_EXAMPLES", "5"))
CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance),
    *(response_headers_conformance, response_schema_conformance),
]
# What bodies and queries may name of what is there; other values are made up as well.
KNOWN = {
    "study": "mine",
    "team": "lab",
    "copy_of": "mine",
    "question": "appropriateness",
    "role": "analyst",
    "Idempotency-Key": "a-key",
}


@pytest.fixture
def headers(
    study: Study, researcher: User, program: Any, settings: Any
) -> Iterator[dict[str, str]]:
    """Of the owner's program, which may all; jobs wait, and the test's own connection, with what
    it stored, answers all requests."""
    settings.TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}
    send_file(program, title="Waiting", team="lab")
    token = create_personal_token(user=researcher, name="x", scopes=list(Scope), days=7)
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield {"Authorization": f"Bearer {token.text}", "Host": "localhost"}
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def schema_with_what_is_there() -> dict[str, Any]:
    """The committed schema, whose addresses may also name real things, by number and name."""
    raw: dict[str, Any] = yaml.safe_load(KEPT.read_text())
    for path, operations in raw["paths"].items():
        slug = "lab" if path.startswith("/api/v1/teams/") else "mine"
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                _name_what_is_there(path, parameter, slug)
    for schema in raw["components"]["schemas"].values():
        for name, inner in schema.get("properties", {}).items():
            if name in KNOWN and inner.get("type") == "string":
                inner["example"] = KNOWN[name]
    return raw


def _name_what_is_there(path: str, parameter: dict[str, Any], slug: str) -> None:
    name = parameter["name"]
    if parameter["in"] == "path":
        where = "team" if slug == "lab" else "study"
        value = str(value_of(where, name, slug)) if name == "token" else value_of(where, name, slug)
        parameter["schema"] = parameter["schema"] | {"enum": [value]}
    elif name in KNOWN:
        parameter["example"] = KNOWN[name]


def operations() -> Iterator[Any]:
    schema = schemathesis.openapi.from_dict(schema_with_what_is_there())
    schema.app = get_wsgi_application()
    return (found.ok() for found in schema.get_all_operations())


def first_fault(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> str:
    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def try_one(case: Any) -> None:
        with transaction.atomic():
            response = case.call(headers=headers)
            transaction.set_rollback(True)
        case.validate_response(response, checks=CHECKS)

    try:
        try_one()
    except (Failure, FailureGroup) as fault:
        return f"{operation.label}: {fault}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_one_that_the_schema_has(headers, mode):
    faults = [first_fault(operation, mode, headers) for operation in operations()]
    assert "\n\n".join(filter(None, faults)) == ""

"""Requests that are made up from the committed schema: whatever comes, no answer is an error of the
server's, or other than the schema says. `make long` tries more of them (API_EXAMPLES)."""

import os

import pytest
import schemathesis
import yaml
from django.conf import settings as site
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi import checks

from accounts.roles import Scope
from accounts.tokens import create_personal_token
from tests.console.api.operations import value_of
from tests.console.api.test_writing import send_file

pytestmark = pytest.mark.django_db
KEPT = site.BASE_DIR / "docs" / "openapi.yaml"
SEED = 20261123
EXAMPLES = int(os.environ.get("API_EXAMPLES", "5"))
CHECKS = [
    *(not_a_server_error, checks.status_code_conformance, checks.content_type_conformance),
    *(checks.response_headers_conformance, checks.response_schema_conformance),
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
def headers(study, researcher, program, settings):
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


def schema_with_what_is_there():
    """The committed schema, whose addresses may also name real things, by number and name."""
    raw = yaml.safe_load(KEPT.read_text())
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


def _name_what_is_there(path, parameter, slug):
    name = parameter["name"]
    if parameter["in"] == "path":
        where = "team" if slug == "lab" else "study"
        value = str(value_of(where, name, slug)) if name == "token" else value_of(where, name, slug)
        parameter["schema"] = parameter["schema"] | {"enum": [value]}
    elif name in KNOWN:
        parameter["example"] = KNOWN[name]


def operations():
    schema = schemathesis.openapi.from_dict(schema_with_what_is_there())
    schema.app = get_wsgi_application()
    return (found.ok() for found in schema.get_all_operations())


def first_fault(operation, mode, headers):
    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def try_one(case):
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


@pytest.mark.slow
def test_the_schema_that_is_kept_is_the_one_of_the_code(tmp_path):
    file = tmp_path / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True)
    assert file.read_text() == KEPT.read_text(), (
        "The API has changed. Look at the difference, then write it down with "
        "`python manage.py spectacular --file docs/openapi.yaml`."
    )

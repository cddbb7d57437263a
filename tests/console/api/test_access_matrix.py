from itertools import product
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.urls import reverse

from accounts.roles import PERMISSIONS, SCOPES, Permission, Role, Scope
from annotation.models import Upload
from tests.console.api.conftest import program_of
from tests.console.api.operations import (
    OF_A_COLLECTION,
    OF_A_STUDY,
    OF_A_TEAM,
    OF_AN_EXPERIMENT,
    OF_ANYBODY,
    OF_UPLOADS,
    address,
    operations,
)
from tests.console.conftest import browser
from tests.console.team_study import ASSIGNMENT_ID, WORKER_ID

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks", "things")]
ROLES = {role.value: PERMISSIONS[role] for role in Role}
STRANGERS = ("other_team", "worker", "operator")
# Blind roles do not see that collections and experiments exist.
HIDDEN_FROM_BLIND = OF_A_COLLECTION.keys() | OF_AN_EXPERIMENT.keys()


def lines():
    for table, slug in (
        *((OF_A_STUDY, "mine"), (OF_A_TEAM, "lab")),
        *((OF_A_COLLECTION, "tracks"), (OF_AN_EXPERIMENT, "shoes")),
    ):
        for (name, method), permission in table.items():
            yield name, method, address(name, slug), permission


def status_of(client, method, where):
    with transaction.atomic():
        if method == "get":
            answer = client.get(where)
        else:
            headers = {"Idempotency-Key": uuid4().hex}  # which some writes want
            answer = getattr(client, method)(
                where, {}, content_type="application/json", headers=headers
            )
        transaction.set_rollback(True)
    if answer.status_code >= 400 or "/files/" not in where:
        kind = answer.headers.get("Content-Type")
        assert kind == (None if answer.status_code == 204 else "application/json"), where
    return int(answer.status_code)


def wrong_answers(client, allowed):
    """Where somebody comes in who may not, or stays out who may."""
    wrong = []
    for name, method, where, permission in lines():
        status = status_of(client, method, where)
        needed = permission if isinstance(permission, frozenset) else {permission}
        is_hidden = (name, method) in HIDDEN_FROM_BLIND
        if is_hidden and Permission.VIEW_SYSTEMS not in allowed:
            is_right = status == 404
        elif needed <= allowed and (name.endswith("-invitation") or name == "comment"):
            # The newest is of the study or of the team; a comment is its author's alone.
            is_right = status in (204, 400, 404)
        elif needed <= allowed:
            is_right = status not in (401, 403, 404, 405) and status < 500
        else:
            is_right = status == 403
        if not is_right:
            wrong.append((name, method, status))
    return wrong


def test_every_operation_has_a_line():
    there = {(name, method) for name, method, _ in operations()}
    of_nouns = OF_A_STUDY.keys() | OF_A_TEAM.keys() | OF_A_COLLECTION.keys()
    of_nouns |= OF_AN_EXPERIMENT.keys()
    assert there == OF_ANYBODY | OF_UPLOADS | of_nouns


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_a_role_and_its_token_may_what_it_may_on_the_pages(study, users, role):
    assert wrong_answers(browser(users[role]), ROLES[role]) == []
    assert wrong_answers(program_of(users[role], *Scope), ROLES[role]) == []


@pytest.mark.slow
@pytest.mark.parametrize("scope", Scope)
def test_a_token_reaches_no_further_than_its_scopes(study, users, scope):
    allowed = SCOPES[scope] | SCOPES[Scope.READ]
    assert wrong_answers(program_of(users["owner"], scope), allowed) == []


@pytest.mark.slow
@pytest.mark.parametrize("role", [role for role in ROLES if role != Role.OWNER])
def test_a_teams_token_may_what_its_role_may(study, users, team_program, role):
    assert wrong_answers(team_program(role, *Scope), ROLES[role]) == []


@pytest.mark.slow
@pytest.mark.parametrize("person", STRANGERS)
def test_to_strangers_nothing_is_there(study, users, person):
    for client in (browser(users[person]), program_of(users[person], *Scope)):
        statuses = {line[:2]: status_of(client, line[1], line[2]) for line in lines()}
        assert set(statuses.values()) == {404}, statuses


@pytest.mark.slow
def test_nobody_gets_in_without_a_token_or_a_session(study):
    for client in (browser(None), Client(headers={"authorization": "Bearer assay_x"})):
        for name, method, where, _ in lines():
            assert status_of(client, method, where) == 401, (name, method)
        for name, method in OF_ANYBODY - {("schema", "get")}:
            assert status_of(client, method, address(name)) == 401, name
        assert client.get(address("schema")).status_code == 401


def statuses_of_a_file(client):
    token = Upload.objects.get().token
    addresses = [
        (method, reverse(f"console:api:{name}", args=[token])) for name, method in OF_UPLOADS
    ]
    return {status_of(client, method, where) for method, where in addresses}


@pytest.fixture
def teams_file(study, users):
    file = SimpleUploadedFile("items.csv", b"item,system,response\nx1,alpha,Hi\n")
    sent = {"file": file, "title": "Of the team", "team": "lab"}
    assert program_of(users["owner"], *Scope).post(address("uploads"), sent).status_code == 201


@pytest.mark.slow
@pytest.mark.usefixtures("teams_file")
@pytest.mark.parametrize("role", Role)
def test_a_teams_file_is_for_those_who_may_import_into_its_studies(users, role):
    for client in (browser(users[role]), program_of(users[role], *Scope)):
        statuses = statuses_of_a_file(client)
        if Permission.EDIT in PERMISSIONS[role]:
            assert {200, 202, 204} < statuses <= {200, 202, 204, 400, 409}
        else:
            assert statuses == {404}


@pytest.mark.slow
@pytest.mark.usefixtures("teams_file")
def test_a_file_is_for_no_token_that_may_not_write_and_no_stranger(users):
    for scope in Scope:
        is_refused = Permission.EDIT not in SCOPES[scope]
        assert (statuses_of_a_file(program_of(users["owner"], scope)) == {403}) == is_refused
    for person in STRANGERS:
        assert statuses_of_a_file(program_of(users[person], *Scope)) == {404}
    assert statuses_of_a_file(browser(None)) == {401}


@pytest.mark.slow
def test_no_answer_names_a_worker_to_who_may_not_know(study, users):
    clients = [browser(users[role]) for role in ("analyst", "adjudicator", "auditor")]
    clients.append(program_of(users["owner"], *(set(Scope) - {Scope.IDENTITIES})))
    for client, (_name, method, where, _) in product(clients, list(lines())):
        if method == "get":
            answer = client.get(where)
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
            assert WORKER_ID.encode() not in content, where
            assert ASSIGNMENT_ID.encode() not in content, where


def test_a_session_writes_with_its_csrf_token_alone(study, users):
    client = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    client.force_login(users["owner"])
    where, body = address("study", "mine"), {"title": "Renamed"}
    answer = client.patch(where, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    client.get("/teams/")
    headers = {"X-CSRFToken": client.cookies["csrftoken"].value}
    answer = client.patch(where, body, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["title"]) == (200, "Renamed")

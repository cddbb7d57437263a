from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.models import Team, User
from accounts.roles import Role, Scope
from accounts.tokens import create_personal_token, create_team_token
from annotation.access import invite
from annotation.disputes import add_comment
from annotation.models import Candidate, Study
from annotation.protocols.versions import current_document, save_draft


@pytest.fixture
def users(team_users: dict[str, User]) -> dict[str, User]:
    return team_users


@pytest.fixture
def team(users: dict[str, User]) -> Team:
    return users["owner"].memberships.get().team


@pytest.fixture
def study(team_study: Study, users: dict[str, User]) -> Study:
    assert team_study.team
    save_draft(study=team_study, document=current_document(team_study))
    for to in (team_study.team, team_study):
        invite(
            to=to,
            email="new@example.org",
            role=Role.ANALYST,
            actor=users["owner"],
            link_of=lambda token: token,
        )
    add_comment(
        candidate=Candidate.objects.filter(item__study=team_study).last(),
        question=team_study.questions.get(),
        text="Look at it again.",
        written_by=users["adjudicator"],
    )
    return team_study


@pytest.fixture(autouse=True)
def _jobs_wait(settings: Any) -> None:
    settings.API_READS_PER_MINUTE = settings.API_WRITES_PER_MINUTE = 0


class Program(Client):
    def __init__(self, text: str) -> None:
        super().__init__(headers={"host": "localhost", "authorization": f"Bearer {text}"})

    def send(self, method: str, where: str, data: Any = None, **headers: str) -> Any:
        content = "" if data is None else data
        call = getattr(self, method)
        if method == "get":
            return call(where, headers=headers)
        return call(where, content, content_type="application/json", headers=headers)


def program_of(user: User, *scopes: str, **more: Any) -> Program:
    new = create_personal_token(user=user, name="test", scopes=scopes, days=7, **more)
    return Program(new.text)


@pytest.fixture
def program(researcher: User) -> Program:
    return program_of(researcher, *Scope)


@pytest.fixture
def reader(users: dict[str, User]) -> Program:
    return program_of(users["owner"], *Scope)


@pytest.fixture
def team_program(study: Study, researcher: User) -> Callable[..., Program]:
    def make(role: Role, *scopes: str) -> Program:
        assert study.team
        new = create_team_token(
            team=study.team, name="cron", role=role, scopes=scopes, days=7, created_by=researcher
        )
        return Program(new.text)

    return make

"""A team with somebody in each role, a study at every stage, and programs with tokens."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.roles import Role, Scope
from accounts.tokens import create_personal_token, create_team_token
from annotation.dispute_comments import add_comment
from annotation.invitations import invite
from annotation.models import Candidate, Study
from annotation.protocols.versions import current_document, save_draft

# The same study and people as on the pages.
from tests.console.test_role_matrix import study as study_of_pages  # noqa: F401
from tests.console.test_role_matrix import users  # noqa: F401


@pytest.fixture
def study(study_of_pages: Study, users: dict[str, User]) -> Study:  # noqa: F811
    """At every stage, and with what only the API has addresses for."""
    assert study_of_pages.team
    save_draft(study=study_of_pages, document=current_document(study_of_pages))
    for to in (study_of_pages.team, study_of_pages):
        invite(
            to=to,
            email="new@example.org",
            role=Role.ANALYST,
            actor=users["owner"],
            link_of=lambda token: token,
        )
    add_comment(
        candidate=Candidate.objects.filter(item__study=study_of_pages).last(),
        question=study_of_pages.questions.get(),
        text="Look at it again.",
        written_by=users["adjudicator"],
    )
    return study_of_pages


@pytest.fixture(autouse=True)
def _jobs_wait(settings: Any) -> None:
    settings.API_READS_PER_MINUTE = settings.API_WRITES_PER_MINUTE = 0


class Program(Client):
    """What sends a token, and JSON."""

    def __init__(self, text: str) -> None:
        super().__init__(headers={"host": "localhost", "authorization": f"Bearer {text}"})

    def send(self, method: str, where: str, data: Any = None, **headers: str) -> Any:
        """The answer to JSON."""
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
    """The researcher's, in every scope."""
    return program_of(researcher, *Scope)


@pytest.fixture
def team_program(study: Study, researcher: User) -> Callable[..., Program]:
    """One that acts for the study's team in a role."""

    def make(role: Role, *scopes: str) -> Program:
        assert study.team
        new = create_team_token(
            team=study.team, name="cron", role=role, scopes=scopes, days=7, created_by=researcher
        )
        return Program(new.text)

    return make

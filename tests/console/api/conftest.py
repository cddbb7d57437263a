import pytest
from django.test import Client

from accounts import roles, tokens
from annotation import access, disputes, models
from annotation.protocols.versions import current_document, save_draft


@pytest.fixture
def team(users):
    return users["owner"].memberships.get().team


@pytest.fixture
def study(team_study, users):
    assert team_study.team
    save_draft(study=team_study, document=current_document(team_study))
    for to in (team_study.team, team_study):
        access.invite(
            to=to,
            email="new@example.org",
            role=roles.Role.ANALYST,
            actor=users["owner"],
            link_of=lambda token: token,
        )
    disputes.add_comment(
        candidate=models.Candidate.objects.filter(item__study=team_study).last(),
        question=team_study.questions.get(),
        text="Look at it again.",
        written_by=users["adjudicator"],
    )
    return team_study


@pytest.fixture(autouse=True)
def _jobs_wait(settings):
    settings.API_READS_PER_MINUTE = settings.API_WRITES_PER_MINUTE = 0


class Program(Client):
    def __init__(self, text):
        super().__init__(headers={"host": "localhost", "authorization": f"Bearer {text}"})

    def send(self, method, where, data=None, **headers):
        content = "" if data is None else data
        call = getattr(self, method)
        if method == "get":
            return call(where, headers=headers)
        return call(where, content, content_type="application/json", headers=headers)


def program_of(user, *scopes, **more):
    new = tokens.create_personal_token(user=user, name="test", scopes=scopes, days=7, **more)
    return Program(new.text)


@pytest.fixture
def program(researcher):
    return program_of(researcher, *roles.Scope)


@pytest.fixture
def reader(users):
    return program_of(users["owner"], *roles.Scope)


@pytest.fixture
def team_program(study, researcher):
    def make(role, *scopes):
        assert study.team
        new = tokens.create_team_token(
            team=study.team, name="cron", role=role, scopes=scopes, days=7, created_by=researcher
        )
        return Program(new.text)

    return make

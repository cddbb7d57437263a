from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts import exceptions, roles, teams, tokens
from accounts.models import ApiToken, AuditEntry, Membership, User
from encryption import decrypt
from tests.console.api.conftest import Program
from tests.console.conftest import PASSWORD

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
ME = "/api/v1/me/"


def token_on(page):
    return page.partition('<code class="link">')[2].partition("</code>")[0]


@pytest.fixture
def signed_in_just_now(rosa):
    rosa.post(f"{reverse('account_reauthenticate')}?next=/", {"password": PASSWORD})
    return rosa


def test_a_new_token_is_displayed_once_and_stored_encrypted(signed_in_just_now, researcher):
    page = reverse("api_tokens")
    answer = signed_in_just_now.post(page, {"name": "nightly", "days": "30", "scopes": ["write"]})
    # What a browser loads again is then the page itself, not what was sent.
    assert (answer.status_code, answer.url) == (302, page)
    stored = dict(signed_in_just_now.session)
    text = token_on(signed_in_just_now.get(page).content.decode())
    assert text.startswith("assay_")
    assert text not in str(stored)
    assert decrypt(stored["new-token"]) == text
    assert text not in signed_in_just_now.get(page).content.decode()
    token = ApiToken.objects.get()
    assert (token.digest, token.scopes) == (tokens.digest_of(text), ["read", "write"])
    assert text not in str(list(ApiToken.objects.values()))
    answer = Program(text).get(ME).json()
    assert (answer["username"], answer["token"]["scopes"]) == ("rosa", ["read", "write"])
    token.refresh_from_db()
    assert token.last_used_at is not None


def test_the_page_wants_the_password_again(rosa):
    answer = rosa.get(reverse("api_tokens"))
    assert (answer.status_code, "again" in answer.url) == (302, True)


def test_a_person_revokes_only_their_own_tokens(signed_in_just_now, colleague, researcher):
    new = tokens.create_personal_token(user=colleague, name="x", scopes=[], days=7)
    answer = signed_in_just_now.post(reverse("revoke_token", args=[new.token.pk]))
    assert answer.status_code == 404
    assert Program(new.text).get(ME).status_code == 200
    n_before = AuditEntry.objects.count()
    new = tokens.create_personal_token(user=researcher, name="x", scopes=[], days=7)
    signed_in_just_now.post(reverse("revoke_token", args=[new.token.pk]))
    answer = Program(new.text).get(ME)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json()["code"] == "authentication_failed"
    log = AuditEntry.objects.order_by("position").values_list("action", flat=True)
    assert list(log)[n_before:] == ["token.create", "token.revoke"]


def test_a_token_that_expired_or_of_a_closed_account_opens_nothing(researcher, superuser, settings):
    settings.OPERATORS_WITHOUT_SECOND_FACTOR = False
    of_operator = tokens.create_personal_token(user=superuser, name="x", scopes=[], days=7)
    assert Program(of_operator.text).get(ME).status_code == 401
    new = tokens.create_personal_token(user=researcher, name="x", scopes=[], days=7)
    assert Program(new.text).get(ME).status_code == 200
    User.objects.filter(pk=researcher.pk).update(is_active=False)
    assert Program(new.text).get(ME).status_code == 401
    User.objects.filter(pk=researcher.pk).update(is_active=True)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Program(new.text).get(ME).status_code == 401


@pytest.mark.slow
def test_a_token_shrinks_with_the_role_of_its_person(study, users):
    new = tokens.create_personal_token(
        user=users["researcher"], name="x", scopes=roles.Scope.values, days=7
    )
    where = reverse("console:api:study", args=["mine"])
    assert "edit" in Program(new.text).get(where).json()["may"]
    team, owner = study.team, users["owner"]
    teams.set_role(team=team, user=users["researcher"], role=roles.Role.ANALYST, actor=owner)
    assert Program(new.text).get(where).json()["may"] == [
        "analyse",
        "export",
        "view",
        "view_systems",
    ]


def test_a_teams_token_outlives_who_made_it(study, users):
    manager = users["manager"]
    new = tokens.create_team_token(
        team=study.team, name="cron", role=roles.Role.ANALYST, scopes=[], days=7, created_by=manager
    )
    Membership.objects.filter(user=manager).delete()
    assert Program(new.text).get(ME).json()["teams"] == ["lab"]
    tokens.revoke_token(token=new.token, actor=users["owner"])
    assert Program(new.text).get(ME).status_code == 401
    assert not User.objects.get(pk=new.token.user_id).is_active
    values = {"team": study.team, "name": "x", "scopes": [], "days": 7}
    with pytest.raises(exceptions.InvalidToken):
        tokens.create_team_token(role=roles.Role.OWNER, created_by=users["owner"], **values)
    with pytest.raises(exceptions.RoleTooSmall):
        tokens.create_team_token(role=roles.Role.ANALYST, created_by=users["researcher"], **values)


def test_a_team_makes_and_revokes_a_token_on_its_page(study, users, signed_in):
    browser, page = signed_in(users["manager"]), reverse("console:team-tokens", args=["lab"])
    form = {"name": "cron", "days": "7", "role": "researcher", "scopes": ["write", "spend"]}
    text = token_on(browser.post(page, form, follow=True).content.decode())
    assert token_on(browser.get(page).content.decode()) == ""
    answer = Program(text).get(reverse("console:api:study", args=["mine"]))
    may = ["adjudicate", "analyse", "edit", "export", "spend", "view", "view_systems"]
    assert answer.json()["may"] == may
    assert "lab-token-" not in browser.get(reverse("console:team", args=["lab"])).content.decode()
    browser.post(reverse("console:team-token-revoke", args=["lab", ApiToken.objects.get().pk]))
    assert Program(text).get(ME).status_code == 401


@pytest.mark.slow
def test_there_is_an_end_to_tokens_and_to_their_time(researcher):
    with pytest.raises(exceptions.InvalidToken):
        tokens.create_personal_token(user=researcher, name="x", scopes=[], days=5000)
    for _ in range(tokens.MOST_TOKENS):
        tokens.create_personal_token(user=researcher, name="x", scopes=[], days=7)
    with pytest.raises(exceptions.InvalidToken):
        tokens.create_personal_token(user=researcher, name="x", scopes=[], days=7)

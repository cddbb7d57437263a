"""Who may become a requester: on a site that strangers reach, only people whom operators let in.

Each way is tried by an account that has only signed up as a worker.
"""

import pytest
from django.contrib.auth import get_user
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.models import Team, User
from accounts.roles import Role, Scope
from accounts.teams import create_own_team, set_role
from accounts.tokens import create_personal_token
from annotation.access import give_to_team
from hits import connections, exceptions, models
from hits.account_requests import connection_jobs, request_this_site
from marketplace.models import Hit, Requester
from tests.annotation.studies import rating_study
from tests.codes import message_codes, refused
from tests.console.conftest import PASSWORD
from tests.console.work import work_off

pytestmark = pytest.mark.django_db(transaction=True)
JSON = "application/json"


@pytest.fixture(autouse=True)
def closed_site(live_server, settings):
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_REQUESTER_SIGN_UP = False


@pytest.fixture
def stranger():
    browser = Client(headers={"host": "localhost"})
    account = {"username": "wanda", "password1": PASSWORD, "password2": PASSWORD}
    assert browser.post("/worker/signup/", account).status_code == 302
    return browser


@pytest.fixture
def worker_user(stranger):
    return User.objects.get(username="wanda")


@pytest.fixture
def own_study(worker_user):
    return rating_study("own", owner=worker_user)


@pytest.fixture
def team(worker_user, settings):
    settings.MARKETPLACE_REQUESTER_SIGN_UP = True
    team = create_own_team(name="Lab", owner=worker_user)
    settings.MARKETPLACE_REQUESTER_SIGN_UP = False
    return team


def post(browser, page, *args, **fields):
    return browser.post(reverse(f"console:{page}", args=args), fields, follow=True)


def assert_nobody_became_a_requester():
    for model in (models.Connection, Requester, models.Batch, Hit):
        assert not model.objects.exists()


def test_no_page_and_no_program_creates_a_requester_or_a_team(stranger, own_study):
    token = create_personal_token(user=own_study.owner, name="all", scopes=list(Scope), days=7)
    program = Client(headers={"host": "localhost", "authorization": f"Bearer {token.text}"})
    for browser in (stranger, Client()):
        answer = browser.post("/requester-console/sign-up/", {"username": "new"})
        assert answer.status_code == 404
    teams = stranger.get(reverse("console:teams")).content.decode()
    assert reverse("console:new-team") not in teams
    assert message_codes(post(stranger, "new-team", name="x")) == ["operators_only"]
    page = stranger.get(reverse("console:launch", args=["own"]))
    assert reverse("console:launch-team", args=["own"]) not in page.content.decode()
    post(stranger, "launch-team", "own", name="x")
    answer = program.post("/api/v1/teams/", {"name": "x"}, content_type=JSON)
    assert (answer.status_code, answer.json()["code"]) == (403, "role_too_small")
    assert not Team.objects.exists()
    # A study without a team is not published.
    post(stranger, "publish", "own", reward_usd="0.00", total="0.00")
    terms = {"part": 1, "total_usd": "0.00", "reward_usd": "0.00"}
    keyed = {"idempotency-key": "once"}
    answer = program.post("/api/v1/studies/own/batches/", terms, content_type=JSON, headers=keyed)
    assert answer.status_code == 409
    assert_nobody_became_a_requester()


def test_no_owner_connects_a_team_that_no_operator_let_in(stranger, team, own_study, worker_user):
    give_to_team(study=own_study, team=team, actor=worker_user)
    for page, action in (("connections", "connect-site"), ("launch", "launch-connect")):
        slug = "lab" if page == "connections" else "own"
        shown = stranger.get(reverse(f"console:{page}", args=[slug])).content.decode()
        assert reverse(f"console:{action}", args=[slug]) not in shown
        assert message_codes(post(stranger, action, slug)) == ["operators_only"]
    work_off()
    with refused(exceptions.ConnectionUnfit, "operators_only"):
        connections.connect_this_site(team=team, name="Here", actor=worker_user)
    assert_nobody_became_a_requester()


def test_a_connection_requested_before_the_site_was_closed_is_not_made(settings, team, worker_user):
    settings.MARKETPLACE_REQUESTER_SIGN_UP = True
    request_this_site(team=team, name="Here", with_test_funds=False, actor=worker_user)
    settings.MARKETPLACE_REQUESTER_SIGN_UP = False
    work_off()
    assert connection_jobs(team).get().state == "failed"
    assert_nobody_became_a_requester()


def test_operators_create_teams_that_managers_connect_too(
    superuser, signed_in, settings, stranger, worker_user, team
):
    settings.OPERATORS_WITHOUT_SECOND_FACTOR = True
    operator = signed_in(superuser)
    post(operator, "connect-site", team.slug)
    work_off()
    assert models.Connection.objects.of(team).get().is_on_this_site
    post(operator, "new-team", name="By page")
    call_command("create_owner", "olga", team="By command")
    for other in Team.objects.exclude(pk=team.pk).order_by("pk"):
        set_role(team=other, user=worker_user, role=Role.MANAGER, actor=None)
        post(stranger, "connect-site", other.slug)
        work_off()
        assert models.Connection.objects.of(other).get().created_by == worker_user


def test_everyone_becomes_a_requester_if_the_site_says_so(stranger, settings):
    settings.MARKETPLACE_REQUESTER_SIGN_UP = True
    assert Client().get("/requester-console/sign-up/").status_code == 200
    post(stranger, "new-team", name="Own lab")
    post(stranger, "connect-site", "own-lab")
    work_off()
    assert models.Connection.objects.get().created_by == get_user(stranger)

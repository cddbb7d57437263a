"""What a first run needs: tables, accounts to look around with, a requester's key."""

from decimal import Decimal
from pathlib import Path

from django.conf import settings
from django.utils.text import slugify

from accounts.enrolment import set_password
from accounts.models import Team, User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team
from annotation.models import Study
from config.environment import (
    PATH,
    add_setting,
)
from config.samples import (
    Crowd,
    load_sample_answers,
    load_sample_studies,
    work_on_samples,
)
from hits.connections import enrol_requester, enrol_worker
from hits.endpoints import AccessKey, connect, translated_errors
from hits.exceptions import MarketplaceRefused
from hits.loop import Marketplace
from presentation.progress import Reporter, without_bars

RESEARCHER, WORKER, REQUESTER = "researcher", "worker", "Sample lab"
TEAM, ANALYST = "Sample team", "analyst"
TEST_FUNDS_USD = Decimal(1000)


def prepare_accounts(site_url: str, password: str) -> User:
    """A researcher and a worker who can log in with this password; returns the researcher."""
    researcher, _ = User.objects.get_or_create(username=RESEARCHER)
    if not User.objects.filter(username=WORKER).exists():
        enrol_worker(site_url=site_url, username=WORKER, password=password)
    for user in (researcher, User.objects.get(username=WORKER)):
        set_password(user=user, password=password)
    return researcher


def prepare_team(*, owner: User, password: str) -> Team:
    """A team of the researcher's, in which an analyst can log in with this password."""
    team = Team.objects.filter(slug=slugify(TEAM)).first() or create_team(name=TEAM, owner=owner)
    analyst, _ = User.objects.get_or_create(username=ANALYST)
    set_password(user=analyst, password=password)
    if not team.memberships.filter(user=analyst).exists():
        set_role(team=team, user=analyst, role=Role.ANALYST, actor=None)
    return team


def prepare_key(site_url: str, path: Path = PATH) -> AccessKey:
    """The key in the settings, or a new one, which is added to .env.

    A new one is made where there is none, or where the database that knew it is gone.
    """
    key = AccessKey(settings.MARKETPLACE_ACCESS_KEY_ID, settings.MARKETPLACE_SECRET_ACCESS_KEY)
    if not (key.access_key_id and key.secret_access_key and _opens(Marketplace(site_url, key))):
        key = enrol_requester(site_url=site_url, name=REQUESTER, test_funds_usd=TEST_FUNDS_USD)
        add_setting("MARKETPLACE_ACCESS_KEY_ID", key.access_key_id, path)
        add_setting("MARKETPLACE_SECRET_ACCESS_KEY", key.secret_access_key, path)
    return key


def prepare_samples(
    *, marketplace: Marketplace, password: str, reporter: Reporter = without_bars
) -> list[Study]:
    """Accounts, a team, and its three sample studies, of which a crowd answered the first two."""
    researcher = prepare_accounts(marketplace.site_url, password)
    studies = load_sample_studies(researcher)
    crowd = Crowd(n_left_free=1)
    work_on_samples(studies=studies, marketplace=marketplace, crowd=crowd, reporter=reporter)
    studies.append(load_sample_answers(researcher, reporter))
    team = prepare_team(owner=researcher, password=password)
    for study in studies:
        study.refresh_from_db(fields=["team"])
        if study.team is None:
            give_to_team(study=study, team=team, actor=None)
    return studies


def _opens(marketplace: Marketplace) -> bool:
    client = connect(key=marketplace.key, endpoint_url=marketplace.endpoint_url)
    try:
        with translated_errors():
            client.get_account_balance()
    except MarketplaceRefused as refused:
        if refused.has_code("UnrecognizedClientException"):
            return False
        raise
    return True

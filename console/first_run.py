"""What a first run needs: tables, accounts to look around with, a requester's key."""

import io
from decimal import Decimal
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.management import call_command

from console.environment import PATH, add_setting
from hits.endpoints import AccessKey, connect, translated_errors
from hits.exceptions import MarketplaceRefused
from hits.loop import Marketplace, issue_key

RESEARCHER, WORKER, REQUESTER = "researcher", "worker", "Sample lab"
DEPOSIT_USD = Decimal(1000)


def prepare_accounts(password: str) -> AbstractBaseUser:
    """A researcher and a worker who can log in with this password; returns the researcher."""
    users = get_user_model().objects
    researcher, _ = users.get_or_create(username=RESEARCHER)
    if not users.filter(username=WORKER).exists():
        # As one word: apart, a password that begins with a dash would read as an option.
        call_command("create_worker", WORKER, f"--password={password}", stdout=io.StringIO())
    for user in (researcher, users.get(username=WORKER)):
        user.set_password(password)
        user.save(update_fields=["password"])
    return researcher


def prepare_key(site_url: str, path: Path = PATH) -> AccessKey:
    """The key in the settings, or a new one, which is added to .env.

    A new one is made where there is none, or where the database that knew it is gone.
    """
    key = AccessKey(settings.MARKETPLACE_ACCESS_KEY_ID, settings.MARKETPLACE_SECRET_ACCESS_KEY)
    if not (key.access_key_id and key.secret_access_key and _opens(Marketplace(site_url, key))):
        key = issue_key(requester=REQUESTER, deposit_usd=DEPOSIT_USD)
        add_setting("MARKETPLACE_ACCESS_KEY_ID", key.access_key_id, path)
        add_setting("MARKETPLACE_SECRET_ACCESS_KEY", key.secret_access_key, path)
    return key


def _opens(marketplace: Marketplace) -> bool:
    """Whether the marketplace knows its key."""
    client = connect(key=marketplace.key, endpoint_url=marketplace.endpoint_url)
    try:
        with translated_errors():
            client.get_account_balance()
    except MarketplaceRefused as refused:
        if refused.says("UnrecognizedClientException"):
            return False
        raise
    return True

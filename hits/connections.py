"""Connecting teams to marketplaces, and the client that speaks to one of them."""

from __future__ import annotations

from decimal import Decimal
from ipaddress import ip_address
from socket import getaddrinfo
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from encryption import decrypt, encrypt
from hits.endpoints import PROFILES, AccessKey, connect, local_key, translated_errors
from hits.enrolment import enrol_requester
from hits.exceptions import ConnectionUnfit, MarketplaceUnreachable, ProfileUnknown
from hits.models import Connection

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

    from accounts.models import Team, User

THIS_SITE = "local"
AMAZON = ("sandbox", "production")


def site_connection(profile: str = THIS_SITE) -> Connection:
    """The site's own connection of this profile, whose key is in the environment."""
    if profile not in PROFILES:
        known = ", ".join(PROFILES)
        raise ProfileUnknown(f"There is no marketplace profile '{profile}'. Profiles: {known}.")
    connection, _created = Connection.objects.get_or_create(
        team=None, name=profile, defaults={"marketplace": profile}
    )
    fees = Connection.Fees.MTURK if profile in AMAZON else settings.MARKETPLACE_FEE_SCHEDULE
    # The site's schedule is a setting, which may have changed.
    if connection.fees != fees:
        connection.fees = fees
        connection.save(update_fields=["fees"])
    return connection


def named_connection(name: str) -> Connection:
    """A team's open connection, by TEAM/NAME; else ConnectionUnfit with those there are."""
    team, _slash, own = name.partition("/")
    usable = Connection.objects.usable().exclude(team=None).select_related("team")
    connection = usable.filter(team__slug=team, name=own).first()
    if connection is None:
        known = ", ".join(f"'{each.team.slug}/{each.name}'" for each in usable if each.team)
        raise ConnectionUnfit(f"There is no open connection '{name}'. Known: {known or 'none'}.")
    return connection


def client_of(connection: Connection) -> MTurkClient:
    """A boto3 client that speaks for the connection's requester."""
    if connection.team_id is None:
        return connect(connection.name)
    return connect(key=access_key_of(connection), endpoint_url=connection.endpoint_url or None)


def access_key_of(connection: Connection) -> AccessKey:
    """The key to a marketplace that is not Amazon's."""
    if connection.team_id is None:
        return local_key()
    return AccessKey(connection.access_key_id, decrypt(connection.encrypted_secret))


def endpoint_of(connection: Connection) -> str:
    """The address of a marketplace that is not Amazon's."""
    return connection.endpoint_url or str(settings.MARKETPLACE_ENDPOINT_URL)


def balance_usd(client: MTurkClient) -> Decimal:
    """What the requester's account has available."""
    with translated_errors():
        return Decimal(client.get_account_balance()["AvailableBalance"])


def connect_marketplace(
    *,
    team: Team,
    name: str,
    key: AccessKey,
    endpoint_url: str = "",
    fees: str = Connection.Fees.NONE,
    actor: User,
) -> Connection:
    """Connect a team to a marketplace, with a key that the marketplace accepts now.

    Without an address it is this site's own. The key is tried before anything is stored.
    """
    if endpoint_url and not _is_this_site(endpoint_url):
        _require_public(endpoint_url)
    balance_usd(connect(key=key, endpoint_url=endpoint_url or None))
    connection = Connection(
        team=team,
        name=name.strip(),
        marketplace=_marketplace_at(endpoint_url),
        endpoint_url=endpoint_url,
        access_key_id=key.access_key_id,
        encrypted_secret=encrypt(key.secret_access_key),
        fees=fees,
        created_by=actor,
    )
    return _stored(connection, actor)


def connect_this_site(
    *, team: Team, name: str, actor: User, test_funds_usd: Decimal | None = None
) -> Connection:
    """Make the team a requester at this site's own marketplace.

    Its requester account bears the team's name, with a number where another has that.
    """
    key = enrol_requester(
        site_url=settings.SITE_URL,
        name=f"{team.name} ({team.slug})",
        test_funds_usd=test_funds_usd,
    )
    return connect_marketplace(
        team=team, name=name, key=key, fees=settings.MARKETPLACE_FEE_SCHEDULE, actor=actor
    )


@transaction.atomic
def close_connection(*, connection: Connection, actor: User) -> None:
    """Publish nothing more over a connection; what is out is collected and paid all the same."""
    Connection.objects.filter(pk=connection.pk, closed_at=None).update(closed_at=timezone.now())
    connection.refresh_from_db(fields=["closed_at"])
    _record("connection.close", connection, actor)


def _is_this_site(endpoint_url: str) -> bool:
    return endpoint_url.rstrip("/") == str(settings.MARKETPLACE_ENDPOINT_URL).rstrip("/")


def _require_public(endpoint_url: str) -> None:
    """Refuse addresses inside the site's own network, which a team has no business to call.

    On a machine of one's own they are one's own.
    """
    host = urlsplit(endpoint_url).hostname or ""
    if settings.OWN_MACHINE or not host:
        return
    try:
        addresses = {entry[4][0] for entry in getaddrinfo(host, None)}
    except OSError as error:
        raise MarketplaceUnreachable(
            _("There is no marketplace at “{host}”: {error}.").format(host=host, error=error)
        ) from error
    if not all(ip_address(str(address).partition("%")[0]).is_global for address in addresses):
        raise ConnectionUnfit(
            _("“{host}” is an address inside this site's own network.").format(host=host)
        )


def _stored(connection: Connection, actor: User) -> Connection:
    try:
        connection.full_clean(validate_constraints=False)
        with transaction.atomic():
            connection.save(force_insert=True)
            _record("connection.create", connection, actor)
    except ValidationError as error:
        raise ConnectionUnfit(" ".join(error.messages)) from error
    except IntegrityError as error:
        message = _("This team has a connection named “{name}” already.")
        raise ConnectionUnfit(message.format(name=connection.name)) from error
    return connection


def _marketplace_at(endpoint_url: str) -> str:
    """Whose worker ids an address has: a profile's name, or the host."""
    if endpoint_url in ("", settings.MARKETPLACE_ENDPOINT_URL):
        return THIS_SITE
    for profile in PROFILES.values():
        if profile.endpoint_url == endpoint_url.rstrip("/"):
            return profile.name
    return urlsplit(endpoint_url).netloc.lower()


def _record(action: str, connection: Connection, actor: User) -> None:
    details = {"marketplace": connection.marketplace, "access_key_id": connection.access_key_id}
    record(
        team=connection.team, actor=actor, action=action, subject=connection.name, details=details
    )

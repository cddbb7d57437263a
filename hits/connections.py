"""Connecting teams to marketplaces, and the client that speaks to one of them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.teams import may_connect_this_site
from encryption import UndecryptableSecret, decrypt, encrypt
from hits.addresses import require_outside
from hits.endpoints import AccessKey, connect, local_key, translated_errors
from hits.enrolment import enrol_requester
from hits.exceptions import ConnectionUnfit, ProfileUnknown
from hits.foreign_records import amount_usd
from hits.marketplaces import marketplace_at
from hits.models import Connection
from hits.profiles import THIS_SITE, profile_problem

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

    from accounts.models import Team, User


def site_connection(profile: str = THIS_SITE) -> Connection:
    """The site's own connection of this profile, whose key is in the environment."""
    if problem := profile_problem(profile):
        raise ProfileUnknown(problem, code=problem.code)
    connection, _is_new = Connection.objects.get_or_create(
        team=None, name=profile, defaults={"marketplace": profile}
    )
    fees = settings.MARKETPLACE_FEE_SCHEDULE
    # The site's schedule is a setting, which may have changed.
    if connection.fees != fees:
        connection.fees = fees
        connection.save(update_fields=["fees"])
    return connection


def connection_of_name(name: str) -> Connection:
    """A team's open connection, by TEAM/NAME; else ConnectionUnfit with those there are."""
    team, _slash, own = name.partition("/")
    usable = Connection.objects.usable().exclude(team=None).select_related("team")
    connection = usable.filter(team__slug=team, name=own).first()
    if connection is None:
        names = ", ".join(f"'{each.team.slug}/{each.name}'" for each in usable if each.team)
        raise ConnectionUnfit(
            _("There is no open connection '{name}'. Known: {names}.").format(
                name=name, names=names or _("none")
            ),
            code="unknown_connection",
        )
    return connection


def client_of(connection: Connection) -> MTurkClient:
    """A boto3 client that speaks for the connection's requester."""
    if connection.team_id is None:
        return connect(connection.name)
    require_outside(connection.endpoint_url)
    return connect(key=access_key_of(connection), endpoint_url=connection.endpoint_url or None)


def access_key_of(connection: Connection) -> AccessKey:
    """The key to a marketplace."""
    if connection.team_id is None:
        return local_key()
    try:
        return AccessKey(connection.access_key_id, decrypt(connection.encrypted_secret))
    except UndecryptableSecret as error:
        raise ConnectionUnfit(str(error)) from error


def endpoint_of(connection: Connection) -> str:
    """The address of a marketplace."""
    return connection.endpoint_url or str(settings.MARKETPLACE_ENDPOINT_URL)


def balance_usd(client: MTurkClient) -> Decimal:
    """What the requester's account has available."""
    with translated_errors():
        answer = client.get_account_balance()
    return amount_usd(answer["AvailableBalance"], "AvailableBalance")


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

    Without an address it is this site's own. The key is tried before anything is stored. `fees`
    are those of a marketplace that is not this site's own, whose are known.
    """
    there = marketplace_at(endpoint_url)
    if there.endpoint_url:
        require_outside(there.endpoint_url)
    balance_usd(connect(key=key, endpoint_url=there.endpoint_url or None))
    connection = Connection(
        team=team,
        name=name.strip(),
        marketplace=there.name,
        endpoint_url=there.endpoint_url,
        access_key_id=key.access_key_id,
        encrypted_secret=encrypt(key.secret_access_key),
        fees=there.fees or fees,
        created_by=actor,
    )
    return _store_connection(connection, actor)


def connect_this_site(
    *, team: Team, name: str, actor: User, test_funds_usd: Decimal | None = None
) -> Connection:
    """Make the team a requester at this site's own marketplace, for an actor who may do so.

    Its requester account bears the team's name, which participants read, and its short name,
    which no other team has.
    """
    require_may_connect_this_site(team, actor)
    key = enrol_requester(
        site_url=settings.SITE_URL,
        name=f"{team.name} ({team.slug})",
        display_name=team.name,
        test_funds_usd=test_funds_usd,
    )
    return connect_marketplace(team=team, name=name, key=key, actor=actor)


def require_may_connect_this_site(team: Team, actor: User) -> None:
    """ConnectionUnfit if the site does not let this user make the team a requester."""
    if not may_connect_this_site(team, actor):
        text = _(
            "Only operators of this site connect this team to its marketplace. "
            "Ask one of them to do so."
        )
        raise ConnectionUnfit(text, code="operators_only")


@transaction.atomic
def close_connection(*, connection: Connection, actor: User) -> None:
    """Publish nothing more over a connection; what is out is collected and paid all the same."""
    Connection.objects.filter(pk=connection.pk, closed_at=None).update(closed_at=timezone.now())
    connection.refresh_from_db(fields=["closed_at"])
    _record("connection.close", connection, actor)


def note_outcome(*, connection: Connection, problem: str = "") -> None:
    """Store why nothing could be collected over a connection; without a problem, that it was."""
    failed_at = timezone.now() if problem else None
    rows = Connection.objects.filter(pk=connection.pk)
    if not problem:
        rows = rows.exclude(failed_at=None)
    rows.update(failed_at=failed_at, problem=problem)


def _store_connection(connection: Connection, actor: User) -> Connection:
    try:
        connection.full_clean(validate_constraints=False)
        with transaction.atomic():
            connection.save(force_insert=True)
            _record("connection.create", connection, actor)
    except ValidationError as error:
        raise ConnectionUnfit(" ".join(error.messages)) from error
    except IntegrityError as error:
        message = _("This team has a connection named “{name}” already.")
        raise ConnectionUnfit(message.format(name=connection.name), code="name_taken") from error
    return connection


def _record(action: str, connection: Connection, actor: User) -> None:
    details = {"marketplace": connection.marketplace, "access_key_id": connection.access_key_id}
    record(
        team=connection.team, actor=actor, action=action, subject=connection.name, details=details
    )

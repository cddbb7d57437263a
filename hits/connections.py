"""Connecting teams to marketplaces, and the client that speaks to one of them."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from urllib3.exceptions import HTTPError

from accounts.audit import record
from accounts.models import Team, User
from accounts.teams import may_connect_this_site
from encryption import UndecryptableSecret, decrypt, encrypt
from hits.endpoints import AccessKey, connect, local_key, translated_errors
from hits.exceptions import (
    ConnectionUnfit,
    MarketplaceRefused,
    MarketplaceUnreachable,
    ProfileUnknown,
)
from hits.foreign_records import amount_usd
from hits.limits import bounded_session
from hits.marketplaces import THIS_SITE, marketplace_at, profile_problem, require_outside
from hits.models import Connection

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient


PREFIX = "/marketplace-api/v1"
TIMEOUT_SECONDS = (10, 60)
# The headers that sign a POST of a body to an address.
Signature = Callable[[str, bytes], dict[str, str]]


@dataclass(frozen=True)
class JsonAnswer:
    """What came back; `content` is None where that is no whole JSON object."""

    address: str
    status: int
    is_json: bool
    content: dict[str, Any] | None

    @property
    def error(self) -> str:
        return str((self.content or {}).get("error", self.content))


def post_json(
    site_url: str, path: str, content: dict[str, Any], *, signature: Signature
) -> JsonAnswer:
    """POST to a marketplace; a redirect is not followed."""
    address = site_url.rstrip("/") + PREFIX + path
    body = json.dumps(content).encode()
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"} | signature(
        address, body
    )
    try:
        with (
            bounded_session() as session,
            session.post(
                address,
                data=body,
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            # Not unpacked: a small answer could become a huge one.
            answer_body = response.raw.read(decode_content=False)
    except (requests.RequestException, HTTPError) as error:
        raise MarketplaceUnreachable(
            _("No marketplace answers at {address}: {error}").format(address=address, error=error),
            code="no_answer",
        ) from error
    is_json = "json" in response.headers.get("Content-Type", "")
    return JsonAnswer(address, response.status_code, is_json, _json_object(answer_body))


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def enrol_requester(
    *, site_url: str, name: str, display_name: str = "", test_funds_usd: Decimal | None = None
) -> AccessKey:
    """A new key for the requester of this name, who is enrolled first where unknown; participants
    read the display name instead, where there is one."""
    optional = {"test_funds_usd": f"{test_funds_usd:f}" if test_funds_usd else ""}
    optional["display_name"] = display_name
    given = {key: value for key, value in optional.items() if value}
    content = _post_signed(site_url, "/requesters", {"name": name} | given)
    return AccessKey(content["access_key_id"], content["secret_access_key"])


def enrol_worker(*, site_url: str, username: str, password: str) -> str:
    content = _post_signed(site_url, "/workers", {"username": username, "password": password})
    return str(content["worker_id"])


def _post_signed(site_url: str, path: str, content: dict[str, str]) -> dict[str, Any]:
    answer = post_json(site_url, path, content, signature=_signature)
    if answer.content is None:
        raise MarketplaceUnreachable(
            _("What answers at {address} is not an Assay marketplace (HTTP {status}).").format(
                address=answer.address, status=answer.status
            ),
            code="not_assay",
        )
    if answer.status != HTTPStatus.CREATED:
        raise MarketplaceRefused(_code(answer.status), answer.error)
    return answer.content


def _signature(address: str, body: bytes) -> dict[str, str]:
    secret = settings.MARKETPLACE_OPERATOR_SECRET
    return signed_headers(secret=secret, path=urlsplit(address).path, body=body)


def signed_headers(*, secret: str, path: str, body: bytes) -> dict[str, str]:
    """The headers of a POST to this path with this body, for once and for the next minutes."""
    timestamp, nonce = str(int(time.time())), secrets.token_urlsafe(24)
    lines = ["POST", path, timestamp, nonce, hashlib.sha256(body).hexdigest()]
    signature = hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()
    return {
        "X-Assay-Timestamp": timestamp,
        "X-Assay-Nonce": nonce,
        "X-Assay-Signature": signature,
    }


def _code(status: int) -> str:
    names = {401: "InvalidSignature", 409: "NameTaken"}
    return names.get(status, f"HTTP {status}")


def site_connection(profile: str = THIS_SITE) -> Connection:
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
    if connection.team_id is None:
        return connect(connection.name)
    require_outside(connection.endpoint_url)
    return connect(key=access_key_of(connection), endpoint_url=connection.endpoint_url or None)


def access_key_of(connection: Connection) -> AccessKey:
    if connection.team_id is None:
        return local_key()
    try:
        return AccessKey(connection.access_key_id, decrypt(connection.encrypted_secret))
    except UndecryptableSecret as error:
        raise ConnectionUnfit(str(error)) from error


def endpoint_of(connection: Connection) -> str:
    return connection.endpoint_url or str(settings.MARKETPLACE_ENDPOINT_URL)


def balance_usd(client: MTurkClient) -> Decimal:
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
        raise ConnectionUnfit(
            _(
                "Only operators of this site connect this team to its marketplace. "
                "Ask one of them to do so."
            ),
            code="operators_only",
        )


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
        raise ConnectionUnfit(
            _("This team has a connection named “{name}” already.").format(name=connection.name),
            code="name_taken",
        ) from error
    return connection


def _record(action: str, connection: Connection, actor: User) -> None:
    details = {"marketplace": connection.marketplace, "access_key_id": connection.access_key_id}
    record(
        team=connection.team, actor=actor, action=action, subject=connection.name, details=details
    )

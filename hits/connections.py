import hashlib
import hmac
import json
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from urllib3.exceptions import HTTPError, ReadTimeoutError

from accounts.audit import record
from accounts.models import Team, User
from accounts.teams import may_connect_this_site
from encryption import UndecryptableSecret, decrypt, encrypt
from hits.calls import amount_usd, count, identifier
from hits.endpoints import REGION, AccessKey, MTurkClient, connect, local_key, translated_errors
from hits.exceptions import (
    ConnectionUnfit,
    MarketplaceFault,
    MarketplaceRefused,
    MarketplaceUnreachable,
    ProfileUnknown,
    require,
)
from hits.limits import (
    AMAZON,
    THIS_SITE,
    bounded_session,
    marketplace_at,
    profile_problem,
    require_outside,
    require_time_left,
)
from hits.models import Assignment, Batch, Connection, Recruitment, SharedDevice, Worker

PREFIX = "/marketplace-api/v1"
TIMEOUT_SECONDS = (10, 60)
# The headers that sign a POST of a body to an address.
Signature = Callable[[str, bytes], dict[str, str]]


@dataclass(frozen=True)
class JsonAnswer:
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
    return JsonAnswer(
        address,
        response.status_code,
        "json" in response.headers.get("Content-Type", ""),
        _json_object(answer_body),
    )


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def enrol_requester(
    *, site_url: str, name: str, display_name: str = "", test_funds_usd: Decimal | None = None
) -> AccessKey:
    """Return a new key for the requester of this name, who is created if unknown. Participants
    read `display_name` instead of the name."""
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
        raise MarketplaceRefused(
            {401: "InvalidSignature", 409: "NameTaken"}.get(answer.status, f"HTTP {answer.status}"),
            answer.error,
        )
    return answer.content


def _signature(address: str, body: bytes) -> dict[str, str]:
    return operator_headers(
        secret=settings.MARKETPLACE_OPERATOR_SECRET, path=urlsplit(address).path, body=body
    )


def operator_headers(*, secret: str, path: str, body: bytes) -> dict[str, str]:
    timestamp, nonce = str(int(time.time())), secrets.token_urlsafe(24)
    lines = ["POST", path, timestamp, nonce, hashlib.sha256(body).hexdigest()]
    return {
        "X-Assay-Timestamp": timestamp,
        "X-Assay-Nonce": nonce,
        "X-Assay-Signature": hmac.new(
            secret.encode(), "\n".join(lines).encode(), hashlib.sha256
        ).hexdigest(),
    }


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
    team, _slash, own = name.partition("/")
    usable = Connection.objects.usable().exclude(team=None).select_related("team")
    connection = usable.filter(team__slug=team, name=own).first()
    if connection is None:
        raise ConnectionUnfit(
            _("There is no open connection '{name}'. Known: {names}.").format(
                name=name,
                names=", ".join(f"'{each.team.slug}/{each.name}'" for each in usable if each.team)
                or _("none"),
            ),
            code="unknown_connection",
        )
    return connection


def client_of(connection: Connection) -> MTurkClient:
    if not connection.access_key_id:
        return connect(connection.name)
    require_outside(connection.endpoint_url)
    return connect(key=access_key_of(connection), endpoint_url=connection.endpoint_url or None)


def access_key_of(connection: Connection) -> AccessKey:
    if not connection.access_key_id:
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
    """The key is tried before anything is stored. Without an address, the marketplace is this
    site's own, whose fees are known; `fees` are those of another."""
    there = marketplace_at(endpoint_url)
    if there.endpoint_url:
        require_outside(there.endpoint_url)
    balance_usd(connect(key=key, endpoint_url=there.endpoint_url or None))
    return _store_connection(
        Connection(
            team=team,
            name=name.strip(),
            marketplace=there.name,
            endpoint_url=there.endpoint_url,
            access_key_id=key.access_key_id,
            encrypted_secret=encrypt(key.secret_access_key),
            fees=there.fees or fees,
            created_by=actor,
        ),
        actor,
    )


def connect_this_site(
    *, team: Team, name: str, actor: User, test_funds_usd: Decimal | None = None
) -> Connection:
    # Participants read the team's name; its short name is unique.
    require_may_connect_this_site(team, actor)
    key = enrol_requester(
        site_url=settings.SITE_URL,
        name=f"{team.name} ({team.slug})",
        display_name=team.name,
        test_funds_usd=test_funds_usd,
    )
    return connect_marketplace(team=team, name=name, key=key, actor=actor)


def require_may_connect_this_site(team: Team, actor: User) -> None:
    require(
        may_connect_this_site(team, actor),
        ConnectionUnfit(
            _(
                "Only operators of this site connect this team to its marketplace. "
                "Ask one of them to do so."
            ),
            code="operators_only",
        ),
    )


@transaction.atomic
def close_connection(*, connection: Connection, actor: User) -> None:
    # Published work is still collected and paid.
    Connection.objects.filter(pk=connection.pk, closed_at=None).update(closed_at=timezone.now())
    connection.refresh_from_db(fields=["closed_at"])
    _record("connection.close", connection, actor)


def note_outcome(*, connection: Connection, problem: str = "") -> None:
    rows = Connection.objects.filter(pk=connection.pk)
    if problem:
        rows.update(failed_at=timezone.now(), problem=problem)
    else:
        rows.exclude(failed_at=None).update(failed_at=None, problem="")


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
    record(
        team=connection.team,
        actor=actor,
        action=action,
        subject=connection.name,
        details={"marketplace": connection.marketplace, "access_key_id": connection.access_key_id},
    )


SERVICE = "mturk-requester"
# Between attempts: whatever is asked here may be asked again.
PAUSES_SECONDS = (0.2, 1.0, 3.0)


def post(connection: Connection, path: str, content: dict[str, Any]) -> dict[str, Any] | None:
    if connection.marketplace in AMAZON:
        return None
    for pause_seconds in PAUSES_SECONDS:
        require_time_left()
        try:
            return _post_once(connection, path, content)
        except MarketplaceUnreachable as away:
            if isinstance(away.__cause__, requests.Timeout | ReadTimeoutError):
                raise  # it took its time already
            time.sleep(pause_seconds * random.uniform(0.5, 1))
    require_time_left()
    return _post_once(connection, path, content)


def _post_once(connection: Connection, path: str, content: dict[str, Any]) -> dict[str, Any] | None:
    parts = urlsplit(endpoint_of(connection))
    site_url = f"{parts.scheme}://{parts.netloc}"
    require_outside(connection.endpoint_url)
    answer = post_json(
        site_url, path, content, signature=partial(signed_headers, access_key_of(connection))
    )
    if answer.status == HTTPStatus.NOT_FOUND:
        return None
    require(
        answer.status < 500 and answer.status != HTTPStatus.TOO_MANY_REQUESTS,
        MarketplaceUnreachable(
            _("{address} answers with HTTP {status}.").format(
                address=answer.address, status=answer.status
            ),
            code="bad_status",
        ),
    )
    if not answer.is_json:
        return None
    # None of the answers is empty: that is one whose rest was lost, as one cut in the middle is.
    require(
        answer.content,
        MarketplaceUnreachable(
            _("The answer from {address} was cut short.").format(address=answer.address),
            code="cut_short",
        ),
    )
    if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise MarketplaceRefused(str(answer.status), answer.error)
    return answer.content


def signed_headers(key: AccessKey, address: str, body: bytes) -> dict[str, str]:
    request = AWSRequest(
        method="POST",
        url=address,
        data=body,
        headers={"Content-Type": "application/json", "X-Amz-Target": "Assay"},
    )
    SigV4Auth(Credentials(key.access_key_id, key.secret_access_key), SERVICE, REGION).add_auth(
        request
    )
    return dict(request.headers.items())


MOST_ROWS = 10_000
MOST_OTHERS = 10


def fetch_shared_devices(*, batch: Batch) -> int:
    answer = post(batch.connection, "/devices", {"annotation_prefix": f"assay:{batch.key}:"})
    if answer is None:
        return 0
    listed = answer.get("shared_devices")
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        raise MarketplaceFault(_("it sent no list of shared devices"), code="not_a_list")
    # Simulated annotators all come from the site's own machine.
    simulated = Assignment.objects.of(batch).filter(
        submission__is_simulated=True, submission__has_unproved_mark=False
    )
    people = Worker.objects.filter(assignments__hit__batch=batch).distinct()
    people = people.exclude(pk__in=simulated.order_by().values("worker"))
    workers = {worker.worker_id: worker for worker in people}
    pseudonyms = dict(
        Assignment.objects.of(batch)
        .exclude(submission=None)
        .order_by()
        .values_list("worker__worker_id", "submission__annotator__pseudonym")
    )
    rows = [_row(batch, row, workers, pseudonyms) for row in listed[:MOST_ROWS]]
    known = [row for row in rows if row is not None]
    with transaction.atomic():
        SharedDevice.objects.filter(batch=batch).delete()
        SharedDevice.objects.bulk_create(known, ignore_conflicts=True)
    return len(known)


def _row(
    batch: Batch, row: dict[str, Any], workers: dict[str, Worker], pseudonyms: dict[str, str]
) -> SharedDevice | None:
    worker = workers.get(identifier(row, "worker_id"))
    others = row.get("others")
    if not isinstance(others, list) or not all(isinstance(each, str) for each in others):
        raise MarketplaceFault(
            _("the other workers of a device are not a list of ids"), code="not_ids"
        )
    if worker is None:
        return None
    return SharedDevice(
        batch=batch,
        worker=worker,
        n_shared=count(row.get("n_shared"), "n_shared"),
        n=count(row.get("n"), "n"),
        n_others=count(row.get("n_others"), "n_others"),
        others=[pseudonyms[each] for each in others[:MOST_OTHERS] if each in pseudonyms],
    )


SECONDS = 120
PARTICIPANTS, JOIN, DEMOGRAPHICS = "participants", "join", "demographics"
FILES = (PARTICIPANTS, JOIN, DEMOGRAPHICS)


def file_address(recruitment: Recruitment, name: str, *, reader: str) -> str:
    connection = recruitment.batch.connection
    key = access_key_of(connection)
    path = f"{PREFIX}/recruiting/files/{recruitment.public_id}/{name}.csv"
    values = {
        "key": key.access_key_id,
        "reader": reader,
        "expires": str(int(time.time()) + SECONDS),
    }
    signed = "\n".join([path, *values.values()]).encode()
    signature = hmac.new(key.secret_access_key.encode(), signed, hashlib.sha256).hexdigest()
    parts = urlsplit(endpoint_of(connection))
    site = "" if connection.is_on_this_site else f"{parts.scheme}://{parts.netloc}"
    return f"{site}{path}?{urlencode(values | {'signature': signature})}"

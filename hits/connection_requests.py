"""Connecting teams to marketplaces in the background: the key is tried before it is stored."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Team, User
from annotation.study_jobs import CONNECT, CONNECT_RECRUITER
from encryption import UndecryptableSecret, decrypt, encrypt, reencrypt
from hits.connections import (
    connect_marketplace,
    connect_this_site,
    require_may_connect_this_site,
)
from hits.endpoints import AccessKey
from hits.exceptions import ConnectionUnfit, HitsError
from hits.models import Connection
from hits.profiles import THIS_SITE
from work.models import Job, JobQuerySet
from work.request import request_job

if TYPE_CHECKING:
    from work.execution import RunningJob

TEST_FUNDS_USD = Decimal(100)


def connection_jobs(team: Team) -> JobQuerySet:
    """Connecting of a team, the latest first."""
    return Job.objects.about(_subject(team)).of_kind(CONNECT)


def request_this_site(*, team: Team, name: str, with_test_funds: bool, actor: User) -> Job:
    """Request that a team become a requester at this site's own marketplace.

    After one that was closed it has another name, and no test funds a second time. Raises
    ConnectionUnfit if the actor may not request it.
    """
    require_may_connect_this_site(team, actor)
    earlier = Connection.objects.of(team).filter(marketplace=THIS_SITE)
    n_earlier = earlier.filter(closed_at__isnull=False).count()
    has_funds = with_test_funds and settings.MARKETPLACE_TEST_FUNDS and not earlier.exists()
    unique_name = f"{name} {n_earlier + 1}" if n_earlier else name
    return _request(team, actor, {"name": unique_name, "test_funds": has_funds})


def request_connection(
    *, team: Team, name: str, endpoint_url: str, key: AccessKey, fees: str, actor: User
) -> Job:
    """Request a connection with a key of the team's own, which is encrypted until it is tried."""
    arguments = {
        "name": name,
        "endpoint_url": endpoint_url,
        "access_key_id": key.access_key_id,
        "encrypted_secret": encrypt(key.secret_access_key),
        "fees": fees,
    }
    return _request(team, actor, arguments)


def connect_in_background(running: RunningJob) -> str:
    """Make the connection that was requested; the key stays with the connection alone, or, once
    the request has failed for good, nowhere."""
    try:
        message = _connect_once(running)
    except Exception as error:
        job = running.job
        if isinstance(error, HitsError) or job.attempts >= job.max_attempts:
            _forget_secrets(Job.objects.filter(pk=job.pk))
        raise
    _forget_secrets(Job.objects.filter(pk=running.job.pk))
    return message


def forget_secrets() -> int:
    """Take the keys out of requests that ended elsewhere: stopped before they began, or given up
    after their worker was killed; return how many that was."""
    return _forget_secrets(Job.objects.of_kind(CONNECT, CONNECT_RECRUITER).finished())


@transaction.atomic
def reencrypt_connections() -> int:
    """Encrypt the keys of all connections, and of requests for some, under the first of
    ENCRYPTION_KEYS; return how many changed."""
    n_changed = 0
    for connection in Connection.objects.exclude(encrypted_secret="").select_for_update(
        of=("self",)
    ):
        stored = reencrypt(connection.encrypted_secret)
        is_new = stored != connection.encrypted_secret
        connections = Connection.objects.filter(pk=connection.pk)
        n_changed += connections.update(encrypted_secret=stored) if is_new else 0
    jobs = Job.objects.of_kind(CONNECT, CONNECT_RECRUITER).select_for_update(of=("self",))
    for job in jobs.filter(arguments__has_key="encrypted_secret"):
        if secret := job.arguments["encrypted_secret"]:
            arguments = job.arguments | {"encrypted_secret": reencrypt(secret)}
            is_new = arguments != job.arguments
            n_changed += Job.objects.filter(pk=job.pk).update(arguments=arguments) if is_new else 0
    return n_changed


def _forget_secrets(jobs: JobQuerySet) -> int:
    n_forgotten = 0
    for job in jobs.exclude(arguments__encrypted_secret="").filter(
        arguments__has_key="encrypted_secret"
    ):
        arguments = job.arguments | {"encrypted_secret": ""}
        n_forgotten += Job.objects.filter(pk=job.pk).update(arguments=arguments)
    return n_forgotten


def _connect_once(running: RunningJob) -> str:
    arguments = running.arguments
    team, actor = Team.objects.get(pk=arguments["team"]), User.objects.get(pk=arguments["actor"])
    name = arguments["name"]
    # An earlier attempt of this very job may have been killed once it had stored it.
    own = Connection.objects.of(team).filter(name=name, created_at__gte=running.job.created_at)
    if not own.exists():
        _connect(team, actor, arguments)
    return f"“{name}” is connected."


def _connect(team: Team, actor: User, arguments: dict[str, Any]) -> None:
    name = arguments["name"]
    if "access_key_id" not in arguments:
        if Connection.objects.of(team).usable().filter(marketplace=THIS_SITE).exists():
            raise ConnectionUnfit(
                _("This site's marketplace is connected already."), code="connected_already"
            )
        funds = TEST_FUNDS_USD if arguments.get("test_funds") else None
        connect_this_site(team=team, name=name, actor=actor, test_funds_usd=funds)
        return
    key = AccessKey(arguments["access_key_id"], _secret_of(arguments))
    connect_marketplace(
        team=team,
        name=name,
        key=key,
        endpoint_url=arguments["endpoint_url"],
        fees=arguments["fees"],
        actor=actor,
    )


def _secret_of(arguments: dict[str, Any]) -> str:
    if not arguments["encrypted_secret"]:
        raise ConnectionUnfit(
            _("The secret key of this request is stored no longer. Enter it anew."),
            code="secret_deleted",
        )
    try:
        return decrypt(arguments["encrypted_secret"])
    except UndecryptableSecret as error:
        raise ConnectionUnfit(str(error)) from error


def _request(team: Team, actor: User, arguments: dict[str, Any]) -> Job:
    return request_job(
        kind=CONNECT,
        subject=_subject(team),
        arguments=arguments | {"team": team.pk, "actor": actor.pk},
        requested_by=actor,
    )


def _subject(team: Team) -> str:
    return f"team:{team.pk}"

"""Connecting teams to marketplaces and to recruiters in the background: a key is tried before it is
stored; a token is passed on to the marketplace, which tries it and never gives it back."""

import time
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import Team, User
from annotation.study_facts import CONNECT, CONNECT_RECRUITER
from encryption import UndecryptableSecret, decrypt, encrypt, reencrypt
from hits import recruiter_api
from hits.connections import connect_marketplace, connect_this_site, require_may_connect_this_site
from hits.endpoints import AccessKey
from hits.exceptions import ConnectionUnfit, HitsError, RecruitingRefused, require
from hits.limits import THIS_SITE
from hits.models import Connection, Recruiter
from work.exceptions import JobWaiting
from work.execution import RunningJob
from work.models import Job, JobQuerySet
from work.tasks import request_job

PAUSE_SECONDS = 0.5


def recruiter_jobs(team: Team) -> JobQuerySet:
    return Job.objects.about(_subject(team)).of_kind(CONNECT_RECRUITER)


@transaction.atomic
def request_recruiter(
    *,
    connection: Connection,
    name: str,
    token: str,
    workspace: str,
    project: str,
    actor: User,
) -> Job:
    # The token is stored encrypted until the marketplace has it.
    arguments = {
        "connection": connection.pk,
        "name": name,
        "encrypted_secret": encrypt(token),
        "workspace": workspace,
        "project": project,
    }
    details = {"connection": connection.name, "workspace": workspace}
    return _request_of_recruiter("connect", connection, name, arguments, actor, details)


@transaction.atomic
def request_end(*, recruiter: Recruiter, actor: User) -> Job:
    connection = recruiter.connection
    arguments = {"connection": connection.pk, "recruiter": recruiter.public_id, "ends": True}
    return _request_of_recruiter("disconnect", connection, recruiter.name, arguments, actor)


def _request_of_recruiter(
    action: str,
    connection: Connection,
    name: str,
    arguments: dict[str, Any],
    actor: User,
    details: dict[str, Any] | None = None,
) -> Job:
    team = connection.team
    assert team is not None
    job = request_job(
        kind=CONNECT_RECRUITER, subject=_subject(team), arguments=arguments, requested_by=actor
    )
    record(team=team, actor=actor, action=f"recruiter.{action}", subject=name, details=details)
    return job


def connect_recruiter_in_background(running: RunningJob) -> str:
    arguments = running.arguments
    connection = Connection.objects.get(pk=arguments["connection"])
    if arguments.get("ends"):
        recruiter_api.disconnect(connection, arguments["recruiter"])
    elif "recruiter" not in arguments:
        arguments = _pass_on(running.job, connection)
    store_recruiters(connection, recruiter_api.fetch_standing(connection).recruiters)
    recruiter = Recruiter.objects.get(connection=connection, public_id=arguments["recruiter"])
    if recruiter.is_being_tried:
        time.sleep(PAUSE_SECONDS)
        raise JobWaiting
    if arguments.get("ends"):
        return _("“{name}” is not called any more.").format(name=recruiter)
    require(not recruiter.problem, RecruitingRefused(recruiter.problem))
    return _("“{name}” is connected: {account}, {currency}.").format(
        name=recruiter, account=recruiter.account, currency=recruiter.currency
    )


def store_recruiters(connection: Connection, records: Iterable[dict[str, Any]]) -> None:
    for one in records:
        Recruiter.objects.update_or_create(
            connection=connection,
            public_id=one["public_id"],
            defaults=one | {"fetched_at": timezone.now()},
        )


def _pass_on(job: Job, connection: Connection) -> dict[str, Any]:
    arguments = dict(job.arguments)
    arguments["recruiter"] = recruiter_api.offer_token(
        connection,
        name=arguments["name"],
        token=_secret_of(arguments),
        workspace=arguments["workspace"],
        project=arguments["project"],
    )
    arguments["encrypted_secret"] = ""
    Job.objects.filter(pk=job.pk).update(arguments=arguments)
    return arguments


def _subject(team: Team) -> str:
    return f"team:{team.pk}"


TEST_FUNDS_USD = Decimal(100)


def connection_jobs(team: Team) -> JobQuerySet:
    return Job.objects.about(_subject(team)).of_kind(CONNECT)


def request_this_site(*, team: Team, name: str, with_test_funds: bool, actor: User) -> Job:
    """Request that a team become a requester at this site's own marketplace; after one that was
    closed under another name, and without test funds. ConnectionUnfit if the actor may not."""
    require_may_connect_this_site(team, actor)
    earlier = Connection.objects.of(team).filter(marketplace=THIS_SITE)
    n_earlier = earlier.filter(closed_at__isnull=False).count()
    has_funds = with_test_funds and settings.MARKETPLACE_TEST_FUNDS and not earlier.exists()
    unique_name = f"{name} {n_earlier + 1}" if n_earlier else name
    return _request(team, actor, {"name": unique_name, "test_funds": has_funds})


def request_connection(
    *, team: Team, name: str, endpoint_url: str, key: AccessKey, fees: str, actor: User
) -> Job:
    return _request(
        team,
        actor,
        {
            "name": name,
            "endpoint_url": endpoint_url,
            "access_key_id": key.access_key_id,
            "encrypted_secret": encrypt(key.secret_access_key),
            "fees": fees,
        },
    )


def connect_in_background(running: RunningJob) -> str:
    # The key stays only with the connection, or nowhere once the request has failed.
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
    """Delete the keys of requests that ended without running: stopped, or given up after their
    worker was killed. Return how many."""
    return _forget_secrets(Job.objects.of_kind(CONNECT, CONNECT_RECRUITER).finished())


@transaction.atomic
def reencrypt_connections() -> int:
    n_changed = 0
    for connection in Connection.objects.exclude(encrypted_secret="").select_for_update(
        of=("self",)
    ):
        stored = reencrypt(connection.encrypted_secret)
        if stored != connection.encrypted_secret:
            n_changed += Connection.objects.filter(pk=connection.pk).update(encrypted_secret=stored)
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
        n_forgotten += Job.objects.filter(pk=job.pk).update(
            arguments=job.arguments | {"encrypted_secret": ""}
        )
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
        require(
            not Connection.objects.of(team).usable().filter(marketplace=THIS_SITE).exists(),
            ConnectionUnfit(
                _("This site's marketplace is connected already."), code="connected_already"
            ),
        )
        connect_this_site(
            team=team,
            name=name,
            actor=actor,
            test_funds_usd=TEST_FUNDS_USD if arguments.get("test_funds") else None,
        )
        return
    connect_marketplace(
        team=team,
        name=name,
        key=AccessKey(arguments["access_key_id"], _secret_of(arguments)),
        endpoint_url=arguments["endpoint_url"],
        fees=arguments["fees"],
        actor=actor,
    )


def _secret_of(arguments: dict[str, Any]) -> str:
    require(
        arguments["encrypted_secret"],
        ConnectionUnfit(
            _("The secret of this request has been deleted. Enter it again."),
            code="secret_deleted",
        ),
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

"""A team's accounts at recruiters: a token is passed on to the marketplace, which tries it, keeps
it, and never gives it back."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from annotation.study_jobs import CONNECT_RECRUITER
from encryption import UndecryptableSecret, decrypt, encrypt
from hits import recruiter_api
from hits.exceptions import ConnectionUnfit, RecruitingRefused
from hits.models import Connection, Recruiter
from work.exceptions import JobWaiting
from work.models import Job, JobQuerySet
from work.request import request_job

if TYPE_CHECKING:
    from accounts.models import Team, User
    from hits.recruiting_records import RecruiterRecord
    from work.execution import RunningJob

PAUSE_SECONDS = 0.5


def recruiter_jobs(team: Team) -> JobQuerySet:
    """Connecting of a team to recruiters, the latest first."""
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
    """Request that a marketplace call a recruiter with this token, encrypted until it has it."""
    team = connection.team
    assert team is not None
    arguments = {
        "connection": connection.pk,
        "name": name,
        "encrypted_secret": encrypt(token),
        "workspace": workspace,
        "project": project,
    }
    job = request_job(
        kind=CONNECT_RECRUITER, subject=_subject(team), arguments=arguments, requested_by=actor
    )
    details = {"connection": connection.name, "workspace": workspace}
    record(team=team, actor=actor, action="recruiter.connect", subject=name, details=details)
    return job


@transaction.atomic
def request_end(*, recruiter: Recruiter, actor: User) -> Job:
    """Request that a marketplace forget a recruiter's token."""
    team = recruiter.connection.team
    assert team is not None
    arguments = {"connection": recruiter.connection_id, "recruiter": recruiter.public_id}
    job = request_job(
        kind=CONNECT_RECRUITER,
        subject=_subject(team),
        arguments=arguments | {"ends": True},
        requested_by=actor,
    )
    record(team=team, actor=actor, action="recruiter.disconnect", subject=recruiter.name)
    return job


def connect_in_background(running: RunningJob) -> str:
    """Pass a token on, once, and wait until it was tried; or have one forgotten."""
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
    if recruiter.problem:
        raise RecruitingRefused(recruiter.problem)
    facts = {"name": recruiter, "account": recruiter.account, "currency": recruiter.currency}
    return _("“{name}” is connected: {account}, {currency}.").format(**facts)


def store_recruiters(connection: Connection, records: tuple[RecruiterRecord, ...]) -> None:
    """Store what a marketplace says of a team's accounts at recruiters."""
    for one in records:
        values = asdict(one) | {"fetched_at": timezone.now()}
        key = values.pop("public_id")
        Recruiter.objects.update_or_create(connection=connection, public_id=key, defaults=values)


def _pass_on(job: Job, connection: Connection) -> dict[str, Any]:
    """Offer the token; the request has it no longer, but what the account is called."""
    arguments = dict(job.arguments)
    if not arguments["encrypted_secret"]:
        raise ConnectionUnfit(_("The token of this request is stored no longer. Enter it anew."))
    try:
        token = decrypt(arguments["encrypted_secret"])
    except UndecryptableSecret as error:
        raise ConnectionUnfit(str(error)) from error
    arguments["recruiter"] = recruiter_api.offer_token(
        connection,
        name=arguments["name"],
        token=token,
        workspace=arguments["workspace"],
        project=arguments["project"],
    )
    arguments["encrypted_secret"] = ""
    Job.objects.filter(pk=job.pk).update(arguments=arguments)
    return arguments


def _subject(team: Team) -> str:
    return f"team:{team.pk}"

"""Scoring that a person asks for on a page: planned first, then confirmed, then done, under caps
that hold for all of it, however often it is taken up again.

A judge is asked through a team's connection: where the model is, and the key, which is encrypted.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import Team, User
from annotation.access import record_in
from annotation.models import Study
from annotation.study_facts import PLAN_SCORE, SCORE, jobs_of, request_study_job
from encryption import UndecryptableSecret, decrypt, encrypt, reencrypt
from metrics.exceptions import ParameterRefused
from metrics.models import JudgeConnection, ScoringRequest
from metrics.scorers.interface import Scorer
from metrics.scorers.judges.client import Client, client_from
from metrics.scorers.judges.endpoint import Endpoint, api_key_from, limits_from
from metrics.study_judges import is_judge, stored_settings
from metrics.study_scores import Scored, named_scorer, plan_scoring, score_study
from work.addresses import checked_addresses
from work.execution import RunningJob
from work.models import Job


@transaction.atomic
def connect_judge(
    *, team: Team, name: str, base_url: str, api_key: str, length_field: str, actor: User
) -> JudgeConnection:
    connection = JudgeConnection(
        team=team,
        name=name.strip(),
        base_url=base_url.strip(),
        length_field=length_field,
        created_by=actor,
    )
    try:
        Endpoint(base_url=connection.base_url, model="")
        key = api_key_from({"key": api_key}, "key")
        connection.encrypted_key = encrypt(key) if key else ""
        connection.full_clean(validate_constraints=False)
        with transaction.atomic():
            connection.save(force_insert=True)
    except ValidationError as error:
        raise ParameterRefused(" ".join(error.messages)) from error
    except ValueError as error:
        raise ParameterRefused(f"{error}.") from error
    except IntegrityError as error:
        raise ParameterRefused(
            _("This team has a connection named “{name}” already.").format(name=connection.name)
        ) from error
    _record("judge_connection.create", connection, actor)
    return connection


@transaction.atomic
def close_judge_connection(*, connection: JudgeConnection, actor: User) -> None:
    rows = JudgeConnection.objects.filter(pk=connection.pk, closed_at=None)
    if rows.update(closed_at=timezone.now(), encrypted_key=""):
        _record("judge_connection.close", connection, actor)


def endpoint_variables(connection: JudgeConnection, model: str) -> dict[str, str]:
    """The `JUDGE_...` variables of a connection that may be called now, or ParameterRefused."""
    if connection.closed_at is not None:
        raise ParameterRefused(_("The connection “{name}” is closed.").format(name=connection.name))
    addresses = outside_addresses(connection.base_url)
    try:
        key = decrypt(connection.encrypted_key) if connection.encrypted_key else ""
    except UndecryptableSecret as error:
        raise ParameterRefused(str(error)) from error
    return {
        "JUDGE_BASE_URL": connection.base_url,
        "JUDGE_MODEL": model,
        "JUDGE_API_KEY": key,
        "JUDGE_LENGTH_FIELD": connection.length_field,
        "JUDGE_ADDRESSES": " ".join(addresses),
    }


def outside_addresses(base_url: str) -> list[str]:
    """Where to connect to for as long as the run lasts; none where any address will do.

    Refuses those inside the site's own network, which a team has no business to call. A name's
    owner may let it lead elsewhere a moment later, so whoever asks connects to these.
    """
    host = urlsplit(base_url).hostname or ""
    try:
        addresses = checked_addresses(host)
    except OSError as error:
        raise ParameterRefused(
            _("There is nothing at “{host}”: {error}.").format(host=host, error=error)
        ) from error
    if addresses is None:
        raise ParameterRefused(
            _("“{host}” is an address inside this site's own network.").format(host=host)
        )
    return addresses


@transaction.atomic
def reencrypt_judge_connections() -> int:
    n_changed = 0
    rows = JudgeConnection.objects.exclude(encrypted_key="").select_for_update(of=("self",))
    for connection in rows:
        stored = reencrypt(connection.encrypted_key)
        if stored != connection.encrypted_key:
            same = JudgeConnection.objects.filter(pk=connection.pk)
            n_changed += same.update(encrypted_key=stored)
    return n_changed


def _record(action: str, connection: JudgeConnection, actor: User) -> None:
    record(
        team=connection.team,
        actor=actor,
        action=action,
        subject=connection.name,
        details={"address": connection.base_url},
    )


T = TypeVar("T")
# What the operator says of endpoints in general holds for every connection.
SHARED = ("TIMEOUT_SECONDS", "REQUESTS_PER_MINUTE", "TOKENS_PER_MINUTE", "CONCURRENCY")


def request_plan(
    *,
    study: Study,
    metric: str,
    parameters: dict[str, Any],
    requested_by: User,
    connection: JudgeConnection | None = None,
    **of_judges: Any,
) -> ScoringRequest:
    """Have it found out what scoring would take; nothing is scored before that is confirmed.

    `of_judges` are the model, prices and caps of a request.
    """
    request = ScoringRequest.objects.create(
        study=study,
        metric=metric,
        parameters=parameters,
        connection=connection,
        requested_by=requested_by,
        **of_judges,
    )
    arguments = {"request": request.pk}
    request_study_job(
        study=study, kind=PLAN_SCORE, names=[metric], arguments=arguments, requested_by=requested_by
    )
    return request


def plan_request(running: RunningJob) -> str:
    request = _request_of(running)
    scorer, client = _scorer(request)
    try:
        plan = plan_scoring(study=request.study, scorer=scorer)
    finally:
        _note_spent(request, client)
    record = plan.record()
    record["n_texts"] = record.pop("examples")
    ScoringRequest.objects.filter(pk=request.pk).update(estimate=record)
    return _("Estimated; nothing is scored yet.")


def confirm_request(*, request: ScoringRequest, actor: User) -> bool:
    """Have it scored, once; whether this did so. It stands in the team's audit log."""
    if request.estimate is None:
        return False
    with transaction.atomic():
        rows = ScoringRequest.objects.filter(pk=request.pk, confirmed_at=None)
        if rows.update(confirmed_at=timezone.now()):
            record_in(
                request.study, actor=actor, action="scores.compute", details=_details(request)
            )
    # Confirmed by somebody who was cut off here, it still has no job.
    if jobs_of(request.study).of_kind(SCORE).filter(arguments__request=request.pk).exists():
        return False
    request_study_job(
        study=request.study,
        kind=SCORE,
        names=[request.metric],
        arguments={"request": request.pk},
        requested_by=actor,
    )
    return True


def _details(request: ScoringRequest) -> dict[str, Any]:
    details: dict[str, Any] = {"metric": request.metric, "parameters": request.parameters}
    if request.connection is not None:
        details |= {"connection": request.connection.name, "model": request.model}
        details |= {name: str(cap) for name, cap in request.caps.items() if cap is not None}
    return details


def score_request(running: RunningJob) -> Scored:
    """Score the study as a request says; what was spent is kept after every batch."""
    request = _request_of(running)
    scorer, client = _scorer(request)
    reported = running.progress(request.metric)

    def progress(things: Iterable[T], total: int) -> Iterator[T]:
        for thing in reported(things, total):
            _note_spent(request, client)
            yield thing

    try:
        return score_study(study=request.study, scorer=scorer, progress=progress)
    finally:
        _note_spent(request, client)


def most_under_way() -> int:
    return limits_from(settings.JUDGE).concurrency


def last_job_of(request: ScoringRequest) -> Job | None:
    kind = SCORE if request.confirmed_at else PLAN_SCORE
    return jobs_of(request.study).of_kind(kind).filter(arguments__request=request.pk).first()


def asks_an_endpoint(job: Job) -> bool:
    if (number := job.arguments.get("request")) is None:
        return False
    return ScoringRequest.objects.exclude(connection=None).filter(pk=number).exists()


def _request_of(running: RunningJob) -> ScoringRequest:
    rows = ScoringRequest.objects.select_related("study", "connection")
    return rows.get(pk=running.arguments["request"])


def _scorer(request: ScoringRequest) -> tuple[Scorer, Client | None]:
    parameters = dict(request.parameters)
    if not is_judge(request.metric):
        return named_scorer(request.metric, **parameters), None
    client = _client(request)
    reference = str(parameters.get("settings", ""))
    stored = stored_settings(request.study, request.metric, reference) if reference else None
    if stored is not None:
        parameters["settings"] = stored
    return named_scorer(request.metric, **parameters, client=client), client


def _client(request: ScoringRequest) -> Client:
    """The client of the request's connection, under its caps; what it spent before counts."""
    assert request.connection is not None
    shared = {f"JUDGE_{name}" for name in SHARED}
    variables = {name: value for name, value in settings.JUDGE.items() if name in shared}
    variables |= endpoint_variables(request.connection, request.model)
    variables |= {
        "JUDGE_USD_PER_MILLION_INPUT": str(request.usd_per_million_input),
        "JUDGE_USD_PER_MILLION_OUTPUT": str(request.usd_per_million_output),
    }
    if request.max_usd is not None:
        variables["JUDGE_MAX_USD"] = f"{request.max_usd.normalize():f}"
    if request.max_requests is not None:
        variables["JUDGE_MAX_REQUESTS"] = str(request.max_requests)
    try:
        client = client_from(variables)
    except ValueError as error:
        raise ParameterRefused(f"{error}.") from error
    # Earlier runs of the request count against its caps.
    client.budget.requests, client.budget.usd = request.n_requests, request.spent_usd
    # A batch at its highest price before it is sent: a process killed meanwhile spent no more.
    client.budget.on_batch = partial(_keep_spent, request)
    return client


def _note_spent(request: ScoringRequest, client: Client | None) -> None:
    if client is not None:
        _keep_spent(request, client.budget.requests, client.budget.usd)


def _keep_spent(request: ScoringRequest, n_requests: int, spent_usd: Decimal) -> None:
    ScoringRequest.objects.filter(pk=request.pk).update(n_requests=n_requests, spent_usd=spent_usd)

"""Scoring that a person asks for on a page: planned first, then confirmed, then done, under caps
that hold for all of it, however often it is taken up again."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from annotation.access import record_in
from annotation.models import Study
from annotation.study_facts import PLAN_SCORE, SCORE, jobs_of, request_study_job
from metrics.exceptions import ParameterRefused
from metrics.judge_connections import endpoint_variables
from metrics.models import JudgeConnection, ScoringRequest
from metrics.scorers.judges.client import Client, client_from
from metrics.scorers.judges.endpoint import limits_from
from metrics.scorers.scorer import Scorer
from metrics.study_judges import is_judge, stored_settings
from metrics.study_scores import Scored, named_scorer, plan_scoring, score_study
from work.execution import RunningJob
from work.models import Job

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

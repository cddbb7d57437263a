import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.audit import record
from annotation.exceptions import AnnotationError
from annotation.flags import store_evidence
from annotation.models import Study
from annotation.result_kinds.base import request_results
from annotation.study_facts import (
    ANSWER_BY_CROWD,
    CHECK_LAUNCH,
    COLLECT,
    COLLECT_NEW,
    CONNECT,
    CONNECT_RECRUITER,
    DELETE_REHEARSAL,
    LINKS,
    MEASURE,
    PUBLISH,
    RECRUIT,
    REHEARSE,
    REVIEW,
    jobs_of,
    request_study_job,
    study_of,
)
from hits.account_requests import (
    connect_in_background,
    connect_recruiter_in_background,
    forget_secrets,
)
from hits.changes import ChangesResult, apply_changes
from hits.collect import CollectionResult, awaited_hits, collect_batch
from hits.connections import client_of, fetch_shared_devices, note_outcome
from hits.contacts import (
    connections_with_rejections,
    connections_with_workers,
    fetch_appeals,
    fetch_inquiries,
    send_answers,
    send_replies,
)
from hits.crowd.simulated import answer_in_background
from hits.decisions import ReviewResult
from hits.exceptions import HitsError
from hits.invitation_links import exchange_in_background, follow_links
from hits.limits import call_time, repeated_later, run_time
from hits.models import Batch, Hit, LinkStudy, PracticeHit
from hits.participants import (
    BONUSES,
    connections_to_follow,
    follow_decisions,
    forget_submissions,
    store_standing,
)
from hits.progress import fetch_statement, refresh_statements
from hits.publications import batches_with_a_wave_due, publish_in_background, request_publication
from hits.readiness import check_launch
from hits.recruited_batches import note_done_since, recruit_in_background
from hits.recruiter_api import fetch_standing
from hits.rehearsals import delete_rehearsal, end_rehearsal, rehearse
from hits.sending import send_review
from hits.studies import DELETE_STUDY, delete_study
from presentation.numbers import group_values
from work.exceptions import JobPostponed
from work.execution import RunningJob
from work.models import Job
from work.registry import INTERACTIVE, MARKETPLACE, SCORING, register

logger = logging.getLogger(__name__)
# A recruiter is called by the marketplace as often.
FOLLOW_EVERY_SECONDS = 60
CALL_SECONDS = 60


@register(
    RECRUIT,
    label=gettext_lazy("Recruiting"),
    queue=INTERACTIVE,
    refusals=(HitsError,),
    kept=BONUSES,
)
def recruit_participants(running: RunningJob) -> str:
    with repeated_later(), call_time(CALL_SECONDS):
        return recruit_in_background(running)


@register(
    LINKS,
    label=gettext_lazy("Invitation links"),
    queue=INTERACTIVE,
    refusals=(HitsError,),
)
def exchange_links(running: RunningJob) -> str:
    with repeated_later(), call_time(CALL_SECONDS):
        return exchange_in_background(running)


@register(
    CONNECT_RECRUITER,
    label=gettext_lazy("Connecting the recruiter"),
    queue=INTERACTIVE,
    refusals=(HitsError,),
)
def connect_recruiter(running: RunningJob) -> str:
    with repeated_later(), call_time(CALL_SECONDS):
        return connect_recruiter_in_background(running)


@register(
    "follow_recruiters",
    label=gettext_lazy("Looking how recruiting stands"),
    queue=MARKETPLACE,
    every_seconds=FOLLOW_EVERY_SECONDS,
)
def follow_recruiters(running: RunningJob) -> str:
    connections = connections_to_follow()
    forget_submissions(connections)
    for connection in connections:
        try:
            with call_time(CALL_SECONDS):
                store_standing(connection, fetch_standing(connection))
                follow_decisions(connection)
                note_done_since(connection)
        except HitsError as refusal:
            # Closed accounts and marketplaces that are away hold up no other connection.
            logger.warning("Recruiting over connection %s is unknown: %s", connection.pk, refusal)
        except (OperationalError, InterfaceError):  # our own database is away
            raise
        except Exception:  # what a marketplace has said that nobody thought of is of it alone
            logger.exception("Recruiting over connection %s is unknown", connection.pk)
    for study in LinkStudy.objects.to_follow().select_related("batch__connection"):
        try:
            with call_time(CALL_SECONDS):
                follow_links(study)
        except HitsError as refusal:
            logger.warning("Links of batch %s are unknown: %s", study.batch_id, refusal)
    n = len(connections)
    return ngettext("{n} connection looked at.", "{n} connections looked at.", n).format(n=n)


REFUSALS = (AnnotationError, HitsError)
APPLY_CHANGES = "apply_changes"
# A marketplace is asked this often at most, once for each HIT that something is to come for.
LOOK_EVERY_SECONDS = 30
# What all calls over one connection may take in a run, so that none holds up the others.
PERIODIC_CALL_SECONDS, APPEALS_CALL_SECONDS, INTERACTIVE_CALL_SECONDS = 60, 20, 300
REQUESTS_PER_SECOND = 10
# A collection that failed, as for want of a key, is not tried every half a minute.
AFTER_FAILURE = timedelta(minutes=10)


@register(COLLECT, label=gettext_lazy("Collecting answers"), queue=INTERACTIVE, refusals=REFUSALS)
def collect(running: RunningJob) -> str:
    batches = Batch.objects.of(study_of(running)).started().select_related("connection")
    return _collect(
        running, batches, seconds=INTERACTIVE_CALL_SECONDS, since=running.job.created_at
    )


@register(
    DELETE_STUDY, label=gettext_lazy("Deleting the study"), queue=INTERACTIVE, refusals=REFUSALS
)
def delete(running: RunningJob) -> str:
    delete_study(study=study_of(running), actor=running.job.requested_by)
    return _("The study is deleted.")


@register(PUBLISH, label=gettext_lazy("Publishing"), queue=INTERACTIVE, refusals=REFUSALS)
def publish(running: RunningJob) -> str:
    # What was changed of the batch meanwhile, such as its end, holds for the new HITs too.
    message = publish_in_background(running)
    _request_changes(Batch.objects.select_related("study").get(pk=running.arguments["batch"]))
    return message


@register(
    CHECK_LAUNCH,
    label=gettext_lazy("Checking pages and account"),
    queue=INTERACTIVE,
    refusals=REFUSALS,
)
def check_pages_and_account(running: RunningJob) -> str:
    with call_time(PERIODIC_CALL_SECONDS):
        return check_launch(running)


@register(
    CONNECT, label=gettext_lazy("Connecting the marketplace"), queue=INTERACTIVE, refusals=REFUSALS
)
def connect(running: RunningJob) -> str:
    with call_time(PERIODIC_CALL_SECONDS):
        return connect_in_background(running)


@register(
    "forget_secrets",
    label=gettext_lazy("Looking for keys that are needed no longer"),
    queue=MARKETPLACE,
    every_seconds=600,
)
def forget_request_secrets(running: RunningJob) -> str:
    n = forget_secrets()
    return ngettext("{n} key forgotten.", "{n} keys forgotten.", n).format(n=n)


@register(
    "publish_waves",
    label=gettext_lazy("Looking for waves to publish"),
    queue=MARKETPLACE,
    every_seconds=LOOK_EVERY_SECONDS,
)
def publish_waves(running: RunningJob) -> str:
    batches = batches_with_a_wave_due()
    for batch in batches:
        request_publication(batch=batch)
    n = len(batches)
    return ngettext("{n} wave due.", "{n} waves due.", n).format(n=n)


@register(
    COLLECT_NEW, label=gettext_lazy("Collecting new answers"), queue=MARKETPLACE, refusals=REFUSALS
)
def collect_new(running: RunningJob) -> str:
    batches = Batch.objects.of(study_of(running)).started().select_related("connection")
    # What was begun is tried again where a marketplace was away for a moment.
    is_repeated = running.job.attempts > 1
    return _collect(
        running,
        [
            batch
            for batch in batches
            if _is_due(batch) and (is_repeated or not _connection_failed_lately(batch))
        ],
        seconds=PERIODIC_CALL_SECONDS,
        only_awaited=True,
    )


@register(
    MEASURE, label=gettext_lazy("Measuring submissions"), queue=INTERACTIVE, refusals=REFUSALS
)
def measure(running: RunningJob) -> str:
    n = store_evidence(study_of(running)).facts["n_submissions"]
    return ngettext("{n} submission measured.", "{n} submissions measured.", n).format(n=f"{n:,}")


@register(APPLY_CHANGES, label=gettext_lazy("Changing HITs"), queue=INTERACTIVE, refusals=REFUSALS)
def apply(running: RunningJob) -> str:
    batch = (
        Batch.objects.of(study_of(running))
        .select_related("study", "connection")
        .get(pk=running.arguments["batch"])
    )
    progress = running.progress(_("HITs of batch {batch}").format(batch=batch.pk))
    client, result = client_of(batch.connection), ChangesResult()
    while not running.is_complete:
        with repeated_later():
            result += apply_changes(batch=batch, client=client, progress=progress)
            with call_time(PERIODIC_CALL_SECONDS):
                fetch_statement(batch=batch)
        _complete_unless_changed(running, batch, str(result))
    return str(result)


@transaction.atomic
def _complete_unless_changed(running: RunningJob, batch: Batch, message: str) -> None:
    # Whoever changes a batch holds its row, then requests a job: this one, until it is complete.
    Batch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
    if not _awaits_change(batch):
        running.complete(message)


@transaction.atomic
def _request_changes(batch: Batch) -> None:
    Batch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
    if _awaits_change(batch):
        request_study_job(study=batch.study, kind=APPLY_CHANGES, arguments={"batch": batch.pk})


def _awaits_change(batch: Batch) -> bool:
    return (
        Hit.objects.of(batch).awaiting_change().exists()
        or PracticeHit.objects.of(batch).awaiting_expiry().exists()
    )


@register(
    "collect_all",
    label=gettext_lazy("Looking for new answers"),
    queue=MARKETPLACE,
    every_seconds=LOOK_EVERY_SECONDS,
)
def collect_all(running: RunningJob) -> str:
    # A rehearsal collects its own.
    batches = Batch.objects.started().filter(study__rehearsal_of=None)
    batches = batches.select_related("study", "connection")
    studies = {
        batch.study for batch in batches if _is_due(batch) and not _connection_failed_lately(batch)
    }
    due = [study for study in studies if not _failed_lately(study)]
    for study in due:
        request_study_job(study=study, kind=COLLECT_NEW)
    n = len(due)
    return ngettext("{n} study looked at.", "{n} studies looked at.", n).format(n=n)


@register(
    "collect_appeals",
    label=gettext_lazy("Looking for appeals and messages"),
    queue=MARKETPLACE,
    every_seconds=LOOK_EVERY_SECONDS,
)
def collect_appeals(running: RunningJob) -> str:
    asked = [(fetch_appeals, connection) for connection in connections_with_rejections()]
    asked += [(fetch_inquiries, connection) for connection in connections_with_workers()]
    n_new = 0
    for fetch, connection in asked:
        try:
            with call_time(APPEALS_CALL_SECONDS):
                n_new += fetch(connection=connection)
        except HitsError as refusal:
            # Closed accounts and marketplaces that are away hold up no other connection.
            logger.warning("Connection %s was not read: %s", connection.pk, refusal)
    return ngettext("{n} new appeal or message.", "{n} new appeals and messages.", n_new).format(
        n=n_new
    )


def _is_due(batch: Batch) -> bool:
    n_awaited = awaited_hits(batch).count()
    if batch.practice_type_id:
        n_awaited += PracticeHit.objects.of(batch).awaited().count()
    pause = timedelta(seconds=max(LOOK_EVERY_SECONDS / 2, n_awaited / REQUESTS_PER_SECOND))
    latest = batch.collected_at
    return n_awaited > 0 and (latest is None or timezone.now() - latest >= pause)


def _connection_failed_lately(batch: Batch) -> bool:
    failed_at = batch.connection.failed_at
    return failed_at is not None and timezone.now() - failed_at < AFTER_FAILURE


def _failed_lately(study: Study) -> bool:
    last = jobs_of(study).of_kind(COLLECT_NEW).first()
    if last is None or last.state != Job.State.FAILED or last.finished_at is None:
        return False
    return timezone.now() - last.finished_at < AFTER_FAILURE


def _collect(
    running: RunningJob,
    batches: Iterable[Batch],
    *,
    seconds: float,
    only_awaited: bool = False,
    since: datetime | None = None,
) -> str:
    # If one connection fails, the others are collected all the same.
    by_connection = group_values((batch.connection, batch) for batch in batches)
    n_new, is_unfinished, problems = 0, False, []
    for connection, own in by_connection.items():
        try:
            with call_time(seconds):
                for batch in own:
                    result = _collect_batch(running, batch, only_awaited, since)
                    n_new += result.n_new
                    is_unfinished = is_unfinished or result.is_unfinished
            note_outcome(connection=connection)
        except (HitsError, JobPostponed) as problem:
            note_outcome(connection=connection, problem=str(problem))
            problems.append(problem)
    if n_new:
        study = study_of(running)
        request_study_job(study=study, kind=MEASURE)
        request_results(study)
    report = ngettext("{n:,} new assignment.", "{n:,} new assignments.", n_new).format(n=n_new)
    if problems:
        raise problems[0]
    return " ".join([report, _("The rest is collected next.")]) if is_unfinished else report


def _collect_batch(
    running: RunningJob, batch: Batch, only_awaited: bool, since: datetime | None
) -> CollectionResult:
    with repeated_later():
        result = collect_batch(
            batch=batch,
            client=client_of(batch.connection),
            progress=running.progress(_("HITs of batch {batch}").format(batch=batch.pk)),
            only_awaited=only_awaited,
            since=since,
        )
        if not result.is_unfinished:
            fetch_statement(batch=batch)
            fetch_shared_devices(batch=batch)
    return result


# As long as scoring can be, and waited for as little.
@register(ANSWER_BY_CROWD, label=gettext_lazy("Simulated crowd"), queue=SCORING, refusals=REFUSALS)
def answer_by_crowd(running: RunningJob) -> str:
    batch = (
        Batch.objects.of(study_of(running))
        .select_related("study", "connection")
        .get(pk=running.arguments["batch"])
    )
    message = answer_in_background(running, batch)
    _collect(running, [batch], seconds=INTERACTIVE_CALL_SECONDS)
    return message


@register(REHEARSE, label=gettext_lazy("Rehearsal"), queue=SCORING, refusals=REFUSALS)
def run_rehearsal(running: RunningJob) -> str:
    with repeated_later():
        return rehearse(running, study_of(running))


@register(
    DELETE_REHEARSAL,
    label=gettext_lazy("Deleting the rehearsal"),
    queue=INTERACTIVE,
    refusals=REFUSALS,
)
def remove_rehearsal(running: RunningJob) -> str:
    study = study_of(running)
    with call_time(INTERACTIVE_CALL_SECONDS):
        end_rehearsal(study)
    delete_rehearsal(study=study, actor=running.job.requested_by)
    return _("The rehearsal is deleted.")


@register(REVIEW, label=gettext_lazy("Sending decisions"), queue=INTERACTIVE, refusals=REFUSALS)
def review(running: RunningJob) -> str:
    study = study_of(running)
    # What was sent is confirmed or looked up the next time.
    with repeated_later(), run_time():
        result = send_review(study=study, reporter=running.progress)
        result += ReviewResult(n_appeals_answered=send_answers(study=study))
        result += ReviewResult(n_messages=send_replies(study=study))
    record(
        team=study.team,
        actor=running.job.requested_by,
        action="review.sent",
        subject=study.slug,
        details=result.record(),
    )
    try:
        with call_time(PERIODIC_CALL_SECONDS):
            refresh_statements(study=study)
    except HitsError as refusal:
        # What was sent is sent; the report is of an older statement, and says of when.
        logger.warning("The statements of study %s are as they were: %s", study.slug, refusal)
    return str(result)

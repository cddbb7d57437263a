"""What `hits` does in the background."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from accounts.audit import record
from annotation.exceptions import AnnotationError
from annotation.models import Study
from annotation.study_jobs import (
    CHECK_LAUNCH,
    COLLECT,
    COLLECT_NEW,
    CONNECT,
    PUBLISH,
    REVIEW,
    jobs_of,
    request_study_job,
    study_of,
)
from hits.appeals import fetch_appeals, send_answers
from hits.changes import apply_changes
from hits.collect import Collected, awaited_hits, collect_batch
from hits.connecting import connect_in_background
from hits.connections import client_of
from hits.exceptions import HitsError, MarketplaceUnreachable
from hits.launch_checks import check_launch
from hits.models import Batch
from hits.publications import (
    batches_with_a_wave_due,
    publish_in_background,
    request_publication,
)
from hits.sending import send_review
from hits.statements import fetch_statement
from work.exceptions import JobPostponed
from work.execution import RunningJob
from work.models import Job
from work.registry import INTERACTIVE, MARKETPLACE, register

REFUSALS = (AnnotationError, HitsError)
APPLY_CHANGES = "apply_changes"
# A marketplace is asked this often at most, once for each HIT that something is to come for.
LOOK_EVERY_SECONDS = 30
REQUESTS_PER_SECOND = 10
# A collection that failed, as for want of a key, is not tried every half a minute.
AFTER_FAILURE = timedelta(minutes=10)


@register(COLLECT, label="Collecting answers", queue=INTERACTIVE, refusals=REFUSALS)
def collect(running: RunningJob) -> str:
    """Collect the answers to all of a study's HITs."""
    batches = Batch.objects.of(study_of(running)).started().select_related("connection")
    return _report(sum(_collect_batch(running, batch).n_new for batch in batches))


@register(PUBLISH, label="Publishing", queue=INTERACTIVE, refusals=REFUSALS)
def publish(running: RunningJob) -> str:
    """Publish what is due of a batch."""
    return publish_in_background(running)


@register(CHECK_LAUNCH, label="Checking pages and account", queue=INTERACTIVE, refusals=REFUSALS)
def check_pages_and_account(running: RunningJob) -> str:
    """Look up what must be known before a launch."""
    return check_launch(running)


@register(CONNECT, label="Connecting the marketplace", queue=INTERACTIVE, refusals=REFUSALS)
def connect(running: RunningJob) -> str:
    """Connect a team to a marketplace."""
    return connect_in_background(running)


@register(
    "publish_waves",
    label="Looking for waves to publish",
    queue=MARKETPLACE,
    every_seconds=LOOK_EVERY_SECONDS,
)
def publish_waves(running: RunningJob) -> str:
    """Request the publication of every wave whose turn it is."""
    batches = batches_with_a_wave_due()
    for batch in batches:
        request_publication(batch=batch)
    return f"{len(batches)} {'wave' if len(batches) == 1 else 'waves'} due."


@register(COLLECT_NEW, label="Collecting new answers", queue=MARKETPLACE, refusals=REFUSALS)
def collect_new(running: RunningJob) -> str:
    """Collect what came in for the HITs of a study on which something is to come."""
    batches = Batch.objects.of(study_of(running)).started().select_related("connection")
    due = [batch for batch in batches if _is_due(batch)]
    return _report(sum(_collect_batch(running, batch, only_awaited=True).n_new for batch in due))


@register(APPLY_CHANGES, label="Changing HITs", queue=INTERACTIVE, refusals=REFUSALS)
def apply(running: RunningJob) -> str:
    """Bring the marketplace to what was decided about a batch's HITs, then look at them."""
    batches = Batch.objects.of(study_of(running)).select_related("study", "connection")
    batch = batches.get(pk=running.arguments["batch"])
    progress = running.progress(f"HITs of batch {batch.pk}")
    applied = apply_changes(batch=batch, client=client_of(batch.connection), progress=progress)
    fetch_statement(batch=batch)
    fetch_appeals(connection=batch.connection)
    return str(applied)


@register(
    "collect_all",
    label="Looking for new answers",
    queue=MARKETPLACE,
    every_seconds=LOOK_EVERY_SECONDS,
)
def collect_all(running: RunningJob) -> str:
    """Request a collection for every study that something is to come for."""
    batches = Batch.objects.started().select_related("study")
    studies = {batch.study for batch in batches if _is_due(batch)}
    due = [study for study in studies if not _failed_lately(study)]
    for study in due:
        request_study_job(study=study, kind=COLLECT_NEW)
    return f"{len(due)} {'study' if len(due) == 1 else 'studies'} looked at."


def _is_due(batch: Batch) -> bool:
    """Whether something is to come, and the marketplace was not asked for it just now."""
    n_awaited = awaited_hits(batch).count()
    pause = timedelta(seconds=max(LOOK_EVERY_SECONDS / 2, n_awaited / REQUESTS_PER_SECOND))
    asked_at = batch.collected_at
    return n_awaited > 0 and (asked_at is None or timezone.now() - asked_at >= pause)


def _failed_lately(study: Study) -> bool:
    last = jobs_of(study).of_kind(COLLECT_NEW).first()
    if last is None or last.state != Job.State.FAILED or last.finished_at is None:
        return False
    return timezone.now() - last.finished_at < AFTER_FAILURE


def _collect_batch(running: RunningJob, batch: Batch, *, only_awaited: bool = False) -> Collected:
    try:
        collected = collect_batch(
            batch=batch,
            client=client_of(batch.connection),
            progress=running.progress(f"HITs of batch {batch.pk}"),
            only_awaited=only_awaited,
        )
    except MarketplaceUnreachable as away:
        # It may be starting again, as this site's own is after its web server was killed.
        raise JobPostponed(str(away)) from away
    fetch_statement(batch=batch)
    return collected


def _report(n_new: int) -> str:
    return f"{n_new} new assignment{'' if n_new == 1 else 's'}."


@register(REVIEW, label="Sending decisions", queue=INTERACTIVE, refusals=REFUSALS)
def review(running: RunningJob) -> str:
    """Send what was decided about a study's work, and paid, and written to workers."""
    study = study_of(running)
    try:
        sent = send_review(study=study, reporter=running.progress)
        send_answers(study=study)
    except MarketplaceUnreachable as away:
        # What was sent is confirmed or looked up the next time.
        raise JobPostponed(str(away)) from away
    record(
        team=study.team,
        actor=running.job.requested_by,
        action="review.sent",
        subject=study.slug,
        details=sent.record(),
    )
    return str(sent)

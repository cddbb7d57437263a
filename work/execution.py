from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from django.conf import settings
from django.db import (
    DatabaseError,
    DataError,
    NotSupportedError,
    ProgrammingError,
    connection,
    models,
    transaction,
)
from django.db.models import Case, F, IntegerField, Q, When
from django.utils import timezone

from work.exceptions import JobPostponed, JobStopped, JobWaiting, LeaseLost, WorkerStopping
from work.models import MOST_DELAY_SECONDS, Job, Leased
from work.registry import job_kind, job_runner
from work.tasks import announce

Row = TypeVar("Row", bound=Leased)
# A heartbeat this often, so that pages see progress and a request to stop takes a second.
BEAT_SECONDS = 1.0
# The rest of the time is for others to notice that a lease lapsed.
TERM_SHARE = 0.75


def lease_term() -> timedelta:
    return timedelta(seconds=settings.WORK_LEASE_SECONDS * TERM_SHARE)


class Lease:
    """One process at a time works at a row, and another once that process is gone.

    A heartbeat in a thread beside the work keeps the lease, so that a step may be silent for an
    hour. A killed process takes its heartbeat along. One that lost its lease all the same (its
    machine was suspended, the database was away) is fenced off: `hold` fails in every transaction
    by which it would write.
    """

    def __init__(self, row: Leased, token: str) -> None:
        self.row = row
        self.token = token
        self.is_lost = False
        self.has_heartbeat = False
        self._last_beat = time.monotonic()

    def rows(self) -> models.QuerySet[Any]:
        return type(self.row)._default_manager.filter(pk=self.row.pk, lease_token=self.token)

    def hold(self) -> None:
        """Make sure of the lease until the transaction that writes has ended, or LeaseLost.

        On PostgreSQL it takes the one lock that keeps others from taking the row over but lets
        the heartbeat go on; on SQLite a transaction that writes keeps everyone else waiting.
        """
        if not connection.in_atomic_block:
            raise transaction.TransactionManagementError("hold() belongs in a transaction.")
        if not self._is_held():
            self.is_lost = True
            self.check()

    def _is_held(self) -> bool:
        if connection.vendor != "postgresql":
            return self.rows().exists()
        table = connection.ops.quote_name(self.row._meta.db_table)
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT 1 FROM {table} WHERE id = %s AND lease_token = %s FOR KEY SHARE",
                [self.row.pk, self.token],
            )
            return cursor.fetchone() is not None

    def check(self) -> None:
        """LeaseLost where it is known to be; beats by itself where no thread does."""
        if not self.has_heartbeat and time.monotonic() - self._last_beat >= BEAT_SECONDS:
            self.beat()
        if self.is_lost:
            raise LeaseLost(f"{self.row}: it was stopped or taken over; what was done is kept.")

    def beat(self) -> None:
        self.is_lost = not self.rows().update(
            leased_until=timezone.now() + lease_term(), **self.changes()
        )
        self._last_beat = time.monotonic()

    def changes(self) -> dict[str, Any]:
        return {}


def new_token() -> str:
    return secrets.token_hex(16)


def lock(rows: models.QuerySet[Row]) -> Row | None:
    """The first of the rows, locked against its holder's writing too; None if it is in use.

    A row whose holder is inside a transaction that writes is in use, whatever its lease says.
    """
    return rows.select_for_update(
        skip_locked=connection.features.has_select_for_update_skip_locked
    ).first()


@contextmanager
def heartbeat(lease: Lease) -> Iterator[None]:
    """Keep a lease beside the work of this thread.

    A claim that is not committed yet is visible to nobody, and needs no heartbeat.
    """
    if connection.in_atomic_block:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(
        target=_beat_until, args=(lease, ended), name="heartbeat", daemon=True
    )
    lease.has_heartbeat = True
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        lease.has_heartbeat = False


def _beat_until(lease: Lease, ended: threading.Event) -> None:
    pause = min(BEAT_SECONDS, settings.WORK_LEASE_SECONDS / 6)
    try:
        while not ended.wait(pause) and not lease.is_lost:
            try:
                lease.beat()
            except DatabaseError as error:
                # The database is away or busy: others cannot take the lease over either.
                logger.warning("The lease of '%s' could not be renewed: %s", lease.row, error)
                connection.close()
    finally:
        connection.close()


# Whose job a worker does next: those who requested the jobs of a queue take turns.
#
# A message says that its queue holds a job, not which is done: in the order of messages, forty jobs
# of one person would hold up everyone else's until the last of them is done.


def job_in_turn(job_id: int) -> int | None:
    """The key of the job to do for the message about that one.

    Turns go round by the keys of those who requested jobs that are due, on from whose job was
    begun last; of one's own jobs the first announced comes first. None where none is due.
    """
    queue = Job.objects.filter(pk=job_id).values_list("queue", flat=True).first()
    if queue is None:
        return None
    begun = Job.objects.filter(queue=queue, started_at__isnull=False).order_by("-started_at")
    # The site's own jobs, which nobody requested, take turns as one person's do.
    after = Q(requested_by__isnull=False)
    if served := begun.values_list("requested_by", flat=True).first():
        after = Q(requested_by__gt=served)
    is_next_round = Case(When(after, then=0), default=1, output_field=IntegerField())
    # A job that is not announced yet has a message of its own on the way.
    return (
        Job.objects.due(timezone.now())
        .filter(Q(enqueued_at__isnull=False) | Q(pk=job_id), queue=queue)
        .order_by(is_next_round, F("requested_by").asc(nulls_first=True), "enqueued_at", "pk")
        .values_list("pk", flat=True)
        .first()
    )


def swap_messages(*, job_id: int, done: Job) -> None:
    """Let the job whose message was taken for another one wait for that one's message.

    It is the job that the message names, or, where that one was done for an earlier message, the
    one that waits for its message since.
    """
    if job_id != done.pk:
        Job.objects.queued().exclude(task_id="").filter(
            task_id__in=Job.objects.filter(pk=job_id).values("task_id")
        ).update(task_id=done.task_id)


logger = logging.getLogger(__name__)
T = TypeVar("T")
# Of values and statements, which no second attempt changes. A row that another one precludes
# (IntegrityError) may be of two jobs at once, and is tried again.
PERMANENT = (DataError, ProgrammingError, NotSupportedError)
# Each time another worker may have taken the job whose turn it was.
MOST_TRIES = 5
# What a worker runs right now, for the signal that ends it (work.workers).
current: list[RunningJob] = []


class RunningJob(Lease):
    def __init__(self, job: Job, token: str) -> None:
        super().__init__(job, token)
        self.job = job
        self.stop_requested = False
        self.is_complete = False

    @property
    def arguments(self) -> dict[str, Any]:
        return dict(self.job.arguments)

    def progress(self, phase: str) -> Progress:
        return Progress(self, phase)

    def complete(self, message: str) -> None:
        """End the job as done inside the transaction of its last effects: all of it or nothing."""
        self.hold()
        self.finish(Job.State.DONE, message)
        self.is_complete = True

    def check(self) -> None:
        super().check()
        if self.stop_requested:
            raise JobStopped

    def beat(self) -> None:
        super().beat()
        self.stop_requested = self.rows().filter(stop_requested=True).exists()

    def changes(self) -> dict[str, Any]:
        job = self.job
        return {
            "phase": job.phase,
            "n_done": job.n_done,
            "n_total": job.n_total,
            "progress_at": job.progress_at,
        }

    def finish(self, state: Job.State, message: str) -> None:
        changes = self.changes() | {
            "state": state,
            "message": message,
            "finished_at": timezone.now(),
        }
        if not self.rows().update(lease_token="", leased_until=None, **changes):
            logger.warning("'%s' is in other hands; it is not marked %s here.", self.job, state)

    def requeue(self, **changes: Any) -> None:
        queued = {"state": Job.State.QUEUED, "lease_token": "", "leased_until": None}
        announced: dict[str, Any] = {"task_id": "", "enqueued_at": None}
        self.rows().update(**queued, **announced, **changes)


class Progress:
    """Passes things through and notes how many went by; the heartbeat writes that down."""

    def __init__(self, running: RunningJob, phase: str) -> None:
        self.running = running
        self.phase = phase[:200]

    def __call__(
        self, things: Iterable[T], total: int, size: Callable[[T], int] = lambda thing: 1
    ) -> Iterator[T]:
        n_done = 0
        self._note(n_done, total)
        for thing in things:
            yield thing
            n_done += size(thing)
            self._note(n_done, total)

    def _note(self, n_done: int, total: int) -> None:
        job = self.running.job
        job.phase, job.n_done, job.n_total = self.phase, n_done, total
        job.progress_at = timezone.now()
        self.running.check()


@job_runner
def run_in_turn(job_id: int) -> str:
    """Do the job whose turn it is in the queue of that one, for that one's message; nothing where
    none is due, such as where that one waits for another attempt."""
    for _ in range(MOST_TRIES):
        if (chosen := job_in_turn(job_id)) is None:
            return "not queued"
        if running := claim(chosen):
            swap_messages(job_id=job_id, done=running.job)
            return _do(running)
    return run_job(job_id)


def run_job(job_id: int) -> str:
    running = claim(job_id)
    return _do(running) if running else "not queued"


def _do(running: RunningJob) -> str:
    about = {"subject": running.job.subject} if running.job.subject else {}
    with structlog.contextvars.bound_contextvars(
        job=running.job.pk, kind=running.job.kind, **about
    ):
        current.append(running)
        try:
            with heartbeat(running):
                _run(running)
        except WorkerStopping:
            _release(running)
        finally:
            current.remove(running)
        job = Job.objects.get(pk=running.job.pk)
        _log_outcome(job)
    return job.state


def _log_outcome(job: Job) -> None:
    seconds = (timezone.now() - (job.started_at or job.created_at)).total_seconds()
    logger.info(
        "job",
        extra={"state": job.state, "attempt": job.attempts, "duration_seconds": round(seconds, 3)},
    )


def claim(job_id: int) -> RunningJob | None:
    """Take a job that waits; None where it was stopped, is done, or someone else has it."""
    now, token = timezone.now(), new_token()
    return (
        RunningJob(Job.objects.get(pk=job_id), token)
        if Job.objects.queued()
        .filter(pk=job_id)
        .update(
            state=Job.State.RUNNING,
            lease_token=token,
            leased_until=now + lease_term(),
            attempts=F("attempts") + 1,
            started_at=now,
            progress_at=None,
            phase="",
            n_done=0,
            n_total=None,
        )
        else None
    )


def _run(running: RunningJob) -> None:
    job = running.job
    refusals: tuple[type[Exception], ...] = ()
    try:
        kind = job_kind(job.kind)
        refusals = kind.refusals
        message = kind.handler(running)
        if not running.is_complete:
            running.finish(Job.State.DONE, message)
    except JobStopped as stopped:
        running.finish(Job.State.STOPPED, str(stopped))
    except LeaseLost as lost:
        logger.warning("%s", lost)
    except JobWaiting:
        _release(running)
    except JobPostponed as postponed:
        _retry(running, str(postponed).rstrip("."))
    except PERMANENT as error:
        logger.exception("'%s' (job %s) cannot be stored", job, job.pk)
        running.finish(
            Job.State.FAILED,
            f"The database cannot take what it was given ({type(error).__name__}). "
            "The site's log has the rest.",
        )
    except DatabaseError:
        # Of the database, which may be away: the row says what comes next once it is back.
        logger.exception("'%s' (job %s) broke off", job, job.pk)
        _retry(running, "The database refused it")
    except Exception as error:
        if isinstance(error, refusals):
            running.finish(Job.State.FAILED, str(error))
            return
        logger.exception("'%s' (job %s) broke off", job, job.pk)
        _retry(running, f"Unexpected error: {type(error).__name__}. The site's log has the rest")


def _retry(running: RunningJob, reason: str) -> None:
    job = running.job
    if running.rows().filter(stop_requested=True).exists():
        running.finish(Job.State.STOPPED, str(JobStopped()))
        return
    if job.attempts >= job.max_attempts:
        tries = "once" if job.attempts == 1 else f"{job.attempts} times"
        running.finish(Job.State.FAILED, f"{reason}. It was tried {tries}.")
        return
    running.requeue(message=f"{reason}.", run_after=timezone.now() + retry_delay(job.attempts))


def retry_delay(n_attempts: int) -> timedelta:
    return timedelta(
        seconds=min(settings.WORK_RETRY_SECONDS * 2 ** (n_attempts - 1), MOST_DELAY_SECONDS)
    )


def _release(running: RunningJob) -> None:
    running.requeue(attempts=models.F("attempts") - 1)
    if job := Job.objects.queued().filter(pk=running.job.pk).first():
        announce(job)

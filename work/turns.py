"""Whose job a worker does next: those who requested the jobs of a queue take turns.

A message says that its queue holds a job, not which is done: in the order of messages, forty jobs
of one person would hold up everyone else's until the last of them is done.
"""

from __future__ import annotations

from django.db.models import Case, F, IntegerField, Q, When
from django.utils import timezone

from work.models import Job


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
    announced = Q(enqueued_at__isnull=False) | Q(pk=job_id)
    due = Job.objects.due(timezone.now()).filter(announced, queue=queue)
    turns = due.order_by(
        is_next_round, F("requested_by").asc(nulls_first=True), "enqueued_at", "pk"
    )
    return turns.values_list("pk", flat=True).first()


def swap_messages(*, job_id: int, done: Job) -> None:
    """Let the job whose message was taken for another one wait for that one's message.

    It is the job that the message names, or, where that one was done for an earlier message, the
    one that waits for its message since.
    """
    if job_id != done.pk:
        taken = Job.objects.filter(pk=job_id).values("task_id")
        waits = Job.objects.queued().exclude(task_id="").filter(task_id__in=taken)
        waits.update(task_id=done.task_id)

"""Jobs of each queue: short ones, ones of many steps, and ones silent for longer than a lease."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import transaction

from benchmarks.faults.models import Effect, Run
from work.execution import RunningJob
from work.registry import INTERACTIVE, MARKETPLACE, SCORING, register

N_STEPS = 12
STEP_SECONDS = 0.2
MOST_ATTEMPTS = 12


@register("faults_short", label="Short", queue=INTERACTIVE, max_attempts=MOST_ATTEMPTS)
def short(running: RunningJob) -> str:
    with _noted(running), transaction.atomic():
        running.complete("Done.")
        Effect.objects.create(job_id=running.job.pk, step=0)
    return ""


@register("faults_steps", label="Steps", queue=MARKETPLACE, max_attempts=MOST_ATTEMPTS)
def steps(running: RunningJob) -> str:
    with _noted(running):
        for step in running.progress("steps")(range(N_STEPS), N_STEPS):
            time.sleep(STEP_SECONDS)
            with transaction.atomic():
                running.hold()
                if not Effect.objects.filter(job_id=running.job.pk, step=step).exists():
                    Effect.objects.create(job_id=running.job.pk, step=step)
    return "Done."


@register("faults_silent", label="Silent", queue=SCORING, max_attempts=MOST_ATTEMPTS)
def silent(running: RunningJob) -> str:
    with _noted(running):
        time.sleep(settings.WORK_LEASE_SECONDS * 1.5)
        with transaction.atomic():
            running.complete("Done.")
            Effect.objects.create(job_id=running.job.pk, step=0)
    return ""


@contextmanager
def _noted(running: RunningJob) -> Iterator[None]:
    others = Run.objects.filter(job_id=running.job.pk, ended=False)
    is_double = any(_is_worker(pid) for pid in others.values_list("pid", flat=True))
    run = Run.objects.create(job_id=running.job.pk, pid=os.getpid(), is_double=is_double)
    try:
        yield
    finally:
        Run.objects.filter(pk=run.pk).update(ended=True)


def _is_worker(pid: int) -> bool:
    try:
        return b"run_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False

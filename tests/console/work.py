"""The background worker, where a test wants it to work."""

from typing import Any

from django.core.management import call_command
from django.test import override_settings

from annotation.study_jobs import request_study_job
from work.models import Job

QUEUED = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}


def work_off() -> None:
    """What the background worker does with all that waits."""
    call_command("run_worker", until_empty=True)


def request_for_later(**request: Any) -> Job:
    """A job that waits, also where tests do jobs at once."""
    with override_settings(TASKS=QUEUED):
        return request_study_job(**request)

import time
from unittest.mock import patch

from django.core.management import call_command
from django.test import override_settings
from playwright.sync_api import expect

from annotation.study_facts import request_study_job
from hits import account_requests
from tests.browsers import PATIENCE_MS

AT_ONCE = {"default": {"BACKEND": "django_tasks.backends.immediate.ImmediateBackend", "QUEUES": []}}
QUEUED = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}


def work_off():
    """Do all jobs that wait; no other process does a part of one, so nothing pauses for it."""
    with patch.object(account_requests, "PAUSE_SECONDS", 0):
        call_command("run_worker", until_empty=True)


def work_until_visible(locator):
    """Work off whatever a page requests, until the page, which follows its jobs, shows this."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not locator.is_visible() and time.monotonic() < deadline:
        work_off()
        locator.page.wait_for_timeout(200)
    expect(locator).to_be_visible()


def request_for_later(**request):
    """A job that waits, also where tests do jobs at once."""
    with override_settings(TASKS=QUEUED):
        return request_study_job(**request)

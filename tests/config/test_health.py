from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from work.models import Job, PeriodicRun

pytestmark = pytest.mark.django_db
HOST = {"headers": {"host": "localhost"}}


def test_a_site_that_works_says_so_by_plain_http_and_nothing_keeps_the_answer(settings):
    settings.SECURE_SSL_REDIRECT = True
    answer = Client(**HOST).get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"database": "ok", "background_work": "ok"})
    assert "no-store" in answer["Cache-Control"]
    assert Client(**HOST).get("/login/").status_code == 301
    answer = Client(**HOST).get("/readyz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"database": "ok", "cache": "ok", "queue": "ok"},
    )
    assert "no-store" in answer["Cache-Control"]


def test_work_that_no_worker_does_is_late_and_the_web_server_still_well():
    past = timezone.now() - timedelta(minutes=6)
    PeriodicRun.objects.update_or_create(name="sweep", defaults={"next_at": past})
    answer = Client(**HOST).get("/healthz")
    assert (answer.status_code, answer.json()["background_work"]) == (200, "late")


@pytest.mark.parametrize(
    ("kind", "minutes", "state"), [("sweep", 6, "late"), ("sweep", 4, "ok"), ("score", 60, "ok")]
)
def test_only_work_that_comes_by_time_and_that_nobody_begins_is_late(kind, minutes, state):
    """A worker that reaches no Redis, or of another queue, requests it in time all the same."""
    soon = timezone.now() + timedelta(minutes=1)
    PeriodicRun.objects.update_or_create(name="sweep", defaults={"next_at": soon})
    job = Job.objects.create(kind=kind, queue="marketplace", title=kind, dedupe_key=kind)
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(minutes=minutes))
    assert Client(**HOST).get("/healthz").json()["background_work"] == state


def test_without_its_database_the_site_is_not_well(monkeypatch):
    def refuse(*_arguments, **_values):
        raise DatabaseError("connection failed: a password")

    monkeypatch.setattr(PeriodicRun.objects, "filter", refuse)
    answer = Client(**HOST).get("/healthz")
    assert (answer.status_code, answer.json()) == (503, {"database": "unavailable"})


def test_a_process_waits_for_the_migration_of_its_version_and_for_no_newer_one():
    newest = MigrationRecorder.Migration.objects.filter(app="marketplace").order_by("pk").last()
    MigrationRecorder.Migration.objects.create(app="marketplace", name="9999_of_tomorrow")
    assert Client(**HOST).get("/readyz").status_code == 200
    newest.delete()
    answer = Client(**HOST).get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, "not migrated")


def test_without_its_queue_or_its_cache_a_site_is_not_ready(settings):
    nowhere = "redis://127.0.0.1:1/0"
    settings.TASKS = {
        "default": {"BACKEND": "work.rq_backend.RQBackend", "QUEUES": ["interactive"]}
    }
    settings.REDIS_URL = nowhere
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": nowhere}
    }
    answer = Client(**HOST).get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"database": "ok", "cache": "unavailable", "queue": "unavailable"}

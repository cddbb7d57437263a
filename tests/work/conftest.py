import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

from work import registry, workers
from work.registry import INTERACTIVE, QUEUES, Handler, register

REDIS_URL = "redis://127.0.0.1:6379/9"
BACKENDS = {"database": "django_tasks_db.DatabaseBackend", "rq": "work.rq_backend.RQBackend"}


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Registers a handler for one test."""
    registry.job_kinds()  # the apps' own are imported once, and not into what this test drops
    monkeypatch.setattr(registry, "_kinds", {})

    def registered(handler: Handler, name: str = "job", **options: Any) -> str:
        register(name, **{"label": "A job", "queue": INTERACTIVE} | options)(handler)
        return name

    return registered


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, settings: Any) -> Iterator[str]:
    """Each of the queues' back ends; RQ with a real Redis."""
    settings.RQ_PREFIX = f"assay-test-{secrets.token_hex(4)}-"
    settings.REDIS_URL = REDIS_URL
    if request.param == "rq":
        redis = Redis.from_url(REDIS_URL)
        try:
            redis.ping()
        except RedisError as error:
            pytest.skip(f"no Redis answers: {error}")
    settings.TASKS = {"default": {"BACKEND": BACKENDS[request.param], "QUEUES": list(QUEUES)}}
    yield request.param
    if request.param == "rq":
        for key in redis.scan_iter(f"rq:queue:{settings.RQ_PREFIX}*"):
            redis.delete(key)
        redis.close()


@pytest.fixture
def work_off(backend: str) -> Callable[[], None]:
    """What workers do with all that the queues hold."""
    return lambda: workers.Worker(list(QUEUES)).run(until_empty=True)

"""A back end of the Tasks API that keeps its messages in RQ's queues on Redis.

The row of a job is the truth, so a message holds nothing but its key, carries no result, and
may be lost or come twice. RQ's own time limit is off: leases take its place.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.utils import timezone
from django_tasks import TaskResultStatus
from django_tasks.backends.base import BaseTaskBackend
from django_tasks.base import Task, TaskResult
from redis import Redis
from rq import Queue
from rq.exceptions import DequeueTimeout, NoSuchJobError
from rq.job import Job as Message
from rq.serializers import JSONSerializer

NO_LIMIT = -1


class RQBackend(BaseTaskBackend):
    supports_get_result = False

    @cached_property
    def connection(self) -> Redis:
        # A server that hangs must not hang a page; workers block for shorter than this.
        return Redis.from_url(settings.REDIS_URL, socket_timeout=10, socket_connect_timeout=5)

    def queue(self, name: str) -> Queue:
        return Queue(
            f"{settings.RQ_PREFIX}{name}",
            connection=self.connection,
            default_timeout=NO_LIMIT,
            # RQ's own default would let whoever can write to Redis run code here.
            serializer=JSONSerializer,
        )

    def enqueue(self, task: Task[Any, Any], args: Any, kwargs: Any) -> TaskResult[Any]:
        self.validate_task(task)
        return TaskResult(
            task=task,
            id=self.queue(task.queue_name)
            .enqueue_call(
                task.module_path, args=tuple(args), kwargs=kwargs, timeout=NO_LIMIT, result_ttl=0
            )
            .id,
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=list(args),
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )

    def waiting_ids(self, queue: str) -> set[str]:
        return set(self.queue(queue).get_job_ids())

    def delete_taken(self, queues: Iterable[str], *, before: datetime) -> int:
        """Delete messages that are in no queue: their worker died between taking and deleting.

        Redis may be shared, so that only those of this site's queues are looked at.
        """
        n = 0
        for queue in map(self.queue, queues):
            waiting = set(queue.get_job_ids())
            for key in self.connection.scan_iter(f"{Message.redis_job_namespace_prefix}*"):
                origin, created_at = self.connection.hmget(key, "origin", "created_at")
                is_own = origin is not None and _text(origin) == queue.name
                if not is_own or created_at is None:
                    continue
                is_old = datetime.fromisoformat(_text(created_at)) < before
                if is_old and _text(key).rpartition(":")[2] not in waiting:
                    n += int(self.connection.delete(key))
        return n

    def perform_next(self, queues: list[str], *, timeout_seconds: int | None) -> bool:
        """Take a message off the queues and perform its task; whether there was one.

        Redis takes it off the first queue that holds any. That one becomes the last of `queues`:
        a job that waits for one of another queue, and is announced over and over until that is
        done, would else keep it from ever being done.
        """
        keys = [self.queue(name).key for name in queues]
        try:
            taken = Queue.lpop(keys, timeout_seconds, connection=self.connection)
        except DequeueTimeout:
            return False
        if taken is None:
            return False
        queues.append(queues.pop(keys.index(_text(taken[0]))))
        try:
            message = Message.fetch(
                _text(taken[1]), connection=self.connection, serializer=JSONSerializer
            )
        except NoSuchJobError:
            return True
        # Before it is done: a message is a hint, and `work.periodic` replaces one that was lost.
        message.delete()
        module, _, name = (message.func_name or "").rpartition(".")
        task = getattr(import_module(module), name)
        if not isinstance(task, Task):
            raise SuspiciousOperation(f"The message {message.id} names no task.")
        task.call(*message.args, **message.kwargs)
        return True


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value

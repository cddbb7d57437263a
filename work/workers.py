import logging
import signal
import time

from django.db import DatabaseError, close_old_connections, connection
from django_tasks_db.management.commands.db_worker import Worker as DatabaseTaskWorker
from django_tasks_db.models import DBTaskResult
from redis.exceptions import RedisError

from work import execution
from work.exceptions import WorkerStopping
from work.tasks import redis_queues

logger = logging.getLogger(__name__)
IDLE_SECONDS = 0.3
# RQ blocks for whole seconds.
BLOCK_SECONDS = 1
FIRST_PAUSE_SECONDS = 0.5
MOST_PAUSE_SECONDS = 15.0


class Worker:
    def __init__(self, queues: list[str]) -> None:
        self.queues = queues
        self.is_stopping = False
        self._rq = redis_queues()

    def install_signals(self) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)

    def run(self, *, until_empty: bool = False) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self.is_stopping:
            try:
                close_old_connections()
                worked = self._perform_next(wait=not until_empty)
            except (DatabaseError, RedisError, OSError) as error:
                if until_empty:
                    raise
                logger.warning("A worker of %s waits: %s", ", ".join(self.queues), error)
                connection.close()
                self._pause(pause)
                pause = min(2 * pause, MOST_PAUSE_SECONDS)
                continue
            pause = FIRST_PAUSE_SECONDS
            if until_empty and not worked:
                return

    def _perform_next(self, *, wait: bool) -> bool:
        if self._rq:
            return self._rq.perform_next(
                self.queues, timeout_seconds=BLOCK_SECONDS if wait else None
            )
        if not DBTaskResult.objects.ready().filter(queue_name__in=self.queues).exists():
            if wait:
                self._pause(IDLE_SECONDS)
            return False
        DatabaseTaskWorker(
            queue_names=self.queues,
            interval=0,
            batch=True,
            backend_name="default",
            startup_delay=False,
            max_tasks=1,
            worker_id="",
            excluded_queue_names=[],
        ).run()
        return True

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.is_stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, IDLE_SECONDS))

    def _stop(self, number: int, frame: object) -> None:
        """Give back the job in hand at once; without one, end after the message in hand."""
        is_first, self.is_stopping = not self.is_stopping, True
        if is_first and execution.current:
            raise WorkerStopping

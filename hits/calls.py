"""Calls to a marketplace, a few at once: most of the time of each is spent waiting for its answer.

The threads call, and do nothing else: whatever concerns the database stays with the caller's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from django.conf import settings

Argument = TypeVar("Argument")
Result = TypeVar("Result")
# Calls that wait for a thread, so that none idles while the caller prepares the next.
AHEAD = 3


def calls_at_once(
    call: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterator[tuple[Argument, Result]]:
    """Each argument with what the call returned, in their order.

    After an error nothing more is called; what the others were answered by then comes before it.
    """
    if settings.MARKETPLACE_REQUESTS_AT_ONCE == 1:
        yield from ((argument, call(argument)) for argument in arguments)
        return
    pool = ThreadPoolExecutor(settings.MARKETPLACE_REQUESTS_AT_ONCE, "marketplace")
    waiting: deque[tuple[Argument, Future[Result]]] = deque()
    try:
        for argument in arguments:
            # With the time that the caller's calls have left (hits.call_limits).
            future = pool.submit(copy_context().run, call, argument)
            waiting.append((argument, future))
            if len(waiting) >= AHEAD * settings.MARKETPLACE_REQUESTS_AT_ONCE:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except Exception:
        yield from _answered(waiting)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _first(waiting: deque[tuple[Argument, Future[Result]]]) -> tuple[Argument, Result]:
    argument, future = waiting.popleft()
    return argument, future.result()


def _answered(
    waiting: deque[tuple[Argument, Future[Result]]],
) -> Iterator[tuple[Argument, Result]]:
    begun = [each for each in waiting if not each[1].cancel()]
    for argument, future in begun:
        if future.exception() is None:
            yield argument, future.result()

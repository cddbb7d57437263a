"""A limit of requests, or of tokens, per minute."""

import time
from collections.abc import Callable
from threading import Lock


class Throttle:
    """Spaces requests evenly, so that no minute sees more than the limit.

    There is no burst: half the limit takes half a minute. So the endpoint's own count, whatever
    window it uses, is never exceeded.

    Parameters
    ----------
    per_minute : float or None
        The limit; None is no limit.
    clock, sleep : callable
        Seconds that only grow, and how to wait for so many.

    Examples
    --------
    >>> waits = []
    >>> throttle = Throttle(30, clock=lambda: 0.0, sleep=waits.append)
    >>> for _ in range(3):
    ...     throttle.wait(1)
    >>> waits
    [2.0, 4.0]
    """

    def __init__(
        self,
        per_minute: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._free_at = 0.0
        self._lock = Lock()

    def wait(self, weight: float) -> None:
        """Wait for one's turn.

        Parameters
        ----------
        weight : float
            How much of the limit the request takes: 1, or its tokens.
        """
        if self.per_minute is None:
            return
        with self._lock:
            now = self._clock()
            turn = max(now, self._free_at)
            self._free_at = turn + weight * 60 / self.per_minute
        if turn > now:
            self._sleep(turn - now)

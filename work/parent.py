"""Ending with the supervisor: a part of the site must not outlive the process that started it.

The supervisor keeps the writing end of a pipe that nobody ever writes to. However it ends, the
system closes that end, and every part reads the end of the file.
"""

import os
import signal
import threading
import time

PIPE_VARIABLE = "ASSAY_SUPERVISOR_PIPE"
# Longer than a web request, shorter than whoever starts the site anew will wait.
GRACE_SECONDS = 8
LOOK_SECONDS = 0.5


def end_with_supervisor() -> None:
    """Watch the supervisor of this process, if it has one, and end when that is gone."""
    # Taken out: what this process starts in turn does not inherit the pipe.
    pipe = os.environ.pop(PIPE_VARIABLE, "")
    if pipe.isdecimal():
        threading.Thread(target=_watch, args=(int(pipe),), name="supervisor", daemon=True).start()


def end_with_parent(*, grace_seconds: float = GRACE_SECONDS) -> None:
    """Kill this process when the one that forked it is gone and the grace has passed.

    For web workers, which end by themselves then, except where a second signal reached one in
    the handler of the first: gunicorn's handler waits for a lock that it holds.
    """
    arguments = (os.getppid(), grace_seconds)
    threading.Thread(target=_watch_parent, args=arguments, name="parent", daemon=True).start()


def _watch_parent(parent: int, grace_seconds: float) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    time.sleep(grace_seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def _watch(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)

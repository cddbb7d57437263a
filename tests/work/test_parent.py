"""A part of the site does not outlive what started it, even where it can no longer end itself."""

import os
import signal
import subprocess
import sys
import time

import pytest

CHILD = """
import signal, threading, time
from work.parent import end_with_parent
end_with_parent(grace_seconds=0.1)
for name in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
    signal.signal(name, signal.SIG_IGN)
print("ready", flush=True)
threading.Lock().acquire() and time.sleep(600)
"""
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_worker_that_hangs_ends_when_its_parent_was_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_alive(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not is_alive(child)

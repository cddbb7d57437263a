import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.codes import refused_naming
from work import exceptions, registry, site, supervision

PROJECT = Path(__file__).resolve().parents[2]
WAIT = 30.0
# A part that says which process it is, ends with its supervisor.
PART = """
import os, pathlib, signal, sys, time
from work.supervision import end_with_supervisor
end_with_supervisor()
path = pathlib.Path(sys.argv[1])
path.with_suffix(".new").write_text(str(os.getpid()))
path.with_suffix(".new").rename(path)
time.sleep(600)
"""
SUPERVISED = """
import pathlib, sys
from work.supervision import Part, Supervisor
part = Part("part", [sys.executable, "-c", sys.argv[1], sys.argv[2]])
Supervisor([part], folder=pathlib.Path.cwd(), report=lambda text: None).watch()
"""


def wait_for(condition):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        if outcome := condition():
            return outcome
        time.sleep(0.05)
    raise AssertionError("it took too long")


def pid_in(file, *, other_than=0):
    return file.exists() and (pid := int(file.read_text())) != other_than and pid


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def supervise(monkeypatch):
    reports, supervisors = [], []

    def started(*command):
        part = supervision.Part("part", [sys.executable, *command])
        supervisors.append(supervision.Supervisor([part], folder=PROJECT, report=reports.append))
        return supervisors[-1], part, reports

    yield started
    for supervisor in supervisors:
        supervisor.stop()


def test_a_part_that_was_killed_is_started_again_at_once(supervise, tmp_path):
    file = tmp_path / "pid"
    supervisor, part, reports = supervise("-c", PART, str(file))
    supervisor.look_after(part)
    for _ in range(supervision.MOST_SHORT_LIVES + 2):
        pid = wait_for(lambda: pid_in(file))
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not part.is_running)
        supervisor.look_after(part)
        wait_for(lambda pid=pid: pid_in(file, other_than=pid))
    assert "9" in reports[0]


def test_a_part_that_ends_as_soon_as_it_is_started_is_given_up(supervise, monkeypatch):
    monkeypatch.setattr(supervision, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(supervision, "POLL_SECONDS", 0.01)
    supervisor, _, reports = supervise("-c", "raise SystemExit(3)")
    with refused_naming(exceptions.PartFailed, "part", 3, 7):
        supervisor.watch()
    assert len(reports) == supervision.MOST_SHORT_LIVES
    pauses = [float(text.split()[-2]) for text in reports]
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]


def test_parts_end_with_a_supervisor_that_is_killed(tmp_path):
    file = tmp_path / "pid"
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISED, PART, str(file)], cwd=PROJECT)
    pid = wait_for(lambda: pid_in(file))
    assert is_running(pid)
    supervisor.kill()
    supervisor.wait()
    wait_for(lambda: not is_running(pid))


def test_stopping_ends_the_parts(supervise, tmp_path):
    file = tmp_path / "pid"
    supervisor, part, _ = supervise("-c", PART, str(file))
    supervisor.look_after(part)
    pid = wait_for(lambda: pid_in(file))
    supervisor.stop()
    assert not is_running(pid)


@pytest.mark.parametrize(
    ("n_workers", "shares"),
    [
        (1, [["interactive", "scoring", "marketplace"]]),
        (2, [["interactive", "marketplace"], ["scoring"]]),
        (4, [["interactive"], ["scoring"], ["marketplace"], list(registry.QUEUES)]),
    ],
)
def test_every_queue_has_a_worker(n_workers, shares):
    assert site.shared_queues(n_workers) == shares


def test_the_supervisor_imports_no_django():
    code = "import work.supervision, sys; raise SystemExit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False).returncode == 0


CHILD = """
import signal, threading, time
from work.supervision import end_with_parent
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


@pytest.mark.slow
def test_a_worker_that_hangs_ends_when_its_parent_was_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_for(lambda: not is_running(child))

"""What a process costs before it works: ``python -m benchmarks.startup``.

Prints seconds of CPU of ``django.setup()``, of the ``--help`` that takes longest, of the first
request for the sign-in page, and of collecting all tests. ``--site PID`` prints the memory (PSS) of
the processes that ``serve`` with that PID keeps running.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
RUNS = 3
SETUP = "import django; django.setup()"
SIGN_IN = f"""{SETUP}
from django.test import Client
assert Client(headers={{"host": "127.0.0.1"}}).get("/login/").status_code == 200"""
COMMANDS = f"""{SETUP}
from django.core.management import get_commands
print(*(name for name, app in get_commands().items() if not app.startswith("django")))"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=int, metavar="PID")
    pid = parser.parse_args().site
    if pid:
        _show(f"memory of the site: {site_megabytes(pid):.0f} MB (PSS)")
        return
    with TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/site.sqlite3"
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        _show(f"django.setup(): {cpu_seconds('-c', SETUP):.2f} s")
        _show(f"first request for the sign-in page: {cpu_seconds('-c', SIGN_IN):.2f} s")
        listed = subprocess.run([sys.executable, "-c", COMMANDS], capture_output=True, check=True)
        helps = {
            name: cpu_seconds("manage.py", name, "--help")
            for name in listed.stdout.decode().split()
        }
        slowest = max(helps, key=lambda name: helps[name])
        _show(f"--help of {len(helps)} commands: {helps[slowest]:.2f} s at most ({slowest})")
        collecting = cpu_seconds("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
        _show(f"collecting all tests: {collecting:.1f} s")


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def cpu_seconds(*arguments: str) -> float:
    return min(_cpu_seconds(arguments) for _ in range(RUNS))


def _cpu_seconds(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def site_megabytes(pid: int) -> float:
    """Memory of a process and of all that it started, each shared page counted once."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    own = int(re.findall(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[0]) / 1024
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(site_megabytes(int(child)) for child in children)


if __name__ == "__main__":
    main()

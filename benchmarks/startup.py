"""What a process costs before it works: ``python -m benchmarks.startup``.

Prints seconds of CPU of ``django.setup()``, of the ``--help`` that takes longest, of the first
request for the sign-in page, and of collecting all tests. ``--site PID`` prints the memory (PSS) of
the processes that ``serve`` with that PID keeps running.
"""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.commands import CHECKOUT, parse_options, say

RUNS = 3
SETUP = "import django; django.setup()"
SIGN_IN = f"""{SETUP}
from django.test import Client
assert Client(headers={{"host": "127.0.0.1"}}).get("/login/").status_code == 200"""
COMMANDS = f"""{SETUP}
from django.core.management import get_commands
print(*(name for name, app in get_commands().items() if not app.startswith("django")))"""


def main() -> None:
    pid = parse_options(__doc__, site=(int, "PID of `serve`: print its memory")).site
    if pid:
        say(f"memory of the site: {site_megabytes(pid):.0f} MB (PSS)")
        return
    with TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/site.sqlite3"
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        say(f"django.setup(): {cpu_seconds('-c', SETUP):.2f} s")
        say(f"first request for the sign-in page: {cpu_seconds('-c', SIGN_IN):.2f} s")
        listed = subprocess.check_output([sys.executable, "-c", COMMANDS], text=True)
        helps = {name: cpu_seconds("manage.py", name, "--help") for name in listed.split()}
        slowest = max(helps, key=lambda name: helps[name])
        say(f"--help of {len(helps)} commands: {helps[slowest]:.2f} s at most ({slowest})")
        collecting = cpu_seconds("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
        say(f"collecting all tests: {collecting:.1f} s")


def cpu_seconds(*arguments: str) -> float:
    return min(_cpu_seconds(arguments) for _ in range(RUNS))


def _cpu_seconds(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], cwd=CHECKOUT, stdout=subprocess.DEVNULL, check=True
    )
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

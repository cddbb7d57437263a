import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from work.registry import QUEUES

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
# Of the containers themselves, or of a library's.
FOREIGN = {"POSTGRES_PASSWORD", "ASSAY_VERSION"}


def settings_there_are():
    text = (ROOT / ".env.example").read_text() + (ROOT / "config/settings.py").read_text()
    return set(re.findall(r"[A-Z][A-Z_]{3,}", text))


def names_in(requirements):
    """Libraries with their versions; extras don't matter here, and names are written alike."""
    pairs = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[\w,]+\])?==([^\s;]+)", requirements, re.MULTILINE)
    return {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in pairs}


def test_the_lock_has_every_requirement_with_its_hashes():
    lock = (DEPLOY / "requirements.lock").read_text()
    files = [ROOT / "requirements.txt", ROOT / "requirements-models.txt"]
    wanted = {each for file in files for each in names_in(file.read_text())}
    missing = {each for each in wanted - names_in(lock) if each[0] != "torch"}
    assert not missing, "run `pip install uv && python deploy/lock.py`"
    entries = re.split(r"\n(?=[a-z])", lock)[1:]
    assert len(entries) > len(wanted)
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_every_variable_command_and_queue_of_the_examples_is_one_of_the_sites():
    files = (DEPLOY / "compose.yaml", DEPLOY / "nginx/assay.conf")
    text = "".join(path.read_text() for path in files)
    named = set(re.findall(r"^\s*#?\s*([A-Z][A-Z_]{3,})[=:]", text, re.MULTILINE))
    assert {"SITE_URL", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL", "CACHE_URL"} <= named
    own = {name for name in named if not name.startswith("POSTGRES_")} - FOREIGN
    assert own <= settings_there_are()
    text = "".join(path.read_text() for path in [DEPLOY / "compose.yaml", *UNITS])
    commands = set(re.findall(r'manage\.py(?:", "| )([a-z_]+)', text))
    assert commands == {"migrate", "run_worker", "backup"}
    assert commands - {"migrate"} <= {path.stem for path in ROOT.glob("*/management/commands/*.py")}
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    arguments = [*services["worker"]["command"], *services["scorer"]["command"]]
    assert {each for each in arguments if each in QUEUES} == set(QUEUES)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_understands_the_units(tmp_path):
    for unit in UNITS:
        name = unit.name.replace("@.", "@interactive.")
        content = unit.read_text().replace("/srv/assay/.venv/bin/python", sys.executable)
        (tmp_path / name).write_text(content)
    done = subprocess.run(
        ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    faults = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "assay" in line]
    assert faults == []


def test_a_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{citation["version"]}"' in project
    assert f'license = "{citation["license"]}"' in project


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (None, 1)])
def test_the_probe_says_whether_the_site_is_ready(status, code, tmp_path):
    """A server that answers only for the site's own host, as the site does."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Site(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status if self.headers["Host"] == "assay.example.org" else 400)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Site)
    address = f"http://127.0.0.1:{server.server_port}/readyz"
    if status is None:
        server.server_close()
    else:
        Thread(target=server.handle_request, daemon=True).start()
    done = subprocess.run(
        [sys.executable, DEPLOY / "probe.py", address],
        env=os.environ | {"SITE_URL": "https://assay.example.org"},
        check=False,
    )
    server.server_close()
    assert done.returncode == code


VENDOR = ROOT / "static" / "vendor"
SUMS = {
    name: digest
    for digest, name in (
        line.split(maxsplit=1)
        for line in (VENDOR / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    )
}


def test_every_vendored_file_is_as_it_was_published_with_its_licence():
    there = {str(path.relative_to(VENDOR)) for path in VENDOR.glob("*/*")}
    assert there == set(SUMS)
    assert len(there) >= 8
    for name, digest in SUMS.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
    for folder in (path for path in VENDOR.iterdir() if path.is_dir()):
        assert (folder / "LICENSE").stat().st_size > 0
        assert f"| {folder.name} |" in (VENDOR / "README.md").read_text(encoding="utf-8")

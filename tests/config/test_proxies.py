"""The examples of nginx and Caddy, started before a site with the settings that they name.

Only ports, certificates and the operators' network are exchanged. Skipped where one of the two is
not installed.
"""

import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import requests
from cryptography.fernet import Fernet
from urllib3.exceptions import InsecureRequestWarning

from benchmarks.commands import free_port

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
NGINX, CADDY = DEPLOY / "nginx/assay.conf", DEPLOY / "caddy/Caddyfile"
SITE = "assay.example.org"
OPERATORS, API = f"operators.{SITE}", f"mturk.{SITE}"
# As both files name it; whoever asks over the loopback interface is not of it.
OPERATORS_NETWORK = "10.0.0.0/8"

pytestmark = [
    pytest.mark.filterwarnings(
        f"ignore::{InsecureRequestWarning.__module__}.InsecureRequestWarning"
    ),
]


class Site(NamedTuple):
    port: int
    database: Path


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("site"), free_port()
    environment = os.environ | dict(
        re.findall(r"^# ([A-Z_]+)=(\S+)$", NGINX.read_text(), re.MULTILINE)
    )
    environment |= {"DATABASE_URL": f"sqlite:///{folder}/site.sqlite3", "METRICS_TOKEN": "a-token"}
    environment |= {"SECRET_KEY": secrets.token_urlsafe(50), "TMPDIR": str(folder)}
    environment |= {"ENCRYPTION_KEYS": Fernet.generate_key().decode()}
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, env=environment, cwd=ROOT, check=True)
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}"]
    command += ["--config", "python:config.gunicorn", "--threads", "4", "--keep-alive", "30"]
    server = subprocess.Popen(command, env=environment, cwd=ROOT)
    try:
        wait_for(f"http://127.0.0.1:{port}/healthz")
        yield Site(port, folder / "site.sqlite3")
    finally:
        server.terminate()
        server.wait(timeout=20)


def wait_for(address, **more):
    for _ in range(300):
        try:
            return requests.get(address, timeout=20, allow_redirects=False, **more)
        except requests.ConnectionError:
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {address}")


def certificate(folder):
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x"]
    names = ",".join(f"DNS:{name}" for name in (SITE, OPERATORS, API))
    request += ["-addext", f"subjectAltName={names}"]
    request += ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run(request, check=True, capture_output=True)


def nginx(folder, upstream, plain, secure, operators):
    certificate(folder)
    text = NGINX.read_text()
    for old, new in {
        "/etc/ssl/assay": str(folder),
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{secure} ssl http2;",
        "    listen [::]:80;\n": "",
        "    listen [::]:443 ssl http2;\n": "",
        "127.0.0.1:8000": f"127.0.0.1:{upstream}",
        OPERATORS_NETWORK: operators,
    }.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "site.conf").write_text(text)
    paths = "".join(
        f"{name}_temp_path {folder}/{name}; "
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    http = f"error_log {folder}/error.log; {paths} include {folder}/site.conf;"
    # Its processes give up root's rights otherwise, and with them the folder of the test.
    user = "user root; " if os.getuid() == 0 else ""
    main = f"{user}daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}"
    (folder / "nginx.conf").write_text(f"{main} http {{ {http} }}")
    return ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def caddy(folder, upstream, plain, secure, operators):
    text = CADDY.read_text()
    for old, new in {
        "127.0.0.1:8000": f"127.0.0.1:{upstream}",
        OPERATORS_NETWORK: operators,
    }.items():
        assert old in text
        text = text.replace(old, new)
    # No authority of the web's is asked for certificates: Caddy's own signs them.
    head = f"{{\n admin off\n local_certs\n skip_install_trust\n storage file_system {folder}\n"
    head += f" http_port {plain}\n https_port {secure}\n}}\n"
    (folder / "Caddyfile").write_text(head + text)
    return ["caddy", "run", "--config", str(folder / "Caddyfile")]


class Proxy:
    def __init__(self, plain, secure):
        self.plain, self.secure = plain, secure

    def get(self, host, path, **more):
        return self.ask("GET", host, path, **more)

    def form_headers(self, host):
        token = self.get(host, "/login/").cookies["csrftoken"]
        return {
            "Cookie": f"csrftoken={token}",
            "X-CSRFToken": token,
            "Referer": f"https://{host}/login/",
        }

    def ask(self, method, host, path, **more):
        with requests.Session() as session:
            session.mount("https://", Named(host))
            return session.request(
                method,
                f"https://127.0.0.1:{self.secure}{path}",
                headers={"Host": host} | more.pop("headers", {}),
                verify=False,
                allow_redirects=False,
                timeout=60,
                **more,
            )


class Named(requests.adapters.HTTPAdapter):
    def __init__(self, host):
        self.host = host
        super().__init__()

    def init_poolmanager(self, *arguments, **more):
        super().init_poolmanager(
            *arguments, server_hostname=self.host, assert_hostname=self.host, **more
        )


@pytest.fixture(params=["nginx", "caddy"])
def start(request, tmp_path, upstream):
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param} here")
    running = []

    def started(*, operators=OPERATORS_NETWORK):
        plain, secure = free_port(), free_port()
        write = {"nginx": nginx, "caddy": caddy}[request.param]
        command = write(tmp_path, upstream.port, plain, secure, operators)
        with (tmp_path / "output").open("w") as log:
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
        proxy = Proxy(plain, secure)
        wait_for(f"http://127.0.0.1:{plain}/", headers={"Host": SITE})
        return proxy

    yield started
    for process in running:
        process.terminate()
        process.wait(timeout=20)


@pytest.mark.slow
def test_the_site_is_reached_by_https_alone(start):
    proxy = start()
    answer = requests.get(
        f"http://127.0.0.1:{proxy.plain}/login/",
        headers={"Host": SITE},
        allow_redirects=False,
        timeout=20,
    )
    assert answer.status_code in (301, 308)
    assert answer.headers["Location"] == f"https://{SITE}/login/"
    page = proxy.get(SITE, "/login/")
    assert page.status_code == 200
    assert "Strict-Transport-Security" in page.headers
    assert "Secure" in page.headers["Set-Cookie"]


@pytest.mark.slow
def test_clients_are_limited_by_the_address_they_come_from_not_one_they_claim(start, upstream):
    proxy = start()
    with closing(sqlite3.connect(upstream.database)) as database, database:
        database.execute("DELETE FROM cache")
    form = proxy.form_headers(SITE)
    statuses = set()
    for number in range(210):
        claims = {"X-Forwarded-For": f"203.0.113.{number}", "X-Forwarded-Proto": "http"}
        statuses.add(proxy.ask("POST", SITE, "/join/no/", headers=form | claims).status_code)
    assert statuses == {410, 429}


def test_each_name_has_its_pages_and_operators_have_theirs_in_their_network_alone(start):
    proxy = start()
    token = {"Authorization": "Bearer a-token"}
    for path in ("/metrics", "/marketplace-operator/", "/account/password-links/"):
        assert proxy.get(SITE, path, headers=token).status_code == 404, path
    assert proxy.get(OPERATORS, "/marketplace-operator/").status_code == 403
    answer = proxy.ask(
        "POST",
        API,
        "/",
        json={},
        headers={
            "X-Amz-Target": "MTurkRequesterServiceV20170117.GetAccountBalance",
            "Content-Type": "application/x-amz-json-1.1",
        },
    )
    assert answer.status_code in (400, 403)
    assert "__type" in answer.json()


def test_operators_sign_in_at_a_name_of_their_own(start):
    inside = start(operators="127.0.0.0/8")
    assert inside.get(OPERATORS, "/marketplace-operator/").status_code == 302
    assert inside.get(OPERATORS, "/metrics").status_code == 404


@pytest.mark.slow
def test_a_large_upload_goes_through_and_a_larger_one_does_not(start):
    proxy = start()
    form = proxy.form_headers(SITE)
    allowed, larger = ({"file": b"x" * size} for size in (150_000_000, 225_000_000))
    assert proxy.ask("POST", SITE, "/login/", headers=form, files=allowed).status_code == 200
    try:
        assert proxy.ask("POST", SITE, "/login/", headers=form, files=larger).status_code == 413
    except requests.ConnectionError:  # Caddy hangs up on whoever goes on sending
        assert proxy.get(SITE, "/login/").status_code == 200

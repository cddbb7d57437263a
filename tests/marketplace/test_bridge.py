"""Programs with Amazon's endpoint in them, through the bridge, over real sockets and TLS."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import NamedTemporaryFile

import pytest
from botocore.config import Config
from botocore.exceptions import SSLError
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings as site

from marketplace.api.authentication import AMAZON_HOSTS
from marketplace.bridge import certificates, proxy
from marketplace.exceptions import BridgeUnfit
from tests.codes import refused
from tests.marketplace.bridges import bridge_to, lead_programs
from tests.marketplace.conformance.refusals import error_code, turk_code
from tests.marketplace.conftest import HIT, run

HOST = AMAZON_HOSTS[0]


def amazon_client(host=HOST, **options):
    import boto3

    config = Config(retries={"total_max_attempts": 1}, read_timeout=20, **options)
    return boto3.session.Session().client(
        "mturk", endpoint_url=f"https://{host}", region_name="us-east-1", config=config
    )


@contextmanager
def tunnel(bridge, authority, target=f"{HOST}:443", server_hostname=HOST):
    host, port = bridge.server_address[:2]
    with socket.create_connection((host, port), timeout=20) as plain:
        plain.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert plain.recv(1000).startswith(b"HTTP/1.1 200 ")
        context = ssl.create_default_context(cafile=str(authority[1]))
        with context.wrap_socket(plain, server_hostname=server_hostname) as secure:
            yield secure


def exchange(connection, request: bytes) -> http.client.HTTPResponse:
    connection.sendall(request)
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response


def plain_exchange(bridge, request: bytes) -> tuple[int, dict]:
    host, port = bridge.server_address[:2]
    with socket.create_connection((host, port), timeout=20) as connection:
        response = exchange(connection, request)
        return response.status, json.loads(response.read())


# Where it leads


@pytest.mark.slow
@pytest.mark.parametrize("host", AMAZON_HOSTS)
def test_a_program_with_amazons_address_works_unchanged(led_to_the_bridge, monkeypatch, host):
    client = amazon_client(host)
    hits = [client.create_hit(**HIT)["HIT"]["HITId"] for _ in range(3)]
    pages = client.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": 2})
    assert [hit["HITId"] for page in pages for hit in page["HITs"]] == hits[::-1]
    assert turk_code(client.get_hit, HITId="XYZ") == "HITDoesNotExist"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    assert error_code(amazon_client().get_account_balance) == "InvalidSignatureException"


def test_no_other_destination_is_led_to_and_nothing_without_a_tunnel(bridge):
    for target in (
        "mturk-requester.eu-west-1.amazonaws.com:443",
        f"{HOST}.evil.example.org:443",
        f"evil.{HOST}:443",
        f"{HOST}:80",
        f"{HOST}",
        "127.0.0.1:8000",
        "x" * 60_000 + ":443",
    ):
        bridge.reported.clear()
        status, error = plain_exchange(bridge, f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
        assert (status, error["__type"]) == (403, "AccessDeniedException")
        assert bridge.reported[0].startswith("Refused ")
        assert len(bridge.reported[0]) < 400
    for method in ("GET", "POST", "DELETE"):
        request = f"{method} http://{HOST}/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
        status, error = plain_exchange(bridge, request.encode())
        assert (status, error["__type"]) == (403, "AccessDeniedException")


def test_a_tunnel_takes_one_kind_of_request(bridge, authority):
    for request_line, headers, status in (
        ("GET / HTTP/1.1", f"Host: {HOST}", 404),
        ("POST /requester HTTP/1.1", f"Host: {HOST}", 404),
        ("POST / HTTP/1.1", f"Host: {AMAZON_HOSTS[1]}", 404),
        ("POST / HTTP/1.1", f"Host: {HOST}\r\nHost: {HOST}", 404),
        ("CONNECT evil.example.org:443 HTTP/1.1", f"Host: {HOST}", 403),
        (f"CONNECT {HOST}:443 HTTP/1.1", f"Host: {HOST}", 403),
        ("POST / HTTP/1.1", f"Host: {HOST}", 411),
        ("POST / HTTP/1.1", f"Host: {HOST}\r\nTransfer-Encoding: chunked", 411),
        ("POST / HTTP/1.1", f"Host: {HOST}\r\nContent-Length: -1", 411),
        ("POST / HTTP/1.1", f"Host: {HOST}\r\nContent-Length: 9999999", 413),
        ("POST / HTTP/1.1", f"Host: {HOST}\r\nContent-Length: {'9' * 5000}", 413),
        ("POST / HTTP/1.1", f"Host: {HOST}\r\nContent-Length: 2", 400),
    ):
        with tunnel(bridge, authority) as connection:
            response = exchange(connection, f"{request_line}\r\n{headers}\r\n\r\n{{}}".encode())
            assert response.status == status
            assert "__type" in json.loads(response.read())
    request = (
        f"POST / HTTP/1.1\r\nHost: {HOST}\r\nX-Assay-Signed-Host: evil.example.org\r\n"
        "Content-Length: 2\r\n\r\n{}"
    )
    with tunnel(bridge, authority) as connection:
        response = exchange(connection, request.encode())
        assert json.loads(response.read())["__type"] == "MissingAuthenticationTokenException"


def test_it_listens_on_this_machine_to_no_more_connections_than_it_has_threads_for(bridge):
    assert bridge.server_address[0] == bridge.socket.getsockname()[0] == "127.0.0.1"
    for _ in range(proxy.MOST_CONNECTIONS):
        assert bridge._free.acquire(blocking=False)
    with socket.create_connection(bridge.server_address[:2], timeout=20) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 503 ")
    for _ in range(proxy.MOST_CONNECTIONS):
        bridge._free.release()
    status, _error = plain_exchange(bridge, b"CONNECT a:443 HTTP/1.1\r\n\r\n")
    assert status == 403


def test_a_silent_connection_is_let_go_and_no_port_in_use_is_taken(
    live_server, authority, monkeypatch, tmp_path
):
    monkeypatch.setattr(proxy._Tunnel, "timeout", 0.2)
    with (
        bridge_to(proxy.find_marketplace(live_server.url), authority) as bridge,
        socket.create_connection(bridge.server_address[:2], timeout=20) as connection,
    ):
        assert connection.recv(100) == b""
    monkeypatch.setattr(signal, "signal", lambda *arguments: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = {"port": taken.getsockname()[1], "folder": tmp_path}
        with refused(BridgeUnfit, "port_in_use") as caught:
            run("mturk_bridge", marketplace=live_server.url, **options)
    assert str(options["port"]) in str(caught.value)


# What the marketplace answers


class Strange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer = b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append(dict(self.headers))
        self.wfile.write(self.answer)
        self.close_connection = True

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def strange():
    with ThreadingHTTPServer(("127.0.0.1", 0), Strange) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def post_through(bridge, authority) -> tuple[int, dict[str, str], dict]:
    request = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nX-Amz-Date: x\r\nContent-Length: 2\r\n\r\n{{}}"
    with tunnel(bridge, authority) as connection:
        response = exchange(connection, request.encode())
        return response.status, dict(response.getheaders()), json.loads(response.read())


def lead_to(server, authority):
    host, port = server.server_address[:2]
    return bridge_to(proxy.Marketplace(f"http://{host}:{port}/requester"), authority)


def test_a_whole_answer_is_passed_on_and_a_cut_or_too_large_one_is_an_error(
    strange, authority, monkeypatch
):
    Strange.answer = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=b\r\n"
        b'Content-Type: application/x-amz-json-1.1\r\n\r\n4\r\n{"x"\r\n4\r\n: 1}\r\n0\r\n\r\n'
    )
    with lead_to(strange, authority) as bridge:
        status, headers, content = post_through(bridge, authority)
    assert (status, content) == (200, {"x": 1})
    assert headers == {"Content-Type": "application/x-amz-json-1.1", "Content-Length": "8"}
    (sent,) = strange.seen
    assert sent["X-Assay-Signed-Host"] == HOST
    assert (sent["X-Amz-Date"], sent["Host"].partition(":")[0]) == ("x", "127.0.0.1")
    for answer in (
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"nonsense\r\n\r\n",
    ):
        Strange.answer = answer
        strange.seen.clear()
        with lead_to(strange, authority) as bridge:
            status, _headers, error = post_through(bridge, authority)
        assert (status, error["__type"]) == (502, "ServiceFault")
        assert len(bridge.reported) == 1
        assert len(strange.seen) == 1  # whether it was carried out nobody knows: never sent twice
    monkeypatch.setattr(proxy, "MOST_ANSWER_BYTES", 10)
    Strange.answer = b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"x": "12345"'
    with lead_to(strange, authority) as bridge:
        assert post_through(bridge, authority)[0] == 502


def test_a_marketplace_is_found_by_its_sites_address(live_server, strange):
    for url in (live_server.url, f"{live_server.url}/", f"{live_server.url}/requester/"):
        assert proxy.find_marketplace(url).url == f"{live_server.url}/requester"
    with refused(BridgeUnfit, "not_a_marketplace"):
        proxy.find_marketplace(f"{live_server.url}/worker/")
    for url, code in (
        ("assay.example.org", "invalid_address"),
        ("http://[::1", "invalid_address"),
        ("http://a:b@assay.example.org/", "invalid_address"),
        (f"https://{HOST}", "amazons_address"),
        ("http://127.0.0.1:9/requester", "no_answer"),
    ):
        with refused(BridgeUnfit, code):
            proxy.find_marketplace(url)
    Strange.answer = (
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 49\r\n\r\n"
        b'{"__type": "MissingAuthenticationTokenException"}'
    )
    host, port = strange.server_address[:2]
    with refused(BridgeUnfit, "too_old"):
        proxy.find_marketplace(f"http://{host}:{port}/requester")


# Certificates


def test_a_program_without_the_bundle_does_not_trust_the_bridge(
    led_to_the_bridge, bridge, monkeypatch
):
    monkeypatch.delenv("AWS_CA_BUNDLE")
    with pytest.raises(SSLError):
        amazon_client().get_account_balance()
    deadline = time.monotonic() + 20
    while not bridge.reported and time.monotonic() < deadline:  # by the thread of the tunnel
        time.sleep(0.01)
    assert "AWS_CA_BUNDLE" in bridge.reported[0]


@pytest.mark.parametrize(
    "name", ["s3.amazonaws.com", "example.org", "mturk-requester.eu-west-1.amazonaws.com"]
)
def test_clients_refuse_what_the_authority_signs_for_other_names(authority, name):
    """The name constraints hold: a stolen key reads no other traffic."""
    key = ec.generate_private_key(ec.SECP256R1())
    accepted = {}
    for host in (name, HOST):
        certificate = certificates.issue_certificate(authority[0], key, [host])
        accepted[host] = handshake(certificates.Authority(key, certificate), authority[1], host)
    assert accepted == {name: "permitted subtree violation", HOST: ""}


def handshake(server, bundle, host) -> str:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = ssl.create_default_context(cafile=str(bundle)).wrap_bio(
        incoming, outgoing, server_hostname=host
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with NamedTemporaryFile() as pem:
        pem.write(server.pem())
        pem.flush()
        context.load_cert_chain(pem.name)
    theirs = context.wrap_bio(outgoing, incoming, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message
    return ""


def test_the_authority_is_made_once_and_its_key_is_its_owners_alone(tmp_path, monkeypatch):
    folder = tmp_path / "bridge"
    first, bundle = certificates.prepare_authority(folder)
    second, _ = certificates.prepare_authority(folder)
    assert first.certificate == second.certificate
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "authority.pem").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in bundle.read_text()
    assert sorted(each.name for each in folder.iterdir()) == ["authority.pem", "bundle.pem"]
    certificates.prepare_authority(tmp_path)
    file = tmp_path / "authority.pem"
    file.chmod(0o644)
    with refused(BridgeUnfit, "readable_by_others"):
        certificates.prepare_authority(tmp_path)
    file.write_text("nonsense")
    file.chmod(0o600)
    with refused(BridgeUnfit, "not_an_authority") as caught:
        certificates.prepare_authority(tmp_path)
    assert str(file) in str(caught.value)
    monkeypatch.setattr(certificates, "AUTHORITY_LIFE", timedelta(days=30))
    first, _ = certificates.prepare_authority(tmp_path / "old")
    monkeypatch.undo()
    second, _ = certificates.prepare_authority(tmp_path / "old")
    assert first.certificate != second.certificate


# The command


def start_command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "mturk_bridge", *arguments],
        cwd=site.BASE_DIR,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "default"},
    )


@pytest.mark.slow
def test_the_command_prints_what_to_export_and_ends_cleanly(
    live_server, keys, tmp_path, monkeypatch
):
    arguments = ["--marketplace", live_server.url, "--port", "0", "--folder", str(tmp_path)]
    with start_command(*arguments, "--json") as command:
        facts = json.loads(command.stdout.readline())
        assert facts["marketplace"] == f"{live_server.url}/requester"
        bundle, proxy_url = facts["AWS_CA_BUNDLE"], facts["HTTPS_PROXY"]
        lead_programs(monkeypatch, proxy_url=proxy_url, bundle=bundle, keys=keys)
        assert amazon_client().get_account_balance()["AvailableBalance"] == "100.00"
        command.send_signal(signal.SIGTERM)
        _, errors = command.communicate(timeout=20)
    assert (command.returncode, errors.count("\n")) == (0, 1)

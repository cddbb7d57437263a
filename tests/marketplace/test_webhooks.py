"""Notifications by HTTPS: real TLS, signed as Standard Webhooks says, to checked addresses only."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, SOCK_STREAM

import pytest
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.core.management import call_command

from hits import marketplace_api
from hits.endpoints import AccessKey
from hits.requester_api import signed_headers
from marketplace import clock
from marketplace.models import Notification, Requester
from marketplace.notifications import delivery, webhooks
from tests.marketplace.conformance.refusals import publish, turk_code
from tests.marketplace.conftest import HIT_TYPE

NAMES = ["localhost", "hooks.lab.example"]


class Receiver(BaseHTTPRequestHandler):
    """Keeps what comes, and answers as the test wants."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, dict(self.headers), body))
        if self.server.seconds:
            self.drip()
            return
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def drip(self) -> None:
        """A byte of a header at a time, for ever."""
        try:
            while True:
                self.wfile.write(b"X")
                time.sleep(self.server.seconds)
        except OSError:
            return

    def log_message(self, *args: object) -> None: ...


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Lab")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(each) for each in NAMES]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("lab") / "lab.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + signed.public_bytes(Encoding.PEM))
    return str(file)


@pytest.fixture
def receiver(certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.received, server.status, server.seconds = [], 200, 0
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def subscribe(mturk, receiver):
    """Have the events of a HIT type sent there."""

    def subscribe(host="localhost", path="/hook?study=7"):
        hit_type = mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]
        mturk.update_notification_settings(
            HITTypeId=hit_type,
            Notification={
                "Destination": f"https://{host}:{receiver.server_address[1]}{path}",
                "Transport": "HTTPS",
                "Version": "2014-08-15",
                "EventTypes": ["HITCreated"],
            },
        )

    return subscribe


@pytest.fixture
def secret_of(live_server, keys):
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])

    def ask(**body):
        path = "/webhook-secret"
        signature = partial(signed_headers, key)
        answer = marketplace_api.post(live_server.url, path, body, signature=signature)
        return answer.content["secret"]

    return ask


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As Standard Webhooks says, written anew from its text."""
    version, _, signature = headers["webhook-signature"].partition(",")
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.split("_", 1)[1])
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return version == "v1" and base64.b64decode(signature) == digest


def test_an_event_arrives_signed(mturk, subscribe, receiver, secret_of):
    subscribe()
    hit = publish(mturk)
    assert delivery.send_due(clock.now()) == 1
    [(path, headers, body)] = receiver.received
    assert path == "/hook?study=7"
    assert json.loads(body)["Events"][0]["HITId"] == hit
    assert is_signed(secret_of(), headers, body)
    assert not is_signed(secret_of(), headers, body + b" ")
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert headers["webhook-id"] == Notification.objects.get().event_doc_id


def test_the_published_example_of_the_standard_is_signed_alike():
    """The test vector of the standard's reference libraries."""
    headers = webhooks.signed_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        now=datetime.fromtimestamp(1614265330, UTC),
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_renewed_secret_signs_what_is_sent_from_then_on(mturk, subscribe, receiver, secret_of):
    first = secret_of()
    assert secret_of() == first
    second = secret_of(renew=True)
    assert second != first
    subscribe()
    publish(mturk)
    delivery.send_due(clock.now())
    [(_path, headers, body)] = receiver.received
    assert (is_signed(first, headers, body), is_signed(second, headers, body)) == (False, True)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_is_not_accepted_is_sent_again_under_the_same_id(
    mturk, subscribe, receiver, caplog, status
):
    subscribe()
    publish(mturk)
    receiver.status = status
    assert delivery.send_due(clock.now()) == 0
    assert str(status) in Notification.objects.get().last_error
    receiver.status = 204
    clock.advance(timedelta(minutes=1))
    assert delivery.send_due(clock.now()) == 1
    ids = {headers["webhook-id"] for _path, headers, _body in receiver.received}
    assert (len(receiver.received), len(ids)) == (2, 1)


def test_an_answer_that_drips_is_cut(mturk, subscribe, receiver, caplog, monkeypatch):
    monkeypatch.setattr(webhooks, "ANSWER_SECONDS", 0.3)
    subscribe()
    publish(mturk)
    receiver.seconds = 0.05
    started = time.monotonic()
    assert delivery.send_due(clock.now()) == 0
    assert time.monotonic() - started < 10
    assert Notification.objects.get().last_error


def test_a_certificate_for_another_name_is_not_believed(mturk, subscribe, receiver, caplog):
    subscribe(host="127.0.0.1")
    publish(mturk)
    assert delivery.send_due(clock.now()) == 0
    assert "certificate" in Notification.objects.get().last_error.lower()
    assert receiver.received == []


@pytest.fixture
def lookup(settings, monkeypatch):
    """Every name leads to this machine, on a site that others can reach."""
    settings.OWN_MACHINE = False
    answer = [(AF_INET, SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
    monkeypatch.setattr("work.addresses.getaddrinfo", lambda *args, **options: answer)


@pytest.mark.parametrize(
    "host",
    [
        *("2130706433", "127.1", "0", "0x7f.1", "localhost.", "metadata.google.internal."),
        *("10.0.0.1", "127.0.0.1", "[::1]", "169.254.169.254", "localhost", "db.internal"),
        "[::ffff:10.0.0.1]",
    ],
)
def test_what_is_inside_is_refused_when_it_is_named(mturk, subscribe, lookup, host):
    assert turk_code(subscribe, host=host) == "InvalidParameterValue"


def test_a_name_that_leads_inside_by_then_is_not_called(mturk, subscribe, receiver, lookup, caplog):
    subscribe(host="hooks.lab.example")
    publish(mturk)
    assert delivery.send_due(clock.now()) == 0
    assert Notification.objects.get().last_error
    assert receiver.received == []


def test_the_connection_is_made_to_the_address_that_was_checked(
    mturk, subscribe, receiver, lookup, monkeypatch
):
    """The name leads nowhere but in that look-up, and the certificate is for the name."""
    monkeypatch.setattr("work.addresses.is_public", lambda address: address == "127.0.0.1")
    subscribe(host="hooks.lab.example")
    publish(mturk)
    assert delivery.send_due(clock.now()) == 1
    assert len(receiver.received) == 1


def test_the_secret_is_stored_encrypted_and_can_be_encrypted_anew(secret_of, settings, capsys):
    secret = secret_of()
    stored = Requester.objects.get().encrypted_webhook_secret
    assert stored
    assert secret not in stored
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets", verbosity=0)
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    assert Requester.objects.get().encrypted_webhook_secret != stored
    assert secret_of() == secret

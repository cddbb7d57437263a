"""Notifications: what is written to the outbox, and that it reaches SQS, SNS and webhooks."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, SOCK_STREAM

import pytest
from allauth.account.models import EmailAddress
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.contrib.auth import get_user_model
from django.core import mail
from django.core.management import call_command

from hits import connections, endpoints
from marketplace import clock, hits
from marketplace.hits.assignments import return_assignment
from marketplace.models import Assignment, Notification, Requester
from marketplace.notifications import delivery
from tests.marketplace.conformance.refusals import accept, publish, turk_code
from tests.marketplace.conftest import HIT_TYPE, submit

QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/hits"
EVENTS = [
    *(f"Assignment{each}" for each in (
        "Accepted", "Abandoned", "Returned", "Submitted", "Rejected", "Approved")),
    *(f"HIT{each}" for each in ("Created", "Expired", "Reviewable", "Extended", "Disposed")),
]  # fmt: skip


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "marketplace")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "marketplace")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def specification(**changes):
    given = {"Destination": QUEUE, "Transport": "SQS", "Version": "2006-05-05"}
    return given | {"EventTypes": EVENTS} | changes


def ping(mturk, **changes):
    mturk.send_test_event_notification(Notification=specification(**changes), TestEventType="Ping")


@pytest.fixture
def hit_type(mturk):
    return mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]


@pytest.fixture
def events(mturk, hit_type):
    mturk.update_notification_settings(HITTypeId=hit_type, Notification=specification())
    rows = Notification.objects.order_by("created_at", "pk")
    return lambda: list(rows.values_list("event_type", flat=True))


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def aws_client(aws, monkeypatch):
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", aws)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", aws)
    return boto3.client


def receive(sqs, queue_url):
    bodies = []
    while messages := sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get(
        "Messages", []
    ):
        for message in messages:
            bodies.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
    return bodies


# What is written down


def test_every_event_is_reported_when_it_happens(mturk, make_worker, events):
    bea, cleo, dora = (make_worker(name) for name in ("bea", "cleo", "dora"))
    hit = publish(mturk, MaxAssignments=2)
    assert events() == ["HITCreated"]
    return_assignment(assignment=Assignment.objects.get(public_id=accept(bea, hit)))
    first = submit(cleo, hit)
    accept(dora, hit)
    clock.advance(timedelta(seconds=HIT_TYPE["AssignmentDurationInSeconds"] + 1))
    hits.lifecycle.sweep(clock.now())
    second = submit(bea, hit)
    mturk.approve_assignment(AssignmentId=first)
    mturk.reject_assignment(AssignmentId=second, RequesterFeedback="Empty")
    mturk.create_additional_assignments_for_hit(HITId=hit, NumberOfAdditionalAssignments=1)
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=0)
    mturk.delete_hit(HITId=hit)
    happened = [
        *("HITCreated", "AssignmentAccepted", "AssignmentReturned"),
        *("AssignmentAccepted", "AssignmentSubmitted"),
        *("AssignmentAccepted", "AssignmentAbandoned"),
        *("AssignmentAccepted", "AssignmentSubmitted", "HITReviewable"),
        *("AssignmentApproved", "AssignmentRejected"),
        *("HITExtended", "HITExpired", "HITReviewable", "HITDisposed"),
    ]
    assert events() == happened
    assert set(happened) == set(EVENTS)


def test_time_reports_what_it_does_once(mturk, worker, events):
    hit = publish(mturk)
    submit(worker, hit)
    for passed in (timedelta(seconds=HIT_TYPE["AutoApprovalDelayInSeconds"]), timedelta(days=120)):
        clock.advance(passed)
        for _ in range(2):
            hits.lifecycle.sweep(clock.now())
    happened = [
        *("HITCreated", "AssignmentAccepted", "AssignmentSubmitted", "HITReviewable"),
        *("AssignmentApproved", "HITExpired", "HITDisposed"),
    ]
    assert events() == happened
    hit = publish(mturk)
    for at in (0, clock.now() - timedelta(seconds=1), 0):
        mturk.update_expiration_for_hit(HITId=hit, ExpireAt=at)
    assert events() == [*happened, "HITCreated", "HITExpired", "HITReviewable"]


def test_only_the_events_asked_for_are_reported_and_only_while_active(mturk, worker, hit_type):
    for switch in ({"Active": True}, {}):  # there are no settings yet
        code = turk_code(mturk.update_notification_settings, HITTypeId=hit_type, **switch)
        assert code == "InvalidParameterValue"
    subscription = specification(EventTypes=["AssignmentSubmitted"])
    mturk.update_notification_settings(HITTypeId=hit_type, Notification=subscription)
    submit(worker, publish(mturk))
    assert [each.event_type for each in Notification.objects.all()] == ["AssignmentSubmitted"]
    for is_active, count in ((False, 1), (True, 2)):
        mturk.update_notification_settings(HITTypeId=hit_type, Active=is_active)
        submit(worker, publish(mturk))
        assert Notification.objects.count() == count


def test_an_event_that_is_rolled_back_is_not_reported_and_none_is_sent_at_once(mturk, events):
    assert turk_code(publish, mturk=mturk, MaxAssignments=200) == "InsufficientFunds"
    assert events() == []
    publish(mturk)
    notification = Notification.objects.get()
    assert (notification.event_type, notification.attempts) == ("HITCreated", 0)
    (event,) = json.loads(notification.body)["Events"]
    assert "AssignmentId" not in event


def test_the_body_has_the_shape_that_clients_parse(mturk, worker, requester, hit_type):
    """The members of the message in Dallinger's tests, recorded from Amazon."""
    subscription = specification(Version="2014-08-15", EventTypes=["AssignmentSubmitted"])
    mturk.update_notification_settings(HITTypeId=hit_type, Notification=subscription)
    hit = publish(mturk)
    assignment = submit(worker, hit)
    notification = Notification.objects.get()
    body = json.loads(notification.body)
    (event,) = body.pop("Events")
    stamp = event.pop("EventTimestamp")
    assert stamp == f"{Assignment.objects.get().submitted_at:%Y-%m-%dT%H:%M:%SZ}"
    ids = {"HITId": hit, "AssignmentId": assignment, "HITTypeId": hit_type}
    assert event == ids | {"EventType": "AssignmentSubmitted"}
    document = {"EventDocId": notification.event_doc_id, "EventDocVersion": "2014-08-15"}
    account = requester.public_id
    assert body == document | {"SourceAccount": account, "CustomerId": account}


def test_settings_that_lead_nowhere_are_refused(mturk, hit_type):
    for change in (
        {"Version": "2020-01-01"},
        {"EventTypes": []},
        {"EventTypes": ["Ping"]},
        {"Destination": "http://169.254.169.254/latest/meta-data"},
        {"Destination": "https://sqs.us-east-1.amazonaws.com.evil.example/123456789012/hits"},
        {"Destination": "https://sqs.us-east-1.amazonaws.com/123456789012/hits/../../x"},
        {"Transport": "SNS", "Destination": "arn:aws:iam::123456789012:role/x"},
        {"Transport": "Email"},
        {"Transport": "HTTPS", "Destination": "http://lab.example/hook"},
        {"Transport": "HTTPS", "Destination": "https://ada:word@lab.example/hook"},
        {"Transport": "HTTPS", "Destination": "https://lab.example:0/hook"},
        {"Transport": "HTTPS", "Destination": "https://lab.example/a b"},
    ):
        wrong = {"Notification": specification(**change)}
        code = turk_code(mturk.update_notification_settings, HITTypeId=hit_type, **wrong)
        assert code == "InvalidParameterValue"
        if change != {"EventTypes": ["Ping"]}:
            code = turk_code(mturk.send_test_event_notification, **wrong, TestEventType="Ping")
            assert code == "InvalidParameterValue"


@pytest.mark.parametrize("transport", ["SQS", "SNS", "Email"])
def test_a_test_event_that_cannot_be_sent_is_refused_with_the_reason(
    mturk, hit_type, monkeypatch, tmp_path, transport
):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    destinations = {"SNS": "arn:aws:sns:us-east-1:123456789012:hits", "Email": "ada@lab.example"}
    facts = {"Transport": transport, "Destination": destinations.get(transport, QUEUE)}
    assert turk_code(ping, mturk=mturk, **facts) == "InvalidTransportEndpoint"
    assert not Notification.objects.exists()


def test_mail_goes_to_confirmed_addresses_of_who_acts_for_the_requester(
    mturk, requester, hit_type, settings
):
    settings.OWN_MACHINE = False
    ada = get_user_model().objects.create_user("ada")
    EmailAddress.objects.create(user=ada, email="ada@lab.example", verified=True)
    EmailAddress.objects.create(user=ada, email="new@lab.example", verified=False)
    requester.users.add(ada)

    def set_address(address):
        subscription = specification(Transport="Email", Destination=address)
        mturk.update_notification_settings(HITTypeId=hit_type, Notification=subscription)

    set_address("Ada@lab.example")
    for address in ("new@lab.example", "anybody@uni.example"):
        assert turk_code(set_address, address=address) == "InvalidParameterValue"


# Delivery


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_events_arrive_in_a_queue_and_at_a_topic_of_any_region(mturk, aws_client, region):
    sqs, sns = (aws_client(name, region_name=region) for name in ("sqs", "sns"))
    queue = sqs.create_queue(QueueName="far")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
    topic = sns.create_topic(Name="far")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn["QueueArn"])
    address = f"https://sqs.{region}.amazonaws.com/123456789012/far"
    for transport, destination in (("SQS", address), ("SNS", topic)):
        ping(mturk, Transport=transport, Destination=destination)
    call_command("send_notifications", verbosity=0)
    bodies = receive(sqs, queue)
    enveloped = [json.loads(each["Message"]) for each in bodies if "Message" in each]
    documents = enveloped + [each for each in bodies if "Message" not in each]
    assert [len(enveloped), len(bodies)] == [1, 2]
    assert [event["EventType"] for each in documents for event in each["Events"]] == ["Ping"] * 2


def test_a_test_event_is_reported_whatever_is_asked_for_and_arrives_by_e_mail(mturk, settings):
    settings.SENDS_MAIL = True
    ping(mturk, Transport="Email", Destination="lab@uni.example")
    assert delivery.send_due(clock.now()) == 1
    assert (mail.outbox[0].to, mail.outbox[0].subject) == (["lab@uni.example"], "Ping")
    asked = specification(EventTypes=["HITCreated"])
    for event_type in [*EVENTS, "Ping"]:
        mturk.send_test_event_notification(Notification=asked, TestEventType=event_type)
        (event,) = json.loads(Notification.objects.latest("pk").body)["Events"]
        assert event["EventType"] == event_type
        assert ("AssignmentId" in event) == event_type.startswith("Assignment")


def test_what_cannot_be_delivered_is_tried_again_and_then_given_up(
    mturk, aws_client, caplog, capsys
):
    sqs = aws_client("sqs")
    missing = sqs.create_queue(QueueName="late")["QueueUrl"]
    sqs.delete_queue(QueueUrl=missing)
    ping(mturk, Destination=missing)
    assert delivery.send_due(clock.now()) == 0
    waiting = Notification.objects.get()
    assert (waiting.attempts, waiting.sent_at) == (1, None)
    assert waiting.last_error
    assert delivery.send_due(clock.now()) == 0
    waiting.refresh_from_db()
    assert waiting.attempts == 1
    sqs.create_queue(QueueName="late")
    clock.advance(delivery.FIRST_DELAY)
    assert delivery.send_due(clock.now()) == 1
    waiting.refresh_from_db()
    assert waiting.sent_at is not None
    assert waiting.next_attempt_at is None


def test_after_eight_attempts_a_message_is_given_up(mturk, monkeypatch):
    def refuse(*arguments):
        raise OSError

    monkeypatch.setattr(delivery, "_deliver", refuse)
    ping(mturk)
    for _ in range(delivery.MOST_ATTEMPTS + 2):
        delivery.send_due(clock.now())
        clock.advance(timedelta(days=1))
    abandoned = Notification.objects.get()
    assert (abandoned.attempts, abandoned.next_attempt_at) == (delivery.MOST_ATTEMPTS, None)


NAMES = ["localhost", "hooks.lab.example"]


class Receiver(BaseHTTPRequestHandler):
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
    def subscribe(host="localhost", path="/hook?study=7"):
        hit_type = mturk.create_hit_type(**HIT_TYPE)["HITTypeId"]
        address = f"https://{host}:{receiver.server_address[1]}{path}"
        subscription = {"Destination": address, "Transport": "HTTPS"}
        subscription |= {"Version": "2014-08-15", "EventTypes": ["HITCreated"]}
        mturk.update_notification_settings(HITTypeId=hit_type, Notification=subscription)

    return subscribe


@pytest.fixture
def secret_of(live_server, keys):
    key = endpoints.AccessKey(keys["access_key_id"], keys["secret_access_key"])

    def ask(**body):
        path = "/webhook-secret"
        signature = partial(connections.signed_headers, key)
        answer = connections.post_json(live_server.url, path, body, signature=signature)
        return answer.content["secret"]

    return ask


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As Standard Webhooks says, written anew from its text."""
    version, _, signature = headers["webhook-signature"].partition(",")
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(secret.split("_", 1)[1]), signed, hashlib.sha256).digest()
    return version == "v1" and base64.b64decode(signature) == digest


def test_an_event_arrives_signed_with_the_newest_secret(mturk, subscribe, receiver, secret_of):
    first = secret_of()
    assert secret_of() == first
    secret = secret_of(renew=True)
    subscribe()
    hit = publish(mturk)
    assert delivery.send_due(clock.now()) == 1
    [(path, headers, body)] = receiver.received
    assert path == "/hook?study=7"
    assert json.loads(body)["Events"][0]["HITId"] == hit
    assert is_signed(secret, headers, body)
    assert not is_signed(secret, headers, body + b" ")
    assert not is_signed(first, headers, body)
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert headers["webhook-id"] == Notification.objects.get().event_doc_id
    # The test vector of the standard's reference libraries.
    headers = delivery.signed_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        now=datetime.fromtimestamp(1614265330, UTC),
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


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
    monkeypatch.setattr(delivery, "ANSWER_SECONDS", 0.3)
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
    settings.OWN_MACHINE = False
    answer = [(AF_INET, SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
    monkeypatch.setattr("work.addresses.getaddrinfo", lambda *args, **options: answer)


def test_what_is_inside_is_refused_when_it_is_named(mturk, subscribe, lookup):
    for host in (
        *("2130706433", "127.1", "0", "0x7f.1", "localhost.", "metadata.google.internal."),
        *("10.0.0.1", "127.0.0.1", "[::1]", "169.254.169.254", "localhost", "db.internal"),
        "[::ffff:10.0.0.1]",
    ):
        assert turk_code(subscribe, host=host) == "InvalidParameterValue"


def test_a_name_is_called_at_the_address_that_was_checked_and_not_inside(
    mturk, subscribe, receiver, lookup, monkeypatch, caplog
):
    subscribe(host="hooks.lab.example")
    publish(mturk)
    assert delivery.send_due(clock.now()) == 0
    assert Notification.objects.get().last_error
    assert receiver.received == []
    monkeypatch.setattr("work.addresses.is_public", lambda address: address == "127.0.0.1")
    clock.advance(delivery.FIRST_DELAY)
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

"""Links signed by a recruiter, with real keys that a server publishes."""

import base64
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from django.test import Client

from marketplace import clock, models
from marketplace.recruiting import records, signed_links
from tests.codes import refused
from tests.marketplace.prolific import join

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
URL = "https://study.example/join/abc/"
IDS = {"PROLIFIC_PID": "a" * 24, "STUDY_ID": "b" * 24, "SESSION_ID": "c" * 24}


class Publisher:
    def __init__(self):
        self.keys = {"one": generate_private_key(65537, 2048)}
        self.n_asked, self.content = 0, None
        self.before_answering = lambda: None
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                publisher.n_asked += 1
                publisher.before_answering()
                content = publisher.content or publisher.jwks()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/jwks.json"

    def jwks(self):
        rows = []
        for kid, key in self.keys.items():
            numbers = key.public_key().public_numbers()
            n, e = (encoded(x.to_bytes((x.bit_length() + 7) // 8)) for x in (numbers.n, numbers.e))
            rows.append({"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": n, "e": e})
        return json.dumps({"keys": rows}).encode()

    def token(self, *, kid="one", key=None, header=None, **changes):
        claims = {
            "iss": "https://www.prolific.com", "iat": NOW.timestamp(),
            "exp": (NOW + timedelta(minutes=2)).timestamp(), "sub": IDS["SESSION_ID"],
            "aud": URL, "prolific": {**IDS, "workspace_id": "d" * 24},
        } | changes  # fmt: skip
        head = {"alg": "RS256", "typ": "JWT", "kid": kid} | (header or {})
        signed = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
        signer = key or self.keys[kid]
        return f"{signed}.{encoded(signer.sign(signed.encode(), PKCS1v15(), SHA256()))}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def encoded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def server():
    running = Publisher()
    yield running
    running.close()


@pytest.fixture
def publisher(server):
    server.content, server.n_asked, server.before_answering = None, 0, lambda: None
    server.keys = {"one": server.keys["one"]}
    return server


@pytest.fixture
def known_keys(publisher):
    return signed_links.PublishedKeys(publisher.url)


def verify(keys, token, *, study=IDS["STUDY_ID"], url=URL, now=NOW, **parameters):
    given = {**IDS, "prolific_token": token} | parameters
    return signed_links.verify_signed_link(keys, study, given, url=url, now=now)


@pytest.mark.parametrize("ids", [IDS, {}])
def test_who_was_sent(known_keys, publisher, ids):
    given = {**ids, "prolific_token": publisher.token()}
    now = NOW + timedelta(minutes=1)
    arrival = signed_links.verify_signed_link(known_keys, IDS["STUDY_ID"], given, url=URL, now=now)
    assert (arrival.study, arrival.submission) == (IDS["STUDY_ID"], IDS["SESSION_ID"])
    assert arrival.participant == IDS["PROLIFIC_PID"]
    assert IDS["PROLIFIC_PID"] not in repr(arrival)


@pytest.mark.parametrize("name", list(IDS))
def test_an_id_exchanged_in_the_link(known_keys, publisher, name):
    with refused(records.NotVerified, "changed_id") as found:
        verify(known_keys, publisher.token(), **{name: "e" * 24})
    assert name in str(found.value)


def test_what_a_signed_token_must_contain(known_keys, publisher):
    for changes, code in (
        ({"iss": "https://prolific.example"}, "other_issuer"),
        ({"aud": "https://other.example/join/abc/"}, "other_site"),
        ({"aud": None}, "other_site"),
        ({"aud": "https://[broken"}, "other_site"),
        ({"sub": "f" * 24}, "other_submission"),
        ({"prolific": {**IDS, "STUDY_ID": "f" * 24}}, "other_study"),
        ({"prolific": {**IDS, "PROLIFIC_PID": ""}}, "missing_participant"),
        ({"prolific": "somebody"}, "missing_participant"),
        ({"exp": None}, "missing_times"),
        ({"exp": True}, "missing_times"),
        ({"exp": (NOW + timedelta(days=30)).timestamp()}, "bad_times"),
        ({"iat": (NOW + timedelta(minutes=1)).timestamp()}, "bad_times"),
    ):
        with refused(records.NotVerified, code):
            verify(known_keys, publisher.token(**changes))
        with refused(records.NotVerified, "other_study"):
            verify(known_keys, publisher.token(), study="f" * 24)


def test_a_token_with_another_algorithm_damaged_expired_or_signed_by_somebody_else(
    known_keys, publisher
):
    for algorithm in ("none", "HS256", "RS512", None):
        with refused(records.NotVerified, "other_algorithm"):
            verify(known_keys, publisher.token(header={"alg": algorithm}))
        assert publisher.n_asked == 0
    for token in ("", "a.b", "a.b.c", "..", "é.é.é", "W10.W10.W10", "e" * 9000):
        with refused(records.NotVerified, "damaged_token"):
            verify(known_keys, token)
    token = publisher.token()
    verify(known_keys, token, now=NOW + timedelta(minutes=2, seconds=20))  # clocks differ
    with refused(records.NotVerified, "expired"):
        verify(known_keys, token, now=NOW + timedelta(minutes=3))
    head, claims, signature = publisher.token().split(".")
    changed = json.loads(base64.urlsafe_b64decode(claims + "==")) | {"sub": "f" * 24}
    with refused(records.NotVerified, "bad_signature"):
        verify(known_keys, publisher.token(key=generate_private_key(65537, 2048)))
    with refused(records.NotVerified, "bad_signature"):
        verify(known_keys, f"{head}.{encoded(json.dumps(changed).encode())}.{signature}")


def test_keys_are_kept_for_a_day_and_a_new_one_is_found(publisher):
    passed = [0.0]
    known_keys = signed_links.PublishedKeys(publisher.url, monotonic=lambda: passed[0])
    for _time in range(3):
        verify(known_keys, publisher.token())
    assert publisher.n_asked == 1
    publisher.keys["two"] = generate_private_key(65537, 2048)
    passed[0] += signed_links.ASK_AGAIN_SECONDS + 1
    verify(known_keys, publisher.token(kid="two"))
    assert publisher.n_asked == 2
    passed[0] += signed_links.KEPT_SECONDS + 1
    verify(known_keys, publisher.token())
    assert publisher.n_asked == 3


def test_made_up_keys_do_not_make_us_ask_each_time(known_keys, publisher):
    for number in range(5):
        with refused(records.NotVerified, "unknown_key"):
            verify(known_keys, publisher.token(header={"kid": f"made-up-{number}"}))
    assert publisher.n_asked == 1


def test_keys_that_cannot_be_had(known_keys, publisher):
    for content in (b"[", b"{}", b'{"keys": 1}', b"x" * 300_000):
        publisher.content = content
        with refused(records.Unreachable, "no_keys"):
            verify(known_keys, publisher.token())
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        port = server.server_address[1]
    known_keys = signed_links.PublishedKeys(f"http://127.0.0.1:{port}/jwks.json")
    token = f"{encoded(json.dumps({'alg': 'RS256', 'kid': 'one'}).encode())}.e30.e30"
    with refused(records.Unreachable, "no_keys"):
        verify(known_keys, token)


def test_a_key_server_that_hangs_holds_up_one_and_nobody_else(publisher):
    passed = [0.0]
    known_keys = signed_links.PublishedKeys(publisher.url, monotonic=lambda: passed[0])
    answers = threading.Event()
    publisher.before_answering = answers.wait
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(verify, known_keys, publisher.token())
        while not publisher.n_asked:
            time.sleep(0.01)
        for _other in range(3):
            with refused(records.Unreachable, "no_keys"):
                verify(known_keys, publisher.token())
        answers.set()
        first.result(timeout=5)
    verify(known_keys, publisher.token())
    assert publisher.n_asked == 1


def test_a_failed_try_is_made_again_after_a_minute(publisher):
    passed = [0.0]
    known_keys = signed_links.PublishedKeys(publisher.url, monotonic=lambda: passed[0])
    publisher.content = b"["
    for _time in range(3):
        with refused(records.Unreachable, "no_keys"):
            verify(known_keys, publisher.token())
    assert publisher.n_asked == 1
    publisher.content = None
    passed[0] += signed_links.ASK_AGAIN_SECONDS + 1
    verify(known_keys, publisher.token())
    assert publisher.n_asked == 2


@pytest.fixture
def arrived(fake, posted):
    return fake.world.arrive(fake.world.studies[posted.external_id])


@pytest.fixture
def token_of(publisher, settings, posted):
    settings.PROLIFIC_KEYS_URL = publisher.url

    def make(submission, age=timedelta()):
        ids = {
            "PROLIFIC_PID": submission.participant,
            "STUDY_ID": posted.external_id,
            "SESSION_ID": submission.id,
        }
        start = clock.now() - age
        times = {"iat": start.timestamp(), "exp": (start + timedelta(minutes=2)).timestamp()}
        facts = {"sub": submission.id, "aud": settings.SITE_URL, "prolific": ids}
        return publisher.token(**times | facts)

    return make


def open_link(study, submission, token):
    return join(study, submission, prolific_token=token).status_code


@pytest.mark.slow
def test_a_signed_link_lets_in_though_the_api_is_away(fake, posted, arrived, token_of):
    fake.faults["submission"] = ["500"] * 9
    assert open_link(posted, arrived, token_of(arrived)) == 302
    assert models.Session.objects.get().submission_id == arrived.id
    # by ids alone, though everything was asked; by a link that Prolific has signed; by a wrong one
    for signed, status in (({}, 403), ({"prolific_token": token_of(arrived)}, 200)):
        browser = Client()
        assert join(posted, arrived, browser, **signed).status_code == 302
        assert browser.get("/worker/your-data/").status_code == status
    assert open_link(posted, arrived, "forged") == 400
    # a reload after its time
    assert open_link(posted, arrived, token_of(arrived, age=timedelta(hours=1))) == 302
    assert models.Session.objects.count() == 1
    assert "submission" not in fake.calls


@pytest.mark.slow
def test_an_expired_link_is_asked_of_the_recruiter(fake, posted, arrived, token_of):
    fake.faults["submission"] = ["500"]
    expired = token_of(arrived, age=timedelta(minutes=5))
    assert open_link(posted, arrived, expired) != 302
    assert not models.Session.objects.exists()
    assert open_link(posted, arrived, expired) == 302
    assert fake.calls.count("submission") == 2
    fake.world.leave(gone := fake.world.arrive(fake.world.studies[posted.external_id]))
    assert open_link(posted, gone, token_of(gone, age=timedelta(minutes=5))) != 302

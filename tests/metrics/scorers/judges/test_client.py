import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from functools import partial
from time import sleep

import pytest

from error_codes import InvalidValue
from metrics.scorers.errors import (
    BudgetSpentError,
    EndpointRefusedError,
    EndpointUnavailableError,
    PromptRefusedError,
)
from metrics.scorers.judges.budget import Budget, Prices, Usage, budget_from
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint, Limits, endpoint_from, limits_from
from tests.codes import refused, refused_naming
from tests.foreign_names import NAME, Site, write_certificate
from tests.metrics.scorers.judges.foreign import Says, chat, error

HELLO = [{"role": "user", "content": "Hello."}]
SECRET = "sk-not-to-be-told"


@pytest.mark.slow
def test_an_answer_comes_with_its_model_and_usage(foreign):
    foreign.says(chat("Hi.", usage={"prompt_tokens": 9, "completion_tokens": 2}))
    answer = foreign.client().chat(HELLO, max_tokens=7, temperature=0.5, seed=None)
    assert (answer.replies[0].text, answer.model, answer.usage) == ("Hi.", "foreign-1", (9, 2))
    expected = {"model": "foreign", "messages": HELLO, "max_tokens": 7, "temperature": 0.5}
    assert foreign.bodies == [expected | {"path": "/v1/chat/completions"}]


def test_too_many_requests_wait_as_long_as_the_endpoint_asks(foreign):
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    never = f"Fri, 31 Dec {10**12} 23:59:59 GMT"
    waits = [error(429, Retry_After=after) for after in ("7", soon, never)]
    foreign.says(*waits, error(503), chat("Hi."))
    assert foreign.client().chat(HELLO).replies[0].text == "Hi."
    seven, dated, *backed_off = foreign.waits
    assert seven == 7
    assert 20 < dated <= 40
    assert backed_off == [4, 8]


@pytest.mark.parametrize(
    ("answer", "attempts", "failure", "code", "waits"),
    [
        (error(500, "E17"), 4, EndpointUnavailableError, "status_500", [1, 2, 4]),
        (error(429, "E17", Retry_After="3600"), 5, EndpointUnavailableError, "long_wait", []),
        (chat("word " * 1000), 1, EndpointUnavailableError, "too_large", []),
        (error(400, "E17"), 5, PromptRefusedError, "", []),
        (error(401, "E17"), 5, EndpointRefusedError, "status_401", []),
        (error(429, "E17", "insufficient_quota"), 5, EndpointRefusedError, "status_429", []),
        # A redirect must not take the key along.
        (Says("E17", 307, {"Location": "/elsewhere"}), 5, EndpointRefusedError, "status_307", []),
    ],
)
def test_what_fails_is_tried_again_or_refused_at_once(
    foreign, monkeypatch, answer, attempts, failure, code, waits
):
    monkeypatch.setattr("metrics.scorers.judges.transport.MAX_ANSWER_BYTES", 1000)
    foreign.says(answer)
    with refused(failure, code) as raised:
        foreign.client(api_key=SECRET, attempts=attempts).chat(HELLO)
    assert foreign.waits == waits
    assert len(foreign.bodies) == len(waits) + 1
    assert code == "too_large" or "E17" in str(raised.value)


def log_probability_of(text, token):
    return {"choices": [{"message": {"content": text}, "logprobs": {"content": [token]}}]}


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html>gateway</html>",
        {"choices": []},
        {"result": 1},
        [],
        {"choices": [{"text": 3}]},
        b"[" * 100_000,
        {"choices": [{"text": "3"}], "usage": {"prompt_tokens": float("inf")}},
        {"choices": [{"text": "3"}], "usage": {"prompt_tokens": -(10**9)}},
        log_probability_of("3", {"token": "3", "logprob": float("nan")}),
        log_probability_of("3", {"token": "3", "logprob": 900.0}),
        Says(b"{}", headers={"Content_Encoding": "gzip"}),
    ],
)
def test_what_is_no_answer_is_asked_for_again(foreign, garbage):
    foreign.says(garbage if isinstance(garbage, Says) else Says(garbage), chat("Hi."))
    assert foreign.client().chat(HELLO).replies[0].text == "Hi."
    assert len(foreign.bodies) == 2


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_never_ends_is_given_up(foreign, status):
    foreign.says(Says((b" " for _ in iter(partial(sleep, 0.01), True)), status))
    client = Client(
        Endpoint(base_url=foreign.base_url, model="m", timeout_seconds=1), limits=Limits(attempts=1)
    )
    with refused(EndpointUnavailableError, "too_slow"):
        client.chat(HELLO)
    assert client.budget.usage == Usage(2, 256)


def test_what_no_database_keeps_is_replaced_in_what_an_endpoint_says(foreign):
    odd = [error(400, text) for text in ("too \udfff long\x00", "caf\xe9 \ud83d\ude00")]
    foreign.says(chat("3 \ud800 and \x00."), *odd)
    client = foreign.client()
    assert client.chat(HELLO).replies[0].text == "3 \ufffd and \ufffd."
    for text in ("too \ufffd long\ufffd", "caf\xe9 \U0001f600"):
        with refused_naming(PromptRefusedError, text):
            client.chat(HELLO)


def test_the_key_is_sent_and_never_repeated_even_if_it_cannot_be_sent(foreign):
    foreign.says(error(401, f"{SECRET} is not valid"))
    client = foreign.client(api_key=SECRET)
    with refused(EndpointRefusedError) as raised:
        client.chat(HELLO)
    assert foreign.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(raised.value) + repr(client.endpoint)
    for broken in (f"{SECRET}\n{SECRET}", f"{SECRET}\u2026"):  # no header can carry them
        with refused(InvalidValue, "key_unfit") as raised:
            endpoint_from({"JUDGE_API_KEY": broken})
        assert SECRET not in str(raised.value)
        assert raised.value.__context__ is None


@pytest.mark.parametrize("key", ["", SECRET])
def test_the_library_sends_nothing_of_this_machine_or_its_environment(foreign, monkeypatch, key):
    for variable in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{variable}", "private")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: private\nX-Team: private")
    foreign.says(chat("Hi."))
    foreign.client(api_key=key).chat(HELLO)
    names = {name.lower() for name in foreign.headers[0]} - {"authorization"}
    assert names == {
        "accept", "accept-encoding", "connection", "content-length", "content-type", "host",
        "user-agent",
    }  # fmt: skip
    assert foreign.headers[0].get("Authorization", "") == (f"Bearer {key}" if key else "")


def test_requests_and_tokens_keep_the_pace(foreign):
    foreign.says(chat("Hi."))
    client = foreign.client(requests_per_minute=6)
    for _ in range(3):
        client.chat(HELLO)
    assert len(foreign.waits) == 2
    assert 9 < foreign.waits[0] <= 10
    assert 19 < foreign.waits[1] <= 20
    # An endpoint that counts no tokens is charged the most.
    client = foreign.client(tokens_per_minute=60)
    client.chat(HELLO, max_tokens=28)
    assert client.budget.usage == Usage(2, 28)
    client.chat(HELLO, max_tokens=28)
    assert 29 < foreign.waits[2] <= 30


def test_the_cap_on_requests_counts_every_attempt(foreign):
    foreign.says(error(500), chat("Hi."))
    client = foreign.client(budget=Budget(max_requests=3))
    client.chat(HELLO)
    client.chat(HELLO)
    with refused(BudgetSpentError, "requests_spent"):
        client.chat(HELLO)
    assert len(foreign.bodies) == 3


def test_money_is_capped_before_it_is_spent_and_counted_as_used(foreign):
    foreign.says(chat("Hi.", usage={"prompt_tokens": 10, "completion_tokens": 1}))
    prices = Prices(Decimal(100_000), Decimal(100_000))
    budget = Budget(max_usd=Decimal(4), prices=prices)
    client = foreign.client(budget=budget)
    client.chat(HELLO, max_tokens=20)
    client.chat(HELLO, max_tokens=20)
    assert (budget.usd, budget.usage) == (Decimal("2.2"), Usage(20, 2))
    with refused(BudgetSpentError, "usd_spent") as raised:
        client.chat(HELLO, max_tokens=20)
    assert re.findall(r"\d\.\d", str(raised.value))[:2] == ["2.2", "1.8"]  # spent and left
    assert len(foreign.bodies) == 2


def test_what_the_environment_says_is_read_and_odd_numbers_and_addresses_are_refused():
    environment = {"JUDGE_BASE_URL": "https://judge.example/v1", "JUDGE_MODEL": "large"}
    environment |= {"JUDGE_MAX_USD": "2.5", "JUDGE_USD_PER_MILLION_INPUT": "0.15"}
    environment |= {"JUDGE_REQUESTS_PER_MINUTE": "90"}
    endpoint = endpoint_from(environment | {"JUDGE_API_KEY": f" {SECRET}\r\n"})
    assert (endpoint.url("x"), endpoint.api_key) == ("https://judge.example/v1/x", SECRET)
    assert budget_from(environment).max_usd == Decimal("2.5")
    assert limits_from(environment).requests_per_minute == 90
    with refused(InvalidValue, "prices_missing"):
        Budget(max_usd=Decimal(1))
    for value in ("-1", "many", "NaN"):
        with refused_naming(InvalidValue, "JUDGE_MAX_USD", value):
            budget_from({"JUDGE_MAX_USD": value})
    for url, code in (
        ("ftp://host/v1", "base_url_scheme"),
        ("http://user:word@host/v1", "base_url_secret"),
        ("http://host/v1?key=1", "base_url_secret"),
        ("http://host:port/v1", "base_url_port"),
    ):
        with refused(InvalidValue, code):
            Endpoint(base_url=url, model="m")


def test_the_addresses_of_an_endpoint_are_called_under_its_name(foreign):
    foreign.says(chat("Hi."))
    base_url, addresses = f"http://judge.invalid:{foreign.server_port}/v1", ("::1", "127.0.0.1")
    # Nobody listens at the first address.
    endpoint = Endpoint(base_url=base_url, model="m", addresses=addresses)
    assert Client(endpoint, limits=Limits(attempts=1)).chat(HELLO).replies[0].text == "Hi."
    assert foreign.headers[0]["Host"] == f"judge.invalid:{foreign.server_port}"
    absent = Endpoint(base_url="http://127.0.0.1:9/v1", model="m")
    client = Client(absent, limits=Limits(attempts=2), sleep=foreign.waits.append)
    with refused(EndpointUnavailableError, "no_answer"):
        client.chat(HELLO)
    assert foreign.waits == [1]


def test_a_certificate_is_for_the_endpoints_name_and_not_for_its_address(tmp_path, monkeypatch):
    write_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    site = Site(tmp_path)
    endpoint = Endpoint(
        base_url=f"https://{NAME}:{site.port}/v1", model="m", addresses=("127.0.0.1",)
    )
    try:
        # The answer is no chat: what counts is that it came.
        with refused(EndpointUnavailableError, "unreadable"):
            Client(endpoint, limits=Limits(attempts=1)).chat(HELLO)
    finally:
        site.stop()
    assert (site.names, site.hosts) == ([NAME], [f"{NAME}:{site.port}"])

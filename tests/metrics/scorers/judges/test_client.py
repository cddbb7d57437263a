from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from functools import partial
from time import sleep

import pytest

from metrics.scorers.errors import (
    BudgetSpentError,
    EndpointRefusedError,
    EndpointUnavailableError,
    PromptRefusedError,
)
from metrics.scorers.judges.budget import Budget, Prices, Usage, budget_from
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint, Limits, endpoint_from, limits_from
from tests.foreign_names import NAME, Site, write_certificate
from tests.metrics.scorers.judges.foreign import Says, chat, error

HELLO = [{"role": "user", "content": "Hello."}]
SECRET = "sk-not-to-be-told"


def test_an_answer_comes_with_its_model_and_usage(foreign):
    foreign.says(chat("Hi.", usage={"prompt_tokens": 9, "completion_tokens": 2}))
    answer = foreign.client().chat(HELLO, max_tokens=7, temperature=0.5, seed=None)
    assert (answer.replies[0].text, answer.model, answer.usage) == ("Hi.", "foreign-1", (9, 2))
    assert foreign.bodies == [
        {
            "model": "foreign",
            "messages": HELLO,
            "max_tokens": 7,
            "temperature": 0.5,
            "path": "/v1/chat/completions",
        }
    ]


def test_too_many_requests_wait_as_long_as_the_endpoint_asks(foreign):
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    foreign.says(error(429, Retry_After="7"), error(429, Retry_After=soon), error(503), chat("Hi."))
    assert foreign.client().chat(HELLO).replies[0].text == "Hi."
    seven, dated, backed_off = foreign.waits
    assert seven == 7
    assert 20 < dated <= 40
    assert backed_off == 4


def test_waits_between_attempts_double(foreign):
    foreign.says(error(500))
    with pytest.raises(EndpointUnavailableError, match="failed 4 times, last with 500"):
        foreign.client(attempts=4).chat(HELLO)
    assert foreign.waits == [1, 2, 4]
    assert len(foreign.bodies) == 4


def test_an_endpoint_that_asks_for_an_hour_is_unavailable_at_once(foreign):
    foreign.says(error(429, Retry_After="3600"))
    with pytest.raises(EndpointUnavailableError, match="asks to wait 3600 seconds"):
        foreign.client().chat(HELLO)
    assert foreign.waits == []


def log_probability_of(text, token):
    """A reply with the log-probability of its one token."""
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


def test_an_answer_that_never_ends_is_given_up(foreign):
    foreign.says(Says(b" " for _ in iter(partial(sleep, 0.01), True)))
    client = Client(
        Endpoint(base_url=foreign.base_url, model="m", timeout_seconds=2), limits=Limits(attempts=1)
    )
    with pytest.raises(EndpointUnavailableError, match="did not end in time"):
        client.chat(HELLO)


def test_an_answer_too_large_for_a_chat_is_given_up(foreign, monkeypatch):
    monkeypatch.setattr("metrics.scorers.judges.transport.MAX_ANSWER_BYTES", 1000)
    foreign.says(chat("word " * 1000))
    with pytest.raises(EndpointUnavailableError, match="an answer of more than 1000 bytes"):
        foreign.client(attempts=1).chat(HELLO)


def test_a_date_beyond_all_dates_is_no_time_to_wait(foreign):
    foreign.says(error(429, Retry_After=f"Fri, 31 Dec {10**12} 23:59:59 GMT"), chat("Hi."))
    assert foreign.client().chat(HELLO).replies[0].text == "Hi."
    assert foreign.waits == [1]


def test_what_no_database_keeps_is_replaced_in_what_an_endpoint_says(foreign):
    foreign.says(
        chat("3 \ud800 and \x00."),
        error(400, "too \udfff long\x00"),
        error(400, "caf\xe9 \ud83d\ude00"),
    )
    client = foreign.client()
    assert client.chat(HELLO).replies[0].text == "3 \ufffd and \ufffd."
    with pytest.raises(PromptRefusedError, match="too \ufffd long\ufffd"):
        client.chat(HELLO)
    with pytest.raises(PromptRefusedError, match="caf\xe9 \U0001f600"):
        client.chat(HELLO)


def test_an_endpoint_that_is_not_there_is_unavailable(foreign):
    client = Client(
        Endpoint(base_url="http://127.0.0.1:9/v1", model="m"),
        limits=Limits(attempts=2),
        sleep=foreign.waits.append,
    )
    with pytest.raises(EndpointUnavailableError, match="no answer"):
        client.chat(HELLO)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_not_tried_again(foreign, status):
    foreign.says(error(status, "unknown model"))
    with pytest.raises(EndpointRefusedError, match="unknown model"):
        foreign.client().chat(HELLO)
    assert len(foreign.bodies) == 1


def test_a_quota_that_is_used_up_is_not_waited_for(foreign):
    foreign.says(error(429, "pay first", code="insufficient_quota"))
    with pytest.raises(EndpointRefusedError, match="pay first"):
        foreign.client().chat(HELLO)


def test_a_text_that_is_too_long_is_the_texts_own_failure(foreign):
    foreign.says(error(400, "context length exceeded"))
    with pytest.raises(PromptRefusedError, match="context length"):
        foreign.client().chat(HELLO)


def test_a_redirect_does_not_take_the_key_along(foreign):
    foreign.says(Says({}, 307, {"Location": f"{foreign.base_url}/elsewhere"}))
    with pytest.raises(EndpointRefusedError, match="307"):
        foreign.client(api_key=SECRET).chat(HELLO)
    assert len(foreign.bodies) == 1


def test_the_key_is_sent_and_never_repeated(foreign):
    foreign.says(error(401, f"{SECRET} is not valid"))
    client = foreign.client(api_key=SECRET)
    with pytest.raises(EndpointRefusedError) as refused:
        client.chat(HELLO)
    assert foreign.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(client.endpoint)


def test_blanks_around_a_key_are_not_part_of_it():
    assert endpoint_from({"JUDGE_API_KEY": f" {SECRET}\r\n"}).api_key == SECRET


@pytest.mark.parametrize("broken", [f"{SECRET}\n{SECRET}", f"{SECRET}\u2026"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(broken):
    with pytest.raises(ValueError, match="JUDGE_API_KEY holds a character") as refused:
        endpoint_from({"JUDGE_API_KEY": broken})
    assert SECRET not in str(refused.value)
    assert refused.value.__context__ is None


def test_without_a_key_none_is_sent(foreign):
    foreign.says(chat("Hi."))
    foreign.client().chat(HELLO)
    assert "Authorization" not in foreign.headers[0]


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


def test_an_error_that_never_ends_is_given_up(foreign):
    foreign.says(Says((b" " for _ in iter(partial(sleep, 0.01), True)), 400))
    client = Client(
        Endpoint(base_url=foreign.base_url, model="m", timeout_seconds=1), limits=Limits(attempts=1)
    )
    with pytest.raises(EndpointUnavailableError, match="did not end in time"):
        client.chat(HELLO)
    assert client.budget.usage == Usage(2, 256)


def test_requests_keep_the_pace(foreign):
    foreign.says(chat("Hi."))
    client = foreign.client(requests_per_minute=6)
    for _ in range(3):
        client.chat(HELLO)
    assert len(foreign.waits) == 2
    assert 9 < foreign.waits[0] <= 10
    assert 19 < foreign.waits[1] <= 20


def test_tokens_keep_the_pace_by_their_estimate(foreign):
    foreign.says(chat("Hi."))
    client = foreign.client(tokens_per_minute=60)
    client.chat(HELLO, max_tokens=28)
    client.chat(HELLO, max_tokens=28)
    assert 29 < foreign.waits[0] <= 30


def test_the_cap_on_requests_counts_every_attempt(foreign):
    foreign.says(error(500), chat("Hi."))
    client = foreign.client(budget=Budget(max_requests=3))
    client.chat(HELLO)
    client.chat(HELLO)
    with pytest.raises(BudgetSpentError, match=r"cap of 3 requests .* what was scored stands"):
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
    with pytest.raises(
        BudgetSpentError, match=r"cap of 4 USD is reached: 2.2 are spent, 1.8 are left"
    ):
        client.chat(HELLO, max_tokens=20)
    assert len(foreign.bodies) == 2


def test_an_endpoint_that_counts_no_tokens_is_charged_the_most(foreign):
    foreign.says(chat("Hi."))
    client = foreign.client()
    client.chat(HELLO, max_tokens=20)
    assert client.budget.usage == Usage(2, 20)


def test_a_cap_on_money_without_prices_is_refused():
    with pytest.raises(ValueError, match="needs prices"):
        Budget(max_usd=Decimal(1))


def test_the_environment_says_where_the_judge_is_and_what_it_may_cost():
    environment = {
        "JUDGE_BASE_URL": "https://judge.example/v1",
        "JUDGE_MODEL": "large",
        "JUDGE_MAX_USD": "2.5",
        "JUDGE_USD_PER_MILLION_INPUT": "0.15",
        "JUDGE_REQUESTS_PER_MINUTE": "90",
    }
    assert endpoint_from(environment).url("x") == "https://judge.example/v1/x"
    assert budget_from(environment).max_usd == Decimal("2.5")
    assert limits_from(environment).requests_per_minute == 90


@pytest.mark.parametrize("value", ["-1", "many", "NaN"])
def test_a_number_that_is_none_is_reported_with_its_variable(value):
    with pytest.raises(ValueError, match="JUDGE_MAX_USD must be a number from 0"):
        budget_from({"JUDGE_MAX_USD": value})


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "host/v1",
        "http://user:word@host/v1",
        "http://host/v1?key=1",
        "http://host:port/v1",
    ],
)
def test_an_address_that_is_odd_or_carries_a_secret_is_refused(url):
    with pytest.raises(ValueError, match=r"base_url (must|has)"):
        Endpoint(base_url=url, model="m")


def test_the_addresses_of_an_endpoint_are_called_under_its_name(foreign):
    foreign.says(chat("Hi."))
    endpoint = Endpoint(
        base_url=f"http://judge.invalid:{foreign.server_port}/v1",
        model="m",
        addresses=("::1", "127.0.0.1"),  # nobody listens at the first
    )
    assert Client(endpoint, limits=Limits(attempts=1)).chat(HELLO).replies[0].text == "Hi."
    assert foreign.headers[0]["Host"] == f"judge.invalid:{foreign.server_port}"


def test_a_certificate_is_for_the_endpoints_name_and_not_for_its_address(tmp_path, monkeypatch):
    write_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    site = Site(tmp_path)
    endpoint = Endpoint(
        base_url=f"https://{NAME}:{site.port}/v1", model="m", addresses=("127.0.0.1",)
    )
    try:
        # The answer is no chat: what counts is that it came.
        with pytest.raises(EndpointUnavailableError, match="not of the form"):
            Client(endpoint, limits=Limits(attempts=1)).chat(HELLO)
    finally:
        site.stop()
    assert (site.names, site.hosts) == ([NAME], [f"{NAME}:{site.port}"])

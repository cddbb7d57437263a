"""What `check --deploy` says of a marketplace that others can reach."""

import pytest

from marketplace.apps import (
    check_crowd,
    check_hosts,
    check_play_money,
    check_recruiter,
    check_secrets,
)

SECRETS = ("MARKETPLACE_OPERATOR_SECRET", "METRICS_TOKEN")


def ids(messages):
    return [message.id for message in messages]


@pytest.mark.parametrize(
    ("check", "name", "risky", "safe", "warning"),
    [
        (check_play_money, "MARKETPLACE_TESTING", True, False, "marketplace.W001"),
        (check_play_money, "MARKETPLACE_TEST_FUNDS", True, False, "marketplace.W002"),
        (
            check_recruiter,
            "PROLIFIC_URL",
            "http://prolific.example",
            "https://api.prolific.com",
            "marketplace.W005",
        ),
        (check_crowd, "SIMULATED_CROWD", True, False, "marketplace.W006"),
    ],
)
def test_what_is_for_ones_own_machine_is_named_elsewhere(
    settings, check, name, risky, safe, warning
):
    settings.MARKETPLACE_TESTING = settings.MARKETPLACE_TEST_FUNDS = False
    for value, is_own, expected in (
        (risky, True, []),
        (risky, False, [warning]),
        (safe, False, []),
    ):
        setattr(settings, name, value)
        settings.OWN_MACHINE = is_own
        assert ids(check(None)) == expected


@pytest.mark.parametrize("name", SECRETS)
def test_a_short_secret_is_named(monkeypatch, name):
    for each in SECRETS:
        monkeypatch.delenv(each, raising=False)
    for length, expected in ((0, []), (19, [True]), (20, [])):
        if length:
            monkeypatch.setenv(name, "x" * length)
        assert [name in message.msg for message in check_secrets(None)] == expected


def test_any_host_is_named(settings):
    for hosts, expected in ((["assay.example.org"], []), (["*"], ["marketplace.W004"])):
        settings.ALLOWED_HOSTS = hosts
        assert ids(check_hosts(None)) == expected

"""What `check --deploy` says of a marketplace that others can reach."""

import pytest

from marketplace.checks import (
    check_crowd,
    check_hosts,
    check_play_money,
    check_recruiter,
    check_secrets,
)


def said(messages):
    return {message.id for message in messages}


@pytest.mark.parametrize(
    ("name", "warning"),
    [("MARKETPLACE_TESTING", "marketplace.W001"), ("MARKETPLACE_TEST_FUNDS", "marketplace.W002")],
)
def test_play_money_is_for_ones_own_machine(settings, name, warning):
    settings.MARKETPLACE_TESTING = settings.MARKETPLACE_TEST_FUNDS = False
    setattr(settings, name, True)
    settings.OWN_MACHINE = True
    assert said(check_play_money(None)) == set()
    settings.OWN_MACHINE = False
    assert said(check_play_money(None)) == {warning}


@pytest.mark.parametrize("name", ["MARKETPLACE_OPERATOR_SECRET", "METRICS_TOKEN"])
def test_a_short_secret_is_named(monkeypatch, name):
    for each in ("MARKETPLACE_OPERATOR_SECRET", "METRICS_TOKEN"):
        monkeypatch.delenv(each, raising=False)
    assert said(check_secrets(None)) == set()
    monkeypatch.setenv(name, "x" * 19)
    assert [name in message.msg for message in check_secrets(None)] == [True]
    monkeypatch.setenv(name, "x" * 20)
    assert said(check_secrets(None)) == set()


def test_tokens_do_not_travel_in_clear(settings):
    settings.PROLIFIC_URL = "http://prolific.example"
    settings.OWN_MACHINE = True
    assert said(check_recruiter(None)) == set()
    settings.OWN_MACHINE = False
    assert said(check_recruiter(None)) == {"marketplace.W005"}
    settings.PROLIFIC_URL = "https://api.prolific.com"
    assert said(check_recruiter(None)) == set()


def test_a_simulated_crowd_is_named_where_people_work(settings):
    settings.OWN_MACHINE = settings.SIMULATED_CROWD = True
    assert said(check_crowd(None)) == set()
    settings.OWN_MACHINE = False
    assert said(check_crowd(None)) == {"marketplace.W006"}
    settings.SIMULATED_CROWD = False
    assert said(check_crowd(None)) == set()


def test_any_host_is_named(settings):
    settings.ALLOWED_HOSTS = ["assay.example.org"]
    assert said(check_hosts(None)) == set()
    settings.ALLOWED_HOSTS = ["*"]
    assert said(check_hosts(None)) == {"marketplace.W004"}

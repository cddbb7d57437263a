"""Requesters' secrets at rest, and what `check --deploy` says of a site that others can reach."""

import re

import pytest
from botocore.exceptions import ClientError
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from encryption import UndecryptableSecret, decrypt, encrypt
from marketplace.apps import (
    check_crowd,
    check_hosts,
    check_play_money,
    check_recruiter,
    check_secrets,
)
from marketplace.models import AccessKey
from tests.boto_clients import in_process_client


def new_key():
    return Fernet.generate_key().decode()


def is_answered(keys):
    try:
        return in_process_client(keys).get_account_balance()["AvailableBalance"] == "100.00"
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidSignatureException":
            raise
        return False


def stored(keys):
    return AccessKey.objects.get(access_key_id=keys["access_key_id"]).encrypted_secret


def test_a_secret_is_stored_encrypted_and_outlives_a_change_of_the_secret_key(keys, settings):
    assert len(keys["secret_access_key"]) == 40
    assert keys["secret_access_key"] not in stored(keys)
    assert decrypt(stored(keys)) == keys["secret_access_key"]
    settings.SECRET_KEY = "another"
    assert is_answered(keys)


def test_encryption_keys_are_changed_in_three_steps(keys, settings, capsys):
    assert encrypt("secret") != encrypt("secret")
    assert decrypt(encrypt("sécret")) == "sécret"
    old, new = settings.ENCRYPTION_KEYS, new_key()
    settings.ENCRYPTION_KEYS = [new, *old]
    assert is_answered(keys)
    call_command("reencrypt_secrets")
    call_command("reencrypt_secrets")
    assert re.findall("[0-9]+", capsys.readouterr().out) == ["1", "0"]
    settings.ENCRYPTION_KEYS = [new]
    assert is_answered(keys)
    settings.ENCRYPTION_KEYS = old
    with pytest.raises(UndecryptableSecret):
        decrypt(stored(keys))


def test_nothing_changes_where_a_key_is_missing(keys, make_keys, settings):
    make_keys("Other lab")
    settings.ENCRYPTION_KEYS = [new_key(), *settings.ENCRYPTION_KEYS]
    AccessKey.objects.filter(access_key_id=keys["access_key_id"]).update(encrypted_secret="lost")
    before = list(AccessKey.objects.values_list("encrypted_secret"))
    with pytest.raises(CommandError):
        call_command("reencrypt_secrets")
    assert list(AccessKey.objects.values_list("encrypted_secret")) == before


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

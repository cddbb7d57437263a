"""Requesters' secrets at rest, and what `check --deploy` says of a site that others can reach."""

import re

import pytest
from botocore.exceptions import ClientError
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from encryption import UndecryptableSecret, decrypt, encrypt
from marketplace.apps import check_exposure, check_secrets
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


def test_a_secret_outlives_a_change_of_the_secret_key_and_nothing_changes_without_its_own(
    keys, make_keys, settings
):
    assert len(keys["secret_access_key"]) == 40
    assert keys["secret_access_key"] not in stored(keys)
    assert decrypt(stored(keys)) == keys["secret_access_key"]
    settings.SECRET_KEY = "another"
    assert is_answered(keys)
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
    ("name", "risky", "safe", "warning"),
    [
        ("MARKETPLACE_TESTING", True, False, "marketplace.W001"),
        ("MARKETPLACE_TEST_FUNDS", True, False, "marketplace.W002"),
        ("ALLOWED_HOSTS", ["*"], ["assay.example.org"], "marketplace.W004"),
        ("PROLIFIC_URL", "http://prolific.example", "https://api.prolific.com", "marketplace.W005"),
        ("SIMULATED_CROWD", True, False, "marketplace.W006"),
    ],
)
def test_what_is_for_ones_own_machine_is_named_elsewhere(settings, name, risky, safe, warning):
    settings.MARKETPLACE_TESTING = settings.MARKETPLACE_TEST_FUNDS = False
    settings.PROLIFIC_URL, settings.SIMULATED_CROWD = "https://api.prolific.com", False
    anywhere = [warning] if name == "ALLOWED_HOSTS" else []
    for value, is_own, expected in (
        (risky, True, anywhere),
        (risky, False, [warning]),
        (safe, False, []),
    ):
        setattr(settings, name, value)
        settings.OWN_MACHINE = is_own
        assert ids(check_exposure(None)) == expected


@pytest.mark.parametrize("name", SECRETS)
def test_a_short_secret_is_named(monkeypatch, name):
    for each in SECRETS:
        monkeypatch.delenv(each, raising=False)
    for length, expected in ((0, []), (19, [True]), (20, [])):
        if length:
            monkeypatch.setenv(name, "x" * length)
        assert [name in message.msg for message in check_secrets(None)] == expected

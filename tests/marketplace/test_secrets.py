"""Requesters' secrets at rest."""

import re

import pytest
from botocore.exceptions import ClientError
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from encryption import UndecryptableSecret, decrypt, encrypt
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

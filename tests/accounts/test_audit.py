"""The audit log: entries in a chain that shows where one was changed or taken away."""

import threading
from importlib import import_module
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.audit import _hash, record
from accounts.audit_seals import reseal
from accounts.models import AuditChain, AuditEntry, Team, User
from accounts.teams import create_team

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return create_team(name="Lab", owner=User.objects.create_user("ada"))


@pytest.fixture
def three_more(team):
    for number in range(3):
        record(team=team, actor=None, action="batch.launch", subject=f"s{number}")
    return AuditEntry.objects.of(team)


def check() -> str:
    output = StringIO()
    call_command("check_audit_log", stdout=output)
    return output.getvalue()


def test_a_log_that_nobody_touched_holds(three_more):
    record(team=None, actor=None, action="team.create", details={"zahl": 1.5, "wort": "ä"})
    assert check().startswith("5 entries in 2 chains")


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "another"},
        {"details": {"amount_usd": "1.00"}},
        {"actor_name": "ben"},
        {"action": "batch.close"},
        {"previous_hash": "0" * 64},
    ],
)
def test_a_changed_entry_is_noticed(three_more, change):
    three_more.filter(position=2).update(**change)
    with pytest.raises(CommandError, match=r"Entry 2 of team:.* was changed"):
        check()


def test_a_missing_entry_is_noticed(three_more):
    three_more.filter(position=2).delete()
    with pytest.raises(CommandError, match=r"Entry 2 of team:.* is missing"):
        check()


def test_a_cut_off_end_is_noticed(three_more):
    three_more.filter(position__gt=2).delete()
    with pytest.raises(CommandError, match="2 are there, and 4 were written"):
        check()


def rewrite(entries, **change):
    """What someone does who may write the tables and has no key: every hash computed anew."""
    entries.filter(position=2).update(**change)
    previous_hash = ""
    for entry in entries.order_by("position"):
        entry.previous_hash = previous_hash
        entry.hash = previous_hash = _hash(entry)
        entry.save()
    end = {"length": entries.count(), "last_hash": previous_hash}
    AuditChain.objects.filter(name=entries.first().chain).update(**end)


def test_a_rewritten_chain_is_noticed_without_its_key(three_more):
    rewrite(three_more, subject="another")
    with pytest.raises(CommandError) as faults:
        check()
    assert "Entry 2" in str(faults.value)
    assert "not sealed by this site" in str(faults.value)


def test_a_rewritten_chain_is_not_made_good_by_what_is_appended_or_sealed_anew(team, three_more):
    rewrite(three_more, subject="another")
    record(team=team, actor=None, action="batch.launch")
    call_command("reseal_audit_log", stdout=StringIO())
    with pytest.raises(CommandError, match=r"Entry 2 of team:.* was not sealed by this site"):
        check()


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_cut_off_end_is_noticed_though_the_chain_says_it_ends_there(team, three_more, goes_on):
    three_more.filter(position__gt=2).delete()
    last = three_more.get(position=2)
    AuditChain.objects.update(length=2, last_hash=last.hash, sealed_length=2)
    if goes_on:
        record(team=team, actor=None, action="batch.launch")
        call_command("reseal_audit_log", stdout=StringIO())
    with pytest.raises(CommandError, match=r"The end of team:.* was not sealed by this site"):
        check()


def test_the_seal_of_one_entry_holds_for_no_other(three_more):
    seals = list(three_more.order_by("position").values_list("seal", flat=True))
    assert len(set(seals)) == 4
    three_more.filter(position=2).update(seal=seals[2])
    with pytest.raises(CommandError, match="Entry 2"):
        check()


@pytest.fixture
def new_key(settings):
    """A key that was put before those there were."""
    former = list(settings.ENCRYPTION_KEYS)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *former]
    return settings.ENCRYPTION_KEYS[0]


def test_after_a_change_of_keys_older_seals_hold(team, three_more, new_key, settings):
    record(team=team, actor=None, action="batch.launch")
    assert check().startswith("5 entries")
    call_command("reseal_audit_log", stdout=StringIO())
    settings.ENCRYPTION_KEYS = [new_key]
    assert check().startswith("5 entries")


def test_a_key_that_was_taken_away_too_early_is_missed_and_put_back(
    team, three_more, new_key, settings
):
    both = settings.ENCRYPTION_KEYS
    settings.ENCRYPTION_KEYS = [new_key]
    record(team=team, actor=None, action="batch.launch")
    with pytest.raises(CommandError, match="ENCRYPTION_KEYS was taken away"):
        check()
    settings.ENCRYPTION_KEYS = both
    with pytest.raises(CommandError, match="goes on after its sealed end, at entry 4"):
        check()
    assert reseal(AuditChain.objects.get()) == 4
    assert check().startswith("5 entries")


def test_entries_from_before_there_were_seals_are_sealed_as_they_stand(three_more):
    three_more.update(seal="")
    AuditChain.objects.update(seal="", sealed_length=0)
    migration = import_module("accounts.migrations.0003_audit_seals")
    migration.seal_what_is_there(apps, None)
    assert check().startswith("4 entries")


def test_a_deleted_user_stays_in_the_log_by_name(team):
    record(team=team, actor=User.objects.create_user("ben"), action="item.import")
    User.objects.get(username="ben").delete()
    assert AuditEntry.objects.of(team).first().actor_name == "ben"
    check()


@pytest.mark.django_db(transaction=True)
def test_entries_at_the_same_moment_make_one_chain():
    team = create_team(name="Lab", owner=User.objects.create_user("ada"))

    def append():
        for _ in range(5):
            record(team=team, actor=None, action="batch.launch")
        connection.close()

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert AuditChain.objects.get().length == 21
    check()

import threading
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection

from accounts import audit, teams
from accounts.models import AuditChain, AuditEntry, User
from tests.annotation.importing import command_output, numbers_in
from tests.codes import refused_naming

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return teams.create_team(name="Lab", owner=User.objects.create_user("ada"))


@pytest.fixture
def three_more(team):
    for number in range(3):
        audit.record(team=team, actor=None, action="batch.launch", subject=f"s{number}")
    return AuditEntry.objects.of(team)


def faults():
    return [fault.code for chain in AuditChain.objects.all() for fault in audit.chain_faults(chain)]


def test_a_log_that_nobody_touched_holds(three_more):
    audit.record(team=None, actor=None, action="team.create", details={"zahl": 1.5, "wort": "ä"})
    # A deleted user stays in the log by name.
    audit.record(team=None, actor=User.objects.create_user("ben"), action="item.import")
    User.objects.get(username="ben").delete()
    assert AuditEntry.objects.filter(actor_name="ben").exists()
    assert numbers_in(command_output("check_audit_log")) == [6, 2]
    assert faults() == []


CHANGES = [
    {"subject": "another"},
    {"details": {"amount_usd": "1.00"}},
    {"actor_name": "ben"},
    {"action": "batch.close"},
    {"previous_hash": "0" * 64},
]


@pytest.mark.parametrize("change", [*CHANGES, "missing", "cut off"])
def test_what_is_changed_or_missing_is_noticed(three_more, change):
    code, named = "changed_entry", ["Entry 2 of team:"]
    if change == "missing":
        three_more.filter(position=2).delete()
        code = "missing_entry"
    elif change == "cut off":
        three_more.filter(position__gt=2).delete()
        code, named = "missing_end", [2, 4]
    else:
        three_more.filter(position=2).update(**change)
    assert faults()[0] == code
    with refused_naming(CommandError, *named):
        command_output("check_audit_log")


def rewrite(entries, **change):
    entries.filter(position=2).update(**change)
    previous_hash = ""
    for entry in entries.order_by("position"):
        entry.previous_hash = previous_hash
        entry.hash = previous_hash = audit._hash(entry)
        entry.save()
    end = {"length": entries.count(), "last_hash": previous_hash}
    AuditChain.objects.filter(name=entries.first().chain).update(**end)


def test_a_rewritten_chain_is_not_made_good_by_what_is_appended_or_sealed_anew(team, three_more):
    rewrite(three_more, subject="another")
    assert faults()[0] == "unsealed_entry"
    audit.record(team=team, actor=None, action="batch.launch")
    call_command("reseal_audit_log", stdout=StringIO())
    assert faults()[0] == "unsealed_entry"
    with refused_naming(CommandError, "Entry 2 of team:"):
        command_output("check_audit_log")


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_cut_off_end_is_noticed_though_the_chain_says_it_ends_there(team, three_more, goes_on):
    three_more.filter(position__gt=2).delete()
    AuditChain.objects.update(length=2, last_hash=three_more.get(position=2).hash, sealed_length=2)
    if goes_on:
        audit.record(team=team, actor=None, action="batch.launch")
        call_command("reseal_audit_log", stdout=StringIO())
    assert faults() == ["unsealed_end"]


def test_the_seal_of_one_entry_holds_for_no_other(three_more):
    seals = list(three_more.order_by("position").values_list("seal", flat=True))
    assert len(set(seals)) == 4
    three_more.filter(position=2).update(seal=seals[2])
    assert faults() == ["unsealed_entry"]


def test_a_key_that_was_removed_too_early_is_missed(team, three_more, settings):
    new_key = Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = both = [new_key, *settings.ENCRYPTION_KEYS]
    assert faults() == []
    settings.ENCRYPTION_KEYS = [new_key]
    audit.record(team=team, actor=None, action="batch.launch")
    assert faults() == ["unsealed_entry", "unsealed_end"]
    settings.ENCRYPTION_KEYS = both
    assert faults() == ["unsealed_rest"]
    assert audit.reseal(AuditChain.objects.get()) == 4
    # What is sealed under the new key holds without the former.
    settings.ENCRYPTION_KEYS = [new_key]
    assert faults() == []


@pytest.mark.django_db(transaction=True)
def test_entries_at_the_same_moment_make_one_chain():
    team = teams.create_team(name="Lab", owner=User.objects.create_user("ada"))

    def append():
        for _ in range(5):
            audit.record(team=team, actor=None, action="batch.launch")
        connection.close()

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert AuditChain.objects.get().length == 21
    assert faults() == []

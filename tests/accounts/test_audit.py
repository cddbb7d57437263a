"""The audit log: entries in a chain that shows where one was changed or taken away."""

import threading
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.audit import record
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

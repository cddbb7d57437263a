"""The commands, over the network: publish, replay, collect, approve."""

import json
import re
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command, load_command_class

from annotation.exceptions import ProtocolInvalid, StudyUnknown
from annotation.frames import judgment_frame
from annotation.models import Submission
from hits.connections import site_connection
from hits.exceptions import (
    BatchUnfit,
    CredentialsMissing,
    FundsMissing,
    MarketplaceUnreachable,
    NothingPublished,
)
from hits.models import Assignment, Batch, Connection, Hit
from hits.review import decide
from marketplace.models import Hit as MarketplaceHit
from tests.annotation.importing import command_output
from tests.annotation.studies import add_candidates
from tests.codes import refused, refused_naming
from tests.hits.work import balance_of, hits_there, tables
from tests.marketplace.conftest import submit


def publish(**options) -> str:
    return command_output("publish_study", "ratings", reward=Decimal("0.10"), **options)


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)


def approve(**options) -> dict[str, object]:
    [batch] = json.loads(command_output("approve_study", "ratings", json=True, **options))[
        "batches"
    ]
    return batch


def collect() -> list[str]:
    """How many assignments are new, and of how many open HITs."""
    return numbers(command_output("collect_study", "ratings"))[1:]


def published_for_two(site: str, *, n_workers: int = 2) -> None:
    publish(assignments=2)
    replay(site, workers=n_workers)
    command_output("collect_study", "ratings")


@pytest.mark.parametrize(
    "words",
    [
        *(
            ("publish_study", f"--reward={reward}")
            for reward in ("1e3", "1_0", "\uff11", "NaN", "Infinity", "-1", "", "ten cents", "0,10")
        ),
        *(("replay_crowd", f"--workers={number}") for number in ("0", "-2", "many")),
    ],
)
def test_a_reward_and_a_number_of_workers_are_plain_numbers(capsys, words):
    command, option = words
    assert exit_code_of(command, "ratings", option) == 2
    errors = capsys.readouterr().err
    assert all(word in errors for word in option.split("=", 1))


@pytest.mark.slow
def test_the_whole_loop_and_again_changes_nothing(study, site, client):
    cost = ["3", "6", "0.60", "0.00", "0.60"]
    assert numbers(publish(assignments=2))[-5:] == cost
    assert numbers(replay(site, workers=2))[1:3] == ["2", "6"]
    assert collect() == ["6", "3"]
    # Approvals that were written down and not sent are counted, too.
    four = Assignment.objects.filter(pk__in=Assignment.objects.values("pk")[:4])
    decide(assignments=four, decision=Assignment.Decision.APPROVE)
    preview = approve(dry_run=True)
    assert (preview["would_approve"], preview["rewards_usd"]) == (6, "0.60")
    assert balance_of(client) == ("9.40", "0.60")
    assert approve()["n_approved"] == 6
    assert balance_of(client) == ("9.40", "0.00")
    assert len(judgment_frame(study)) == 12
    assert set(Submission.objects.values_list("status", flat=True)) == {"approved"}
    Batch.objects.update(collected_at=None)  # when it was asked, which is later
    before = tables(), balance_of(client), hits_there(client)
    published_for_two(site)
    assert approve()["n_approved"] == 0
    Batch.objects.update(collected_at=None)
    assert (tables(), balance_of(client), hits_there(client)) == before
    assert collect() == ["0", "0"]
    assert approve(dry_run=True)["rewards_usd"] == "0.00"


def test_without_a_key_a_dry_run_works_and_nothing_is_kept(study, settings):
    settings.MARKETPLACE_ACCESS_KEY_ID = ""
    site_connection()  # a migration makes it, and flushing took it away
    before = tables()
    report = json.loads(publish(assignments=2, dry_run=True, json=True))
    assert (report["hits"], report["assignments"], report["total_usd"]) == (3, 6, "0.60")
    assert numbers(publish(assignments=2, dry_run=True)) == ["3", "6", "0.60", "0.00", "0.60"]
    with pytest.raises(CredentialsMissing):
        publish()
    assert tables() == before
    assert not MarketplaceHit.objects.exists()
    # It has the faults of the protocol that its editor has.
    study.questions.update(high_label="")
    with refused_naming(ProtocolInvalid, "questions[1].high_label"):
        publish(dry_run=True)
    assert not study.protocols.exists()


def replay(site: str, **options) -> str:
    return command_output("replay_crowd", "ratings", site=site, **options)


def exit_code_of(*words: str) -> object:
    """The exit code of a command line that is refused before the command runs."""
    with pytest.raises(SystemExit) as error:
        load_command_class("hits", words[0]).run_from_argv(["manage.py", *words])
    return error.value.code


def test_what_waits_in_a_batch_is_published_by_running_again(study, site, client):
    """A batch of another marketplace is left alone."""
    elsewhere = Connection.objects.create(name="elsewhere", marketplace="other.example.org")
    facts = {"title": "T", "description": "D", "reward_usd": Decimal("0.10")}
    other = Batch.objects.create(study=study, connection=elsewhere, **facts)
    publish()
    assert Batch.objects.exclude(pk=other.pk).get().connection == site_connection()
    Hit.objects.filter(pk=Hit.objects.first().pk).update(hit_id="")
    item = study.items.create(key="d3", context="Context 3", position=3)
    add_candidates(item, ["alpha", "beta"], are_systems=True)
    assert json.loads(publish(dry_run=True, json=True))["hits"] == 2
    assert json.loads(publish(json=True))["hits"] == 2
    assert len(hits_there(client)) == Hit.objects.published().count() == 4
    assert not Hit.objects.of(other).exists()


def test_without_money_or_a_marketplace_nothing_is_published_or_kept(
    study, site, client, settings, monkeypatch
):
    site_connection()  # a migration makes it, and flushing took it away
    before = tables()
    with refused_naming(FundsMissing, "$18.00", "$10.00"):
        command_output("publish_study", "ratings", reward=Decimal("6.00"), assignments=1)
    assert hits_there(client) == []
    monkeypatch.setattr("hits.endpoints.PATIENCE", None)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    settings.MARKETPLACE_ENDPOINT_URL = "http://127.0.0.1:9/requester"
    with refused(MarketplaceUnreachable, "no_answer"):
        publish()
    assert tables() == before


@pytest.mark.django_db
def test_an_unknown_study_is_told(study, settings):
    """One that was never published asks nothing of the marketplace."""
    settings.MARKETPLACE_ACCESS_KEY_ID = ""
    Batch.objects.create(
        study=study,
        connection=site_connection(),
        title="T",
        description="D",
        reward_usd=Decimal("0.10"),
    )
    with refused_naming(StudyUnknown, "nothing-such"):
        command_output("publish_study", "nothing-such", reward=Decimal("0.10"))
    for command in ("collect_study", "approve_study", "replay_crowd"):
        with refused_naming(StudyUnknown, "nothing-such"):
            command_output(command, "nothing-such")
        with refused_naming(NothingPublished, "ratings"):
            command_output(command, "ratings")


@pytest.mark.slow
def test_only_what_could_be_read_and_is_not_rejected_is_approved(study, site, client, bob):
    published_for_two(site, n_workers=1)
    submit(bob, Hit.objects.first().hit_id, answer="nonsense")
    assert collect() == ["1", "3", "1"]
    one = Assignment.objects.exclude(submission=None).first()
    decide(
        assignments=Assignment.objects.filter(pk=one.pk),
        decision=Assignment.Decision.REJECT,
        feedback="Not read.",
    )
    outcome = approve()
    assert (outcome["n_approved"], outcome["n_rejected"]) == (2, 1)
    unread = Assignment.objects.get(submission=None)
    assert (unread.status, unread.decision) == ("Submitted", "")


def test_what_no_worker_or_marketplace_takes_is_refused_before_any_money_is_held(
    study, site, client, tmp_path
):
    path = tmp_path / "workers.txt"
    path.write_text("A1GOOD\nnobody@example.org\n")
    before = balance_of(client)
    workers = ("--country=uk", "--country=Germany", "--min-approval=101", "--min-approved=-1")
    rewards = ("1e40", "1e9999999", "snan", "-0.10", "0.001", "nan")
    for options in (
        *([f"--reward={reward}"] for reward in rewards),
        *(["--reward=0.10", option] for option in workers),
        ["--reward=0.10", f"--exclude-list={path}"],
        *(["--reward=0.10", option] for option in ("--minutes=0", "--days=366", "--round=0")),
    ):
        with pytest.raises((CommandError, BatchUnfit)):
            call_command("publish_study", "ratings", *options)
    assert not Batch.objects.exists()
    assert (balance_of(client), hits_there(client)) == (before, [])

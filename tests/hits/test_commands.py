"""The commands, over the network: publish, replay, collect, approve."""

import csv
import json
from dataclasses import replace
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command, load_command_class

from annotation.exceptions import ProtocolInvalid, StudyUnknown
from annotation.frames import judgment_frame
from annotation.models import Study, Submission
from annotation.protocols.versions import current_document, save_draft
from hits.connections import site_connection
from hits.exceptions import (
    BatchUnfit,
    CredentialsMissing,
    FundsMissing,
    HitsError,
    MarketplaceUnreachable,
    NothingPublished,
)
from hits.models import Assignment, Batch, Connection, Hit
from hits.review import decide
from marketplace.models import Hit as MarketplaceHit
from marketplace.models import WorkerAccount
from tests.annotation.importing import command_output
from tests.annotation.studies import add_candidates
from tests.hits.work import balance_of, hits_there, tables
from tests.marketplace.conftest import submit


@pytest.fixture
def site(live_server, keys, settings):
    """The site of this test, with the requester's key where commands look for it."""
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = keys["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys["secret_access_key"]
    return live_server.url


def publish(**options) -> str:
    return command_output("publish_study", "ratings", reward=Decimal("0.10"), **options)


def replay(site: str, **options) -> str:
    return command_output("replay_crowd", "ratings", site=site, **options)


def exit_code_of(*words: str) -> object:
    """The exit code of a command line that is refused before the command runs."""
    with pytest.raises(SystemExit) as error:
        load_command_class("hits", words[0]).run_from_argv(["manage.py", *words])
    return error.value.code


@pytest.mark.parametrize("reward", ["1e3", "1_0", "\uff11", "NaN", "Infinity", "-1", ""])
def test_a_reward_is_plain_dollars(reward):
    assert exit_code_of("publish_study", "ratings", f"--reward={reward}") == 2


def test_the_whole_loop(study, site, client):
    cost = "3 HITs, 6 assignments: rewards $0.60, fees $0.00, in all $0.60"
    assert publish(assignments=2).endswith(f"({cost}).\n")
    assert "2 workers submitted 6 assignments" in replay(site, workers=2)
    assert "6 new assignments from 3 open HITs." in command_output("collect_study", "ratings")
    assert "would approve 6 assignments, $0.60" in command_output(
        "approve_study", "ratings", dry_run=True
    )
    assert balance_of(client) == ("9.40", "0.60")
    assert "6 assignments approved" in command_output("approve_study", "ratings")
    assert balance_of(client) == ("9.40", "0.00")
    assert len(judgment_frame(study)) == 12
    assert set(Submission.objects.values_list("status", flat=True)) == {"approved"}


def test_the_whole_loop_again_changes_nothing(study, site, client):
    def loop() -> None:
        publish(assignments=2)
        replay(site, workers=2)
        command_output("collect_study", "ratings")
        command_output("approve_study", "ratings")
        Batch.objects.update(collected_at=None)  # when it was asked, which is later

    loop()
    before = tables(), balance_of(client), hits_there(client)
    loop()
    assert (tables(), balance_of(client), hits_there(client)) == before
    assert "0 new assignments from 0 open HITs." in command_output("collect_study", "ratings")
    assert "would approve 0 assignments, $0.00" in command_output(
        "approve_study", "ratings", dry_run=True
    )


def test_a_dry_run_needs_no_marketplace_and_keeps_nothing(study, settings):
    settings.MARKETPLACE_ACCESS_KEY_ID = ""
    site_connection()  # a migration makes it, and flushing took it away
    before = tables()
    answer = publish(assignments=2, dry_run=True)
    cost = "3 HITs, 6 assignments: rewards $0.60, fees $0.00, in all $0.60"
    assert answer == f"Would publish {cost}. Nothing was published.\n"
    assert tables() == before
    assert not MarketplaceHit.objects.exists()


def test_a_dry_run_lists_the_faults_of_the_protocol_as_its_editor_does(study, settings):
    settings.MARKETPLACE_ENDPOINT_URL = "http://127.0.0.1:9/requester"
    study.questions.update(high_label="")
    with pytest.raises(ProtocolInvalid) as refused:
        publish(dry_run=True)
    assert "questions[1].high_label: Say what the greatest value means" in str(refused.value)
    assert not study.protocols.exists()


def test_a_dry_run_says_that_the_pilot_was_of_another_version(study, site, capsys):
    publish(items=1)
    assert capsys.readouterr().err == ""
    document = current_document(study)
    save_draft(study=study, document=replace(document, instructions="Read twice."))
    publish(dry_run=True)
    warning = capsys.readouterr().err
    pilot = Batch.objects.get()
    assert warning.startswith("Warning: This launch is of version 2 of the protocol")
    assert f"batch {pilot.pk} of the same round was of version 1" in warning
    assert len(json.loads(publish(dry_run=True, json=True))["warnings"]) == 1
    assert json.loads(publish(dry_run=True, json=True, round=2))["warnings"] == []
    save_draft(study=study, document=document)
    assert json.loads(publish(dry_run=True, json=True))["warnings"] == []


def test_what_waits_in_a_batch_is_published_by_running_again(study, site, client):
    publish()
    Hit.objects.filter(pk=Hit.objects.first().pk).update(hit_id="")
    item = study.items.create(key="d3", context="Context 3", position=3)
    add_candidates(item, ["alpha", "beta"], are_systems=True)
    assert "Would publish 2 HITs" in publish(dry_run=True)
    assert "Published 2 HITs" in publish()
    assert len(hits_there(client)) == Hit.objects.published().count() == 4


@pytest.mark.parametrize("setting", [{"reward": "0.20"}, {"assignments": 4}])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_round_has_one_price(study, site, setting, dry_run):
    command_output("publish_study", "ratings", reward=Decimal("0.10"), assignments=3)
    options = {"reward": "0.10", "assignments": 3} | setting
    options["reward"] = Decimal(options["reward"])
    with pytest.raises(BatchUnfit, match=r"--reward 0\.10 and --assignments 3.*--round 2"):
        command_output("publish_study", "ratings", dry_run=dry_run, **options)
    assert Batch.objects.count() == 1
    command_output("publish_study", "ratings", round=2, **options)
    assert Batch.objects.get(round=2).max_assignments == options["assignments"]


def test_a_batch_of_another_marketplace_is_left_alone(study, site, client):
    elsewhere = Connection.objects.create(name="elsewhere", marketplace="other.example.org")
    other = Batch.objects.create(
        study=study,
        connection=elsewhere,
        title="T",
        description="D",
        reward_usd=Decimal("0.10"),
    )
    publish()
    assert Batch.objects.exclude(pk=other.pk).get().connection == site_connection()
    assert not Hit.objects.of(other).exists()


def test_without_the_money_nothing_is_published_or_kept(study, site, client):
    site_connection()  # a migration makes it, and flushing took it away
    before = tables()
    with pytest.raises(FundsMissing, match=r"in all \$18\.00; .* only \$10\.00"):
        command_output("publish_study", "ratings", reward=Decimal("6.00"), assignments=1)
    assert tables() == before
    assert hits_there(client) == []


def test_without_a_key_nothing_is_kept(study, settings):
    settings.MARKETPLACE_ACCESS_KEY_ID = ""
    site_connection()  # a migration makes it, and flushing took it away
    before = tables()
    with pytest.raises(CredentialsMissing):
        publish()
    assert tables() == before


@pytest.mark.parametrize(
    "command", ["publish_study", "collect_study", "approve_study", "replay_crowd"]
)
@pytest.mark.django_db
def test_an_unknown_study_is_told(command):
    options = {"reward": Decimal("0.10")} if command == "publish_study" else {}
    with pytest.raises(StudyUnknown, match="nothing-such"):
        command_output(command, "nothing-such", **options)


@pytest.mark.parametrize("reward", ["ten cents", "", "0,10"])
def test_a_reward_that_is_no_number_is_bad_input(capsys, reward):
    assert exit_code_of("publish_study", "ratings", f"--reward={reward}") == 2
    assert f"--reward: '{reward}' is not an amount of dollars" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-2", "many"])
def test_a_crowd_has_somebody_in_it(capsys, number):
    assert exit_code_of("replay_crowd", "ratings", f"--workers={number}") == 2
    assert f"--workers: '{number}' is not a whole number from 1 up" in capsys.readouterr().err


@pytest.mark.parametrize("reward", ["1e40", "1e9999999", "snan", "-0.10", "0.001"])
def test_a_reward_that_no_account_can_hold_is_refused(study, reward):
    with pytest.raises((BatchUnfit, CommandError)):
        call_command("publish_study", "ratings", f"--reward={reward}")


@pytest.mark.parametrize("option", ["--reward=nan", "--minutes=0", "--days=366", "--round=0"])
def test_settings_that_no_marketplace_takes_are_refused(study, option):
    options = [option] if "reward" in option else ["--reward=0.10", option]
    with pytest.raises((BatchUnfit, CommandError)):
        call_command("publish_study", "ratings", *options)
    assert not Batch.objects.exists()


@pytest.mark.parametrize("command", ["collect_study", "approve_study", "replay_crowd"])
def test_a_study_that_was_never_published_asks_nothing_of_the_marketplace(study, settings, command):
    settings.MARKETPLACE_ACCESS_KEY_ID = ""
    Batch.objects.create(
        study=study,
        connection=site_connection(),
        title="T",
        description="D",
        reward_usd=Decimal("0.10"),
    )
    with pytest.raises(NothingPublished, match=r"Publish it first: .*publish_study ratings"):
        command_output(command, "ratings")


def test_a_crowd_lives_in_the_countries_that_a_batch_takes(study, site, client):
    publish(country=["DE", "AT"])
    assert "2 workers submitted 6 assignments" in replay(site, workers=2)
    homes = WorkerAccount.objects.filter(user__username__startswith="crowd")
    assert sorted(homes.values_list("country", flat=True)) == ["AT", "DE"]


def test_a_crowd_that_nothing_is_open_for_says_why(study, site, client):
    publish(min_approved=500)
    said = replay(site, workers=1)
    assert "1 worker submitted 0 assignments" in said
    reason = said.split("Nothing was open for them: ")[1]
    assert "500" in reason


def test_what_could_not_be_read_is_not_approved(study, site, client, ann, bob):
    publish(assignments=2)
    replay(site, workers=1)
    submit(bob, Hit.objects.first().hit_id, answer="nonsense")
    assert "kept but not read: 1" in command_output("collect_study", "ratings")
    assert "3 assignments approved" in command_output("approve_study", "ratings")
    unread = Assignment.objects.get(submission=None)
    assert (unread.status, unread.decision) == ("Submitted", "")


def test_approvals_that_were_written_down_but_not_sent_are_counted_and_sent(study, site, client):
    publish(assignments=2)
    replay(site, workers=2)
    command_output("collect_study", "ratings")
    four = Assignment.objects.filter(pk__in=Assignment.objects.values("pk")[:4])
    decide(assignments=four, decision=Assignment.Decision.APPROVE)
    assert "would approve 6 assignments, $0.60" in command_output(
        "approve_study", "ratings", dry_run=True
    )
    assert "6 assignments approved" in command_output("approve_study", "ratings")
    assert balance_of(client) == ("9.40", "0.00")


def test_a_rejection_that_waited_to_be_sent_is_not_told_as_an_approval(study, site, client):
    publish(assignments=2)
    replay(site, workers=2)
    command_output("collect_study", "ratings")
    one = Assignment.objects.filter(pk=Assignment.objects.values("pk")[:1])
    decide(assignments=one, decision=Assignment.Decision.REJECT, feedback="Not read.")
    assert "5 assignments approved, 1 rejected" in command_output("approve_study", "ratings")


SYSTEMS = {"gpt": (71, 12), "rule": (30.5, 88)}


@pytest.fixture
def batch_results(tmp_path):
    """A Mechanical Turk batch results file: two workers, two inputs, one rejection, and two
    responses of one input with the same text."""
    path = tmp_path / "batch.csv"
    header = ["HITId", "WorkerId", "AssignmentStatus", "Input.id", "Input.said"]
    header += [f"Input.{name}" for name in SYSTEMS] + [f"Answer.quality_{name}" for name in SYSTEMS]
    rows = [
        ["H1", "A1WORKER", "Approved", "x", "Hello?", "Hi.", "Hi.", 71, 30.5],
        ["H1", "A2WORKER", "Approved", "x", "Hello?", "Hi.", "Hi.", 12, 88],
        ["H2", "A1WORKER", "Approved", "y", "Bye.", "Ciao.", "Farewell", 0, 100],
        ["H2", "A3WORKER", "Rejected", "y", "Bye.", "Ciao.", "Farewell", 5, 5],
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def values_of(slug: str):
    frame = judgment_frame(Study.objects.get(slug=slug))
    columns = ["item", "candidate", "question", "value"]
    return sorted(frame[columns].itertuples(index=False, name=None))


def test_a_recorded_batch_replayed_is_the_batch_imported(site, batch_results, client):
    layout = {"context": "said", "item": ["id"]}
    command_output("import_mturk_batch", batch_results, study="imported", **layout)
    command_output(
        "import_mturk_batch",
        batch_results,
        study="replayed",
        items_only=True,
        ends=("bad", "good"),
        **layout,
    )
    command_output("publish_study", "replayed", reward=Decimal("0.10"), assignments=2)
    options = {"site": site, "recorded": batch_results} | layout
    assert "2 workers submitted 3 assignments" in command_output(
        "replay_crowd", "replayed", **options
    )
    assert "submitted 0 assignments (3 HITs" in command_output(
        "replay_crowd", "replayed", **options
    )
    command_output("collect_study", "replayed")
    command_output("approve_study", "replayed")
    assert values_of("replayed") == values_of("imported")
    assert len(values_of("replayed")) == 6


def test_a_marketplace_that_is_down_is_one_sentence(study, site, settings, monkeypatch):
    monkeypatch.setattr("hits.endpoints.PATIENCE", None)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    settings.MARKETPLACE_ENDPOINT_URL = "http://127.0.0.1:9/requester"
    with pytest.raises(MarketplaceUnreachable, match="No marketplace answers") as unreachable:
        publish()
    assert isinstance(unreachable.value, HitsError)
    assert not Batch.objects.exists()


@pytest.mark.parametrize(
    "option",
    ["--country=uk", "--country=Germany", "--min-approval=101", "--min-approved=-1", "listed"],
)
def test_what_no_worker_could_meet_is_refused_before_any_money_is_held(
    study, site, client, tmp_path, option
):
    if option == "listed":
        path = tmp_path / "workers.txt"
        path.write_text("A1GOOD\nnobody@example.org\n")
        option = f"--exclude-list={path}"
    before = balance_of(client)
    with pytest.raises((CommandError, BatchUnfit)):
        call_command("publish_study", "ratings", "--reward=0.10", option)
    assert not Batch.objects.exists()
    assert (balance_of(client), hits_there(client)) == (before, [])

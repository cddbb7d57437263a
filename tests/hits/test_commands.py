import json
import re
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command, load_command_class

from annotation import frames, models
from annotation.exceptions import ProtocolInvalid, StudyUnknown
from annotation.protocols.documents import read_document
from annotation.protocols.versions import save_draft
from hits import connections, costs, decisions, exceptions, page_texts
from hits.collect import collect_batch
from hits.models import Assignment, Batch, Connection, Hit, Payment
from hits.pages.terms import initial_terms
from hits.wages import study_texts
from marketplace.models import BonusPayment, Hit as MarketplaceHit, WorkerBlock
from tests.annotation.importing import command_output
from tests.annotation.studies import add_candidates
from tests.codes import refused, refused_naming
from tests.hits.work import balance_of, hand_in, hit_on, hits_there, published_batch, tables
from tests.marketplace.conftest import submit


def publish(**options) -> str:
    return command_output("publish_study", "ratings", reward=Decimal("0.10"), **options)


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)


def approve(**options) -> dict[str, object]:
    answer = json.loads(command_output("approve_study", "ratings", json=True, **options))
    [batch] = answer["batches"]
    return batch


def collect() -> list[str]:
    return numbers(command_output("collect_study", "ratings"))[1:]


def published_for_two(site: str, *, n_workers: int = 2) -> None:
    publish(assignments=2)
    replay(site, workers=n_workers)
    command_output("collect_study", "ratings")


def test_a_reward_and_a_number_of_workers_are_plain_numbers(capsys):
    rewards = ("1e3", "1_0", "\uff11", "NaN", "Infinity", "-1", "", "ten cents", "0,10")
    for command, option, values in (
        ("publish_study", "--reward", rewards),
        ("replay_crowd", "--workers", ("0", "-2", "many")),
    ):
        for value in values:
            words = ["manage.py", command, "ratings", f"{option}={value}"]
            with pytest.raises(SystemExit) as error:
                load_command_class("hits", command).run_from_argv(words)
            errors = capsys.readouterr().err
            assert (error.value.code, option in errors, value in errors) == (2, True, True)


def test_hits_are_described_by_the_protocol_in_its_language(study, site):
    questions = [{"name": "fine", "kind": "yes_no", "wording": "Fine?"}]
    questions.append({"name": "best", "kind": "preference", "wording": "Which one?"})
    questions.append({"name": "why", "kind": "long_text", "wording": "Why?", "about": "item"})
    values = {"assay_protocol": 1, "title": "Replies", "language": "de", "questions": questions}
    save_draft(study=study, document=read_document(values | {"time": {"estimate_seconds": 150}}))
    publish()
    batch, german = Batch.objects.get(), page_texts.GERMAN
    kinds = ", ".join(german[name] for name in ("category", "comparison", "written answer"))
    assert (batch.title, batch.keywords) == ("Replies", kinds)
    facts = {"Responses to judge: {n}.": 2, "Questions: {names}.": kinds}
    facts["About {time}."] = "2 min 30 s"
    sentences = [re.sub(r"{\w+}", str(value), german[text]) for text, value in facts.items()]
    assert batch.description == " ".join(sentences)
    # The Launch page begins with the same.
    terms = initial_terms(study_texts(study), None, 3, Decimal("0.10"))
    assert all(terms[name] == getattr(batch, name) for name in ("title", "description", "keywords"))


@pytest.mark.slow
def test_the_whole_loop_and_again_changes_nothing(study, site, client):
    assert numbers(publish(assignments=2))[-5:] == ["3", "6", "0.60", "0.00", "0.60"]
    assert numbers(replay(site, workers=2))[1:3] == ["2", "6"]
    assert collect() == ["6", "3"]
    # Approvals that were written down and not sent are counted, too.
    four = Assignment.objects.filter(pk__in=Assignment.objects.values("pk")[:4])
    decisions.decide(assignments=four, decision=Assignment.Decision.APPROVE)
    preview = approve(dry_run=True)
    assert (preview["would_approve"], preview["rewards_usd"]) == (6, "0.60")
    assert balance_of(client) == ("9.40", "0.60")
    assert (approve()["n_approved"], balance_of(client)) == (6, ("9.40", "0.00"))
    assert len(frames.judgment_frame(study)) == 12
    assert set(models.Submission.objects.values_list("status", flat=True)) == {"approved"}
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
    connections.site_connection()  # a migration makes it, and flushing took it away
    before = tables()
    report = json.loads(publish(assignments=2, dry_run=True, json=True))
    assert (report["hits"], report["assignments"], report["total_usd"]) == (3, 6, "0.60")
    assert numbers(publish(assignments=2, dry_run=True)) == ["3", "6", "0.60", "0.00", "0.60"]
    with pytest.raises(exceptions.CredentialsMissing):
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


@pytest.mark.slow
def test_the_crowd_names_all_batches_of_the_group_that_it_works_on(study, site):
    publish(assignments=1)
    publish(assignments=1, round=2)
    first, second = Batch.objects.order_by("pk")
    assert first.hit_type_id == second.hit_type_id
    [line] = replay(site, workers=2).splitlines()
    assert numbers(line)[:4] == [str(first.pk), str(second.pk), "2", "6"]


def test_what_waits_in_a_batch_is_published_by_running_again(study, site, client):
    """A batch of another marketplace is left alone."""
    elsewhere = Connection.objects.create(name="elsewhere", marketplace="other.example.org")
    facts = {"title": "T", "description": "D", "reward_usd": Decimal("0.10")}
    other = Batch.objects.create(study=study, connection=elsewhere, **facts)
    publish()
    assert Batch.objects.exclude(pk=other.pk).get().connection == connections.site_connection()
    Hit.objects.filter(pk=Hit.objects.first().pk).update(hit_id="")
    item = study.items.create(key="d3", context="Context 3", position=3)
    add_candidates(item, ["alpha", "beta"], are_systems=True)
    assert json.loads(publish(dry_run=True, json=True))["hits"] == 2
    assert json.loads(publish(json=True))["hits"] == 2
    assert len(hits_there(client)) == Hit.objects.published().count() == 4
    assert not Hit.objects.of(other).exists()


@pytest.mark.usefixtures("study")
def test_without_money_or_a_marketplace_nothing_is_published(client, settings, monkeypatch):
    connections.site_connection()  # a migration makes it, and flushing took it away
    before = tables()
    with refused_naming(exceptions.FundsMissing, "$18.00", "$10.00"):
        command_output("publish_study", "ratings", reward=Decimal("6.00"), assignments=1)
    assert hits_there(client) == []
    monkeypatch.setattr("hits.endpoints.PATIENCE", None)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    settings.MARKETPLACE_ENDPOINT_URL = "http://127.0.0.1:9/requester"
    with refused(exceptions.MarketplaceUnreachable, "no_answer"):
        publish()
    assert tables() == before


def test_an_unknown_study_is_told(study, settings):
    """One that was never published asks nothing of the marketplace."""
    settings.MARKETPLACE_ACCESS_KEY_ID = ""
    facts = {"title": "T", "description": "D", "reward_usd": Decimal("0.10")}
    Batch.objects.create(study=study, connection=connections.site_connection(), **facts)
    with refused_naming(StudyUnknown, "nothing-such"):
        command_output("publish_study", "nothing-such", reward=Decimal("0.10"))
    for command in ("collect_study", "approve_study", "replay_crowd"):
        with refused_naming(StudyUnknown, "nothing-such"):
            command_output(command, "nothing-such")
        with refused_naming(exceptions.NothingPublished, "ratings"):
            command_output(command, "ratings")


@pytest.mark.slow
def test_only_what_could_be_read_and_is_not_rejected_is_approved(study, site, client, bob):
    published_for_two(site, n_workers=1)
    submit(bob, Hit.objects.first().hit_id, answer="nonsense")
    assert collect() == ["1", "3", "1"]
    one = Assignment.objects.filter(pk=Assignment.objects.exclude(submission=None).first().pk)
    decisions.decide(assignments=one, decision=Assignment.Decision.REJECT, feedback="Not read.")
    outcome = approve()
    assert (outcome["n_approved"], outcome["n_rejected"]) == (2, 1)
    unread = Assignment.objects.get(submission=None)
    assert (unread.status, unread.decision) == ("Submitted", "")


@pytest.mark.usefixtures("study")
def test_what_no_worker_or_marketplace_takes_is_refused_before_money_is_held(client, tmp_path):
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
        with pytest.raises((CommandError, exceptions.BatchUnfit)):
            call_command("publish_study", "ratings", *options)
    assert not Batch.objects.exists()
    assert (balance_of(client), hits_there(client)) == (before, [])


pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


@pytest.fixture
def ids(study, client, ann):
    batch = published_batch(study, client, reward_usd="1.00")
    ids = [hand_in(ann, hit_on(batch, f"d{n}"), {"alpha": n, "beta": 50}) for n in range(3)]
    collect_batch(batch=batch, client=client)
    return ids


@pytest.fixture
def file(tmp_path, ids):
    path = tmp_path / "bonuses.csv"
    rows = [f"{ids[0]},0.25,Thanks.", f"{ids[1]},$0.50,Thanks."]
    path.write_text("\n".join(["assignment_id,amount_usd,reason", *rows]))
    return path


def statuses():
    return dict(Assignment.objects.values_list("assignment_id", "status"))


def report_of(command, *words, **options):
    return json.loads(command_output(command, "ratings", *words, json=True, **options))


@pytest.mark.slow
def test_submissions_are_rejected_with_their_reason_and_a_part(ids, client):
    options = {"assignment": [ids[0]], "reason": "Half is missing.", "part": Decimal("0.40")}
    before = tables()
    for part in ("1.00", "400.00", "0.005", "0"):
        for dry_run in (True, False):
            wrong = options | {"part": Decimal(part), "dry_run": dry_run}
            with pytest.raises(exceptions.PaymentRefused):
                command_output("reject_submissions", "ratings", **wrong)
    with refused(exceptions.FeedbackUnfit, "no_feedback"):
        command_output("reject_submissions", "ratings", assignment=[ids[0]], reason=" ")
    with refused_naming(exceptions.AssignmentsUnknown, "3NOSUCH"):
        command_output("reject_submissions", "ratings", assignment=["3NOSUCH"], reason="No.")
    preview = command_output("reject_submissions", "ratings", dry_run=True, **options)
    assert ("1" in preview.split(), "$0.40" in preview) == (True, True)
    assert tables() == before
    report = report_of("reject_submissions", **options)
    assert (report["n_rejected"], report["paid_usd"]) == (1, "0.40")
    assert (statuses()[ids[0]], balance_of(client)) == ("Rejected", ("7.60", "2.00"))


@pytest.mark.slow
def test_a_part_needs_no_more_budget_than_the_reward_that_it_stands_for(ids, study, client):
    # Three assignments of $1.00 are committed, and no cent is left.
    costs.set_budget(study=study, cap_usd=Decimal("3.00"), actor=None)
    options = {"assignment": [ids[0]], "reason": "Half is missing."}
    command_output("reject_submissions", "ratings", part=Decimal("0.40"), **options)
    assert statuses()[ids[0]] == "Rejected"
    # $2.40 are committed then; what is more is held to the budget.
    bonus = {"assignment": ids[1], "reason": "Thanks."}
    with pytest.raises(exceptions.OverBudget):
        command_output("pay_bonuses", "ratings", amount=Decimal("0.70"), **bonus)
    command_output("pay_bonuses", "ratings", amount=Decimal("0.60"), **bonus)


@pytest.mark.slow
def test_bonuses_of_a_file_are_paid_once_however_often_it_is_given(ids, file, client):
    preview = command_output("pay_bonuses", "ratings", file, dry_run=True)
    assert ("$0.75" in preview, "$0.00" in preview) == (True, True)
    assert not BonusPayment.objects.exists()
    report = report_of("pay_bonuses", file)
    assert (report["n_paid"], report["paid_usd"]) == (2, "0.75")
    again = report_of("pay_bonuses", file)
    assert (again["n_paid"], len(again["problems"])) == (0, 2)
    assert balance_of(client) == ("6.25", "3.00")
    options = {"assignment": ids[2], "amount": Decimal("0.10"), "reason": "Thanks."}
    command_output("pay_bonuses", "ratings", **options)
    assert balance_of(client) == ("6.15", "3.00")
    with pytest.raises(CommandError):
        command_output("pay_bonuses", "ratings", assignment=ids[0])


@pytest.mark.slow
def test_what_is_paid_elsewhere_is_typed_first_and_paid_once(elsewhere, file):
    for typed in (None, Decimal("0.50"), Decimal("75")):
        with refused_naming(exceptions.PaymentRefused, "--spend 0.75"):
            command_output("pay_bonuses", "ratings", file, spend=typed)
    assert not Payment.objects.exists()
    assert not BonusPayment.objects.exists()
    command_output("pay_bonuses", "ratings", file, spend=Decimal("0.75"))
    assert BonusPayment.objects.count() == 2
    # The second time there is nothing to spend, and so nothing to type.
    command_output("pay_bonuses", "ratings", file)
    assert BonusPayment.objects.count() == 2


@pytest.fixture
def elsewhere(ids):
    Connection.objects.update(marketplace="there.example.org")


@pytest.mark.slow
def test_a_part_and_an_override_elsewhere_are_typed_first(elsewhere, ids):
    options = {"assignment": [ids[0]], "reason": "Half is missing."}
    with refused_naming(exceptions.PaymentRefused, "--spend 0.40"):
        command_output("reject_submissions", "ratings", part=Decimal("0.40"), **options)
    assert statuses()[ids[0]] == "Submitted"
    command_output("reject_submissions", "ratings", **options)
    with refused_naming(exceptions.PaymentRefused, "--spend 1.00"):
        command_output("override_rejections", "ratings", all=True)
    assert statuses()[ids[0]] == "Rejected"
    command_output("override_rejections", "ratings", all=True, spend=Decimal("1.00"))
    assert statuses()[ids[0]] == "Approved"


@pytest.mark.slow
def test_a_file_that_cannot_be_paid_is_refused_whole(ids, tmp_path):
    path = tmp_path / "wrong.csv"
    for content, code, shown in (
        ("assignment_id,amount_usd\nA,1", "missing_columns", "reason"),
        ("assignment_id,amount_usd,reason\nA,much,Thanks", "not_an_amount", "'much'"),
        ("assignment_id,amount_usd,reason\nA,1,T\nA,2,T", "named_twice", path.name),
    ):
        path.write_text(content)
        with refused(exceptions.BonusFileRefused, code) as error:
            command_output("pay_bonuses", "ratings", path)
        assert shown in str(error.value)
    assert not BonusPayment.objects.exists()


@pytest.mark.slow
def test_a_worker_is_blocked_and_unblocked(ids, ann):
    words = ("block_worker", "ratings", ann.worker_id)
    with pytest.raises(CommandError):
        command_output(*words)
    with refused_naming(exceptions.WorkerUnknown, "A0NOBODY"):
        command_output("block_worker", "ratings", "A0NOBODY", reason="No.")
    command_output(*words, reason="Random answers.", dry_run=True)
    assert not WorkerBlock.objects.exists()
    command_output(*words, reason="Random answers.")
    assert WorkerBlock.objects.get().reason == "Random answers."
    command_output(*words, unblock=True)
    assert not WorkerBlock.objects.exists()

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.audit import chain_faults
from accounts.models import AuditChain, AuditEntry, User
from hits import decisions, exceptions
from hits.contacts import note_worker, send_messages
from hits.costs import commitments, set_budget, spend_of
from hits.drafts import Action, draft_decision, drafts_of, paid_part, summary_of, undo_draft
from hits.models import (
    Assignment,
    Batch,
    DraftDecision,
    Message,
    Payment,
    Recruiter,
    Recruitment,
    WorkerBlock,
    WorkerNote,
)
from hits.sending import record_drafts, retry_refused, send_review
from marketplace import clock, models
from tests.annotation.importing import command_output
from tests.codes import codes_of, refused
from tests.hits.samples import lab_study
from tests.hits.wire import Killed, killed_after, killed_before
from tests.hits.work import balance_of, collected_work, requester_keys


def test_drafts_are_taken_back_before_they_leave(work, draft, study, rosa, carl, wire, client):
    wire.calls.clear()
    draft(work[0], Action.APPROVE)
    draft(work[1], Action.REJECT, "Everything is 50.")
    draft(work[0], Action.REJECT, "No.", reviewer=carl)
    note_worker(team=study.team, worker=work[0].worker, text="Asked for more.", author=rosa)
    assert [note.text for note in WorkerNote.objects.all()] == ["Asked for more."]
    assert not wire.calls
    assert (set(statuses()), balance_of(client)) == ({"Submitted"}, ("4.00", "6.00"))
    assert [one.action for one in drafts_of(study, carl)] == ["reject"]
    assert undo_draft(reviewer=carl, study=study).action == "reject"
    assert undo_draft(reviewer=carl, study=study) is None
    assert undo_draft(reviewer=rosa, study=study).assignment == work[1]
    assert undo_draft(reviewer=rosa, study=study).assignment == work[0]
    assert undo_draft(reviewer=rosa, study=study) is None


@pytest.fixture(scope="module")
def keys(stored_for_module):
    """Of the requester of all these tests, who has six assignments of $1.00 by Ann and Bob."""
    keys = requester_keys()
    collected_work(lab_study(User.objects.create_user("rosa")), keys, "ann", "bob")
    return keys


@pytest.fixture
def rosa(keys, db):
    return User.objects.get(username="rosa")


@pytest.fixture
def carl(db):
    return User.objects.create_user("carl")


@pytest.fixture
def work(study, wire):
    return list(Assignment.objects.filter(hit__batch__study=study).order_by("pk"))


@pytest.fixture
def draft(rosa):
    def draft_(assignment, action, text="", amount=None, **fields):
        fields = {"reviewer": rosa} | fields
        amount_usd = None if amount is None else Decimal(amount)
        return draft_decision(
            assignment=assignment, action=action, text=text, amount_usd=amount_usd, **fields
        )

    return draft_


@pytest.fixture
def send(study, client, rosa):
    def send_(reviewer=rosa, **form):
        digest = summary_of(drafts_of(study, reviewer)).digest
        result = record_drafts(reviewer=reviewer, study=study, digest=digest, **form)
        return result, send_review(study=study, client_for=lambda connection: client)

    return send_


def statuses():
    return list(Assignment.objects.order_by("pk").values_list("status", flat=True))


def test_the_summary_counts_every_kind_with_its_cost_to_the_cent(work, draft, study, rosa):
    connection = work[0].hit.batch.connection
    connection.fees = "mturk"
    connection.save()
    # A second verdict replaces the first, and a bonus is beside it.
    draft(work[0], Action.REJECT, "No.")
    draft(work[0], Action.APPROVE)
    draft(work[1], Action.APPROVE)
    draft(work[2], Action.REJECT, "Too quick.")
    draft(work[3], Action.PART_PAY, "Half is missing.", "0.33")
    draft(work[0], Action.BONUS, "Thanks.", "0.12")
    summary = summary_of(drafts_of(study, rosa))
    assert summary.numbers == {"approve": 2, "reject": 1, "part_pay": 1, "bonus": 1}
    costs = {"approve": "2.40", "reject": "0", "part_pay": "0.40", "bonus": "0.14"}
    assert summary.costs_usd == {name: Decimal(usd) for name, usd in costs.items()}
    assert summary.total_usd == Decimal("2.94")


def test_every_kind_of_decision_arrives(work, draft, send, client, ann, bob):
    draft(work[0], Action.APPROVE, "Good.")
    draft(work[1], Action.REJECT, "Everything is 50.")
    draft(work[2], Action.PART_PAY, "Half is missing.", "0.30")
    draft(work[0], Action.BONUS, "Thanks.", "0.20")
    draft(work[0], Action.MESSAGE, "More will come.", subject="Thank you")
    draft(work[1], Action.BLOCK, "Answers at random.")
    drafts, review = send()
    assert (drafts.n_recorded, drafts.problems) == (6, [])
    assert (review.n_approved, review.n_rejected, review.n_paid) == (1, 2, 2)
    assert (review.paid_usd, review.n_messages, review.n_blocks) == (Decimal("0.50"), 1, 1)
    amounts = {name: review.record()[name] for name in ("rewards_usd", "paid_usd", "total_usd")}
    assert amounts == {"rewards_usd": "1.00", "paid_usd": "0.50", "total_usd": "1.50"}
    assert statuses() == ["Approved", "Rejected", "Rejected", *["Submitted"] * 3]
    assert balance_of(client) == ("5.50", "3.00")
    record = client.get_assignment(AssignmentId=work[2].assignment_id)["Assignment"]
    assert record["RequesterFeedback"] == "Half is missing."
    assert models.WorkerMessage.objects.get(subject="Thank you").text == "More will come."
    assert models.WorkerBlock.objects.get().reason == "Answers at random."
    assert not DraftDecision.objects.exists()
    assert review.n_refused == 0
    entries = AuditEntry.objects.filter(action__startswith="review.").order_by("position")
    content = {entry.action: entry.details for entry in entries}
    assert content["review.approve"]["assignments"] == [work[0].assignment_id]
    assert content["review.reject"]["text"] == "Everything is 50."
    assert {entry.actor_name for entry in entries} == {"rosa"}
    assert set(Message.objects.values_list("state", flat=True)) == {"confirmed"}
    draft(work[1], Action.UNBLOCK)
    assert send()[1].n_blocks == 1
    assert not models.WorkerBlock.objects.exists()
    assert WorkerBlock.objects.filter(is_active=False, state="confirmed").exists()


def test_a_rejection_is_overridden_within_its_30_days_and_paid(work, draft, send, study, client):
    for assignment in work[:3]:
        draft(assignment, Action.REJECT, "Too quick.")
    send()
    late = work[2].submitted_at - timedelta(days=31)
    Assignment.objects.filter(pk=work[2].pk).update(submitted_at=late)
    with refused(exceptions.DecisionRefused, "override_too_late"):
        draft(work[2], Action.OVERRIDE)
    draft(work[0], Action.OVERRIDE, "We looked again.")
    _, review = send()
    assert (review.n_overridden, statuses()[0]) == (1, "Approved")
    assert review.record()["rewards_usd"] == "1.00"
    assert Assignment.objects.get(pk=work[0].pk).submission.status == "approved"
    assert balance_of(client) == ("6.00", "3.00")
    # The marketplace finds this one too late, and its reason is kept.
    clock.advance(timedelta(days=31))
    draft(work[1], Action.OVERRIDE)
    _, review = send()
    assignment = Assignment.objects.get(pk=work[1].pk)
    assert (review.n_refused, assignment.status) == (1, "Rejected")
    assert assignment.decision_problem
    assert send_review(study=study, client_for=lambda connection: client).n_refused == 0
    assert retry_refused(study=study) == 1


def test_what_a_participants_recruiter_would_not_take_is_refused_at_once(work, draft):
    batch = work[0].hit.batch
    Batch.objects.filter(pk=batch.pk).update(is_recruited=True, reward_usd=0)
    facts = {"public_id": "5R", "name": "Prolific", "currency": "GBP", "fetched_at": timezone.now()}
    recruiter = Recruiter.objects.create(connection=batch.connection, **facts)
    Recruitment.objects.create(batch=batch, recruiter=recruiter, reward=1, minutes=5, items=1)
    one = Assignment.objects.get(pk=work[0].pk)
    with refused(exceptions.DecisionRefused, "short_reason"):
        draft(one, Action.REJECT, "Too quick.")
    with refused(exceptions.DecisionRefused, "other_currency"):
        draft(one, Action.BONUS, "Thanks.", "0.30")
    with refused(exceptions.DecisionRefused, "all_or_nothing"):
        draft(one, Action.PART_PAY, "Half of it.", "0.30")
    draft(one, Action.REJECT, "Too quick. " * 10)
    recruiter.currency = "USD"
    recruiter.save()
    draft(one, Action.BONUS, "Thanks.", "0.30")


def test_who_decides_second_is_told_and_changes_nothing(work, draft, send, carl):
    draft(work[0], Action.APPROVE)
    draft(work[0], Action.PART_PAY, "Half.", "0.50", reviewer=carl)
    for reviewer in ({}, {"reviewer": carl}):
        draft(work[1], Action.BONUS, "Thanks.", "0.20", **reviewer)
    send()
    result, _ = send(carl)
    assert result.n_recorded == 0
    assert codes_of(result.problems) == ["decided_already", "paid_already"]
    assert models.BonusPayment.objects.count() == Payment.objects.count() == 1
    assert not DraftDecision.objects.exists()


def test_an_outdated_summary_sends_nothing_and_two_presses_once(work, draft, study, rosa, client):
    draft(work[0], Action.BONUS, "Thanks.", "0.20")
    digest = summary_of(drafts_of(study, rosa)).digest
    draft(work[1], Action.APPROVE)
    with pytest.raises(exceptions.SummaryOutdated):
        record_drafts(reviewer=rosa, study=study, digest=digest)
    assert Assignment.objects.undecided().count() == 6
    assert not Payment.objects.exists()
    digest = summary_of(drafts_of(study, rosa)).digest
    record_drafts(reviewer=rosa, study=study, digest=digest)
    with pytest.raises(exceptions.SummaryOutdated):
        record_drafts(reviewer=rosa, study=study, digest=digest)
    send_review(study=study, client_for=lambda connection: client)
    assert models.BonusPayment.objects.count() == 1


def test_a_study_and_a_batch_are_held_to_their_budgets(work, draft, send, study, rosa):
    set_budget(cap_usd=Decimal("6.30"), actor=rosa, study=study)
    draft(work[2], Action.APPROVE)
    draft(work[2], Action.BONUS, "Thanks.", "0.31")
    with refused(exceptions.OverBudget, "study_budget"):
        send()
    assert Assignment.objects.undecided().count() == 6
    draft(work[2], Action.BONUS, "Thanks.", "0.30")
    assert send()[1].n_paid == 1
    draft(work[0], Action.REJECT, "Not read.")
    send()
    batch = work[0].hit.batch
    assert commitments(Batch.objects.all())[0].usd == Decimal("5.30")
    set_budget(cap_usd=Decimal("6.29"), actor=rosa, batch=batch)
    draft(work[0], Action.OVERRIDE)
    with refused(exceptions.OverBudget, "batch_budget"):
        send()
    with refused(exceptions.OverBudget, "batch_budget"):
        command_output("override_rejections", study.slug, all=True)
    bonus = {"assignment": work[1].assignment_id, "amount": Decimal(1), "reason": "Thanks."}
    with refused(exceptions.OverBudget, "batch_budget"):
        command_output("pay_bonuses", study.slug, **bonus)
    assert Payment.objects.count() == 1
    set_budget(cap_usd=Decimal("6.30"), actor=rosa, batch=batch)
    rejected = Assignment.objects.filter(pk=work[0].pk)
    decisions.override(assignments=rejected)
    # It will be paid, and so counts before the marketplace has heard of it.
    assert commitments(Batch.objects.all())[0].usd == Decimal("6.30")
    rejected.update(decision_problem="Not now.")
    set_budget(cap_usd=Decimal("6.29"), actor=rosa, batch=batch)
    with refused(exceptions.OverBudget, "batch_budget"):
        retry_refused(study=study)


def test_what_approved_itself_meanwhile_is_taken_over_and_gets_no_part(work, draft, send):
    draft(work[0], Action.PART_PAY, "Half is missing.", "0.30")
    clock.advance(timedelta(days=4))
    _, review = send()
    assert (review.n_decided_before, review.n_paid, review.n_refused) == (1, 0, 1)
    assert statuses()[0] == "Approved"
    assert not models.BonusPayment.objects.exists()


def test_a_part_counts_once_before_and_after_it_is_sent(work, draft, send, study, rosa, client):
    draft(work[0], Action.PART_PAY, "Half is missing.", "0.40")
    record_drafts(reviewer=rosa, study=study, digest=summary_of(drafts_of(study, rosa)).digest)
    # Whatever the marketplace makes of the rejection, no more than the reward is paid.
    assert commitments(Batch.objects.all())[0].usd == Decimal("6.00")
    send_review(study=study, client_for=lambda connection: client)
    assert commitments(Batch.objects.all())[0].usd == Decimal("5.40")
    # An override beside a part names both together.
    assert paid_part(Assignment.objects.get(pk=work[0].pk)).with_reward_usd == Decimal("1.40")
    for amount in (None, "1.00"):
        with refused(exceptions.PaymentRefused, "part_paid"):
            draft(work[0], Action.OVERRIDE, "", amount)
    draft(work[0], Action.OVERRIDE, "", "1.40")
    assert send()[1].n_overridden == 1
    assert commitments(Batch.objects.all())[0].usd == Decimal("6.40")


def test_what_is_spent_elsewhere_has_its_amount_typed(work, draft, send):
    connection = work[0].hit.batch.connection
    connection.marketplace = "turk.example"
    connection.save()
    draft(work[0], Action.APPROVE)
    for typed in ({}, {"typed_usd": Decimal("1.01")}):
        with refused(exceptions.PaymentRefused, "amount_unconfirmed") as refusal:
            send(**typed)
        assert "$1.00" in str(refusal.value)
    assert send(typed_usd=Decimal("1.00"))[1].n_approved == 1


def test_a_decision_that_could_not_be_sent_is_not_drafted(work, draft):
    for action, text, amount, error in (
        (Action.REJECT, "", None, exceptions.FeedbackUnfit),
        (Action.PART_PAY, "", "0.50", exceptions.FeedbackUnfit),
        (Action.PART_PAY, "Half.", "1.00", exceptions.PaymentRefused),
        (Action.PART_PAY, "Half.", None, exceptions.PaymentRefused),
        (Action.BONUS, "", "0.50", exceptions.PaymentRefused),
        (Action.BONUS, "Thanks.", "0", exceptions.PaymentRefused),
        (Action.MESSAGE, "Hello.", None, exceptions.DecisionRefused),
        (Action.BLOCK, " ", None, exceptions.DecisionRefused),
        (Action.OVERRIDE, "", None, exceptions.DecisionRefused),
    ):
        with pytest.raises(error):
            draft(work[0], action, text, amount)
        assert not DraftDecision.objects.exists()


def test_a_message_sent_meanwhile_is_not_sent_again(work, draft, send, study, rosa, client):
    for assignment in work[:2]:
        draft(assignment, Action.APPROVE)
    send()
    for assignment in work[:2]:
        draft(assignment, Action.MESSAGE, "More will come.", subject="Thank you")
    rows = Message.objects.filter(assignment__hit__batch=work[0].hit.batch)

    def progress(things, total):
        for number, thing in enumerate(things):
            if number == 1:
                rows.update(state="confirmed")
            yield thing

    record_drafts(reviewer=rosa, study=study, digest=summary_of(DraftDecision.objects.all()).digest)
    n_sent = send_messages(messages=rows, client=client, progress=progress)
    assert (n_sent, list(rows.values_list("state", "problem"))) == (1, [("confirmed", "")] * 2)
    assert models.WorkerMessage.objects.filter(subject="Thank you").count() == 1


@pytest.fixture
def recorded(study, work, rosa, draft):
    """The study, of whose six assignments two are to be approved, two to be rejected, and one is
    to be paid in part; with bonuses, words and a block."""
    for number in (0, 1):
        draft(work[number], Action.APPROVE)
    for number in (2, 3):
        draft(work[number], Action.REJECT, "Too quick.")
    draft(work[4], Action.PART_PAY, "Half is there.", "0.40")
    for number in (0, 4):
        draft(work[number], Action.BONUS, "Well argued.", "0.15")
    draft(work[0], Action.MESSAGE, "More on Monday.", subject="Thanks")
    draft(work[3], Action.BLOCK, "Clicks.")
    digest = summary_of(drafts_of(study, rosa)).digest
    assert record_drafts(reviewer=rosa, study=study, digest=digest).n_recorded == 9
    return study


@pytest.mark.parametrize("how", [killed_before, killed_after])
@pytest.mark.parametrize("at", range(1, 11))
def test_what_was_decided_is_done_once_wherever_sending_is_killed(recorded, wire, at, how):
    wire.calls.clear()
    wire.fail("*", how, at=at)
    with pytest.raises(Killed):
        send_review(study=recorded, client_for=lambda _connection: wire.client)
    send_review(study=recorded, client_for=lambda _connection: wire.client)
    here = dict(Assignment.objects.values_list("assignment_id", "status"))
    assert dict(models.Assignment.objects.values_list("public_id", "status")) == here
    statuses = ["Approved", "Approved", "Rejected", "Rejected", "Rejected", "Submitted"]
    assert list(Assignment.objects.order_by("pk").values_list("status", flat=True)) == statuses
    paid = sorted(models.BonusPayment.objects.values_list("amount_usd", flat=True))
    assert paid == [Decimal("0.15"), Decimal("0.15"), Decimal("0.40")]
    assert set(Payment.objects.values_list("state", flat=True)) == {"confirmed"}
    assert models.WorkerBlock.objects.count() == 1
    # Three rejections, three bonuses and a block: workers read of each once.
    events = models.WorkerMessage.objects.filter(
        subject__regex="^(Rejected|Bonus of)|takes no more work"
    )
    assert events.count() == 7
    # The one thing that has no token: it may come twice, and never not at all.
    assert (models.WorkerMessage.objects.count() - 7) in ((1, 2) if how is killed_after else (1,))
    assert balance_of(wire.client) == ("6.30", "1.00")
    assert spend_of(Batch.objects.get()).total_usd == Decimal("2.70")
    assert [fault for chain in AuditChain.objects.all() for fault in chain_faults(chain)] == []

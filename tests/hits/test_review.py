from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from hits import calls, collect, costs, endpoints, exceptions
from hits.decisions import (
    APPROVE,
    REJECT,
    ReviewResult,
    bonus_purpose,
    decide,
    request_payment,
    send_decisions,
    send_payments,
    withdraw_refused,
)
from hits.models import PART, Assignment, Batch, DeliveryState, Payment
from marketplace import models
from tests.boto_clients import ENDPOINT_URL
from tests.codes import refused
from tests.hits.wire import Wire, answer_lost, refusal, unreachable
from tests.hits.work import balance_of, hit_on


def test_what_was_approved_elsewhere_is_taken_over(batch, client):
    for assignment in Assignment.objects.all():
        client.approve_assignment(AssignmentId=assignment.assignment_id)
    approve(batch)
    assert send_decisions(batch=batch, client=client) == ReviewResult(n_decided_before=3)
    assert (list(statuses(client)), balance_of(client)) == ([APPROVED] * 3, ("7.00", "0.00"))


def test_a_decision_is_written_down_before_it_is_sent_and_sent_once(batch, wire, client):
    assert approve(batch) == 3
    assert decide(assignments=Assignment.objects.all(), decision=REJECT, feedback="No.") == 0
    assert set(Assignment.objects.values_list("decision", "feedback")) == {(APPROVE, "")}
    assert (wire.calls["ApproveAssignment"], list(statuses(client))) == (0, [SUBMITTED] * 3)
    assert balance_of(client) == ("7.00", "3.00")
    wire.fail("ApproveAssignment", refusal("AccessDeniedException"))
    with pytest.raises(exceptions.MarketplaceRefused) as error:
        send(batch, client)
    assert error.value.has_code("AccessDeniedException")
    assert Assignment.objects.decided_but_unsent().count() == 3
    assert send(batch, client) == 3
    assert (list(statuses(client)), balance_of(client)) == ([APPROVED] * 3, ("7.00", "0.00"))
    wire.calls.clear()
    assert (approve(batch), send(batch, client)) == (0, 0)
    assert not wire.calls


def test_feedback_that_no_marketplace_takes_is_refused_and_the_longest_arrives(batch, client):
    everyone = Assignment.objects.all()
    for feedback in ("", "  \n"):
        with refused(exceptions.FeedbackUnfit, "no_feedback"):
            decide(assignments=everyone, decision=REJECT, feedback=feedback)
    for feedback in ("x" * 1025, "no\0", "bell \7"):
        for decision in (APPROVE, REJECT):
            with refused(exceptions.FeedbackUnfit, "feedback_characters"):
                decide(assignments=everyone, decision=decision, feedback=feedback)
    assert Assignment.objects.undecided().count() == 3
    decide(assignments=everyone, decision=REJECT, feedback="é\n" * 512)
    send(batch, client)
    assert list(statuses(client)) == [REJECTED] * 3


@pytest.fixture(scope="module")
def keys(stored_work):
    return stored_work


def approve(batch) -> int:
    return decide(assignments=Assignment.objects.of(batch), decision=APPROVE)


def send(batch, client) -> int:
    result = send_decisions(batch=batch, client=client)
    return result.n_approved + result.n_rejected + result.n_decided_before


def statuses(client):
    for assignment in Assignment.objects.select_related("submission"):
        answer = client.get_assignment(AssignmentId=assignment.assignment_id)["Assignment"]
        yield assignment.status, assignment.submission.status, answer["AssignmentStatus"]


APPROVED = ("Approved", "approved", "Approved")
SUBMITTED = ("Submitted", "submitted", "Submitted")
REJECTED = ("Rejected", "rejected", "Rejected")


def test_an_answer_older_than_a_decision_does_not_take_it_back(batch, keys, client):
    """An approval that boto3 sent twice is ours."""
    hit = hit_on(batch, "d0")
    (older,) = client.list_assignments_for_hit(HITId=hit.hit_id)["Assignments"]
    key = endpoints.AccessKey(keys["access_key_id"], keys["secret_access_key"])
    wire = Wire(endpoints.connect(key=key, endpoint_url=ENDPOINT_URL))
    approve(batch)
    wire.fail("ApproveAssignment", answer_lost, at=2)
    sent = send_decisions(batch=batch, client=wire.client)
    assert sent == ReviewResult(n_approved=3, rewards_usd=Decimal(3))
    assert wire.calls["ApproveAssignment"] == 4
    assert not collect.store_assignment(hit=hit, record=calls.assignment_record(hit, older))
    assert list(statuses(client)) == [APPROVED] * 3


def test_what_contradicts_another_decision_is_refused_and_decided_anew(batch, wire, client):
    """As of a participant's other items, which their recruiter has in one submission."""
    first = Assignment.objects.filter(pk=Assignment.objects.of(batch)[0].pk)
    decide(assignments=first, decision=APPROVE)
    wire.fail("ApproveAssignment", refusal("AWS.MechanicalTurk.InvalidAssignmentState"))
    assert send_decisions(batch=batch, client=wire.client) == ReviewResult(n_refused=1)
    assert first.get().decision_problem == "Not now."
    assert send_decisions(batch=batch, client=wire.client) == ReviewResult()
    assert withdraw_refused(assignments=first) == 1
    assert first.undecided().get().decision_problem == ""
    assert withdraw_refused(assignments=first) == 0
    decide(assignments=first, decision=REJECT, feedback="Too quick.")
    assert send(batch, client) == 1


def test_the_desk_says_why_a_decision_was_refused_and_takes_it_back(batch):
    study, researcher = batch.study, User.objects.create_user("rosa")
    study.owner = researcher
    study.save()
    one = Assignment.objects.of(batch)[0]
    problem = "It asks for 100 characters."
    facts = {"decision": REJECT, "feedback": "Too fast.", "decision_problem": problem}
    Assignment.objects.filter(pk=one.pk).update(**facts)
    rosa = Client(headers={"host": "localhost"})
    rosa.force_login(researcher)
    withdraw = reverse("console:review-withdraw", args=[study.slug, one.pk])
    page = rosa.get(reverse("console:review", args=[study.slug])).content.decode()
    assert all(part in page for part in (one.assignment_id, problem, withdraw))
    desk = rosa.get(rosa.post(withdraw).headers["Location"])
    assert desk.context["assignment"].pk == one.pk
    assert withdraw not in desk.content.decode()


REASON = "Thank you for the careful reasons."


def bonus(assignment, amount_usd="0.50", reason=REASON) -> Payment | None:
    facts = {"purpose": bonus_purpose(reason), "amount_usd": Decimal(amount_usd)}
    return request_payment(assignment=assignment, reason=reason, **facts)


@pytest.fixture
def three_bonuses(batch):
    return [bonus(assignment) for assignment in Assignment.objects.of(batch)]


def bonuses_there():
    return sorted(models.BonusPayment.objects.values_list("amount_usd", "reason"))


def states():
    return list(Payment.objects.order_by("pk").values_list("state", flat=True))


def test_hundreds_of_payments_add_up_to_the_cent(batch):
    """SQLite adds in binary, and a ledger does not."""
    facts = {"assignment": Assignment.objects.of(batch).first(), "fee_usd": Decimal("0.01")}
    payments = [Payment(state="confirmed", reason=f"{REASON} {n}", **facts) for n in range(540)]
    for n, payment in enumerate(payments):
        payment.purpose = bonus_purpose(payment.reason)
        payment.amount_usd = Decimal(("0.07", "0.13", "0.35")[n % 3])
    Payment.objects.bulk_create(payments)
    spend = costs.spend_of(batch)
    assert (spend.bonuses_usd, spend.bonus_fees_usd) == (Decimal("99.00"), Decimal("5.40"))
    [commitment] = costs.commitments(Batch.objects.all())
    assert commitment.usd == commitment.usd.quantize(Decimal("0.01"))


def test_the_same_bonus_is_not_requested_twice_and_another_is(batch, three_bonuses):
    first = Assignment.objects.of(batch).first()
    assert bonus(first) is None
    assert bonus(first, "2.00", f"  {REASON.replace(' ', '  ')} ") is None
    assert bonus(first, reason="Second round.") is not None


@pytest.mark.parametrize("fault", [answer_lost, unreachable])
@pytest.mark.parametrize("days", [0, 3])
@pytest.mark.usefixtures("three_bonuses")
def test_the_marketplace_is_asked_before_a_payment_is_repeated(batch, client, wire, fault, days):
    """Also after a day, when the token is forgotten."""
    wire.fail("SendBonus", fault, at=2)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        send_payments(batch=batch, client=client)
    assert states() == ["confirmed", "intended", "intended"]
    if days:
        models.BonusPayment.objects.update(unique_request_token=None)
        Payment.objects.update(first_sent_at=timezone.now() - timedelta(days=days))
    wire.calls.clear()
    assert send_payments(batch=batch, client=client).n_paid == 2
    assert wire.calls["ListBonusPayments"] >= 1
    assert (wire.calls["SendBonus"], len(bonuses_there())) == (1 if fault is answer_lost else 2, 3)
    assert (states(), balance_of(client)) == (["confirmed"] * 3, ("5.50", "3.00"))


def test_what_the_account_cannot_pay_is_refused_with_what_to_do_and_paid_later(batch, client, keys):
    first, second, _ = Assignment.objects.of(batch)
    bonus(first, "50.00")
    bonus(second, "0.25")
    result = send_payments(batch=batch, client=client)
    assert (result.n_paid, result.n_refused, states()) == (1, 1, ["refused", "confirmed"])
    assert Payment.objects.first().problem
    assert bonus(first, "0.75") is not None
    assert send_payments(batch=batch, client=client).n_paid == 1
    assert [str(amount) for amount, _ in bonuses_there()] == ["0.25", "0.75"]


@pytest.mark.parametrize("is_approved", [False, True])
def test_part_of_a_reward_is_paid_after_a_rejection_and_not_an_approval(batch, client, is_approved):
    first = Assignment.objects.of(batch).first()
    assignments = Assignment.objects.filter(pk=first.pk)
    part = {"purpose": PART, "amount_usd": Decimal("0.40"), "reason": "Half is missing."}
    request_payment(assignment=first, **part)
    decision, feedback = (APPROVE, "") if is_approved else (REJECT, "Half is missing.")
    decide(assignments=assignments, decision=decision, feedback=feedback)
    if not is_approved:
        assert send_payments(batch=batch, client=client).n_paid == 0
    send_decisions(batch=batch, client=client)
    result = send_payments(batch=batch, client=client)
    payment = Payment.objects.get()
    if is_approved:
        assert (result.n_refused, payment.state) == (1, DeliveryState.REFUSED)
        assert payment.problem
        assert bonuses_there() == []
    else:
        assert result.n_paid == 1
        assert balance_of(client) == ("7.60", "2.00")


def test_an_amount_or_a_reason_that_no_marketplace_takes_is_refused(batch):
    first = Assignment.objects.of(batch).first()
    for amount in ("0", "0.001", "-1", "0.015", "10000.01"):
        with refused(exceptions.PaymentRefused, "amount"):
            bonus(first, amount)
    for reason, code in (
        ("", "no_reason"), ("  ", "no_reason"), ("x" * 4097, "reason_characters"),
        ("bell \7", "reason_characters"),
    ):  # fmt: skip
        with refused(exceptions.PaymentRefused, code):
            bonus(first, reason=reason)
    assert not Payment.objects.exists()
    batch.connection.fees = "mturk"
    batch.connection.save()
    assert bonus(Assignment.objects.of(batch).first(), "0.63").fee_usd == Decimal("0.13")


def test_throttling_leaves_what_is_not_sent_for_the_next_run(three_bonuses, batch, client, wire):
    wire.fail("SendBonus", refusal("ThrottlingException"), at=2)
    with pytest.raises(exceptions.MarketplaceRefused) as error:
        send_payments(batch=batch, client=client)
    assert error.value.is_momentary
    assert states() == ["confirmed", "intended", "intended"]
    send_payments(batch=batch, client=client)
    assert (states(), len(bonuses_there())) == (["confirmed"] * 3, 3)


def test_what_boto3_sent_twice_is_paid_once(three_bonuses, batch, keys):
    key = endpoints.AccessKey(keys["access_key_id"], keys["secret_access_key"])
    wire = Wire(endpoints.connect(key=key, endpoint_url=ENDPOINT_URL))
    wire.fail("SendBonus", answer_lost, at=2)
    assert send_payments(batch=batch, client=wire.client).n_paid == 3
    assert (wire.calls["SendBonus"], len(bonuses_there())) == (4, 3)

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from annotation.models import Submission
from hits.collect import collect_batch, store_assignment
from hits.endpoints import AccessKey, connect
from hits.exceptions import FeedbackUnfit, MarketplaceRefused, MarketplaceUnreachable
from hits.foreign_records import assignment_record
from hits.models import Assignment
from hits.review import DecisionsResult, decide, send_decisions, withdraw_refused
from marketplace import clock
from tests.boto_clients import ENDPOINT_URL
from tests.codes import refused
from tests.hits.wire import Wire, answer_lost, refusal, unreachable
from tests.hits.work import balance_of, hand_in, hit_on, published_batch

APPROVE, REJECT = Assignment.Decision.APPROVE, Assignment.Decision.REJECT


@pytest.mark.parametrize("fault", [unreachable, answer_lost])
def test_what_a_lost_call_leaves_undone_is_made_good_and_paid_once(batch, wire, client, fault):
    approve(batch)
    wire.fail("ApproveAssignment", fault, at=2)
    with pytest.raises(MarketplaceUnreachable):
        send(batch, client)
    second = SUBMITTED if fault is unreachable else (*SUBMITTED[:2], "Approved")
    assert list(statuses(client)) == [APPROVED, second, SUBMITTED]
    assert Assignment.objects.decided_but_unsent().count() == 2
    assert send(batch, client) == 2
    assert list(statuses(client)) == [APPROVED] * 3
    assert wire.calls["ApproveAssignment"] == 4
    assert balance_of(client) == ("7.00", "0.00")


@pytest.mark.parametrize("is_by_time", [True, False])
def test_what_was_approved_elsewhere_or_by_time_is_taken_over(batch, client, is_by_time):
    """A rejection that comes too late is an approval."""
    if is_by_time:
        clock.advance(timedelta(days=4))
        decide(assignments=Assignment.objects.of(batch), decision=REJECT, feedback="Too quick.")
    else:
        for assignment in Assignment.objects.all():
            client.approve_assignment(AssignmentId=assignment.assignment_id)
        approve(batch)
    assert send_decisions(batch=batch, client=client) == DecisionsResult(n_decided_before=3)
    assert list(statuses(client)) == [APPROVED] * 3
    assert balance_of(client) == ("7.00", "0.00")


def test_a_decision_is_written_down_before_it_is_sent_and_sent_once(batch, wire, client):
    assert approve(batch) == 3
    assert decide(assignments=Assignment.objects.all(), decision=REJECT, feedback="No.") == 0
    assert set(Assignment.objects.values_list("decision", "feedback")) == {(APPROVE, "")}
    assert wire.calls["ApproveAssignment"] == 0
    assert list(statuses(client)) == [SUBMITTED] * 3
    assert balance_of(client) == ("7.00", "3.00")
    wire.fail("ApproveAssignment", refusal("AccessDeniedException"))
    with pytest.raises(MarketplaceRefused) as error:
        send(batch, client)
    assert error.value.has_code("AccessDeniedException")
    assert Assignment.objects.decided_but_unsent().count() == 3
    assert send(batch, client) == 3
    assert list(statuses(client)) == [APPROVED] * 3
    assert balance_of(client) == ("7.00", "0.00")
    wire.calls.clear()
    assert approve(batch) == 0
    assert send(batch, client) == 0
    assert not wire.calls


def test_feedback_that_no_marketplace_takes_is_refused_and_the_longest_arrives(batch, client):
    everyone = Assignment.objects.all()
    for feedback in ("", "  \n"):
        with refused(FeedbackUnfit, "no_feedback"):
            decide(assignments=everyone, decision=REJECT, feedback=feedback)
    for feedback in ("x" * 1025, "no\0", "bell \7"):
        for decision in (APPROVE, REJECT):
            with refused(FeedbackUnfit, "feedback_characters"):
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
    """What we, the study and the marketplace think of each assignment."""
    for assignment in Assignment.objects.select_related("submission"):
        answer = client.get_assignment(AssignmentId=assignment.assignment_id)
        yield (
            assignment.status,
            assignment.submission.status,
            answer["Assignment"]["AssignmentStatus"],
        )


APPROVED = ("Approved", "approved", "Approved")
SUBMITTED = ("Submitted", "submitted", "Submitted")
REJECTED = ("Rejected", "rejected", "Rejected")


def test_an_answer_older_than_a_decision_does_not_take_it_back(batch, keys, client):
    """An approval that boto3 sent twice is ours."""
    hit = hit_on(batch, "d0")
    (older,) = client.list_assignments_for_hit(HITId=hit.hit_id)["Assignments"]
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])
    wire = Wire(connect(key=key, endpoint_url=ENDPOINT_URL))
    approve(batch)
    wire.fail("ApproveAssignment", answer_lost, at=2)
    sent = send_decisions(batch=batch, client=wire.client)
    assert sent == DecisionsResult(n_approved=3, rewards_usd=Decimal(3))
    assert wire.calls["ApproveAssignment"] == 4
    assert not store_assignment(hit=hit, record=assignment_record(hit, older))
    assert list(statuses(client)) == [APPROVED] * 3


def test_a_rejection_carries_its_feedback_and_pays_nothing(batch, client):
    first = Assignment.objects.of(batch)[:1].get()
    assignments = Assignment.objects.filter(pk=first.pk)
    assert decide(assignments=assignments, decision=REJECT, feedback="Everything is 50.") == 1
    send(batch, client)
    assert list(statuses(client)) == [REJECTED, SUBMITTED, SUBMITTED]
    record = client.get_assignment(AssignmentId=first.assignment_id)["Assignment"]
    assert record["RequesterFeedback"] == "Everything is 50."
    assert Submission.objects.accepted().count() == 2
    approve(batch)
    send(batch, client)
    assert list(statuses(client)) == [REJECTED, APPROVED, APPROVED]
    assert balance_of(client) == ("8.00", "0.00")


def test_what_contradicts_another_decision_is_a_refusal_and_can_be_decided_anew(
    batch, wire, client
):
    """As of a participant's other items, which their recruiter has in one submission."""
    first = Assignment.objects.filter(pk=Assignment.objects.of(batch)[0].pk)
    decide(assignments=first, decision=APPROVE)
    wire.fail("ApproveAssignment", refusal("AWS.MechanicalTurk.InvalidAssignmentState"))
    assert send_decisions(batch=batch, client=wire.client) == DecisionsResult(n_refused=1)
    assert first.get().decision_problem == "Not now."
    assert send_decisions(batch=batch, client=wire.client) == DecisionsResult()
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
    Assignment.objects.filter(pk=one.pk).update(
        decision=REJECT, feedback="Too fast.", decision_problem=problem
    )
    rosa = Client(headers={"host": "localhost"})
    rosa.force_login(researcher)
    withdraw = reverse("console:review-withdraw", args=[study.slug, one.pk])
    page = rosa.get(reverse("console:review", args=[study.slug])).content.decode()
    assert all(part in page for part in (one.assignment_id, problem, withdraw))
    answer = rosa.post(withdraw)
    desk = rosa.get(answer.headers["Location"])
    assert desk.context["assignment"].pk == one.pk
    assert withdraw not in desk.content.decode()


def test_other_batches_decisions_are_left_alone(study, batch, client, bob):
    other = published_batch(study, client, round=2)
    hand_in(bob, hit_on(other, "d0"), {"alpha": 1, "beta": 2})
    collect_batch(batch=other, client=client)
    approve(batch)
    approve(other)
    assert send(other, client) == 1
    assert Assignment.objects.of(batch).decided_but_unsent().count() == 3

"""What workers read of decisions: once each, on the site and by e-mail."""

from datetime import timedelta
from decimal import Decimal

import pytest
from allauth.account.models import EmailAddress
from django.core import mail

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.hits.appeals import answer_appeal, appeal
from marketplace.hits.bonuses import Bonus, send_bonus
from marketplace.hits.review import reject_assignment
from marketplace.models import Assignment, BonusPayment, WorkerMessage
from marketplace.notifications.worker_mail import send_due_mail
from tests.marketplace.conftest import HIT, submit
from tests.marketplace.test_worker_site import text_of


def check_messages(*expected):
    """Each message has these parts in its subject and in its text."""
    written = WorkerMessage.objects.order_by("pk").values_list("subject", "text")
    for message, parts in zip(written, expected, strict=True):
        for text, needed in zip(message, parts, strict=True):
            assert [part for part in needed if part not in text] == []


def test_each_decision_is_one_message_that_says_what_and_why(mturk, ada, worker):
    rejected = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    mturk.reject_assignment(AssignmentId=rejected, RequesterFeedback="Half is missing.")
    bonus = {"WorkerId": worker.worker_id, "AssignmentId": rejected, "BonusAmount": "1.50"}
    bonus |= {"Reason": "For your time.", "UniqueRequestToken": "once"}
    mturk.send_bonus(**bonus)
    for _ in range(2):
        mturk.create_worker_block(WorkerId=worker.worker_id, Reason="Secret note")
    for call, wrong in (
        (mturk.send_bonus, bonus),
        (mturk.reject_assignment, {"AssignmentId": rejected, "RequesterFeedback": "Again"}),
    ):
        with pytest.raises(mturk.exceptions.RequestError):
            call(**wrong)
    hit_id = Assignment.objects.get().hit.public_id
    check_messages(
        ([HIT["Title"]], [hit_id, "$0.63", "Half is missing."]),
        (["$1.50", HIT["Title"]], [hit_id, "$1.50", "For your time."]),
        (["Dialogue lab"], []),
    )
    page = text_of(ada.get("/worker/messages/"))
    assert "Half is missing." in page
    assert "Secret note" not in page


def test_an_answered_appeal_and_an_override_are_one_message_each(mturk, requester, worker):
    work = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    mturk.reject_assignment(AssignmentId=work, RequesterFeedback="Half is missing.")
    appeal(worker=worker, assignment=Assignment.objects.get(), reason="It is all there.")
    for _ in range(2):
        answer_appeal(requester=requester, assignment_id=work, answer="We looked again.")
    with pytest.raises(InvalidParameter):
        answer_appeal(requester=requester, assignment_id=work, answer="No.")
    override = {"AssignmentId": work, "OverrideRejection": True, "RequesterFeedback": "Thanks."}
    mturk.approve_assignment(**override)
    with pytest.raises(mturk.exceptions.RequestError):
        mturk.approve_assignment(**override)
    title = [HIT["Title"]]
    check_messages((title, []), (title, ["We looked again."]), (title, ["$0.63", "Thanks."]))


def test_an_approval_that_overrides_nothing_writes_no_message(mturk, worker):
    work = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    mturk.approve_assignment(AssignmentId=work, OverrideRejection=True)
    assert not WorkerMessage.objects.exists()


def test_a_decision_whose_message_cannot_be_written_does_not_stand(
    mturk, requester, worker, monkeypatch
):
    work = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])

    def fail(*args, **kwargs):
        raise RuntimeError

    monkeypatch.setattr("marketplace.people.messages.WorkerMessage.objects.create", fail)
    with pytest.raises(RuntimeError):
        send_bonus(
            requester=requester,
            bonus=Bonus(work, worker.worker_id, Decimal("1.50"), "For your time.", None),
        )
    with pytest.raises(RuntimeError):
        reject_assignment(requester=requester, public_id=work, feedback="Half is missing.")
    assert not BonusPayment.objects.exists()
    assert Assignment.objects.get().status == "Submitted"


def test_messages_go_to_the_confirmed_address_once(mturk, worker, settings, monkeypatch):
    settings.SENDS_MAIL = True
    address = EmailAddress.objects.create(user=worker.user, email="ada@post.example", primary=True)
    rejected = [submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]) for _ in range(2)]
    mturk.reject_assignment(AssignmentId=rejected[0], RequesterFeedback="Too early.")
    EmailAddress.objects.filter(pk=address.pk).update(verified=True)
    mturk.reject_assignment(AssignmentId=rejected[1], RequesterFeedback="Half is missing.")

    def unreachable(*args, **kwargs):
        raise ConnectionRefusedError

    with monkeypatch.context() as patch:
        patch.setattr("marketplace.notifications.worker_mail.send_mail", unreachable)
        assert send_due_mail(clock.now()) == 0
    assert send_due_mail(clock.now()) == 0  # not due again yet
    clock.advance(timedelta(minutes=1))
    assert [send_due_mail(clock.now()), send_due_mail(clock.now())] == [1, 0]
    (sent,) = mail.outbox
    assert sent.to == ["ada@post.example"]
    assert "Half is missing." in sent.body
    assert f"{settings.SITE_URL}/worker/messages/" in sent.body

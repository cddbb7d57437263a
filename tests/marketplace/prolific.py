"""A study at the fake of Prolific, over HTTP: fixtures, and what participants do there."""

from decimal import Decimal

import pytest
from django.test import Client

from marketplace.models import Assignment, HitType, RecruiterConnection, Session
from marketplace.recruiting.connections import connect_prolific
from marketplace.recruiting.drafts import Posting, draft_study
from marketplace.recruiting.fake_prolific.server import FakeProlific
from marketplace.recruiting.posting import publish_study
from tests.marketplace.conftest import HIT
from tests.marketplace.test_recruited_studies import work

REWARD = Decimal("1.50")
FAULTS = ("drop", "lose", "429", "500")


@pytest.fixture
def fake(settings):
    with FakeProlific() as running:
        settings.PROLIFIC_URL = running.url
        running.world.workspace = "5f" * 12
        yield running
        running.world.check()


@pytest.fixture
def connection(fake, requester):
    connection, account = connect_prolific(
        requester=requester,
        name="Prolific",
        token="token",
        workspace=fake.world.workspace,
        project=fake.world.project,
    )
    assert (account.currency, account.available) == ("GBP", Decimal(1000))
    return connection


@pytest.fixture
def hit_type(mturk):
    for _ in range(4):
        created = mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]
    return HitType.objects.get(public_id=created["HITTypeId"])


@pytest.fixture
def posted(connection, hit_type):
    values = Posting(reward=REWARD, minutes=10, items_per_session=2)
    study, cost = draft_study(connection=connection, hit_type=hit_type, values=values)
    publish_study(study=study, confirmed=cost.total)
    return study


def arrive(fake, study, **changed):
    """A participant takes a place there, and opens the link."""
    submission = fake.world.arrive(fake.world.studies[study.external_id])
    facts = {
        "PROLIFIC_PID": submission.participant,
        "STUDY_ID": study.external_id,
        "SESSION_ID": submission.id,
    }
    query = "&".join(f"{name}={value}" for name, value in (facts | changed).items())
    browser = Client()
    answer = browser.post(f"/join/{study.token}/?{query}")
    return submission, browser, answer


def hand_in(fake, study):
    """A participant does both HITs and goes back with the code."""
    submission, browser, _answer = arrive(fake, study)
    work(browser, times=2)
    fake.world.enter(submission, Session.objects.get(submission_id=submission.id).code)
    return submission


def ask_for_more(mturk, hit_type, n=1):
    """Every HIT of the type wants so many judgments more."""
    for hit in hit_type.hits.all():
        mturk.create_additional_assignments_for_hit(
            HITId=hit.public_id, NumberOfAdditionalAssignments=n
        )


def assignments(submission):
    rows = Assignment.objects.filter(session_item__session__submission_id=submission.id)
    return list(rows.order_by("pk").values_list("public_id", flat=True))


def pay_in_pounds(mturk, connection, submission, amount="1.50", token="t1"):
    """A bonus through the protocol, of an account that is in dollars as the protocol's are."""
    RecruiterConnection.objects.filter(pk=connection.pk).update(
        settings=connection.settings | {"currency": "USD"}
    )
    worker = Assignment.objects.filter(public_id=assignments(submission)[0])
    mturk.send_bonus(
        WorkerId=worker.get().worker.worker_id,
        AssignmentId=assignments(submission)[0],
        BonusAmount=amount,
        Reason="Careful reasons.",
        UniqueRequestToken=token,
    )


def paid(fake, kind):
    return [amount for one, _key, amount in fake.world.paid if one == kind]

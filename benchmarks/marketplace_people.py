"""Who and what a benchmark of the marketplace needs: a requester with money, HITs, workers."""

from dataclasses import dataclass
from decimal import Decimal

PAGE = "<p>Read the dialogue, then rate how well the response continues it.</p>\n" * 100
QUESTION = f"""<HTMLQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd">
<HTMLContent><![CDATA[<!doctype html><title>Rate a response</title>{PAGE}
<form method="post" action="/mturk/externalSubmit"><input name="assignmentId" type="hidden">
<input name="rating" type="number" min="1" max="5"><button>Submit</button></form>]]></HTMLContent>
<FrameHeight>450</FrameHeight></HTMLQuestion>"""
HITS_PER_TRANSACTION = 500


@dataclass(frozen=True)
class Keys:
    """A requester's key."""

    access_key_id: str
    secret_access_key: str


def enrol_requester(name: str = "Benchmark lab") -> Keys:
    """A requester with a million dollars."""
    from marketplace.people.enrolment import issue_access_key

    key = issue_access_key(name=name, deposit_usd=Decimal(1_000_000))
    return Keys(key.access_key_id, key.secret_access_key)


def publish(keys: Keys, *, hits: int, max_assignments: int) -> str:
    """Publish HITs of one type, and return the path of their group on the worker site."""
    from django.db import transaction

    from marketplace.hits.creation import (
        HitTypeValues,
        HitValues,
        create_hit_type,
        create_hit_with_hit_type,
    )
    from marketplace.models import Requester

    requester = Requester.objects.get(access_keys__access_key_id=keys.access_key_id)
    type_values = HitTypeValues("Rate a response", "One rating.", "", Decimal("0.05"), 3600, 86_400)
    hit_type = create_hit_type(requester=requester, values=type_values)
    values = HitValues(QUESTION, max_assignments, 86_400, "", None)
    for first in range(0, hits, HITS_PER_TRANSACTION):
        with transaction.atomic():
            for _ in range(first, min(first + HITS_PER_TRANSACTION, hits)):
                create_hit_with_hit_type(requester=requester, hit_type=hit_type, values=values)
    return f"/worker/groups/{hit_type.public_id}/"


def sign_in_workers(count: int) -> list[str]:
    """Enrol workers and start a session of each; returns the session keys."""
    from django.test import Client

    from accounts.models import User
    from marketplace.people.enrolment import open_worker_account

    keys = []
    for number in range(count):
        user = User.objects.create(username=f"worker{number}", password="!")
        open_worker_account(user=user)
        browser = Client()
        browser.force_login(user)
        keys.append(browser.cookies["sessionid"].value)
    return keys


def hand_in(count: int) -> str:
    """Let so many new workers do the only HIT there is, and return its id."""
    from accounts.models import User
    from marketplace.hits.assignments import accept_hit, submit_assignment
    from marketplace.models import Hit
    from marketplace.people.enrolment import open_worker_account

    hit = Hit.objects.get()
    for number in range(count):
        worker = open_worker_account(user=User.objects.create(username=f"rater{number}"))
        assignment = accept_hit(worker=worker, hit=hit)
        submit_assignment(public_id=assignment.public_id, fields=[("rating", ["4"])])
    return hit.public_id

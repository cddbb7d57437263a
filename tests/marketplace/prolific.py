"""Studies at the fake of Prolific, over HTTP: how they are made, and what participants do there."""

import json
import re
from datetime import timedelta
from decimal import Decimal
from io import StringIO

from django.test import Client

from benchmarks.fake_prolific import operations
from hits.connections import signed_headers
from hits.endpoints import AccessKey
from marketplace import clock, models
from marketplace.recruiting import calls, connections, drafts, sessions, studies
from marketplace.recruiting.files import import_statuses, read_statuses
from marketplace.recruiting.posting import publish_study
from tests.marketplace.conftest import HIT
from tests.marketplace.test_worker_site import text_of

REWARD = Decimal("1.50")
FAULTS = ("drop", "lose", "429", "500")
# Prolific wants at least 100 characters.
REASON = "The ratings are the same for every response, also where two responses contradict. " * 2
OPEN_DOUBT = {"kind": "doubt", "state": "uncertain"}


def connect(fake, requester, **changed):
    facts = {"name": "Prolific", "token": "token", "workspace": fake.world.workspace}
    return connections.connect_prolific(requester=requester, **facts | changed)


def create_hits(mturk, n=4, max_assignments=2, **changed):
    for _ in range(n):
        created = mturk.create_hit(**HIT | changed, MaxAssignments=max_assignments)["HIT"]
    return models.HitType.objects.get(public_id=created["HITTypeId"])


def open_panel(hit_type, **changed):
    values = studies.StudyValues(**{"name": "Panel", "kind": "panel"} | studies.PROLIFIC | changed)
    return studies.open_study(requester=hit_type.requester, hit_type=hit_type, values=values)


def posting(**changed):
    return drafts.Posting(**{"reward": REWARD, "minutes": 10, "items_per_session": 2} | changed)


def draft(connection, hit_type, **changed):
    return drafts.draft_study(connection=connection, hit_type=hit_type, values=posting(**changed))


def publish(connection, hit_type, **changed):
    study, cost = draft(connection, hit_type, **changed)
    publish_study(study=study, confirmed=cost.total)
    return study


def minutes(n=3):
    return [calls.call_recruiters() for _minute in range(n)][-1]


def settle(n=1):
    clock.advance(timedelta(minutes=2))
    return minutes(n)


def join(study, submission, browser=None, **changed):
    facts = {
        "PROLIFIC_PID": submission.participant,
        "STUDY_ID": study.external_id,
        "SESSION_ID": submission.id,
    }
    query = "&".join(f"{name}={value}" for name, value in (facts | changed).items())
    return (browser or Client()).post(f"/join/{study.token}/?{query}")


def arrive(fake, study, **changed):
    submission, browser = fake.world.arrive(fake.world.studies[study.external_id]), Client()
    return submission, browser, join(study, submission, browser, **changed)


def enter(token, query="", browser=None):
    browser = browser or Client()
    browser.post(f"/join/{token}/{query}")
    return browser


def came(study, pid, submission, browser=None):
    return enter(study.token, f"?PROLIFIC_PID={pid}&STUDY_ID=S1&SESSION_ID={submission}", browser)


def submit_page(public_id):
    return Client().post("/mturk/externalSubmit", {"assignmentId": public_id, "rating": "4"})


def work(browser, *, times=1):
    held = ""
    for _ in range(times):
        page = browser.get("/worker/study/", follow=True)
        held = re.search("/worker/assignments/([A-Z0-9]+)/", text_of(page))[1]
        assert browser.get(f"/worker/assignments/{held}/").status_code == 200
        assert submit_page(held).status_code == 200
    return held


def begun(fake, study, n_done=1):
    submission, browser, _answer = arrive(fake, study)
    work(browser, times=n_done)
    return submission, browser


def leave(browser, session=None):
    return browser.post(
        f"/worker/studies/{(session or models.Session.objects.get()).public_id}/leave/"
    )


def completion_code(study, outcome="completed"):
    return study.codes.get(outcome=outcome).code


def run_out_of_time(study):
    clock.advance(timedelta(seconds=study.maximum_seconds) + sessions.GRACE + timedelta(seconds=1))
    sessions.settle_sessions(clock.now())


def session_of(submission):
    return models.Session.objects.get(submission_id=submission.id)


def hand_in(fake, study):
    submission, _browser, _answer = arrive(fake, study)
    for public_id in assignments(submission):
        assert submit_page(public_id).status_code == 200
    fake.world.enter(submission, session_of(submission).code)
    return submission


def ask_for_more(mturk, hit_type, n=1):
    for hit in hit_type.hits.all():
        mturk.create_additional_assignments_for_hit(
            HITId=hit.public_id, NumberOfAdditionalAssignments=n
        )


def assignments(submission):
    rows = models.Assignment.objects.filter(session_item__session__submission_id=submission.id)
    return list(rows.order_by("pk").values_list("public_id", flat=True))


def approve(mturk, *submissions, **options):
    for submission in submissions:
        for public_id in assignments(submission):
            mturk.approve_assignment(AssignmentId=public_id, **options)


def reject(mturk, submission):
    for public_id in assignments(submission):
        mturk.reject_assignment(AssignmentId=public_id, RequesterFeedback=REASON)


def approve_submitted(mturk):
    done = models.Assignment.objects.get(status="Submitted")
    mturk.approve_assignment(AssignmentId=done.public_id)
    return done


def statuses():
    return sorted(models.Assignment.objects.values_list("status", flat=True))


def pay_in_pounds(mturk, connection, submission, amount="1.50", token="t1"):
    """A bonus through the protocol, of an account that is in dollars as the protocol's are."""
    models.RecruiterConnection.objects.filter(pk=connection.pk).update(
        settings=connection.settings | {"currency": "USD"}
    )
    mturk.send_bonus(
        WorkerId=session_of(submission).worker.worker_id,
        AssignmentId=assignments(submission)[0],
        BonusAmount=amount,
        Reason="Careful reasons.",
        UniqueRequestToken=token,
    )


def paid(fake, kind):
    return [amount for one, _key, amount in fake.world.paid if one == kind]


def charges(kind="study"):
    return list(
        models.RecruiterCharge.objects.filter(kind=kind)
        .order_by("pk")
        .values_list("amount", flat=True)
    )


def reload(row):
    return type(row).objects.get(pk=row.pk)


def numbers(text):
    return re.findall(r"\d+(?:[.,]\d+)*", str(text))


def broken(monkeypatch, name, is_wanted=lambda *_given: True, status=500):
    real = getattr(operations, name)

    def answer(*given):
        if is_wanted(*given):
            raise operations.Denied(status, "broken")
        return real(*given)

    monkeypatch.setattr(operations, name, answer)


def take_over(study, text):
    return import_statuses(study, read_statuses(study, StringIO(text), name="panel.csv"))


def caller(keys):
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])

    def ask(path, **content):
        address = f"/marketplace-api/v1/recruiting{path}"
        body = json.dumps(content).encode()
        signed = signed_headers(key, f"http://testserver{address}", body) | {"host": "testserver"}
        answer = Client().post(address, body, content_type="application/json", headers=signed)
        return answer.status_code, answer.json()

    return ask

"""A batch's participants, from a team's token to settled calls: over HTTP to a marketplace, which
calls a fake Prolific. Nothing moves in the ledger, and every press counts once."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Event

import pytest
from django.core.management import call_command
from django.db import connection as database, connections
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.teams import create_team
from annotation import access, study_facts
from annotation.models import Study, Submission
from benchmarks.fake_prolific.operations import move_study
from benchmarks.fake_prolific.server import FakeProlific
from hits import collect, decisions, participants, progress, recruited_batches, recruiter_api
from hits.account_requests import request_end, request_recruiter
from hits.connections import client_of, connect_this_site, file_address
from hits.decisions import bonus_purpose, decide, request_payment, send_decisions, send_payments
from hits.exceptions import (
    MarketplaceFault,
    MarketplaceSlow,
    MarketplaceUnreachable,
    PaymentRefused,
    RecruitingRefused,
)
from hits.models import (
    Assignment,
    Batch,
    Hit,
    Participation,
    Payment,
    Recruiter,
    RecruiterCall,
    Recruitment,
)
from hits.models.recruiting import CHARGES
from hits.recruited_batches import (
    DEMOGRAPHICS,
    DISCARD,
    PAUSE,
    PLACES,
    PRICE,
    PRICE_BONUS,
    PUBLISH,
    RESUME,
    SETTLE,
    STOP,
    request_change,
    request_draft,
)
from hits.studies import delete_study, unfinished_work
from marketplace import models
from marketplace.money.reconciliation import store_audit
from marketplace.people.erasure import erase_worker
from marketplace.recruiting.studies import PROLIFIC, StudyValues, open_study
from tests.codes import codes_of, refused
from tests.console.work import work_off
from tests.hits.work import answer_to, balance_of, published_batch
from tests.marketplace.prolific import arrive, ask_for_more
from work.execution import run_job
from work.models import Job
from work.tasks import request_job, resume_job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
SLOW, WRONG = MarketplaceSlow("slow"), MarketplaceFault("wrong")


@pytest.fixture
def fake(settings):
    with FakeProlific() as running:
        settings.PROLIFIC_URL = running.url
        yield running
        running.world.check()


@pytest.fixture
def connection(funded_site, settings, ada, fake):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    team = create_team(name="Lab", owner=ada)
    return connect_this_site(team=team, name="Here", actor=ada, test_funds_usd=Decimal(50))


@pytest.fixture
def recruiter(connection, ada, fake):
    connect(connection, ada, fake)
    return Recruiter.objects.get()


@pytest.fixture
def batch(study, connection, ada):
    study.owner = ada
    study.save()
    access.give_to_team(study=study, team=connection.team, actor=ada)
    terms = {"connection": connection, "reward_usd": 0, "max_assignments": 2, "is_recruited": True}
    return published_batch(study, client_of(connection), **terms)


@pytest.fixture
def drafted(batch, recruiter, ada):
    return draft(batch, recruiter, ada)


@pytest.fixture
def published(drafted, fake, ada):
    change(drafted, PUBLISH, ada, confirmed="4.00")
    return models.RecruitedStudy.objects.get()


@pytest.fixture
def submitted(published, drafted, fake, ada, batch):
    submission = hand_in(fake, published)
    collect.collect_batch(batch=batch, client=client_of(batch.connection))
    assert change(drafted, PRICE, ada, places=40).state == "failed"
    return submission


@pytest.fixture
def bonus(submitted, batch):
    worker_id = Assignment.objects.of(batch).first().worker.worker_id
    return {"worker_id": worker_id, "amount": "0.75", "reason": "Careful"}


@pytest.fixture
def pay_at_desk(bonus, batch, ada):
    there = models.RecruiterConnection.objects.get()
    models.RecruiterConnection.objects.update(settings=there.settings | {"currency": "USD"})
    minute()
    mine = Assignment.objects.of(batch).filter(worker__worker_id=bonus["worker_id"]).first()

    def pay(amount="0.75", reason="Careful"):
        facts = {"purpose": bonus_purpose(reason), "amount_usd": Decimal(amount), "reason": reason}
        request_payment(assignment=mine, requested_by=ada, **facts)
        send_payments(batch=batch, client=client_of(batch.connection))

    return pay


def offer(recruiter, **changed):
    facts = {"reward": Decimal("1.50"), "minutes": 10, "items": 3}
    return {"recruiter": recruiter} | facts | changed


def draft(batch, recruiter, ada):
    recruitment = request_draft(batch=batch, **offer(recruiter), actor=ada)
    work_off()
    recruitment.refresh_from_db()
    return recruitment


def minute():
    for kind in ("call_recruiters", "follow_recruiters"):
        run_job(request_job(kind=kind).pk)


def worker_of(study, submission):
    return study.sessions.get(submission_id=submission.id).worker.worker_id


def close_batch_before(days):
    then = timezone.now() - timedelta(days=days)
    Assignment.objects.update(status="Approved", submitted_at=then)
    Batch.objects.update(closed_at=then)
    return then


def refused_recruiting(code):
    return refused(RecruitingRefused, code)


def lose_answer_to_bonus(drafted, ada, monkeypatch, bonus, *errors):
    """The marketplace writes the bonus down, and this site gets no answer: an error for each
    time that someone has it tried, or with none the page of a proxy."""
    pay, post, tries = recruiter_api.pay_bonus, recruiter_api.post, []

    def pay_and_fail(*args, **facts):
        tries.append(facts)
        if len(tries) == 1:
            pay(*args, **facts)
        raise errors[min(len(tries), len(errors)) - 1]

    def answer_with_page(connection, path, content):
        answer = post(connection, path, content)
        return None if path.endswith("/bonus") else answer

    with monkeypatch.context() as away:
        if errors:
            away.setattr(recruiter_api, "pay_bonus", pay_and_fail)
        else:
            away.setattr(recruiter_api, "post", answer_with_page)
        job = change(drafted, participants.BONUS, ada, **bonus)
        while job.is_unfinished:
            run_job(job.pk)
            job.refresh_from_db()
        for _ in errors[1:]:
            resume_job(job=job)
            work_off()
    assert job.state == "failed"
    return job


def connect(connection, ada, fake, **changed):
    facts = {"name": "Prolific", "token": "token", "workspace": fake.world.workspace}
    job = request_recruiter(connection=connection, project="", actor=ada, **facts | changed)
    assert fake.calls == [] or changed
    work_off()
    job.refresh_from_db()
    return job


def hand_in(fake, study, code=None):
    """A participant does what is reserved for them, and goes back with the code, or another; with
    none they stay."""
    submission, _browser, _answer = arrive(fake, study)
    session = study.sessions.get(submission_id=submission.id)
    for item in session.items.select_related("assignment__hit"):
        submit(item.assignment)
    session.refresh_from_db()
    if code != "":
        fake.world.enter(submission, code or session.code)
    return submission


def submit(assignment):
    answer = answer_to(Hit.objects.get(hit_id=assignment.hit.public_id), {"alpha": 70, "beta": 20})
    fields = {"assignmentId": assignment.public_id, "answer": json.dumps(answer)}
    assert Client().post("/mturk/externalSubmit", fields).status_code == 200


def change(recruitment, action, ada, **values):
    recruitment.refresh_from_db()
    facts = {"number": recruitment.n_requests, "values": values, "actor": ada}
    job = request_change(recruitment=recruitment, action=action, **facts)
    work_off()
    job.refresh_from_db()
    recruitment.refresh_from_db()
    return job


def test_a_token_is_passed_on_and_kept_nowhere_here(connection, ada, fake):
    job = connect(connection, ada, fake)
    assert (job.state, job.arguments["encrypted_secret"]) == ("done", "")
    recruiter = Recruiter.objects.get()
    assert (recruiter.is_connected, recruiter.account) == (True, "A researcher")
    assert recruiter.currency == "GBP"
    assert connect(connection, ada, fake, token="mistyped").state == "failed"
    assert Recruiter.objects.get().is_connected
    request_end(recruiter=recruiter, actor=ada)
    work_off()
    assert not Recruiter.objects.get().is_connected
    assert models.RecruiterConnection.objects.get().encrypted_token == ""
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"recruiter.connect", "recruiter.disconnect"} <= actions


def test_its_files_have_passing_addresses(published, drafted, ada, fake, connection, monkeypatch):
    came = hand_in(fake, published)
    assert (change(drafted, DEMOGRAPHICS, ada).state, drafted.is_under_way) == ("done", False)
    address = file_address(drafted, "join", reader="ada")
    answer = Client().get(address)
    assert answer.status_code == 200
    assert came.participant in answer.content.decode()
    [entry] = models.AuditEntry.objects.filter(action="study.export_join")
    assert (entry.detail, entry.requester) == ({"reader": "ada"}, published.requester)
    demographics = Client().get(file_address(drafted, "demographics", reader="ada"))
    assert "age" in demographics.content.decode().lower()
    assert Client().get(file_address(drafted, "fridge", reader="ada")).status_code == 404
    for changed in (
        address.replace("join", "participants"),
        address.replace("reader=ada", "reader=bob"),
        address[:-1],
        address.split("?")[0],
        address.replace("key=", "key=X"),
        address.replace("key=", "key=%00"),
        address + "&expires=99999999999",
    ):
        assert Client().get(changed).status_code == 403
    key = models.AccessKey.objects.get(access_key_id=connection.access_key_id)
    models.AuditEntry.objects.filter(action="key.issue", subject=key.access_key_id).update(user=ada)
    assert Client().get(address).status_code == 403
    key.requester.owners.add(ada)
    assert Client().get(address).status_code == 200
    monkeypatch.setattr("hits.connections.SECONDS", -1)
    assert Client().get(file_address(drafted, "join", reader="ada")).status_code == 403
    assert models.AuditEntry.objects.filter(action="study.export_join").count() == 2


@pytest.mark.parametrize("is_approved", [False, True])
def test_answers_taken_back_are_deleted_here_too(published, fake, batch, connection, is_approved):
    hand_in(fake, published)
    there, browser, _answer = arrive(fake, published)
    session = published.sessions.get(submission_id=there.id)
    submit(session.items.first().assignment)
    collect.collect_batch(batch=batch, client=client_of(connection))
    assert (Submission.objects.count(), Assignment.objects.count()) == (4, 4)
    if is_approved:
        first = session.items.first().assignment.public_id
        client_of(connection).approve_assignment(AssignmentId=first)
        participants.follow_decisions(connection)
        assert Assignment.objects.get(assignment_id=first).status == "Approved"
    before = Study.objects.get(pk=batch.study_id).judgments_version
    browser.post(f"/worker/studies/{session.public_id}/leave/")
    for _minute in range(2):
        participants.follow_batch(batch)
    assert (Submission.objects.count(), Assignment.objects.count()) == (3, 3)
    assert Study.objects.get(pk=batch.study_id).judgments_version == before + 1
    assert AuditEntry.objects.get(action="submissions.withdraw").details == {"n": 1}
    collect.collect_batch(batch=batch, client=client_of(connection))
    assert Assignment.objects.count() == 3


@pytest.mark.parametrize(
    ("facts", "n_kept"),
    [
        ({"state": "intended"}, 0),
        ({"state": "refused", "first_sent_at": timezone.now()}, 0),
        ({"state": "intended", "first_sent_at": timezone.now()}, 1),
        ({"state": "confirmed", "first_sent_at": timezone.now()}, 1),
    ],
)
def test_a_bonus_may_keep_an_answer_taken_back(published, fake, batch, connection, facts, n_kept):
    there, browser, _answer = arrive(fake, published)
    session = published.sessions.get(submission_id=there.id)
    submit(session.items.first().assignment)
    collect.collect_batch(batch=batch, client=client_of(connection))
    values = {"amount_usd": Decimal("0.50"), "reason": "Careful"}
    request_payment(assignment=Assignment.objects.get(), purpose=bonus_purpose("Careful"), **values)
    Payment.objects.update(**facts)
    browser.post(f"/worker/studies/{session.public_id}/leave/")
    participants.follow_batch(batch)
    assert (Submission.objects.count(), Payment.objects.count()) == (n_kept, n_kept)
    noted = AuditEntry.objects.filter(action="submissions.withdraw")
    unpaid = {"n_unpaid": 1} if facts["state"] == "intended" else {}
    assert list(noted.values_list("details", flat=True)) == ([] if n_kept else [{"n": 1} | unpaid])


def test_it_is_drafted_published_for_the_amount_and_stopped(drafted, fake, ada):
    client = client_of(drafted.batch.connection)
    assert (drafted.state, drafted.quoted_places, drafted.quoted_cost) == ("draft", 2, 4)
    assert not fake.calls.count("move_study")
    job = change(drafted, PUBLISH, ada, confirmed="3.00")
    assert (job.state, "4.00 GBP" in job.message) == ("failed", True)
    assert drafted.state == "draft"
    job = change(drafted, PUBLISH, ada, confirmed="4.00")
    assert (job.state, drafted.state, drafted.problem) == ("done", "active", "")
    assert "open_studies" in codes_of(unfinished_work(drafted.batch.study))
    assert balance_of(client) == ("50.00", "0.00")
    assert change(drafted, PRICE, ada, places=4).state == "failed"
    ask_for_more(client, models.HitType.objects.get(), 2)
    change(drafted, PRICE, ada, places=4)
    assert (drafted.places, drafted.quoted_places, drafted.quoted_cost) == (2, 4, 4)
    change(drafted, PLACES, ada, places=4, confirmed="4.00")
    assert drafted.places == 4
    for action, state in ((PAUSE, "paused"), (RESUME, "active"), (STOP, "stopped")):
        change(drafted, action, ada)
        assert drafted.state == state
    actions = AuditEntry.objects.filter(action__startswith="recruitment.")
    assert actions.values_list("action", flat=True).distinct().count() == 7


def test_without_judgments_left_nobody_is_paid_for(published, drafted, fake, ada, batch, recruiter):
    for _participant in range(2):
        hand_in(fake, published)
    assert change(drafted, PRICE, ada, places=3).state == "failed"  # before answers are collected
    collect.collect_batch(batch=batch, client=client_of(batch.connection))
    facts = {"recruitment": drafted, "number": drafted.n_requests, "actor": ada}
    for action in (PRICE, PLACES):
        with refused_recruiting("nothing_wanted"):
            request_change(action=action, values={"places": 3, "confirmed": "2.00"}, **facts)
    change(drafted, STOP, ada)
    with refused_recruiting("nothing_wanted"):
        request_draft(batch=batch, **offer(recruiter, places=1), actor=ada)


def test_a_button_pressed_twice_requests_once(drafted, fake, ada):
    facts = {"recruitment": drafted, "number": drafted.n_requests, "actor": ada}
    request_change(action=PUBLISH, values={"confirmed": "4.00"}, **facts)
    with refused_recruiting("changed_since"):
        request_change(action=PUBLISH, values={"confirmed": "4.00"}, **facts)
    with refused_recruiting("under_way"):
        request_change(action=DISCARD, **facts | {"number": drafted.n_requests + 1})
    work_off()
    assert fake.calls.count("move_study") == 1


def test_of_a_batch_one_study_is_open_at_a_time(drafted, batch, recruiter, ada, fake, connection):
    with refused_recruiting("open_already"):
        request_draft(batch=batch, **offer(recruiter), actor=ada)
    assert participants.connections_to_follow() == [connection]
    change(drafted, DISCARD, ada)
    assert (drafted.state, fake.world.studies) == ("discarded", {})
    again = draft(batch, recruiter, ada)
    assert again.state == "draft"
    change(again, DISCARD, ada)
    Batch.objects.update(closed_at=drafted.created_at)
    assert participants.connections_to_follow() == []
    Batch.objects.update(is_recruited=False)
    with refused_recruiting("own_workers"):
        request_draft(batch=Batch.objects.get(), **offer(recruiter), actor=ada)
    delete_study(study=batch.study, actor=ada)
    assert not Recruitment.objects.exists()
    assert Job.objects.of_kind("recruit_participants").count() == 0


@pytest.mark.parametrize("is_first", [True, False])
def test_a_failed_draft_is_tried_again_unless_another_came(batch, recruiter, ada, fake, is_first):
    fake.fail_next("calculate_cost", *["500"] * 3)
    failed = draft(batch, recruiter, ada)
    fake.faults.clear()
    job = Job.objects.of_kind(study_facts.RECRUIT).get()
    assert (failed.state, job.state, "500" in failed.problem) == ("refused", "failed", True)
    if not is_first:
        draft(batch, recruiter, ada)
    for _press in range(2):
        resume_job(job=job)
        work_off()
        job.refresh_from_db()
        failed.refresh_from_db()
        assert (failed.state, job.state) == (
            ("draft", "done") if is_first else ("refused", "failed")
        )
        assert (failed.problem == "") is is_first
        assert len(fake.world.studies) == 1


def test_participants_are_followed_decided_on_and_not_paid_here(published, drafted, fake, batch):
    movements = models.LedgerTransaction.objects.count()
    first, second = (hand_in(fake, published) for _participant in range(2))
    client = client_of(batch.connection)
    collect.collect_batch(batch=batch, client=client)
    drafted.refresh_from_db()
    assert drafted.charged == [(str(CHARGES["study"]), 4)]
    decide(assignments=Assignment.objects.of(batch), decision=Assignment.Decision.APPROVE)
    send_decisions(batch=batch, client=client)
    run_job(request_job(kind="follow_recruiters").pk)
    minute()
    drafted.refresh_from_db()
    assert drafted.charged == [(str(CHARGES["study"]), 4), (str(CHARGES["reward"]), 4)]
    assert drafted.outcomes == {"completed": 2}
    assert (drafted.sessions["approved"], drafted.n_waiting) == (2, 0)
    assert {first.status, second.status} == {"APPROVED"}
    assert models.LedgerTransaction.objects.count() == movements
    assert store_audit().n_problems == 0
    progress.fetch_statement(batch=batch)
    report = progress.batch_report(batch)
    assert (report.n_approved, report.spend.total_usd, report.difference_usd) == (6, 0, 0)


def test_what_a_bonus_costs_is_asked_of_the_recruiter_unpaid(published, drafted, fake, ada):
    submission = hand_in(fake, published)
    worker_id = worker_of(published, submission)
    job = change(drafted, PRICE_BONUS, ada, worker_id=worker_id, amount="0.75", reason="Careful.")
    assert (drafted.quoted_bonus, drafted.quoted_bonus_cost) == (Decimal("0.75"), Decimal(1))
    assert ("0.75 GBP" in job.message, "1.00 GBP" in job.message) == (True, True)
    assert participants.bonuses_of(drafted.batch) == []
    assert (submission.bonuses, fake.world.paid) == ([], [])
    job = change(drafted, PRICE_BONUS, ada, worker_id="A1NOBODY", amount="0.75", reason="")
    assert (job.state, "A1NOBODY" in job.message) == ("failed", True)


def test_an_uncertain_call_is_listed_and_settled(published, drafted, fake, ada):
    hand_in(fake, published)
    session = published.sessions.get()
    facts = {"session": session, "connection": session.connection, "created_at": session.arrived_at}
    facts |= {"amount": Decimal("0.50"), "currency": "GBP", "sent_at": timezone.now()}
    facts["basis"] = {"prepared": "a" * 24, "total": "0.67"}
    intent = models.Intent.objects.create(kind="bonus", key="bonus:1", state="uncertain", **facts)
    run_job(request_job(kind="follow_recruiters").pk)
    call = RecruiterCall.objects.get()
    assert (call.kind, call.amount, call.is_uncertain) == ("bonus", Decimal("0.50"), True)
    assert call.shows_by == facts["sent_at"] + timedelta(hours=1)
    assert call.submission_id == session.submission_id
    assert "calls_to_look_after" in codes_of(unfinished_work(drafted.batch.study))
    run_job(request_job(kind="follow_recruiters").pk)
    # The page that somebody has open names the row.
    assert RecruiterCall.objects.get().pk == call.pk
    job = change(drafted, SETTLE, ada, call=call.number, was_done=True)
    assert (job.state, RecruiterCall.objects.count()) == ("done", 0)
    assert "calls_to_look_after" not in codes_of(unfinished_work(drafted.batch.study))
    intent.refresh_from_db()
    assert intent.state == "done"
    # A sum of fractions, which not every database adds up in decimals.
    drafted.refresh_from_db()
    assert drafted.charges["bonus"] == "0.6700"


@pytest.mark.parametrize(("days", "is_kept"), [(29, True), (31, False)])
def test_a_closed_batch_is_followed_for_thirty_days(drafted, connection, days, is_kept):
    """A participant takes answers back, or a submission without its work waits to be paid."""
    then = timezone.now() - timedelta(days=days)
    Recruitment.objects.update(state="stopped", fetched_at=then)
    Batch.objects.update(closed_at=then)
    assert participants.connections_to_follow() == ([connection] if is_kept else [])
    facts = {"number": 1, "kind": "bonus", "worker_id": "W1", "submission_id": "a" * 24}
    RecruiterCall.objects.create(recruitment=drafted, is_uncertain=True, **facts)
    call_command("delete_expired")
    assert RecruiterCall.objects.exists() is is_kept


@pytest.mark.parametrize("days", [29, 31])
def test_nobody_erased_unheard_is_named(published, drafted, fake, ada, batch, days):
    """After thirty days nobody asks the marketplace whether that is so."""
    came = hand_in(fake, published)
    client = client_of(batch.connection)
    collect.collect_batch(batch=batch, client=client)
    for assignment in Assignment.objects.all():
        client.approve_assignment(AssignmentId=assignment.assignment_id)
    fake.world.leave(came)
    minute()
    change(drafted, STOP, ada)
    assert RecruiterCall.objects.get().submission_id == came.id
    close_batch_before(days)
    run_job(request_job(kind="follow_recruiters").pk)
    assert RecruiterCall.objects.get().submission_id == (came.id if days == 29 else "")
    erase_worker(published.sessions.get().worker)
    run_job(request_job(kind="follow_recruiters").pk)
    assert not RecruiterCall.objects.filter(submission_id=came.id).exists()


def test_answers_by_a_panels_links_are_followed_until_they_are_decided_on(batch, connection):
    """The marketplace's own pages gave the links: no study of it is known here."""
    assert participants.connections_to_follow() == []
    values = StudyValues(name="Ours", kind="panel", items_per_session=2, **PROLIFIC)
    requester, hit_type = models.Requester.objects.get(), models.HitType.objects.get()
    study = open_study(requester=requester, hit_type=hit_type, values=values)
    browser = Client()
    browser.post(f"/join/{study.token}/?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1")
    session = study.sessions.get()
    submit(session.items.first().assignment)
    collect.collect_batch(batch=batch, client=client_of(connection))
    assert (Submission.objects.count(), participants.connections_to_follow()) == (1, [connection])
    # Who is at work still may stop, and take back what was decided on, too.
    Assignment.objects.update(status="Approved")
    assert participants.connections_to_follow() == [connection]
    # At the end of a participation of a day, too, whose first page was submitted at once.
    Assignment.objects.update(submitted_at=timezone.now() - timedelta(days=1, minutes=15))
    assert participants.connections_to_follow() == [connection]
    browser.post(f"/worker/studies/{session.public_id}/leave/")
    run_job(request_job(kind="follow_recruiters").pk)
    assert (Submission.objects.count(), Assignment.objects.count()) == (0, 0)
    assert participants.connections_to_follow() == []


def test_decisions_that_were_not_sent_from_here_are_heard_of(published, fake, batch):
    """A participant's other items, those decided at Prolific by hand, and what time approves."""
    by_item, by_time = (hand_in(fake, published) for _ in range(2))
    collect.collect_batch(batch=batch, client=client_of(batch.connection))
    mine = Assignment.objects.of(batch)
    items = published.sessions.get(submission_id=by_item.id).items.order_by("position")
    rejected = mine.filter(assignment_id=items.first().assignment.public_id)
    decide(assignments=rejected, decision=Assignment.Decision.REJECT, feedback="x" * 120)
    send_decisions(batch=batch, client=client_of(batch.connection))
    statuses = mine.order_by("status").values_list("status", flat=True)
    assert sorted(statuses) == ["Rejected", *["Submitted"] * 5]
    minute()
    assert sorted(statuses.all()) == [*["Rejected"] * 3, *["Submitted"] * 3]
    fake.world.pass_time(timedelta(days=22))
    minute()
    assert sorted(statuses.all()) == [*["Approved"] * 3, *["Rejected"] * 3]
    assert by_time.status == "APPROVED"


def test_how_participants_stand_is_known_until_they_are_decided(published, drafted, fake, batch):
    """Who gave the place back after the work, or entered another code than the one given."""
    left = hand_in(fake, published, code="")
    fake.world.leave(left)
    other, plain = (hand_in(fake, published, code=code) for code in ("MY-OWN-ID", None))
    collect.collect_batch(batch=batch, client=client_of(batch.connection))
    for _minute in range(2):
        minute()
    told = Participation.objects.filter(recruitment=drafted).order_by("pk")
    by_worker = {one.worker_id: (one.state, one.outcome, one.reported) for one in told}
    workers = [worker_of(published, submission) for submission in (left, other)]
    stands = [("returned", "completed", ""), ("finished", "completed", "other")]
    assert by_worker == dict(zip(workers, stands, strict=True))
    assert "MY-OWN-ID" not in str(list(told.values()))
    mine = Assignment.objects.of(batch).filter(worker__worker_id__in=by_worker)
    decide(assignments=mine, decision=Assignment.Decision.APPROVE, feedback="")
    send_decisions(batch=batch, client=client_of(batch.connection))
    run_job(request_job(kind="follow_recruiters").pk)
    assert not told.all().exists()
    assert plain.status == "AWAITING REVIEW"


def test_what_failed_is_tried_again_unless_it_was_done_all_the_same(drafted, fake, ada):
    """It is published there by hand; what is still to be done stays failed."""
    fake.fail_next("study", *["500"] * 4)
    failed = change(drafted, PUBLISH, ada, confirmed="4.00")
    minute()
    failed.refresh_from_db()
    drafted.refresh_from_db()
    assert (failed.state, drafted.state) == ("failed", "draft")
    assert drafted.problem
    move_study(fake.world, {"action": "PUBLISH"}, models.RecruitedStudy.objects.get().external_id)
    minute()
    failed.refresh_from_db()
    drafted.refresh_from_db()
    assert (failed.state, drafted.state, drafted.problem) == ("done", "active", "")
    fake.fail_next("study", *["500"] * 4)
    failed = change(drafted, STOP, ada)
    minute()
    failed.refresh_from_db()
    assert failed.state == "failed"
    resume_job(job=failed)
    work_off()
    drafted.refresh_from_db()
    assert drafted.state == "stopped"


def test_a_refused_bonus_tried_again_is_paid_once(bonus, drafted, fake, ada, batch, monkeypatch):
    def refuse(*_args, **_facts):
        raise RecruitingRefused("works with no recruiters")

    with monkeypatch.context() as once:
        once.setattr(recruiter_api, "pay_bonus", refuse)
        job = change(drafted, participants.BONUS, ada, **bonus)
    assert participants.bonuses_of(batch) == []
    resume_job(job=job)
    work_off()
    minute()
    assert [one.job for one in participants.bonuses_of(batch)] == [job]
    for state in ("done", "failed"):
        Job.objects.filter(pk=job.pk).update(state=state)
        with refused_recruiting("same_reason"):
            change(drafted, participants.BONUS, ada, **bonus)
    assert len(fake.world.paid) == 1


@pytest.mark.parametrize("is_heard", [True, False])
def test_a_bonus_is_paid_once_however_long_ago_it_was_requested(
    bonus, drafted, fake, ada, batch, monkeypatch, settings, is_heard
):
    """Other jobs are forgotten after a while; of these nothing else says what was paid."""
    if is_heard:
        job = change(drafted, participants.BONUS, ada, **bonus)
    else:
        job = lose_answer_to_bonus(drafted, ada, monkeypatch, bonus)
    minute()
    assert [one.is_unheard for one in participants.bonuses_of(batch)] == [not is_heard]
    long_ago = timezone.now() - timedelta(days=settings.WORK_KEEP_DAYS + 1)
    Job.objects.finished().update(finished_at=long_ago)
    run_job(request_job(kind="clean_up").pk)
    assert list(Job.objects.of_kind(study_facts.RECRUIT)) == [job]
    if is_heard:
        with refused_recruiting("same_reason"):
            change(drafted, participants.BONUS, ada, **bonus)
    else:
        change(drafted, participants.BONUS, ada, **bonus)
        minute()
    assert len(fake.world.paid) == 1


@pytest.mark.skipif(database.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_bonus_requested_twice_is_paid_once(bonus, drafted, ada, pay_at_desk, monkeypatch):
    drafted.refresh_from_db()
    real, is_checked = recruited_batches._request, Event()

    def slowly(*facts):
        is_checked.set()  # it is allowed, and not written down yet
        time.sleep(1)
        return real(*facts)

    def pay_on_page():
        facts = {"action": participants.BONUS, "number": drafted.n_requests, "actor": ada}
        request_change(recruitment=drafted, values=bonus, **facts)

    def pay_after_check():
        is_checked.wait(timeout=30)
        with refused(PaymentRefused, "same_reason"):
            pay_at_desk()

    def closing(do):
        try:
            return do()
        finally:
            connections.close_all()

    monkeypatch.setattr(recruited_batches, "_request", slowly)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(closing, (pay_on_page, pay_after_check))) == [None, None]
    assert not Payment.objects.exists()


@pytest.mark.parametrize("is_at_desk", [True, False])
def test_a_bonus_is_paid_once_by_either_page(bonus, drafted, fake, ada, pay_at_desk, is_at_desk):
    def pay(is_at_desk):
        if is_at_desk:
            pay_at_desk(reason="Careful ")
        else:
            change(drafted, participants.BONUS, ada, **bonus)

    pay(is_at_desk)
    with refused(RecruitingRefused if is_at_desk else PaymentRefused, "same_reason"):
        pay(not is_at_desk)
    minute()
    assert len(fake.world.paid) == 1


@pytest.mark.parametrize(("amount", "cost"), [("0.75", 100), ("0.60", 80)])
def test_a_refused_bonus_of_the_desk_is_asked_for_again(fake, batch, pay_at_desk, amount, cost):
    pay_at_desk()
    fake.fail_next("prepare_bonuses", "400")
    minute()
    assert [one.state for one in Payment.objects.all()] == ["refused"]
    asked_before = recruiter_api.fetch_standing(batch.connection)
    pay_at_desk(amount)
    participants.store_standing(batch.connection, asked_before)  # and stored after
    minute()
    if amount == "0.75":
        pay_at_desk()
        minute()
    [payment] = Payment.objects.all()
    assert (payment.state, payment.amount_usd) == ("confirmed", Decimal(amount))
    assert [amount for _kind, _key, amount in fake.world.paid] == [cost]  # fees included


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("studies", {"problem": "\ud800"}),
        ("studies", {"problem": "\x00"}),
        ("studies", {"charges": {"bonus": "1E-30000000"}}),
        ("calls", None),
    ],
)
def test_nothing_a_marketplace_says_ends_the_following(published, fake, monkeypatch, where, said):
    """A text that no database keeps, an amount that is a book of zeros, a call named twice."""
    submission, _browser, _answer = arrive(fake, published)
    fake.world.enter(submission, published.codes.get(outcome="completed").code)
    run_job(request_job(kind="call_recruiters").pk)
    real = recruiter_api.post

    def wrongly(connection, path, content):
        answer = real(connection, path, content)
        if path == "/recruiting":
            rows = answer[where]
            answer[where] = [row | said for row in rows] if said else [*rows, *rows]
        return answer

    with monkeypatch.context() as once:
        once.setattr(recruiter_api, "post", wrongly)
        follow = request_job(kind="follow_recruiters")
        run_job(follow.pk)
    follow.refresh_from_db()
    assert follow.state == "done"
    assert RecruiterCall.objects.count() == (0 if said else 1)


@pytest.mark.parametrize("errors", [[SLOW], [WRONG], [WRONG, RecruitingRefused("later")]])
def test_a_bonus_not_heard_of_is_paid_once(bonus, drafted, fake, ada, monkeypatch, errors):
    lose_answer_to_bonus(drafted, ada, monkeypatch, bonus, *errors)
    minute()
    with refused_recruiting("unconfirmed_bonus"):
        change(drafted, participants.BONUS, ada, **bonus | {"amount": "0.80"})
    change(drafted, participants.BONUS, ada, **bonus)
    minute()
    assert len(fake.world.paid) == 1
    [heard] = participants.bonuses_of(drafted.batch)
    assert (heard.amount, heard.is_unheard) == ("0.75", False)
    with refused_recruiting("same_reason"):
        change(drafted, participants.BONUS, ada, **bonus)


def test_a_bonus_refused_unheard_says_why(bonus, drafted, fake, ada, batch, monkeypatch):
    """By the token that it was requested under; the next is another, and is paid."""
    lose_answer_to_bonus(drafted, ada, monkeypatch, bonus, WRONG)
    fake.fail_next("prepare_bonuses", "400")
    minute()
    [one] = participants.bonuses_of(batch)
    assert (one.is_refused, one.is_unheard) == (True, False)
    assert one.refusal == RecruiterCall.objects.get().problem != ""
    change(drafted, participants.BONUS, ada, **bonus | {"amount": "0.80"})
    minute()
    assert [str(amount) for _kind, _key, amount in fake.world.paid] == ["320/3"]
    # It stays refused though its participant is erased.
    decide(assignments=Assignment.objects.of(batch), decision=Assignment.Decision.APPROVE)
    send_decisions(batch=batch, client=client_of(batch.connection))
    minute()
    erase_worker(models.RecruitedStudy.objects.get().sessions.get().worker)
    minute()
    assert sorted(one.is_refused for one in participants.bonuses_of(batch)) == [False, True]


@pytest.mark.parametrize("is_heard", [True, False])
def test_a_bonus_is_followed_however_long_ago_its_batch_was_closed(
    bonus, drafted, fake, ada, batch, connection, monkeypatch, is_heard
):
    change(drafted, STOP, ada)
    then = close_batch_before(40)
    assert participants.connections_to_follow() == []
    fake.fail_next("prepare_bonuses", "400")  # for want of money, say

    def away(*_given, **_facts):
        raise MarketplaceUnreachable("away")

    with monkeypatch.context() as once:
        if not is_heard:
            once.setattr(recruiter_api, "fetch_standing", away)
        change(drafted, participants.BONUS, ada, **bonus)
    for _minute in range(2):
        minute()
    [one] = participants.bonuses_of(batch)
    assert (one.is_refused, fake.world.paid) == (True, [])
    assert participants.connections_to_follow() == []
    # One that was paid at the review desk, too.
    facts = {"amount_usd": Decimal("0.75"), "fee_usd": 0, "assignment": Assignment.objects.first()}
    facts |= {"purpose": bonus_purpose("Careful"), "reason": "Careful"}
    Payment.objects.create(state="confirmed", confirmed_at=timezone.now(), **facts)
    assert participants.connections_to_follow() == [connection]
    Payment.objects.update(confirmed_at=then)
    assert participants.connections_to_follow() == []


def test_answers_taken_back_meanwhile_are_gone(published, fake, batch, connection, monkeypatch):
    hand_in(fake, published)
    collect.collect_batch(batch=batch, client=client_of(connection))
    facts = {"amount_usd": Decimal("0.50"), "purpose": bonus_purpose("Careful")}
    request_payment(assignment=Assignment.objects.first(), reason="Careful", **facts)
    is_first, read = decisions._is_first_attempt, collect.read_answer

    def delete_before_sending(payment):
        collect.delete_withdrawn(Assignment.objects.filter(pk=payment.assignment_id))
        return is_first(payment)

    def delete_before_reading(*answer):
        collect.delete_withdrawn(Assignment.objects.all())
        return read(*answer)

    models.RecruiterConnection.objects.update(settings={"currency": "USD"})
    monkeypatch.setattr(decisions, "_is_first_attempt", delete_before_sending)
    assert send_payments(batch=batch, client=client_of(connection)).n_paid == 0
    assert not models.Intent.objects.filter(kind="bonus").exists()
    assert not Payment.objects.exists()
    assert Assignment.objects.count() == 2
    Submission.objects.all().delete()
    monkeypatch.setattr(collect, "read_answer", delete_before_reading)
    assert collect.read_assignments(batch=batch) == 0
    assert not Assignment.objects.exists()
    assert not Submission.objects.exists()

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.config import Config
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation import frames, study_facts, study_files
from annotation.agreement import study_agreement
from annotation.models import Judgment, Submission
from annotation.protocols import documents, records, validation, versions
from annotation.result_kinds.base import find_study_kind
from hits import answers, changes, endpoints, exceptions, questions
from hits.collect import CHUNK, awaited_hits, collect_batch, read_assignments
from hits.models import Assignment, Batch, Connection, Hit, Worker
from marketplace import clock
from marketplace.hits.assignments import accept_hit, return_assignment
from marketplace.models import Assignment as MarketplaceAssignment, Hit as MarketplaceHit
from tests.annotation.studies import rating_study
from tests.codes import refused
from tests.hits.work import answer_to, batch_of, hand_in, hit_on, published_batch, tables
from tests.marketplace.conftest import submit
from work import execution, tasks
from work.models import Job

LIST = "ListAssignmentsForHIT"


def test_an_answer_becomes_judgments_with_places_and_times_once(study, client, ann, bob):
    batch = published_batch(study, client, max_assignments=2)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 30, "beta": 70}, order=["beta", "alpha"])
    result = collect_batch(batch=batch, client=client)
    assert (result.n_hits, result.n_new, result.n_unreadable) == (3, 1, 0)
    found = rows(study, "item", "system", "value", "position", "seconds")
    assert found == [("d0", "alpha", 30, 1, 1.5), ("d0", "beta", 70, 0, 0.5)]
    submission = Submission.objects.get()
    assert submission.shown_order == ["beta", "alpha"]
    assert submission.status == Submission.Status.SUBMITTED
    assert submission.raw == MarketplaceAssignment.objects.get().answer
    duration = submission.submitted_at - submission.accepted_at
    assert submission.seconds == duration.total_seconds() >= 0
    hand_in(bob, hit_on(batch, "d0"), {"alpha": 90, "beta": 50})
    submit(ann, hit_on(batch, "d1").hit_id, answer="nonsense")
    assert collect_batch(batch=batch, client=client).n_new == 2
    Batch.objects.update(collected_at=None)  # when it was asked, which is later
    before = tables()
    again = collect_batch(batch=batch, client=client)
    assert (again.n_new, again.n_unreadable) == (0, 1)
    Batch.objects.update(collected_at=None)
    assert tables() == before


def rows(study, *columns):
    return sorted(frames.judgment_frame(study)[list(columns)].itertuples(index=False, name=None))


def expire(batch: Batch) -> None:
    past = timedelta(seconds=batch.lifetime_seconds + 60)
    clock.advance(past)
    Batch.objects.filter(pk=batch.pk).update(publishing_started_at=timezone.now() - past)


def study_values(study):
    names = ["item__key", "annotator__pseudonym", "round", "status", "raw", "shown_order"]
    names += ["seconds", "accepted_at", "submitted_at", "assignment__assignment_id"]
    names += ["justification"]
    submissions = Submission.objects.of(study).values_list(*names)
    judgments = frames.judgment_frame(study, accepted=False).itertuples(index=False, name=None)
    return sorted(map(repr, submissions)), sorted(map(repr, judgments))


def test_cannot_tell_is_a_missing_value_with_its_reason_and_no_judgment(client, ann, bob):
    study = rating_study(n_items=1, questions=())
    rating = records.ProtocolQuestion("fit", "likert", "How fitting?", points=("no", "", "yes"))
    offered = records.ProtocolDocument((replace(rating, cannot_tell=True),), title="Rate")
    versions.save_draft(study=study, document=offered)
    batch = published_batch(study, client, max_assignments=2)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 2, "beta": "cannot_tell"})
    hand_in(bob, hit_on(batch, "d0"), {"alpha": 2, "beta": 3})
    assert collect_batch(batch=batch, client=client).n_unreadable == 0
    found = rows(study, "system", "value")
    assert found == [("alpha", 2), ("alpha", 2), ("beta", 3)]
    [agreement] = study_agreement(study).questions
    assert (agreement.alpha.n_items, agreement.alpha.n_items_dropped) == (1, 1)
    lines = "".join(study_files.study_download("missing.csv").write(study)).splitlines()
    [record] = csv.DictReader(lines)
    assert (record["candidate"], record["question"]) == ("beta", "fit")
    assert (record["reason"], record["seconds"]) == ("cannot_tell", "1.5")

    # Only if it is offered, and never by an attention check.
    hit = hit_on(batch, "d0")
    answer = json.dumps(answer_to(hit, {"alpha": "cannot_tell", "beta": 1}))
    with refused(exceptions.AnswerUnreadable, "not_a_number"):
        answers.read_answer_text(
            answer, hit.item, records.ProtocolDocument((rating,), title="Rate")
        )
    check = replace(rating, name="check", cannot_tell=True, check=records.QuestionCheck(value=2))
    [fault] = validation.document_faults(
        documents.plain_document(records.ProtocolDocument((rating, check), title="Rate"))
    )
    assert (fault.path, fault.code) == (("questions", 1, "cannot_tell"), "attention_check")


@pytest.mark.slow
def test_every_page_of_a_hits_assignments_is_collected(client, make_worker):
    study = rating_study("one", n_items=1)
    batch = published_batch(study, client, reward_usd="0.01", max_assignments=104)
    hit = hit_on(batch, "d0")
    for number in range(104):
        hand_in(make_worker(f"w{number}"), hit, {"alpha": number % 101, "beta": 0})
    with CaptureQueriesContext(connection) as queries:
        assert collect_batch(batch=batch, client=client).n_new == 104
    assert Judgment.objects.count() == 208
    chunks = -(-104 // CHUNK)
    loads = [query["sql"] for query in queries if 'FROM "annotation_candidate"' in query["sql"]]
    assert len(loads) == chunks == 2
    assert not any("annotation_picture" in query["sql"] for query in queries)


def test_unreadable_answers_are_kept_and_stop_no_other(study, client, make_worker):
    ann, bob, *others = (make_worker(name) for name in ("ann", "bob", "carl", "dora", "emil"))
    batch = published_batch(study, client, max_assignments=5, reward_usd="0.01")
    hit = hit_on(batch, "d0")
    fields = [{"answer": "not JSON"}, {"answer": '{"version": 2}'}, {"rating": "4"}]
    bad = [submit(who, hit.hit_id, **each) for who, each in zip(others, fields, strict=True)]
    hand_in(bob, hit, {"alpha": 1, "beta": 2})
    hand_in(ann, hit_on(batch, "d1"), {"alpha": 3, "beta": 4})
    # A number beyond all floats.
    bad.append(hand_in(ann, hit, {"alpha": 1, "beta": 2}))
    stored = MarketplaceAssignment.objects.get(public_id=bad[-1])
    stored.answer = stored.answer.replace('"value": 1', '"value": 1' + "0" * 400, 1)
    assert "0" * 400 in stored.answer
    stored.save(update_fields=["answer"])
    result = collect_batch(batch=batch, client=client)
    assert (result.n_new, result.n_unreadable) == (6, 4)
    for assignment in Assignment.objects.filter(assignment_id__in=bad):
        there = MarketplaceAssignment.objects.get(public_id=assignment.assignment_id)
        assert assignment.problem
        assert assignment.answer_xml == there.answer
    assert rows(study, "item", "value") == [("d0", 1), ("d0", 2), ("d1", 3), ("d1", 4)]
    # One that can be read later loses its problem.
    readable = stored.answer.replace("0" * 400, "")
    Assignment.objects.filter(assignment_id=bad[-1]).update(answer_xml=readable)
    assert collect_batch(batch=batch, client=client).n_unreadable == 3
    assert Assignment.objects.get(assignment_id=bad[-1]).problem == ""


def test_an_impossible_time_of_consent_is_noted_and_stops_no_other(study, client, ann, bob):
    document = versions.document_of_rows(study, study.questions.all())
    (question,) = document.questions
    question = replace(question, low_label="Bad", high_label="Good")
    document = replace(document, questions=(question,), consent=records.Consent("Agreed.", ""))
    versions.save_draft(study=study, document=document)
    batch = published_batch(study, client, max_assignments=2)
    text = questions.consent_fingerprint(batch.document)
    for worker, at in ((ann, "0001-01-01T00:00:00+14:00"), (bob, timezone.now().isoformat())):
        consent = {"text": text, "at": at}
        hand_in(worker, hit_on(batch, "d0"), {"alpha": 1, "beta": 2}, consent=consent)
    assert collect_batch(batch=batch, client=client).n_unreadable == 0
    assert Submission.objects.count() == 2
    odd, usual = Assignment.objects.order_by("pk")
    assert odd.submission.consented_at == odd.submitted_at
    assert "0001-01-01" in odd.reading_note
    assert usual.reading_note == ""


def test_an_item_judged_twice_in_a_round_counts_once(study, client, ann):
    batch = published_batch(study, client)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 10, "beta": 20})
    collect_batch(batch=batch, client=client)
    # As if the same annotator's first answer had come another way, such as from a file.
    Assignment.objects.all().delete()
    Submission.objects.update(raw="<QuestionFormAnswers/>")
    hand_in(ann, hit_on(batch, "d1"), {"alpha": 50, "beta": 60})
    assert collect_batch(batch=batch, client=client).n_unreadable == 1
    assert "'d0'" in Assignment.objects.get(submission=None).problem
    assert rows(study, "item", "value") == [("d0", 10), ("d0", 20), ("d1", 50), ("d1", 60)]


@pytest.mark.slow
def test_decisions_made_elsewhere_reach_the_study_and_its_version(study, client, wire, ann, bob):
    def version():
        study.refresh_from_db()
        return study.judgments_version

    batch = published_batch(study, client, max_assignments=3)
    first, second = (
        hand_in(worker, hit_on(batch, "d0"), {"alpha": 1, "beta": 2}) for worker in (ann, bob)
    )
    hand_in(ann, hit_on(batch, "d1"), {"alpha": 1, "beta": 2})
    assert version() == 0
    collect_batch(batch=batch, client=client)
    assert (version(), len(frames.judgment_frame(study))) == (3, 6)
    client.approve_assignment(AssignmentId=first)
    assert collect_batch(batch=batch, client=client).n_hits == 3
    assert version() == 3
    client.reject_assignment(AssignmentId=second, RequesterFeedback="Too quick.")
    collect_batch(batch=batch, client=client)
    assert (version(), len(frames.judgment_frame(study))) == (4, 4)
    assert len(frames.judgment_frame(study, accepted=False)) == 6
    statuses = ["approved", "rejected", "submitted"]
    assert sorted(Submission.objects.values_list("status", flat=True)) == statuses
    assert wire.calls["GetHIT"] == 0  # before it may have expired


def test_automatic_approval_reaches_the_study_and_ends_a_hits_listing(study, client, wire, ann):
    batch = published_batch(study, client, auto_approval_delay_seconds=3600)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    collect_batch(batch=batch, client=client)
    assert Submission.objects.get().status == Submission.Status.SUBMITTED
    clock.advance(timedelta(hours=2))
    Assignment.objects.update(submitted_at=timezone.now() - timedelta(hours=2))
    assert collect_batch(batch=batch, client=client).n_hits == 3
    assert Submission.objects.get().status == Submission.Status.APPROVED
    assert Assignment.objects.get().status == Assignment.Status.APPROVED
    wire.calls.clear()
    assert collect_batch(batch=batch, client=client).n_hits == wire.calls[LIST] == 2


def test_work_still_going_on_is_left_alone(study, client, wire, ann, bob):
    assert collect_batch(batch=batch_of(study, round=2), client=client).n_hits == 0
    assert not wire.calls
    terms = {"max_assignments": 2, "lifetime_seconds": 60, "assignment_duration_seconds": 7200}
    batch = published_batch(study, client, **terms)
    hit = MarketplaceHit.objects.get(public_id=hit_on(batch, "d0").hit_id)
    accept_hit(worker=ann, hit=hit)
    return_assignment(assignment=accept_hit(worker=bob, hit=hit))
    assert collect_batch(batch=batch, client=client).n_new == 0
    assert not Worker.objects.exists()
    expire(batch)
    collect_batch(batch=batch, client=client)
    assert list(Hit.objects.of(batch).values_list("n_answers", flat=True)) == [None, 0, 0]


def test_another_round_is_another_judgment_by_the_same_annotator(study, client, ann):
    for number in (1, 2):
        batch = published_batch(study, client, round=number)
        hand_in(ann, hit_on(batch, "d0"), {"alpha": number, "beta": 0})
        assert collect_batch(batch=batch, client=client).n_unreadable == 0
    assert rows(study, "round", "value") == [(1, 0), (1, 1), (2, 0), (2, 2)]
    assert study.annotators.count() == 1


@pytest.mark.parametrize("model", ["submission", "assignment", "both"])
def test_a_lost_row_is_collected_again_the_same(study, client, ann, bob, model):
    batch = published_batch(study, client, max_assignments=2)
    for worker, value in ((ann, 10), (bob, 90)):
        hand_in(worker, hit_on(batch, "d0"), {"alpha": value, "beta": 50}, order=["beta", "alpha"])
    client.approve_assignment(AssignmentId=MarketplaceAssignment.objects.get(worker=ann).public_id)
    collect_batch(batch=batch, client=client)
    before = study_values(study)
    theirs = Assignment.objects.get(worker__worker_id=ann.worker_id)
    submission = theirs.submission
    if model in ("assignment", "both"):
        theirs.delete()
    if model in ("submission", "both"):
        submission.delete()
    assert study_values(study) != before
    assert collect_batch(batch=batch, client=client).n_unreadable == 0
    assert study_values(study) == before
    assert Assignment.objects.count() == Submission.objects.count() == 2


@pytest.mark.slow
def test_workers_are_strangers_to_the_study(study, client, ann, bob):
    batch = published_batch(study, client, max_assignments=2)
    for worker in (ann, bob):
        hand_in(worker, hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    hand_in(ann, hit_on(batch, "d1"), {"alpha": 3, "beta": 4})
    collect_batch(batch=batch, client=client)
    fields = tables()
    del fields["Worker"], fields["Assignment"]
    frame_text = frames.judgment_frame(study).to_csv()
    for worker in (ann, bob):
        assert Worker.objects.filter(worker_id=worker.worker_id).exists()
        for text in (repr(fields), frame_text):
            assert worker.worker_id not in text
            assert f"'{worker.user.username}'" not in text
    assert frames.judgment_frame(study)["annotator"].nunique() == 2
    # In another study the same worker is another annotator.
    other = rating_study("other")
    batch = published_batch(other, client)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    collect_batch(batch=batch, client=client)
    assert not study.annotators.filter(pseudonym=other.annotators.get().pseudonym).exists()
    assert Worker.objects.count() == 2


def test_an_expired_hit_is_listed_until_what_came_in_is_decided(study, wire, client, ann):
    terms = {"max_assignments": 3, "auto_approval_delay_seconds": 30 * 86_400}
    batch = published_batch(study, client, **terms)
    assignment = hand_in(ann, hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    expire(batch)
    assert collect_batch(batch=batch, client=client).n_hits == 3
    assert list(Hit.objects.of(batch).values_list("n_answers", flat=True)) == [1, 0, 0]
    assert collect_batch(batch=batch, client=client).n_hits == 1
    client.approve_assignment(AssignmentId=assignment)
    collect_batch(batch=batch, client=client)
    assert Submission.objects.get().status == Submission.Status.APPROVED
    wire.calls.clear()
    assert collect_batch(batch=batch, client=client).n_hits == 0
    assert not wire.calls


def test_a_decision_that_comes_while_answers_are_read_is_not_lost(study, client, ann):
    batch = published_batch(study, client)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    collect_batch(batch=batch, client=client)
    Submission.objects.all().delete()
    decisions = []

    def decide_once_loaded(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if 'FROM "annotation_question"' in sql and not decisions:
            decisions.append(Assignment.objects.update(status=Assignment.Status.APPROVED))
        return result

    with connection.execute_wrapper(decide_once_loaded):
        assert read_assignments(batch=batch) == 1
    assert decisions == [1]
    assert Submission.objects.get().status == Submission.Status.APPROVED


def test_a_broken_rule_of_the_database_is_not_taken_for_a_second_judgment(study, client, ann):
    batch = published_batch(study, client)
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 1, "beta": 2})
    Batch.objects.filter(pk=batch.pk).update(round=0)
    with pytest.raises(IntegrityError) as broken:
        collect_batch(batch=batch, client=client)
    assert "rounds_count_from_one" in str(broken.value)
    assert Assignment.objects.get().problem == ""
    Batch.objects.filter(pk=batch.pk).update(round=1)
    assert collect_batch(batch=batch, client=client).n_unreadable == 0


VALUES = {"alpha": 70, "beta": 20}


@pytest.mark.slow
def test_answers_are_collected_while_any_are_awaited(batch, look, ann, bob):
    for worker in (ann, bob):
        hand_in(worker, hit_on(batch, "d0"), VALUES)
    assert (look(), Submission.objects.count()) == (["done"], 2)
    # A marketplace is not asked again at once.
    execution.run_job(tasks.request_job(kind="collect_all").pk)
    assert not Job.objects.of_kind(study_facts.COLLECT_NEW).queued().exists()
    others = {hit_on(batch, "d1"), hit_on(batch, "d2")}
    assert set(awaited_hits(batch)) == others
    for worker in (ann, bob):
        for hit in others:
            hand_in(worker, hit, VALUES)
    assert (look(), Submission.objects.count()) == (["done"], 6)
    assert look() == []
    # What the marketplace approves by itself is noticed.
    delay = timedelta(seconds=batch.auto_approval_delay_seconds)
    Assignment.objects.update(submitted_at=timezone.now() - delay)
    assert awaited_hits(batch).count() == 3


@pytest.fixture
def batch(site, study, client):
    return published_batch(study, client, max_assignments=2)


@pytest.fixture
def look() -> Callable[[], list[str]]:
    def results() -> list[str]:
        Batch.objects.update(collected_at=timezone.now() - timedelta(hours=1))
        execution.run_job(tasks.request_job(kind="collect_all").pk)
        queue = Job.objects.of_kind(study_facts.COLLECT_NEW).queued().values_list("pk", flat=True)
        return [execution.run_job(pk) for pk in list(queue)]

    return results


def test_results_are_computed_when_answers_arrive(batch, look, ann, bob):
    waiting = Job.objects.of_kind(study_facts.RESULT).queued()

    def requested() -> list[str]:
        return sorted(job.arguments["kind"] for job in waiting.all())

    hand_in(ann, hit_on(batch, "d0"), VALUES)
    assert (look(), requested()) == (["done"], ["agreement", "human_results"])
    for job in list(waiting):
        assert execution.run_job(job.pk) == "done"
    assert find_study_kind(study_facts.RESULTS).is_stored(Batch.objects.get().study)
    # A slow result is not computed for each answer.
    hand_in(bob, hit_on(batch, "d0"), VALUES)
    hours = [timezone.now() - timedelta(hours=n) for n in (1, 2)]
    Job.objects.of_kind(study_facts.RESULT).update(finished_at=hours[0], started_at=hours[1])
    assert (look(), requested()) == (["done"], [])


@pytest.mark.slow
def test_a_closed_batch_is_asked_for_once_more_and_then_never(batch, look, client, ann):
    hand_in(ann, hit_on(batch, "d0"), VALUES)
    changes.end_batch(batch=batch, actor=None, is_closed=True)
    changes.apply_changes(batch=Batch.objects.get(), client=client)
    assert (look(), Submission.objects.count()) == (["done"], 1)
    assert list(Hit.objects.of(batch).values_list("n_answers", flat=True)) == [1, 0, 0]
    assert look() == []


def test_a_collection_that_failed_waits_before_it_is_tried_again(batch, look, settings):
    settings.MARKETPLACE_ACCESS_KEY_ID = ""
    assert (look(), look()) == (["failed"], [])
    earlier = timezone.now() - timedelta(minutes=11)
    assert Connection.objects.get().problem
    Connection.objects.update(failed_at=earlier)
    Job.objects.of_kind(study_facts.COLLECT_NEW).update(finished_at=earlier)
    assert look() == ["failed"]


def test_a_collection_outlasts_a_marketplace_that_is_away(batch, ann, settings, monkeypatch):
    monkeypatch.setattr(endpoints, "PATIENCE", Config(retries={"total_max_attempts": 1}))
    hand_in(ann, hit_on(batch, "d0"), VALUES)
    job = study_facts.request_study_job(study=batch.study, kind=study_facts.COLLECT_NEW)
    address = settings.MARKETPLACE_ENDPOINT_URL
    settings.MARKETPLACE_ENDPOINT_URL = "http://127.0.0.1:1/requester"
    assert execution.run_job(job.pk) == "queued"
    settings.MARKETPLACE_ENDPOINT_URL = address
    assert execution.run_job(job.pk) == "done"
    assert Submission.objects.count() == 1

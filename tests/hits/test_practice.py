import json
from dataclasses import replace
from decimal import Decimal

import pytest
from django.test import Client

from annotation.models import Judgment, Study, Submission
from annotation.protocols.documents import read_document
from annotation.protocols.versions import save_draft
from hits import calls, changes, costs, progress, qualification_tests, studies
from hits.collect import collect_batch
from hits.crowd.replay import crowd_practice, replay_group
from hits.crowd.simulated import SimulatedAnswers
from hits.exceptions import BatchUnfit, MarketplaceUnreachable
from hits.models import Batch, Hit, PracticeAnswer, PracticeHit, PracticeResult
from hits.practice import practice_page
from hits.publications import publish_batch
from marketplace import clock, exceptions, hits, models
from marketplace.qualifications.eligibility import qualifies
from presentation.row_files import row_jsonl
from tests.annotation.importing import command_output
from tests.codes import refused_naming
from tests.hits.test_exclusions import may_take, requirements_there
from tests.hits.wire import answer_lost
from tests.hits.work import batch_of, hand_in, hit_on, hits_there
from tests.marketplace.conftest import submit

LINE = {
    **{"name": "appropriateness", "kind": "line", "wording": "How well does it answer?"},
    **{"low_label": "not at all", "high_label": "perfectly"},
}
WRITTEN = {
    "context": "A: Which film did he mean?",
    "candidates": [
        {
            "text": "The other one.",
            "scores": {"appropriateness": 80},
            "feedback": {"appropriateness": "It answers what was asked."},
        },
        {"text": "I like trains.", "scores": {"appropriateness": 0}},
    ],
}
STORED = {"item": "d2", "candidates": [{"candidate": "alpha", "scores": {"appropriateness": 100}}]}
PRACTICE = {"reward_usd": 0.05, "pass_percent": 100, "most_workers": 3, "items": [WRITTEN, STORED]}


def test_only_who_passes_practice_may_work_and_is_told_so(study, client, ann, bob, make_worker):
    batch = published(study, client)
    assert not may_take(ann, hit_on(batch, "d0"))
    practise(ann, batch, 0, 75, 10)
    practise(bob, batch, 0, 20, 10)
    unread = submit(make_worker("cy"), PracticeHit.objects.get(number=0).hit_id, answer="{}")
    collect(batch, client)
    [message] = models.WorkerMessage.objects.all()
    assert (message.worker, "Rate" in message.text) == (ann, True)
    assert may_take(ann, hit_on(batch, "d0"))
    assert not may_take(bob, hit_on(batch, "d0"))
    result = PracticeResult.objects.get()
    assert (result.worker.worker_id, result.is_passed) == (ann.worker_id, True)
    answers = PracticeAnswer.objects.exclude(assignment_id=unread)
    rows = list(answers.values_list("n_right", "n_graded", "is_passed", "status"))
    assert rows == [(2, 2, True, "Approved"), (1, 2, False, "Approved")]
    # One that cannot be read is paid, too.
    answer = PracticeAnswer.objects.get(assignment_id=unread)
    assert (answer.status, answer.is_passed, bool(answer.problem)) == ("Approved", False, True)


def planned(study, *, round_: int = 1, **practice) -> Batch:
    values = {"assay_protocol": 1, "title": "Rate replies", "questions": [LINE]}
    values |= {"qualifications": {"practice": PRACTICE | practice}}
    save_draft(study=study, document=read_document(values))
    return batch_of(study, title="Rate", max_assignments=2, round=round_)


def published(study, client, **practice) -> Batch:
    batch = planned(study, **practice)
    publish_batch(batch=batch, client=client)
    return batch


def committed() -> list[Decimal]:
    return [one.usd for one in costs.commitments(Batch.objects.all())]


def practise(worker, batch, number, *values) -> str:
    batch.refresh_from_db()
    page = practice_page(batch.study, batch.document, number)
    keys = [each.blind_key for each in list(page.item.candidates.all())]
    about = {"question": "appropriateness", "seconds": 2.0}
    pairs = zip(keys, values, strict=True)
    judgments = [about | {"candidate": key, "value": value} for key, value in pairs]
    answer = {"version": 1, "item": str(page.item.pk), "order": keys, "judgments": judgments}
    hit = PracticeHit.objects.get(batch=batch, number=number)
    return submit(worker, hit.hit_id, answer=json.dumps(answer))


def collect(batch, client) -> None:
    hits.lifecycle.sweep(clock.now())
    collect_batch(batch=batch, client=client)


def test_answers_of_practice_are_exported_with_what_is_right(study, client, ann, bob, tmp_path):
    batch = published(study, client)
    practise(ann, batch, 0, 75, 40)
    submit(bob, PracticeHit.objects.get(number=1).hit_id, answer="{}")
    collect(batch, client)
    file = tmp_path / "practice.jsonl"
    output = command_output("export_submissions", study.slug, output=file, practice=True)
    assert "2" in output.split()
    first, second, unread = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(row["practice"] for row in (first, second, unread))
    names = ("item", "candidate", "question", "value", "right_from", "right_to", "right")
    assert [first[name] for name in names] == [
        *("practice 1", "candidate 1", "appropriateness", 75, 60, 100, True)
    ]
    assert [second[name] for name in names[1:]] == [
        *("candidate 2", "appropriateness", 40, 0, 20, False)
    ]
    assert (first["n_right"], first["n_graded"], first["passed"]) == (1, 2, False)
    assert first["annotator"] == second["annotator"] != unread["annotator"]
    assert (unread["item"], unread["value"], bool(unread["problem"])) == ("d2", None, True)
    assert ann.worker_id not in file.read_text()
    assert list(map(json.loads, row_jsonl(studies.submission_rows(study)))) == []
    # Nothing of it is of the study, and nobody is told to launch what is practised on.
    assert not Submission.objects.exists()
    assert not Judgment.objects.exists()
    assert sorted(Hit.objects.values_list("item__key", flat=True)) == ["d0", "d1"]
    counts = Study.objects.filter(pk=study.pk).values(**progress.progress_counts()).get()
    assert counts["n_items_without_hit"] == 0


def test_what_practice_costs_is_counted_to_the_cent_and_ends_as_what_was_done(study, client, ann):
    batch = planned(study, most_workers=10)
    batch.connection.fees = "mturk"
    batch.connection.save()
    # Two items by two workers at $0.12, and two practice HITs of ten at $0.07.
    cost = costs.estimate(batch)
    assert (cost.n_hits, cost.n_assignments) == (2, 4)
    amounts = (cost.rewards_usd, cost.fees_usd, cost.practice_usd, cost.total_usd)
    assert list(map(str, amounts)) == ["0.40", "0.08", "1.40", "1.88"]
    assert committed() == [Decimal("1.88")]
    assert publish_batch(batch=batch, client=client).cost.total_usd == Decimal("1.88")
    assert costs.estimate(batch).total_usd == 0
    practise(ann, batch, 0, 80, 0)
    collect(batch, client)
    assert costs.spend_of(batch).total_usd == Decimal("0.07")


def test_practice_is_published_once_however_often_it_is_tried(study, client, wire):
    batch = planned(study)
    wire.fail("CreateHITWithHITType", answer_lost)
    with pytest.raises(MarketplaceUnreachable):
        publish_batch(batch=batch, client=client)
    assert len(hits_there(client)) == 1
    for _ in range(2):
        publish_batch(batch=batch, client=client)
    titles = [hit["Title"] for hit in hits_there(client)]
    assert (len(titles), titles.count("Rate"), len(set(titles))) == (4, 2, 2)
    # Practice is on offer before what it opens.
    assert titles[:2] == ["Rate", "Rate"]
    assert PracticeHit.objects.unpublished().count() == 0
    # Those that a process killed long ago has made are found.
    PracticeHit.objects.filter(number=1).update(hit_id="")
    assert calls.match_published(batch=batch, client=client) == 1
    assert PracticeHit.objects.unpublished().count() == 0


def test_only_so_many_attempts_count_and_the_first_answer_to_an_item(study, client, ann, bob):
    batch = planned(study, attempts=1)
    # Two items by two workers at $0.10, and one practice HIT of three at $0.05.
    assert (PracticeHit.objects.get().number, committed()) == (0, [Decimal("0.55")])
    # As batches had that were planned while each item was a HIT.
    PracticeHit.objects.create(batch=batch, number=1, reward_usd=0, max_assignments=3)
    publish_batch(batch=batch, client=client)
    batch.refresh_from_db()
    practise(ann, batch, 0, 20, 10)
    practise(ann, batch, 1, 100, 10)  # before anybody has looked at the first
    practice = models.HitType.objects.get(public_id=batch.practice_hit_type_id)
    assert hits.assignments.find_next(worker=ann, hit_type=practice) is None
    practise(bob, batch, 1, 100, 10)
    collect(batch, client)
    passed = PracticeResult.objects.values_list("worker__worker_id", "is_passed")
    assert dict(passed) == {ann.worker_id: False, bob.worker_id: True}


def test_who_fails_may_try_another_and_after_the_last_no_more(study, client, ann):
    """And is never sent to ask the requester."""
    batch = published(study, client)
    batch.refresh_from_db()
    hit_type = models.HitType.objects.get(public_id=batch.hit_type_id)
    (unmet,) = qualifies(ann, hit_type)
    assert [each.public_id for each in unmet.work] == [batch.practice_hit_type_id]
    assert unmet.qualification_type is None
    practise(ann, batch, 0, 20, 10)
    collect(batch, client)
    assert not PracticeResult.objects.exists()
    practise(ann, batch, 1, 10, 10)
    collect(batch, client)
    result = PracticeResult.objects.get()
    assert (result.is_passed, result.state) == (False, "confirmed")
    assert not may_take(ann, hit_on(batch, "d0"))
    assert not models.WorkerMessage.objects.exists()
    (failed,) = qualifies(ann, hit_type)
    assert failed.reason != unmet.reason
    assert failed.qualification_type is None
    assert failed.earned.description


@pytest.mark.slow
def test_who_passed_in_an_earlier_batch_need_not_practise_again(study, client, ann):
    first = published(study, client)
    practise(ann, first, 0, 80, 0)
    collect(first, client)
    second = planned(study, round_=2, reward_usd=0.06)
    publish_batch(batch=second, client=client)
    second.refresh_from_db()
    assert second.practice_type_id == first.practice_type_id
    assert may_take(ann, hit_on(second, "d0"))
    with pytest.raises(exceptions.MarketplaceError):
        practise(ann, second, 1, 100, 10)
    changed = planned(study, round_=3, pass_percent=50)
    publish_batch(batch=changed, client=client)
    changed.refresh_from_db()
    assert changed.practice_type_id != first.practice_type_id


@pytest.mark.slow
def test_practice_ends_with_the_last_answer_or_as_the_batch_is_closed(study, client, ann, bob):
    batch = published(study, client)
    for worker in (ann, bob):
        practise(worker, batch, 0, 80, 0)
    collect(batch, client)
    for worker in (ann, bob):
        for item in ("d0", "d1"):
            hand_in(worker, hit_on(batch, item), {"alpha": 50, "beta": 50})
    collect(batch, client)
    collect(batch, client)
    assert PracticeHit.objects.awaited().count() == 0
    # Four at $0.10 and two practised at $0.05: what nobody did is free again.
    assert committed() == [Decimal("0.50")]
    closed = planned(study, round_=2)
    publish_batch(batch=closed, client=client)
    changes.end_batch(batch=closed, actor=None, is_closed=True)
    applied = changes.apply_changes(batch=closed, client=client)
    assert (applied.n_assignments_added, applied.n_expiries_set) == (0, 4)
    assert PracticeHit.objects.awaiting_expiry().count() == 0
    for _ in range(2):
        collect(closed, client)
    assert sorted(committed()) == [Decimal("0.00"), Decimal("0.50")]


@pytest.mark.slow
def test_the_crowd_practises_before_it_works(study, client, live_server):
    batch = published(study, client)
    batch.refresh_from_db()
    source = SimulatedAnswers(study, seed=1)
    options = {"hit_type_id": batch.hit_type_id, "site_url": live_server.url, "total": 0}
    options |= {"names": ["crowd-1", "crowd-2"], "source": source}
    assert replay_group(**options).n_submitted == 0
    practice = crowd_practice(batch, source, lambda: collect(batch, client))
    result = replay_group(**options, practice=practice)
    assert (result.n_workers, result.n_practised, result.n_submitted) == (2, 2, 4)


def test_a_page_of_practice_that_no_marketplace_takes_is_refused_before_the_launch(study):
    long = {"text": "word " * 790, "scores": {"appropriateness": 10}}
    with refused_naming(BatchUnfit, "1", "'practice 1'"):
        planned(study, items=[{"candidates": [long] * 20}])
    assert not PracticeHit.objects.exists()


QUESTIONS = [LINE, {"name": "polite", "kind": "yes_no", "wording": "Is it polite?"}]
GOOD = {
    "context": "A: Which film did he mean?",
    "candidate": "The <other> one & no more.",
    "scores": {"appropriateness": 80, "polite": 1},
    "explanation": "It answers what was asked ?> and no more.",
}
BAD = {"candidate": "I like trains.", "scores": {"appropriateness": 0}, "explanation": "No answer."}
TEST = {"cases": [GOOD, BAD], "pass_percent": 60, "retry_after_seconds": 3600}
UNTIL_RIGHT = {"title": "Practice", "cases": [BAD], "pass_percent": 100, "retry_after_seconds": 0}


def planned_tests(study, *tests, **protocol) -> Batch:
    values = {"assay_protocol": 1, "title": "Rate replies", "questions": QUESTIONS}
    values |= {"instructions": "Read *all* of it."} | protocol
    document = read_document(values | {"qualifications": {"tests": list(tests)}})
    save_draft(study=study, document=document)
    return batch_of(study)


def published_tests(study, client, *tests, **protocol) -> Batch:
    batch = planned_tests(study, *tests, **protocol)
    publish_batch(batch=batch, client=client)
    return batch


def take(worker, type_id, *choices) -> str:
    browser = Client()
    browser.force_login(worker.user)
    test = browser.post(f"/worker/qualifications/{type_id}/").headers["Location"]
    answers = {f"question-{n}": str(choice) for n, choice in enumerate(choices, start=1)}
    return browser.post(f"{test}hand-in/", answers, follow=True).content.decode()


def score_of(worker, type_id) -> int:
    held = models.Qualification.objects.filter(qualification_type__public_id=type_id)
    return held.get(worker=worker).integer_value


def test_who_passes_the_test_may_work_and_who_fails_reads_why_not(study, client, ann, bob):
    batch = published_tests(study, client, TEST)
    (type_id,) = batch.test_type_ids
    assert requirements_there(client, batch) == {type_id: "GreaterThanOrEqualTo"}
    assert not may_take(ann, hit_on(batch, "d0"))
    passed = take(ann, type_id, 9, 1, 5)
    assert score_of(ann, type_id) == 67
    assert all(text in passed for text in ("67", "60"))
    assert may_take(ann, hit_on(batch, "d0"))
    explained = ("It answers what was asked ? &gt; and no more.", "No answer.")
    for text in ("A: Which film did he mean?", "The &lt;other&gt; one &amp; no", *explained):
        assert text in passed
    failed = take(bob, type_id, 2, 1, 5)
    assert score_of(bob, type_id) == 33
    assert all(text in failed for text in ("33", "60"))
    # The next attempt asks the same questions.
    assert not any(text in failed for text in explained)
    assert not may_take(bob, hit_on(batch, "d1"))


def test_practice_is_taken_until_it_is_right_and_comes_beside_a_test(study, client, ann):
    batch = published_tests(study, client, UNTIL_RIGHT, TEST)
    practice, test = batch.test_type_ids
    assert BAD["explanation"] not in take(ann, practice, 7)
    assert BAD["explanation"] in take(ann, practice, 1)
    assert [score_of(ann, practice), not may_take(ann, hit_on(batch, "d0"))] == [100, True]
    take(ann, test, 8, 0, 0)
    assert may_take(ann, hit_on(batch, "d0"))


def test_the_same_test_is_one_qualification_though_an_answer_is_lost(study, client, wire):
    batch = planned_tests(study, TEST)
    wire.fail("CreateQualificationType", answer_lost)
    with pytest.raises(MarketplaceUnreachable):
        publish_batch(batch=batch, client=client)
    assert not hits_there(client)
    publish_batch(batch=batch, client=client)
    made = models.QualificationType.objects.get()
    another = Batch(study=study, connection=batch.connection, protocol=batch.protocol)
    qualification_tests.create_tests(another, client)
    assert another.test_type_ids == Batch.objects.get().test_type_ids == [made.public_id]
    # Workers read the name: a changed test of this name has a number in place of a digest.
    values = qualification_tests.type_values(batch.document, batch.document.qualifications.tests[0])
    changed = [calls.create_type(client, **values | {"key": "other"}) for _ in range(2)]
    second = models.QualificationType.objects.exclude(pk=made.pk).get()
    assert (made.name, second.name) == (values["name"], f"{values['name']} (2)")
    assert changed == [second.public_id] * 2 != [made.public_id] * 2


def test_another_test_is_another_qualification(study):
    document = planned_tests(study, TEST, language="de").document
    (test,) = document.qualifications.tests
    # Its words are those of the study's language.
    assert "<Text>Ja</Text>" in qualification_tests.type_values(document, test)["Test"]
    documents = [document, replace(document, comment=not document.comment)]
    documents += [replace(document, instructions="Read it.")]
    pairs = [(each, test) for each in documents]
    pairs += [
        (document, replace(test, **one)) for one in ({"pass_percent": 50}, {"feedback": False})
    ]
    assert len({qualification_tests.type_values(*pair)["key"] for pair in pairs}) == 4
    longest = replace(document, title="t" * 128), replace(test, title="x" * 64)
    assert len(qualification_tests.type_values(*longest)["name"]) <= 200


def test_a_test_too_long_for_a_marketplace_is_refused_before_anything_is_made(study, client):
    batch = planned_tests(study, {"cases": [{**BAD, "candidate": "word " * 790}] * 20})
    with refused_naming(BatchUnfit, "65,535"):
        publish_batch(batch=batch, client=client)
    assert not models.QualificationType.objects.exists()


def test_the_crowd_passes_the_tests_before_it_works(study, client, live_server):
    batch = published_tests(study, client, UNTIL_RIGHT, TEST)
    options = {"hit_type_id": batch.hit_type_id, "site_url": live_server.url, "total": 0}
    options |= {"names": ["crowd-1"], "source": SimulatedAnswers(study, seed=1)}
    assert replay_group(**options).n_submitted == 0
    assert replay_group(**options, tests=qualification_tests.right_choices(batch)).n_submitted == 3

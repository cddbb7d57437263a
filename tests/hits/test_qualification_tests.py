"""The protocol's qualification tests, at a marketplace: taken, graded, explained and required."""

import re
from dataclasses import replace
from decimal import Decimal

import pytest
from django.test import Client
from django.utils.html import strip_tags

from annotation.protocols.documents import read_document
from annotation.protocols.versions import save_draft
from hits import preflight, qualification_tests
from hits.crowd.replay import replay_group
from hits.crowd.simulated import SimulatedAnswers
from hits.exceptions import BatchUnfit, MarketplaceUnreachable
from hits.launch_plans import draft_batch, plan_batch
from hits.models import Batch
from hits.publish import publish_batch
from marketplace.models import Qualification, QualificationType
from tests.codes import refused_naming
from tests.hits.test_exclusions import may_take, requirements_there
from tests.hits.wire import answer_lost
from tests.hits.work import hit_on, hits_there

QUESTIONS = [
    {
        **{"name": "appropriateness", "kind": "line", "wording": "How well does it answer?"},
        **{"low_label": "not at all", "high_label": "perfectly"},
    },
    {"name": "polite", "kind": "yes_no", "wording": "Is it polite?"},
]
GOOD = {
    "context": "A: Which film did he mean?",
    "candidate": "The <other> one & no more.",
    "scores": {"appropriateness": 80, "polite": 1},
    "explanation": "It answers what was asked ?> and no more.",
}
BAD = {"candidate": "I like trains.", "scores": {"appropriateness": 0}, "explanation": "No answer."}
TEST = {"cases": [GOOD, BAD], "pass_percent": 60, "retry_after_seconds": 3600}
PRACTICE = {"title": "Practice", "cases": [BAD], "pass_percent": 100, "retry_after_seconds": 0}


def planned(study, *tests, **protocol) -> Batch:
    values = {"assay_protocol": 1, "title": "Rate replies", "questions": QUESTIONS}
    values |= {"instructions": "Read *all* of it."} | protocol
    document = read_document(values | {"qualifications": {"tests": list(tests)}})
    save_draft(study=study, document=document)
    terms = {"reward_usd": Decimal("0.05"), "max_assignments": 1}
    draft = draft_batch(study=study, title="Rate", description="Read and rate.", **terms)
    return plan_batch(draft=draft).batch


def published(study, client, *tests, **protocol) -> Batch:
    batch = planned(study, *tests, **protocol)
    publish_batch(batch=batch, client=client)
    return batch


def browser_of(worker) -> Client:
    browser = Client()
    browser.force_login(worker.user)
    return browser


def take(worker, type_id, *choices) -> str:
    """Take a test on the worker site; the page that follows."""
    browser = browser_of(worker)
    test = browser.post(f"/worker/qualifications/{type_id}/").headers["Location"]
    answers = {f"question-{n}": str(choice) for n, choice in enumerate(choices, start=1)}
    return browser.post(f"{test}hand-in/", answers, follow=True).content.decode()


def score_of(worker, type_id) -> int:
    return Qualification.objects.get(
        worker=worker, qualification_type__public_id=type_id
    ).integer_value


def test_who_passes_the_test_may_work_and_who_fails_reads_why_not(study, client, ann, bob):
    batch = published(study, client, TEST)
    (type_id,) = batch.test_type_ids
    assert requirements_there(client, batch) == {type_id: "GreaterThanOrEqualTo"}
    assert not may_take(ann, hit_on(batch, "d0"))
    passed = take(ann, type_id, 9, 1, 5)
    assert score_of(ann, type_id) == 67
    assert all(text in passed for text in ("67", "60"))
    assert may_take(ann, hit_on(batch, "d0"))
    failed = take(bob, type_id, 2, 1, 5)
    assert score_of(bob, type_id) == 33
    for text in ("33", "60", "A: Which film did he mean?", "The &lt;other&gt; one &amp; no"):
        assert text in failed
    for explanation in ("It answers what was asked ? &gt; and no more.", "No answer."):
        assert explanation in failed
    assert not may_take(bob, hit_on(batch, "d1"))


def test_what_workers_read_of_a_test_before_they_take_it_and_after_it(study, client, ann):
    question = QUESTIONS[0] | {"wording": "How near does it come to “{reference}”?"}
    case = BAD | {"reference": "The one with the train."}
    test = TEST | {"cases": [GOOD | {"reference": "It."}, case], "feedback": False}
    questions = [question, QUESTIONS[1]]
    (type_id,) = published(study, client, test, questions=questions).test_type_ids
    browser = browser_of(ann)
    page = browser.get(f"/worker/qualifications/{type_id}/").content.decode()
    assert {"3", "60"} <= set(re.findall(r"\d+", strip_tags(page)))
    location = browser.post(f"/worker/qualifications/{type_id}/").headers["Location"]
    taken = browser.get(location).content.decode()
    for text in ("<em>all</em>", "not at all", "perfectly", "The one with the train."):
        assert text in taken
    assert "How near does it come to “The one with the train.”?" in taken
    answers = {"question-1": "2", "question-2": "1", "question-3": "5"}
    after = browser.post(f"{location}hand-in/", answers, follow=True).content.decode()
    for explanation in (GOOD["explanation"][:25], BAD["explanation"]):
        assert explanation not in taken + after


def test_practice_is_taken_until_it_is_right_and_comes_beside_a_test(study, client, ann):
    batch = published(study, client, PRACTICE, TEST)
    practice, test = batch.test_type_ids
    assert BAD["explanation"] in take(ann, practice, 7)
    take(ann, practice, 1)
    assert [score_of(ann, practice), not may_take(ann, hit_on(batch, "d0"))] == [100, True]
    take(ann, test, 8, 0, 0)
    assert may_take(ann, hit_on(batch, "d0"))


def test_the_same_test_is_one_qualification_though_an_answer_is_lost(study, client, wire):
    batch = planned(study, TEST)
    wire.fail("CreateQualificationType", answer_lost)
    with pytest.raises(MarketplaceUnreachable):
        publish_batch(batch=batch, client=client)
    assert not hits_there(client)
    publish_batch(batch=batch, client=client)
    made = QualificationType.objects.get()
    another = Batch(study=study, connection=batch.connection, protocol=batch.protocol)
    qualification_tests.create_tests(another, client)
    assert another.test_type_ids == Batch.objects.get().test_type_ids == [made.public_id]


def test_another_test_is_another_qualification(study):
    document = planned(study, TEST, language="de").document
    (test,) = document.qualifications.tests
    # Its words are those of the study's language.
    assert "<Text>Ja</Text>" in qualification_tests.type_values(document, test)["Test"]
    names = {
        qualification_tests.type_values(each, of)["name"]
        for each, of in (
            (document, test),
            (replace(document, comment=not document.comment), test),
            (replace(document, instructions="Read it."), test),
            (document, replace(test, pass_percent=50)),
            (document, replace(test, feedback=False)),
        )
    }
    assert len(names) == 4
    longest = replace(document, title="t" * 128), replace(test, title="x" * 64)
    assert len(qualification_tests.type_values(*longest)["name"]) <= 200


def test_a_test_too_long_for_a_marketplace_is_refused_before_anything_is_made(study, client):
    long = {**BAD, "candidate": "word " * 790}
    batch = planned(study, {"cases": [long] * 20})
    with refused_naming(BatchUnfit, "65,535"):
        publish_batch(batch=batch, client=client)
    assert not QualificationType.objects.exists()
    levels = [each.level for each in preflight.qualification_test_findings(batch)]
    assert levels[0] == preflight.Level.FAULT


def test_the_crowd_passes_the_tests_before_it_works(study, client, live_server):
    batch = published(study, client, PRACTICE, TEST)
    options = {"hit_type_id": batch.hit_type_id, "site_url": live_server.url, "total": 0}
    options |= {"names": ["crowd-1"], "source": SimulatedAnswers(study, seed=1)}
    assert replay_group(**options).n_submitted == 0
    tests = qualification_tests.right_choices(batch)
    assert replay_group(**options, tests=tests).n_submitted == 3

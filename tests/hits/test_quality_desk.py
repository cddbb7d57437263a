"""What the desk says of checks, flags and words, and letting a held worker go on."""

import re
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from annotation.annotator_flags import quality_evidence
from annotation.evidence_versions import store_evidence
from annotation.models import Study, Submission, WrittenAnswer
from console.downloads import DOWNLOADS, file_names
from console.review_desk import desk_facts, queue_of
from hits import requester_api
from hits.collect import collect_batch
from hits.devices import fetch_shared_devices
from hits.exceptions import MarketplaceFault
from hits.models import Assignment, Exclusion, Hit, WorkerClearance
from tests.codes import refused
from tests.hits.test_quality_checks import CHECKS, answer, careful, checked_study
from tests.hits.work import hit_on, published_batch
from tests.marketplace.conftest import submit


@pytest.fixture
def desk():
    """Open the review desk of a study, as its owner, at an assignment; the page's answer."""
    rosa = User.objects.create_user("rosa")
    browser = Client(headers={"host": "localhost"})
    browser.force_login(rosa)

    def open_(study, assignment):
        Study.objects.filter(pk=study.pk).update(owner=rosa)
        address = reverse("console:review", args=[study.slug])
        return browser.get(address, {"assignment": assignment.pk})

    open_.browser, open_.owner = browser, rosa
    return open_


def numbers_of(flags):
    """The numbers in the texts of each flag."""
    return [set(re.findall(r"\d[\d,.]*\d|\d", f"{flag.title} {flag.text}")) for flag in flags]


def test_the_desk_shows_failed_checks_flags_and_words_and_lets_a_held_worker_go_on(
    client, desk, ann, bob
):
    checks = tuple(replace(check, share=1.0) for check in CHECKS)
    study = checked_study(*checks, n_items=5, holding_flags=("failed_checks",))
    batch = published_batch(study, client, max_assignments=2)
    for hit in Hit.objects.of(batch):
        submit(ann, hit.hit_id, answer=answer(hit, careful))
        submit(bob, hit.hit_id, answer=answer(hit, lambda each: 50))
    collect_batch(batch=batch, client=client)
    of_ann, of_bob = (
        Assignment.objects.filter(worker__worker_id=worker.worker_id).first()
        for worker in (ann, bob)
    )
    unmeasured = desk(study, of_ann).context["row"].measured
    store_evidence(study)
    Exclusion.objects.create(batch=batch, worker=of_bob.worker, reason=Exclusion.Reason.HELD)
    words = "Because of the tone."
    WrittenAnswer.objects.create(submission=of_bob.submission, question="why", text=words)

    page = desk(study, of_bob)
    flags = numbers_of(page.context["row"].flags)
    assert any({"50", "90", "20"} <= numbers for numbers in flags)  # the right value, and how near
    assert any({"15", "20"} <= numbers for numbers in flags)  # so many of the worker's checks
    assert [one.text for one in page.context["written"]] == [words]
    clear = reverse("console:review-clear", args=[study.slug, of_bob.pk])
    assert page.context["record"].is_held
    assert clear in page.content.decode()
    page = desk(study, of_ann)
    assert (page.context["row"].flags, page.context["record"].is_held) == ([], False)
    assert re.findall(r"\d+", page.context["row"].measured) == ["4"]
    assert not re.findall(r"\d+", unmeasured)

    desk.browser.post(clear)
    assert WorkerClearance.objects.get().cleared_by == desk.owner

    assert {"checks.csv", "written.csv"} <= set(file_names(study))
    rows = "".join(DOWNLOADS["checks.csv"].write(study)).splitlines()
    assert len(rows) == 1 + 2 * 5 * 4
    assert rows[1].startswith(f"{study.slug},1,d0,")
    assert words in "".join(DOWNLOADS["written.csv"].write(study))


@pytest.mark.django_db
def test_a_study_with_nothing_has_no_evidence_and_no_flags():
    study = checked_study()
    assert all(table.empty for table in vars(quality_evidence(study)).values())
    assert store_evidence(study).annotator_flags.count() == 0
    assert not Submission.objects.of(study).exists()


def test_the_desk_names_who_shared_a_device_with_its_numbers(client, desk, ann, bob, monkeypatch):
    study = checked_study(n_items=2)
    batch = published_batch(study, client, max_assignments=2)
    for hit in Hit.objects.of(batch):
        submit(ann, hit.hit_id, answer=answer(hit, careful))
    first = hit_on(batch, "d0")
    submit(bob, first.hit_id, answer=answer(first, careful))
    collect_batch(batch=batch, client=client)
    row = {"worker_id": bob.worker_id, "n_shared": 1, "n": 1, "n_others": 1}
    others = {"others": [ann.worker_id, "ANOBODY"]}
    unknown = {"worker_id": "ASTRANGER", "n_shared": 1, "n": 1, "n_others": 1, "others": []}
    answers = {"shared_devices": [row | others, unknown]}
    monkeypatch.setattr(requester_api, "post", lambda *_arguments: answers)
    assert fetch_shared_devices(batch=batch) == 1
    assert fetch_shared_devices(batch=batch) == 1  # anew, not once more

    of_ann = Assignment.objects.filter(worker__worker_id=ann.worker_id).first()
    of_bob = Assignment.objects.get(worker__worker_id=bob.worker_id)
    page = desk(study, of_bob)
    [flag] = page.context["row"].flags
    assert flag.annotators == [of_ann.submission.annotator.pseudonym]
    assert of_ann.submission.annotator.pseudonym in page.content.decode()
    # Of a thousand honest workers, at an open marketplace, a university and a computer room.
    assert {"1,000", "1", "100", "925"} <= numbers_of([flag])[0]
    facts = desk_facts(study, desk.owner)
    queue = queue_of(study, desk.owner, "waiting", facts=facts, drafts=[], is_named=True)
    assert [len(each.flags) for each in queue] == [1, 0, 0]
    answers["shared_devices"] = "none"
    with refused(MarketplaceFault, "not_a_list"):
        fetch_shared_devices(batch=batch)

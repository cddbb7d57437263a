"""What the desk says of checks, flags and words, and letting a held worker go on."""

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from annotation.annotator_flags import quality_evidence
from annotation.evidence_versions import store_evidence
from annotation.models import Submission, WrittenAnswer
from console.downloads import DOWNLOADS, file_names
from console.review_desk import desk_facts, queue_of
from hits import requester_api
from hits.collect import collect_batch
from hits.devices import fetch_shared_devices
from hits.exceptions import MarketplaceFault
from hits.models import Assignment, Exclusion, Hit, WorkerClearance
from tests.console.pages import words_of
from tests.hits.test_quality_checks import CHECKS, answer, careful, checked_study
from tests.hits.work import hit_on, published_batch
from tests.marketplace.conftest import submit


def test_the_desk_shows_failed_checks_flags_and_words_and_lets_a_held_worker_go_on(
    client, ann, bob
):
    researcher = User.objects.create_user("rosa", password="known to no worker")
    rosa = Client(headers={"host": "localhost"})
    rosa.force_login(researcher)
    checks = tuple(replace(check, share=1.0) for check in CHECKS)
    study = checked_study(*checks, n_items=5, holding_flags=("failed_checks",))
    study.owner = researcher
    study.save()
    batch = published_batch(study, client, max_assignments=2)
    for hit in Hit.objects.of(batch):
        submit(ann, hit.hit_id, answer=answer(hit, careful))
        submit(bob, hit.hit_id, answer=answer(hit, lambda each: 50))
    collect_batch(batch=batch, client=client)
    store_evidence(study)
    of_bob = Assignment.objects.filter(worker__worker_id=bob.worker_id).first()
    Exclusion.objects.create(batch=batch, worker=of_bob.worker, reason=Exclusion.Reason.HELD)
    WrittenAnswer.objects.create(
        submission=of_bob.submission, question="why", text="Because of the tone."
    )

    address = reverse("console:review", args=[study.slug])
    page = rosa.get(address, {"assignment": of_bob.pk})
    words = words_of(page.content.decode())
    assert "Did not rate a spoilt response lower" in words
    assert "50; right is 90, give or take 20. Simulated careful" in words
    assert "Worker: 15 of 20 checks failed" in words
    assert "simulated careful workers" in words
    assert "why Because of the tone." in words
    assert "waits until someone has looked" in words
    of_ann = Assignment.objects.filter(worker__worker_id=ann.worker_id).first()
    careful_words = words_of(rosa.get(address, {"assignment": of_ann.pk}).content.decode())
    assert (
        "Nothing speaks against it in what was measured: its time, how far its ratings are from "
        "others’. Its 4 quality checks were passed." in careful_words
    )
    assert "waits until" not in careful_words

    rosa.post(reverse("console:review-clear", args=[study.slug, of_bob.pk]))
    assert WorkerClearance.objects.get().cleared_by == researcher

    assert {"checks.csv", "written.csv"} <= set(file_names(study))
    rows = "".join(DOWNLOADS["checks.csv"].write(study)).splitlines()
    assert len(rows) == 1 + 2 * 5 * 4
    assert rows[1].startswith(f"{study.slug},1,d0,")
    assert "Because of the tone." in "".join(DOWNLOADS["written.csv"].write(study))


def test_without_checks_the_desk_says_that_there_were_none(client, ann):
    rosa = Client(headers={"host": "localhost"})
    researcher = User.objects.create_user("rosa", password="known to no worker")
    rosa.force_login(researcher)
    study = checked_study(n_items=1)
    study.owner = researcher
    study.save()
    batch = published_batch(study, client, max_assignments=1)
    submit(ann, hit_on(batch, "d0").hit_id, answer=answer(hit_on(batch, "d0"), careful))
    collect_batch(batch=batch, client=client)
    address = reverse("console:review", args=[study.slug])
    assert "It was not measured yet." in words_of(rosa.get(address).content.decode())
    store_evidence(study)
    words = words_of(rosa.get(address).content.decode())
    assert "in what was measured: its time. It had no quality check." in words


@pytest.mark.django_db
def test_a_study_with_nothing_has_no_evidence_and_no_flags():
    study = checked_study()
    assert all(table.empty for table in vars(quality_evidence(study)).values())
    assert store_evidence(study).annotator_flags.count() == 0
    assert not Submission.objects.of(study).exists()


def test_the_desk_names_who_shared_a_device_with_its_numbers(client, ann, bob, monkeypatch):
    researcher = User.objects.create_user("rosa", password="known to no worker")
    study = checked_study(n_items=2)
    study.owner = researcher
    study.save()
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
    rosa = Client(headers={"host": "localhost"})
    rosa.force_login(researcher)
    address = reverse("console:review", args=[study.slug])
    words = words_of(rosa.get(address, {"assignment": of_bob.pk}).content.decode())
    assert "1 of 1 submissions came from a device of 1 other worker too" in words
    assert of_ann.submission.annotator.pseudonym in words
    assert "of 1,000 simulated honest workers, 1 of an open marketplace" in words
    assert "100 at a university and 925 in a computer room" in words
    facts = desk_facts(study, researcher)
    queue = queue_of(study, researcher, "waiting", facts=facts, drafts=[], is_named=True)
    assert [len(each.flags) for each in queue] == [1, 0, 0]
    answers["shared_devices"] = "none"
    with pytest.raises(MarketplaceFault):
        fetch_shared_devices(batch=batch)

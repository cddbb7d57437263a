"""Qualifications that are given for work: HITs for those without them lead to them."""

import pytest

from marketplace.models import QualificationRequest
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, submit
from tests.marketplace.test_finding_work import require
from tests.marketplace.test_worker_site import text_of

KIND_WORDS = "Granted to who passes the trial. Other work stays open."


@pytest.fixture
def trial(mturk):
    """A qualification's id and the HIT that leads to it; another HIT asks for it."""
    type_id = mturk.create_qualification_type(
        Name="Trial passed", Description=KIND_WORDS, QualificationTypeStatus="Active"
    )["QualificationType"]["QualificationTypeId"]
    wants = [require(type_id, "DoesNotExist", "DiscoverPreviewAndAccept")]
    hit = mturk.create_hit(**HIT | {"Title": "Trial"}, QualificationRequirements=wants)["HIT"]
    wants = [require(type_id, "EqualTo", IntegerValues=[1])]
    mturk.create_hit(**HIT | {"Title": "Real work"}, QualificationRequirements=wants)
    return type_id, hit


def test_who_has_not_tried_is_led_to_the_work_and_cannot_ask(mturk, ada, trial):
    type_id, hit = trial
    for address in ("/worker/", f"/worker/qualifications/{type_id}/"):
        page = text_of(ada.get(address))
        assert "Ask for it" not in page
        assert f'href="/worker/groups/{hit["HITTypeId"]}/"' in page
        assert "Do these first" in page
        assert KIND_WORDS in page
    assert "“Trial passed” is needed. It is given for other HITs" in text_of(ada.get("/worker/"))
    assert "Trial passed" not in text_of(ada.get("/worker/qualifications/"))
    refused = ada.post(f"/worker/qualifications/{type_id}/")
    assert refused.status_code == 409
    assert "it is given for work" in text_of(refused)
    assert not QualificationRequest.objects.exists()


def test_who_has_tried_waits_for_the_result(ada, worker, trial):
    submit(worker, trial[1]["HITId"])
    page = text_of(ada.get("/worker/"))
    assert "the result is still to come" in page
    assert "Do these first" not in page


def test_who_did_not_pass_reads_so_in_kind_words(mturk, ada, worker, trial):
    type_id, hit = trial
    submit(worker, hit["HITId"])
    mturk.associate_qualification_with_worker(
        QualificationTypeId=type_id, WorkerId=worker.worker_id, IntegerValue=0
    )
    page = text_of(ada.get("/worker/"))
    assert "“Trial passed” is needed, and your work for it did not pass." in page
    assert KIND_WORDS in page
    assert "still to come" not in page
    for words in ("Ask for it", "must be 1", "yours is 0"):
        assert words not in page
    page = text_of(ada.get(f"/worker/qualifications/{type_id}/"))
    assert "Your work for it did not pass." in page
    assert "with the value" not in page
    mturk.associate_qualification_with_worker(
        QualificationTypeId=type_id, WorkerId=worker.worker_id, IntegerValue=1
    )
    assert "Trial passed" not in text_of(ada.get("/worker/"))


def test_work_for_those_without_it_at_another_requester_is_no_way_to_it(mturk, make_keys, ada):
    type_id = mturk.create_qualification_type(
        Name="Careful", Description="d", QualificationTypeStatus="Active"
    )["QualificationType"]["QualificationTypeId"]
    mturk.create_hit(**HIT, QualificationRequirements=[require(type_id, "Exists")])
    other = in_process_client(make_keys("Other lab"))
    other.create_hit(**HIT, QualificationRequirements=[require(type_id, "DoesNotExist")])
    assert "Ask for it" in text_of(ada.get("/worker/"))


def test_what_cannot_be_mended_by_asking_offers_no_asking(mturk, ada, worker):
    """A qualification that keeps its holders out, and one that was decided."""
    ids = [
        mturk.create_qualification_type(
            Name=name, Description="d", QualificationTypeStatus="Active"
        )["QualificationType"]["QualificationTypeId"]
        for name in ("Done enough", "Grade")
    ]
    wants = [
        require(ids[0], "NotEqualTo", IntegerValues=[7]),
        require(ids[1], "GreaterThan", IntegerValues=[5]),
    ]
    mturk.create_hit(**HIT, QualificationRequirements=wants)
    assert text_of(ada.get("/worker/")).count("Ask for it") == 2
    for type_id, value in zip(ids, (7, 3), strict=True):
        mturk.associate_qualification_with_worker(
            QualificationTypeId=type_id, WorkerId=worker.worker_id, IntegerValue=value
        )
    page = text_of(ada.get("/worker/"))
    assert "yours is 3" in page
    assert "Ask for it" not in page

"""Qualifications that are given for work: HITs for those without them lead to them."""

import pytest

from marketplace.models import QualificationRequest
from tests.marketplace.conftest import HIT, submit
from tests.marketplace.test_finding_work import require, unmet
from tests.marketplace.test_worker_site import text_of

DESCRIPTION = "Granted for the trial."


def make_type(mturk, name, description="d"):
    return mturk.create_qualification_type(
        Name=name, Description=description, QualificationTypeStatus="Active"
    )["QualificationType"]["QualificationTypeId"]


@pytest.fixture
def trial(mturk):
    """A qualification's id and the HIT that leads to it; another HIT asks for it."""
    type_id = make_type(mturk, "Trial passed", DESCRIPTION)
    wants = [require(type_id, "DoesNotExist", "DiscoverPreviewAndAccept")]
    hit = mturk.create_hit(**HIT | {"Title": "Trial"}, QualificationRequirements=wants)["HIT"]
    wants = [require(type_id, "EqualTo", IntegerValues=[1])]
    mturk.create_hit(**HIT | {"Title": "Real work"}, QualificationRequirements=wants)
    return type_id, hit


def test_who_has_not_tried_is_led_to_the_work_and_cannot_ask(mturk, ada, trial):
    type_id, hit = trial
    for address in ("/worker/", f"/worker/qualifications/{type_id}/"):
        page = text_of(ada.get(address))
        assert f'href="/worker/groups/{hit["HITTypeId"]}/"' in page
        assert DESCRIPTION in page
    (reason,) = unmet(ada)
    assert (reason.code, reason.is_tried, reason.qualification_type) == (
        "earned_by_work",
        False,
        None,
    )
    assert list(ada.get("/worker/qualifications/").context["page"]) == []
    refused = ada.post(f"/worker/qualifications/{type_id}/")
    assert (refused.status_code, refused.context["code"]) == (409, "earned_by_work")
    assert not QualificationRequest.objects.exists()


def test_who_has_tried_waits_for_the_result(ada, worker, trial):
    submit(worker, trial[1]["HITId"])
    (reason,) = unmet(ada)
    assert (reason.code, reason.work) == ("earned_by_work", ())
    assert f'href="/worker/groups/{trial[1]["HITTypeId"]}/"' not in text_of(ada.get("/worker/"))


def test_who_did_not_pass_reads_so_and_not_the_values(mturk, ada, worker, trial):
    type_id, hit = trial
    submit(worker, hit["HITId"])
    decide = {"QualificationTypeId": type_id, "WorkerId": worker.worker_id}
    mturk.associate_qualification_with_worker(**decide, IntegerValue=0)
    (reason,) = unmet(ada)
    assert (reason.code, reason.is_tried, reason.qualification_type) == ("not_passed", True, None)
    assert not any(character.isdigit() for character in reason.reason)
    assert DESCRIPTION in text_of(ada.get("/worker/"))
    context = ada.get(f"/worker/qualifications/{type_id}/").context
    assert context["is_earned"]
    assert context["is_too_low"]
    mturk.associate_qualification_with_worker(**decide, IntegerValue=1)
    assert unmet(ada) == []


def test_work_for_those_without_it_at_another_requester_is_no_way_to_it(mturk, other_lab, ada):
    type_id = make_type(mturk, "Careful")
    mturk.create_hit(**HIT, QualificationRequirements=[require(type_id, "Exists")])
    other_lab.create_hit(**HIT, QualificationRequirements=[require(type_id, "DoesNotExist")])
    (reason,) = unmet(ada)
    assert reason.qualification_type.public_id == type_id


def test_what_cannot_be_mended_by_asking_offers_no_asking(mturk, ada, worker):
    """A qualification that keeps its holders out, and one that was decided."""
    ids = [make_type(mturk, name) for name in ("Done enough", "Grade")]
    wants = [
        require(ids[0], "NotEqualTo", IntegerValues=[7]),
        require(ids[1], "GreaterThan", IntegerValues=[5]),
    ]
    mturk.create_hit(**HIT, QualificationRequirements=wants)
    assert [each.qualification_type.public_id for each in unmet(ada)] == ids
    for type_id, value in zip(ids, (7, 3), strict=True):
        mturk.associate_qualification_with_worker(
            QualificationTypeId=type_id, WorkerId=worker.worker_id, IntegerValue=value
        )
    assert [(each.code, each.qualification_type) for each in unmet(ada)] == [
        ("wrong_value", None),
        ("wrong_value", None),
    ]
    page = text_of(ada.get("/worker/"))
    assert not [type_id for type_id in ids if f"/worker/qualifications/{type_id}/" in page]

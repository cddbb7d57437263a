"""Qualifications, as workers see them."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils.html import strip_tags

from marketplace import clock
from marketplace.models import (
    Qualification,
    QualificationRequest,
    WorkerAccount,
    WorkerMessage,
)
from tests.marketplace.conftest import HIT
from tests.marketplace.forms import form, question, selection
from tests.marketplace.test_worker_site import text_of

TEST = form(
    question("capital", selection("bern", "zurich")),
    question("river", selection("rhine", "aare")),
)
SCORES = "".join(
    f"<Question><QuestionIdentifier>{name}</QuestionIdentifier><AnswerOption>"
    f"<SelectionIdentifier>{right}</SelectionIdentifier><AnswerScore>5</AnswerScore>"
    "</AnswerOption></Question>"
    for name, right in (("capital", "bern"), ("river", "aare"))
)
KEY = (
    '<AnswerKey xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
    f'2005-10-01/AnswerKey.xsd">{SCORES}<QualificationValueMapping><PercentageMapping>'
    "<MaximumSummedScore>10</MaximumSummedScore></PercentageMapping>"
    "</QualificationValueMapping></AnswerKey>"
)
BASIC = {"Name": "Geography", "Description": "Knows places.", "QualificationTypeStatus": "Active"}
TESTED = BASIC | {"Test": TEST, "TestDurationInSeconds": 600}


def make(mturk, **more):
    created = mturk.create_qualification_type(**BASIC | more)
    return created["QualificationType"]["QualificationTypeId"]


def start(browser, type_id):
    return browser.post(f"/worker/qualifications/{type_id}/").headers["Location"]


def test_what_can_be_asked_for_is_listed_and_searched(mturk, ada):
    make(mturk)
    make(mturk, Name="Chemistry")
    make(mturk, Name="Closed", QualificationTypeStatus="Inactive")
    page = text_of(ada.get("/worker/qualifications/"))
    assert "Geography" in page
    assert "Closed" not in page
    text = text_of(ada.get("/worker/qualifications/", {"q": "chem"}))
    assert "Chemistry" in text
    assert "Geography" not in text


def test_asking_waits_for_the_requester(mturk, ada, worker):
    type_id = make(mturk)
    page = text_of(ada.post(f"/worker/qualifications/{type_id}/", follow=True))
    assert "waits for its requester" in page
    assert "waiting for a decision" in page
    (request,) = mturk.list_qualification_requests(QualificationTypeId=type_id)[
        "QualificationRequests"
    ]
    assert request["WorkerId"] == worker.worker_id
    mturk.accept_qualification_request(
        QualificationRequestId=request["QualificationRequestId"], IntegerValue=7
    )
    assert "with the value 7" in text_of(ada.get(f"/worker/qualifications/{type_id}/"))


def test_a_rejection_is_reported_with_its_reason(mturk, ada):
    type_id = make(mturk)
    ada.post(f"/worker/qualifications/{type_id}/")
    (request,) = mturk.list_qualification_requests(QualificationTypeId=type_id)[
        "QualificationRequests"
    ]
    mturk.reject_qualification_request(
        QualificationRequestId=request["QualificationRequestId"], Reason="We have enough people."
    )
    assert "Rejected. We have enough people." in text_of(ada.get("/worker/qualifications/"))
    assert "We have enough people." in text_of(ada.get("/worker/messages/"))


def test_an_auto_granted_one_is_had_at_once(mturk, ada):
    type_id = make(mturk, AutoGranted=True, AutoGrantedValue=3)
    page = text_of(ada.post(f"/worker/qualifications/{type_id}/", follow=True))
    assert "You now have the qualification “Geography”, with the value 3." in page


def test_a_test_is_timed_graded_and_opens_the_hits(mturk, ada):
    type_id = make(mturk, **TESTED, AnswerKey=KEY)
    needs = {"QualificationTypeId": type_id, "Comparator": "GreaterThan", "IntegerValues": [90]}
    hit = mturk.create_hit(**HIT, QualificationRequirements=[needs])["HIT"]["HITId"]
    assert ada.post(f"/worker/hits/{hit}/accept/").status_code == 403
    assert "You have 10 min" in text_of(ada.get(f"/worker/qualifications/{type_id}/"))
    test = start(ada, type_id)
    page = text_of(ada.get(test))
    assert "data-deadline" in page
    assert "bern" not in page.replace("Choice bern", "")
    response = ada.post(test + "hand-in/", {"question-1": "0", "question-2": "1"}, follow=True)
    assert "with the value 100" in text_of(response)
    assert ada.post(f"/worker/hits/{hit}/accept/").status_code == 302


def test_a_value_below_what_work_asks_for_is_not_called_having_it(mturk, ada):
    worker = WorkerAccount.objects.get(user__username="ada")
    type_id = make(mturk, AutoGranted=True, AutoGrantedValue=3)
    needing(mturk, type_id, "GreaterThanOrEqualTo", 4)
    page = text_of(ada.post(f"/worker/qualifications/{type_id}/", follow=True))
    said = "In the qualification “Geography” you have the value 3. Work on offer asks for at least"
    assert f"{said} 4." in page
    assert "It is on record with the value 3." in page
    assert "You now have" not in page
    for value in (2, 5):
        mturk.associate_qualification_with_worker(
            QualificationTypeId=type_id, WorkerId=worker.worker_id, IntegerValue=value
        )
    messages = WorkerMessage.objects.filter(worker=worker).order_by("pk")
    assert [message.subject for message in messages] == [
        "A value in a qualification",
        "You were granted a qualification",
    ]
    assert "You now have" not in messages[0].text
    assert messages[1].text == "You now have the qualification “Geography”, with the value 5."


def needing(mturk, type_id, comparator, *values):
    """A HIT on offer that asks for this of the qualification."""
    needs = {"QualificationTypeId": type_id, "Comparator": comparator}
    needs |= {"IntegerValues": list(values)} if values else {}
    terms = HIT | {"Title": f"{comparator} {values}"}
    return mturk.create_hit(**terms, QualificationRequirements=[needs])["HIT"]["HITId"]


def take(browser, type_id, *choices):
    """Take the test and hand it in: the page that follows, as its reader sees it."""
    answers = {f"question-{n}": choice for n, choice in enumerate(choices, start=1)}
    response = browser.post(start(browser, type_id) + "hand-in/", answers, follow=True)
    return " ".join(strip_tags(text_of(response).replace("<", " <")).split())


def test_who_fails_reads_the_score_and_the_mark_that_was_not_reached(mturk, ada):
    type_id = make(mturk, **TESTED, AnswerKey=KEY, RetryDelayInSeconds=3600)
    needing(mturk, type_id, "GreaterThanOrEqualTo", 80)
    before = text_of(ada.get(f"/worker/qualifications/{type_id}/"))
    assert "Work on offer asks for: at least 80" in " ".join(strip_tags(before).split())
    page = take(ada, type_id, "0", "0")
    assert (
        "Your score in “Geography” is 50. Work on offer asks for at least 80: not passed." in page
    )
    assert "You now have" not in page
    assert "Score 50 Pass mark at least 80: not passed Attempts 1" in page
    assert "You can request this qualification again from" in page
    clock.advance(timedelta(hours=1, seconds=1))
    assert "Take the test again" in text_of(ada.get(f"/worker/qualifications/{type_id}/"))
    page = take(ada, type_id, "0", "1")
    assert "Your score in “Geography” is 100. Work on offer asks for at least 80: passed." in page
    assert "Pass mark at least 80: passed Attempts 2" in page


def test_no_pass_mark_is_invented(mturk, ada):
    type_id = make(mturk, **TESTED, AnswerKey=KEY)
    needing(mturk, type_id, "Exists")
    needing(mturk, type_id, "LessThan", 30)
    over = needing(mturk, type_id, "GreaterThan", 20)
    mturk.update_expiration_for_hit(HITId=over, ExpireAt=clock.now() - timedelta(hours=1))
    page = take(ada, type_id, "1", "1")
    assert "Your score in “Geography” is 50." in page
    assert "passed" not in page
    assert "Pass mark not known" in page


def test_the_least_of_several_marks_is_passed_first(mturk, ada):
    type_id = make(mturk, **TESTED, AnswerKey=KEY)
    for value in (90, 50):
        needing(mturk, type_id, "GreaterThanOrEqualTo", value)
    page = take(ada, type_id, "0", "0")
    assert "asks for at least 50; at least 90: passed." in page


def test_answers_are_explained_where_the_key_explains_them(mturk, ada):
    explanation = "<?assay-explanation Its name begins with B, & the parliament is there.?>"
    identifier = "<QuestionIdentifier>capital</QuestionIdentifier>"
    key = KEY.replace(identifier, identifier + explanation)
    type_id = make(mturk, **TESTED, AnswerKey=key)
    stored = mturk.get_qualification_type(QualificationTypeId=type_id)["QualificationType"]
    assert stored["AnswerKey"] == key
    page = take(ada, type_id, "1", "1")
    assert "About capital? Not right: Choice zurich Its name begins with B, &amp; the" in page
    assert "About river?" not in page
    assert "Not right" not in take(
        ada, make(mturk, **TESTED | {"Name": "Bare"}, AnswerKey=KEY), "1", "1"
    )


def test_a_half_filled_test_is_not_handed_in(mturk, ada):
    test = start(ada, make(mturk, **TESTED, AnswerKey=KEY))
    response = ada.post(test + "hand-in/", {"question-1": "0"})
    assert response.status_code == 422
    assert "This question needs an answer." in text_of(response)
    assert QualificationRequest.objects.get().status == "Started"
    assert not Qualification.objects.exists()


def test_a_test_without_a_key_waits_for_the_requester(mturk, ada):
    test = start(ada, make(mturk, **TESTED))
    response = ada.post(test + "hand-in/", {"question-1": "0", "question-2": "0"}, follow=True)
    assert "waits for its requester" in text_of(response)
    (request,) = mturk.list_qualification_requests()["QualificationRequests"]
    assert "<SelectionIdentifier>rhine</SelectionIdentifier>" in request["Answer"]


def test_a_test_can_be_gone_on_with_until_its_time_is_over(mturk, ada):
    type_id = make(mturk, **TESTED, AnswerKey=KEY)
    test = start(ada, type_id)
    assert test in text_of(ada.get(f"/worker/qualifications/{type_id}/"))
    clock.advance(timedelta(minutes=11))
    assert ada.get(test).status_code == 409
    response = ada.post(test + "hand-in/", {"question-1": "0", "question-2": "1"})
    assert response.status_code == 409
    assert "time for this test is over" in text_of(response)
    assert not Qualification.objects.exists()
    assert "ran out" in text_of(ada.get("/worker/qualifications/"))


def test_a_test_can_be_taken_again_after_its_delay(mturk, ada):
    type_id = make(mturk, **TESTED, AnswerKey=KEY, RetryDelayInSeconds=3600)
    ada.post(start(ada, type_id) + "hand-in/", {"question-1": "1", "question-2": "0"})
    page = text_of(ada.get(f"/worker/qualifications/{type_id}/"))
    assert "You can request this qualification again from" in page
    assert ada.post(f"/worker/qualifications/{type_id}/").status_code == 409
    clock.advance(timedelta(hours=1, seconds=1))
    ada.post(start(ada, type_id) + "hand-in/", {"question-1": "0", "question-2": "1"})
    assert Qualification.objects.get().integer_value == 100


def test_without_a_retry_delay_there_is_one_attempt(mturk, ada):
    type_id = make(mturk, **TESTED, AnswerKey=KEY)
    test = start(ada, type_id)
    ada.post(test + "hand-in/", {"question-1": "1", "question-2": "0"})
    assert "only once" in text_of(ada.get(f"/worker/qualifications/{type_id}/"))
    assert "handed this test in already" in text_of(ada.get(test))


def test_a_test_is_its_workers_alone(mturk, ada, make_worker, browser_of):
    test = start(ada, make(mturk, **TESTED, AnswerKey=KEY))
    eve = browser_of(make_worker("eve"))
    assert eve.get(test).status_code == 404
    assert eve.post(test + "hand-in/", {"question-1": "0"}).status_code == 404
    assert "Geography" in text_of(eve.get("/worker/qualifications/"))
    assert "Go on with the test" not in text_of(eve.get("/worker/qualifications/"))


@pytest.mark.parametrize("path", ["qualifications/NONE/", "qualification-tests/NONE/"])
def test_what_does_not_exist_is_not_found(ada, path):
    assert ada.get(f"/worker/{path}").status_code == 404


def test_asking_needs_a_form_of_ours(mturk, worker):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(worker.user)
    assert browser.post(f"/worker/qualifications/{make(mturk)}/").status_code == 403


def test_the_worker_sees_what_the_marketplace_counts(ada, worker):
    worker.country = "CH"
    worker.save()
    page = text_of(ada.get("/worker/qualifications/"))
    assert "Worker_Locale</dt><dd>CH</dd>" in page
    assert "Worker_PercentAssignmentsApproved</dt><dd>100</dd>" in page

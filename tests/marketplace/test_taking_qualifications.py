"""Qualifications, as workers see them: requested, tested, or given for work."""

import re
from datetime import timedelta

import pytest
from django.utils.html import escape

from marketplace import clock, models
from tests.codes import codes_on, message_codes
from tests.marketplace.conftest import HIT, make_type, submit
from tests.marketplace.forms import form, question, selection
from tests.marketplace.test_worker_site import require, text_of, unmet

TEST = form(
    question("capital", selection("bern", "zurich")), question("river", selection("rhine", "aare"))
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
TESTED = {"Test": TEST, "TestDurationInSeconds": 600}


def start(browser, type_id):
    return browser.post(f"/worker/qualifications/{type_id}/").headers["Location"]


def needing(mturk, type_id, comparator, *values):
    needs = {"QualificationTypeId": type_id, "Comparator": comparator}
    needs |= {"IntegerValues": list(values)} if values else {}
    terms = HIT | {"Title": f"{comparator} {values}"}
    return mturk.create_hit(**terms, QualificationRequirements=[needs])["HIT"]["HITId"]


def take(browser, type_id, *choices):
    answers = {f"question-{n}": choice for n, choice in enumerate(choices, start=1)}
    return browser.post(start(browser, type_id) + "hand-in/", answers, follow=True)


def test_a_test_is_timed_graded_and_opens_the_hits(mturk, ada):
    type_id = make_type(mturk, **TESTED, AnswerKey=KEY)
    hit = needing(mturk, type_id, "GreaterThan", 90)
    assert ada.post(f"/worker/hits/{hit}/accept/").status_code == 403
    assert ada.get(f"/worker/qualifications/{type_id}/").context["type"].test_duration_seconds
    test = start(ada, type_id)
    page = text_of(ada.get(test))
    assert "data-deadline" in page
    assert "bern" not in page.replace("Choice bern", "")
    ada.post(test + "hand-in/", {"question-1": "0", "question-2": "1"})
    assert models.Qualification.objects.get().integer_value == 100
    assert ada.post(f"/worker/hits/{hit}/accept/").status_code == 302


def test_a_value_below_what_work_asks_for_is_not_called_having_it(mturk, ada):
    worker = models.WorkerAccount.objects.get(user__username="ada")
    type_id = make_type(mturk, AutoGranted=True, AutoGrantedValue=3)
    needing(mturk, type_id, "GreaterThanOrEqualTo", 4)
    page = ada.post(f"/worker/qualifications/{type_id}/", follow=True)
    assert message_codes(page) == ["value_too_low"]
    assert (page.context["is_too_low"], page.context["held"].integer_value) == (True, 3)
    ids = {"QualificationTypeId": type_id, "WorkerId": worker.worker_id}
    for value in (2, 5):
        mturk.associate_qualification_with_worker(**ids, IntegerValue=value)
    low, enough = models.WorkerMessage.objects.filter(worker=worker).order_by("pk")
    assert low.subject != enough.subject
    assert re.findall("[0-9]+", low.text) == ["2", "4"]
    assert re.findall("[0-9]+", enough.text) == ["5"]
    type_id = make_type(mturk, "Rivers", AutoGranted=True, AutoGrantedValue=3)
    page = ada.post(f"/worker/qualifications/{type_id}/", follow=True)
    assert message_codes(page) == ["granted"]
    assert page.context["held"].integer_value == 3


def test_who_fails_reads_the_score_and_the_mark_that_was_not_reached(mturk, ada):
    type_id = make_type(mturk, **TESTED, AnswerKey=KEY, RetryDelayInSeconds=3600)
    needing(mturk, type_id, "GreaterThanOrEqualTo", 80)
    before = ada.get(f"/worker/qualifications/{type_id}/")
    marks = [(each.comparator, each.values) for each in before.context["marks"]]
    assert marks == [("GreaterThanOrEqualTo", (80,))]
    page = take(ada, type_id, "0", "0")
    assert message_codes(page) == ["not_passed"]
    (message,) = page.context["messages"]
    assert re.findall("[0-9]+", str(message)) == ["50", "80"]
    result = page.context["result"]
    assert (result.grade, result.is_passed, result.n_attempts) == (50, False, 1)
    assert page.context["obstacle"].code == "too_early"
    assert ada.post(f"/worker/qualifications/{type_id}/").status_code == 409
    clock.advance(timedelta(hours=1, seconds=1))
    assert ada.get(f"/worker/qualifications/{type_id}/").context["obstacle"] is None
    page = take(ada, type_id, "0", "1")
    assert message_codes(page) == ["passed"]
    result = page.context["result"]
    assert (result.grade, result.is_passed, result.n_attempts) == (100, True, 2)
    assert models.Qualification.objects.get().integer_value == 100


def test_answers_are_explained_where_the_key_explains_them(mturk, ada):
    explanation = "<?assay-explanation Begins with B, & has the parliament.?>"
    identifier = "<QuestionIdentifier>capital</QuestionIdentifier>"
    key = KEY.replace(identifier, identifier + explanation)
    type_id = make_type(mturk, **TESTED, AnswerKey=key)
    stored = mturk.get_qualification_type(QualificationTypeId=type_id)["QualificationType"]
    assert stored["AnswerKey"] == key
    page = take(ada, type_id, "1", "1")
    (answer,) = page.context["result"].answers
    assert answer["question"].identifier == "capital"
    assert (answer["chosen"], answer["is_right"]) == ("Choice zurich", False)
    assert escape(answer["explanation"]) in text_of(page)
    assert "B, &amp; has" in text_of(page)
    bare = make_type(mturk, "Bare", **TESTED, AnswerKey=KEY)
    assert take(ada, bare, "1", "1").context["result"].answers == []


def test_a_half_filled_test_is_not_handed_in_and_there_is_one_attempt(mturk, ada):
    type_id = make_type(mturk, **TESTED, AnswerKey=KEY)
    test = start(ada, type_id)
    response = ada.post(test + "hand-in/", {"question-1": "0"})
    assert response.status_code == 422
    (wrong,) = response.context["filled"].complaints
    assert (wrong.question.identifier, wrong.complaint.code) == ("river", "unanswered")
    assert codes_on(text_of(response)) == ["unanswered"]
    assert models.QualificationRequest.objects.get().status == "Started"
    assert not models.Qualification.objects.exists()
    ada.post(test + "hand-in/", {"question-1": "1", "question-2": "0"})
    assert ada.get(f"/worker/qualifications/{type_id}/").context["obstacle"].code == "only_once"
    assert codes_on(text_of(ada.get(test))) == ["handed_in_already"]


def test_a_test_without_a_key_waits_for_the_requester(mturk, ada):
    assert message_codes(take(ada, make_type(mturk, **TESTED), "0", "0")) == ["request_waits"]
    (request,) = mturk.list_qualification_requests()["QualificationRequests"]
    assert request["Test"] == TEST
    assert "<SelectionIdentifier>rhine</SelectionIdentifier>" in request["Answer"]


def test_a_test_can_be_gone_on_with_until_its_time_is_over(mturk, ada, make_worker, browser_of):
    type_id = make_type(mturk, **TESTED, AnswerKey=KEY)
    test = start(ada, type_id)
    assert f'href="{test}"' in text_of(ada.get(f"/worker/qualifications/{type_id}/"))
    eve = browser_of(make_worker("eve"))
    assert eve.get(test).status_code == 404
    assert eve.post(test + "hand-in/", {"question-1": "0"}).status_code == 404
    assert f'href="{test}"' not in text_of(eve.get("/worker/qualifications/"))
    assert f'href="{test}"' in text_of(ada.get("/worker/qualifications/"))
    clock.advance(timedelta(minutes=11))
    answers = {"question-1": "0", "question-2": "1"}
    for response in (ada.get(test), ada.post(test + "hand-in/", answers)):
        assert (response.status_code, response.context["code"]) == (409, "test_over")
    assert not models.Qualification.objects.exists()
    page = ada.get("/worker/qualifications/")
    assert [each.status for each in page.context["asked"]] == ["Expired"]


DESCRIPTION = "Granted for the trial."


@pytest.fixture
def trial(mturk):
    type_id = make_type(mturk, "Trial passed", Description=DESCRIPTION)
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
    assert (reason.code, reason.is_tried) == ("earned_by_work", False)
    assert reason.qualification_type is None
    assert list(ada.get("/worker/qualifications/").context["page"]) == []
    refused = ada.post(f"/worker/qualifications/{type_id}/")
    assert (refused.status_code, refused.context["code"]) == (409, "earned_by_work")
    assert not models.QualificationRequest.objects.exists()


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
    ids = [make_type(mturk, name) for name in ("Done enough", "Grade")]
    wants = [
        require(ids[0], "NotEqualTo", IntegerValues=[7]),
        require(ids[1], "GreaterThan", IntegerValues=[5]),
    ]
    mturk.create_hit(**HIT, QualificationRequirements=wants)
    assert [each.qualification_type.public_id for each in unmet(ada)] == ids
    for type_id, value in zip(ids, (7, 3), strict=True):
        decide = {"QualificationTypeId": type_id, "WorkerId": worker.worker_id}
        mturk.associate_qualification_with_worker(**decide, IntegerValue=value)
    lacking = [(each.code, each.qualification_type) for each in unmet(ada)]
    assert lacking == [("wrong_value", None)] * 2
    page = text_of(ada.get("/worker/"))
    assert not [type_id for type_id in ids if f"/worker/qualifications/{type_id}/" in page]

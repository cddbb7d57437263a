"""Qualification types and their tests: made, granted, requested; what requirements do."""

import re
from datetime import timedelta
from functools import partial

import pytest

from marketplace import clock, exceptions
from marketplace.hits.assignments import accept_next
from marketplace.models import (
    Assignment,
    Hit,
    HitType,
    QualificationChange,
    QualificationType,
    WorkerMessage,
)
from marketplace.people.locations import country_choices, place_name
from marketplace.qualifications import eligibility
from marketplace.qualifications.requests import request_qualification, submit_test, why_not_request
from marketplace.qualifications.system import Locale
from tests.codes import refused
from tests.marketplace.conformance.refusals import (
    ANSWER_KEY,
    QUESTION_FORM,
    all_pages,
    error_of,
    publish,
    status_of,
    turk_code,
)
from tests.marketplace.conftest import HIT_TYPE, submit

CHESS = {
    "Name": "Chess",
    "Keywords": "chess, games",
    "Description": "Knows the moves.",
    "QualificationTypeStatus": "Active",
}
TEST = {"Test": QUESTION_FORM, "TestDurationInSeconds": 600}
ADULT, LOCALE = "00000000000000000060", "00000000000000000071"
APPROVED, PERCENT = "00000000000000000040", "000000000000000000L0"
MASTERS = ("2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6")


@pytest.fixture
def make_type(mturk):
    def make(**changes):
        created = mturk.create_qualification_type(**CHESS | changes)["QualificationType"]
        return QualificationType.objects.get(public_id=created["QualificationTypeId"])

    return make


@pytest.fixture
def chess(make_type):
    return make_type()


@pytest.fixture
def ids(chess, worker):
    return {"QualificationTypeId": chess.public_id, "WorkerId": worker.worker_id}


def answers(selection):
    namespace = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01"
    return (
        f'<QuestionFormAnswers xmlns="{namespace}/QuestionFormAnswers.xsd"><Answer>'
        f"<QuestionIdentifier>nextmove</QuestionIdentifier><SelectionIdentifier>{selection}"
        "</SelectionIdentifier></Answer></QuestionFormAnswers>"
    )


def requirement(type_id, comparator, *integers, locales=(), guard="Accept"):
    fields = {"QualificationTypeId": type_id, "Comparator": comparator, "ActionsGuarded": guard}
    codes = [
        {"Country": country} | ({"Subdivision": part} if part else {})
        for country, _, part in (locale.partition("-") for locale in locales)
    ]
    return (
        fields
        | ({"IntegerValues": list(integers)} if integers else {})
        | ({"LocaleValues": codes} if codes else {})
    )


def score_of(mturk, qualification_type, worker):
    ids = {"QualificationTypeId": qualification_type.public_id, "WorkerId": worker.worker_id}
    return mturk.get_qualification_score(**ids)["Qualification"]["IntegerValue"]


def type_of(mturk, *requirements, **values):
    hit = publish(mturk, QualificationRequirements=list(requirements), **values)
    return HitType.objects.get(hits__public_id=hit)


# Grants


def test_a_grant_is_scored_listed_announced_revoked_and_made_again(mturk, ids, worker):
    for call in (mturk.get_qualification_score, mturk.disassociate_qualification_from_worker):
        assert turk_code(call, **ids) == "QualificationDoesNotExist"
    mturk.associate_qualification_with_worker(**ids)
    assert mturk.get_qualification_score(**ids)["Qualification"]["IntegerValue"] == 1
    assert WorkerMessage.objects.get().worker == worker
    mturk.associate_qualification_with_worker(**ids, IntegerValue=80, SendNotification=False)
    score = mturk.get_qualification_score(**ids)["Qualification"]
    assert {name: score[name] for name in ids} == ids
    assert (score["IntegerValue"], score["Status"]) == (80, "Granted")
    listing = {"QualificationTypeId": ids["QualificationTypeId"]}
    assert mturk.list_workers_with_qualification_type(**listing)["Qualifications"] == [score]
    assert WorkerMessage.objects.count() == 1
    mturk.disassociate_qualification_from_worker(**ids, Reason="A mistake")
    for call in (mturk.get_qualification_score, mturk.disassociate_qualification_from_worker):
        assert turk_code(call, **ids) == "InvalidQualificationState"
    _granted, revoked = WorkerMessage.objects.filter(worker=worker).order_by("pk")
    assert "A mistake" in revoked.text
    for status, expected in (("Granted", []), ("Revoked", ["Revoked"])):
        of_status = mturk.list_workers_with_qualification_type(**listing, Status=status)
        assert [each["Status"] for each in of_status["Qualifications"]] == expected
    mturk.associate_qualification_with_worker(**ids, IntegerValue=4)
    history = QualificationChange.objects.order_by("pk").values_list("status", "integer_value")
    assert list(history) == [("Granted", 1), ("Granted", 80), ("Revoked", 80), ("Granted", 4)]


# Requests and tests


def test_a_request_waits_for_its_requester_and_is_granted(mturk, chess, worker, ids):
    request = request_qualification(worker=worker, qualification_type=chess)
    (listed,) = mturk.list_qualification_requests()["QualificationRequests"]
    assert listed["QualificationRequestId"] == request.public_id
    assert {name: listed[name] for name in ids} == ids
    with refused(exceptions.RequestRefused, "request_waiting"):
        request_qualification(worker=worker, qualification_type=chess)
    decide = {"QualificationRequestId": request.public_id}
    mturk.accept_qualification_request(**decide, IntegerValue=60)
    assert mturk.get_qualification_score(**ids)["Qualification"]["IntegerValue"] == 60
    assert mturk.list_qualification_requests()["QualificationRequests"] == []
    for call in (mturk.accept_qualification_request, mturk.reject_qualification_request):
        assert turk_code(call, **decide) == "InvalidQualificationRequestState"


def test_a_request_is_rejected_for_good_granted_without_a_value_or_rejected_with_its_type(
    mturk, chess, make_worker, worker, ids
):
    request = request_qualification(worker=worker, qualification_type=chess)
    mturk.reject_qualification_request(QualificationRequestId=request.public_id, Reason="Practise!")
    assert turk_code(mturk.get_qualification_score, **ids) == "QualificationDoesNotExist"
    assert "Practise!" in WorkerMessage.objects.get(worker=worker).text
    clock.advance(timedelta(days=300))
    assert why_not_request(worker, chess).code == "only_once"
    bea = make_worker("bea")
    request = request_qualification(worker=bea, qualification_type=chess)
    mturk.accept_qualification_request(QualificationRequestId=request.public_id)
    ids |= {"WorkerId": bea.worker_id}
    assert "IntegerValue" not in mturk.get_qualification_score(**ids)["Qualification"]
    request = request_qualification(worker=make_worker("cleo"), qualification_type=chess)
    mturk.delete_qualification_type(QualificationTypeId=chess.public_id)
    request.refresh_from_db()
    assert request.status == "Rejected"


def test_a_test_with_a_key_is_graded_and_granted_once(mturk, make_type, worker):
    graded = make_type(Name="Openings", **TEST, AnswerKey=ANSWER_KEY)
    request = request_qualification(worker=worker, qualification_type=graded)
    assert (request.status, request.test) == ("Started", QUESTION_FORM)
    assert mturk.list_qualification_requests()["QualificationRequests"] == []
    for selection in "CD":
        submit_test(request=request, answer=answers(selection))
        assert score_of(mturk, graded, worker) == 0


def test_a_test_that_was_not_handed_in_is_begun_again_after_the_delay(make_type, worker):
    timed = make_type(Name="Timed", **TEST, AnswerKey=ANSWER_KEY, RetryDelayInSeconds=3600)
    request_qualification(worker=worker, qualification_type=timed)
    clock.advance(timedelta(seconds=601))
    assert why_not_request(worker, timed).code == "too_early"
    clock.advance(timedelta(hours=1))
    assert request_qualification(worker=worker, qualification_type=timed).status == "Started"


def test_what_is_granted_or_withdrawn_cannot_be_requested_nor_required_anew(
    mturk, chess, worker, ids
):
    mturk.associate_qualification_with_worker(**ids)
    assert why_not_request(worker, chess).code == "held_already"
    mturk.update_qualification_type(
        QualificationTypeId=chess.public_id, QualificationTypeStatus="Inactive"
    )
    chess.refresh_from_db()
    assert why_not_request(worker, chess).code == "not_requestable"
    wants = {"QualificationRequirements": [requirement(chess.public_id, "Exists")]}
    assert turk_code(mturk.create_hit_type, **HIT_TYPE | wants) == "InvalidQualificationTypeState"


# Requirements


def test_a_requirement_that_compares_wrongly_or_with_nothing_is_refused(mturk):
    for wrong in (
        requirement("CHESS", "Exists", 1),
        requirement("CHESS", "EqualTo"),
        requirement("CHESS", "GreaterThan", 1, 2),
        requirement("CHESS", "EqualTo", locales=["US"]),
        requirement(LOCALE, "EqualTo", 1),
        requirement(LOCALE, "LessThan", locales=["US"]),
        requirement(LOCALE, "In", 1, locales=["US"]),
        requirement(LOCALE, "In", locales=["US", "GB", "UK"]),
        requirement("NONE", "Exists"),
    ):
        is_missing = wrong["QualificationTypeId"] == "NONE"
        expected = "QualificationTypeDoesNotExist" if is_missing else "InvalidParameterValue"
        assert turk_code(publish, mturk=mturk, QualificationRequirements=[wrong]) == expected
        assert not HitType.objects.exists()


@pytest.mark.parametrize("comparator", ["EqualTo", "NotEqualTo", "In"])
def test_a_locale_where_no_worker_can_be_is_refused_before_money_is_held(mturk, comparator):
    for place, named in (
        ("UK", ["'UK'", "GB"]),
        ("us", ["'us'", "US"]),
        ("XX", ["'XX'"]),
        ("US-XX", ["'XX'", "'US-'"]),
        ("CA-TX", ["'TX'", "CA"]),
        ("VA-RO", ["'RO'", "VA"]),
    ):
        wrong = requirement(LOCALE, comparator, locales=[place])
        for call in (mturk.create_hit_type, partial(publish, mturk)):
            answer = error_of(call, **HIT_TYPE | {"QualificationRequirements": [wrong]})
            assert answer["TurkErrorCode"] == "AWS.MechanicalTurk.InvalidParameterValue"
            assert [each for each in named if each not in answer["Message"]] == []
    assert not HitType.objects.exists()
    assert mturk.get_account_balance()["AvailableBalance"] == "100.00"


def test_requirements_come_back_as_they_were_sent(mturk, chess):
    sent = [
        requirement(chess.public_id, "In", 1, 2, 3, guard="DiscoverPreviewAndAccept"),
        requirement(LOCALE, "NotIn", locales=["US-CA", "GB"], guard="PreviewAndAccept"),
        requirement(MASTERS[1], "Exists"),
    ]
    hit = publish(mturk, QualificationRequirements=sent)
    requirements = mturk.get_hit(HITId=hit)["HIT"]["QualificationRequirements"]
    assert [each | {"RequiredToPreview": None} for each in requirements] == [
        each | {"RequiredToPreview": None} for each in sent
    ]
    (listed,) = mturk.list_hits()["HITs"]
    assert listed["QualificationRequirements"] == requirements
    # The older member means the same as a guard.
    old = {"QualificationTypeId": MASTERS[0], "Comparator": "Exists", "RequiredToPreview": True}
    hit = publish(mturk, QualificationRequirements=[old])
    (stored,) = mturk.get_hit(HITId=hit)["HIT"]["QualificationRequirements"]
    assert stored["ActionsGuarded"] == "PreviewAndAccept"


COMPARED = [
    ("LessThan", [5], 4, True), ("LessThan", [5], 5, False), ("LessThan", [5], None, False),
    ("LessThanOrEqualTo", [5], 5, True), ("LessThanOrEqualTo", [5], 6, False),
    ("GreaterThan", [5], 6, True), ("GreaterThan", [5], 5, False),
    ("GreaterThanOrEqualTo", [5], 5, True), ("GreaterThanOrEqualTo", [5], 4, False),
    ("EqualTo", [5], 5, True), ("EqualTo", [5], 4, False), ("EqualTo", [5], None, False),
    ("NotEqualTo", [5], 4, True), ("NotEqualTo", [5], 5, False),
    ("NotEqualTo", [5], None, False),
    ("In", [4, 5], 5, True), ("In", [4, 5], 6, False),
    ("NotIn", [4, 5], 6, True), ("NotIn", [4, 5], 5, False), ("NotIn", [4, 5], None, False),
    ("Exists", [], 5, True), ("Exists", [], None, False),
    ("DoesNotExist", [], None, True), ("DoesNotExist", [], 5, False),
]  # fmt: skip


def test_every_comparator_lets_in_whom_it_should(mturk, chess, ids, worker, make_worker):
    """A value of None is a worker who doesn't have the qualification."""
    stranger = make_worker("bea")
    for comparator, integers, value, is_met in COMPARED:
        if value is not None:
            mturk.associate_qualification_with_worker(**ids, IntegerValue=value)
        who = stranger if value is None else worker
        hit_type = type_of(mturk, requirement(chess.public_id, comparator, *integers))
        unmet = eligibility.qualifies(who, hit_type)
        codes = {("DoesNotExist", True): ["held"], (comparator, False): ["not_held"]}
        expected = [] if is_met else codes.get((comparator, value is not None), ["wrong_value"])
        assert [each.code for each in unmet] == expected, (comparator, value)
        if is_met:
            accept_next(worker=who, hit_type=hit_type)
        else:
            with refused(exceptions.NotQualified, unmet[0].code):
                accept_next(worker=who, hit_type=hit_type)


def test_a_locale_includes_its_parts(mturk, worker):
    for comparator, locales, country, part, is_met in (
        ("EqualTo", ["US"], "US", "CA", True),
        ("EqualTo", ["US-CA"], "US", "CA", True),
        ("EqualTo", ["US-CA"], "US", "NY", False),
        ("EqualTo", ["US-CA"], "US", "", False),
        ("EqualTo", ["US"], "GB", "", False),
        ("EqualTo", ["US"], "", "", False),
        ("NotEqualTo", ["US"], "GB", "", True),
        ("NotEqualTo", ["US-CA"], "US", "NY", True),
        ("NotEqualTo", ["US"], "US", "NY", False),
        ("NotEqualTo", ["US"], "", "", False),
        ("In", ["US", "GB"], "GB", "", True),
        ("NotIn", ["US", "GB"], "GB", "", False),
    ):
        worker.country, worker.subdivision = country, part
        hit_type = type_of(mturk, requirement(LOCALE, comparator, locales=locales))
        assert (eligibility.qualifies(worker, hit_type) == ()) == is_met


def test_adults_masters_and_the_number_approved_are_known_by_what_is_written_down(mturk, worker):
    adults = type_of(mturk, requirement(ADULT, "EqualTo", 1))
    masters = [type_of(mturk, requirement(type_id, "Exists")) for type_id in MASTERS]
    assert all(eligibility.qualifies(worker, hit_type) for hit_type in (adults, *masters))
    worker.adult_confirmed_at = worker.master_since = clock.now()
    assert not any(eligibility.qualifies(worker, hit_type) for hit_type in (adults, *masters))
    hit_type = type_of(mturk, requirement(APPROVED, "GreaterThanOrEqualTo", 2))
    for _ in range(2):
        (unmet,) = eligibility.qualifies(worker, hit_type)
        mturk.approve_assignment(AssignmentId=submit(worker, publish(mturk)))
    assert unmet.code == "wrong_value"
    assert re.findall("[0-9]+", unmet.reason) == ["2", "1"]
    assert eligibility.qualifies(worker, hit_type) == ()


def test_the_approval_rate_is_100_until_100_are_submitted(mturk, worker):
    """Of 99 decided assignments 90 are approved: 90 in a hundred, rounded down."""
    hit_type = type_of(mturk, requirement(PERCENT, "GreaterThanOrEqualTo", 95))
    template = Assignment.objects.get(public_id=submit(worker, publish(mturk)))
    mturk.approve_assignment(AssignmentId=template.public_id)
    template.refresh_from_db()
    _hand_in_more(template, approved=89, rejected=9)
    assert eligibility.qualifies(worker, hit_type) == ()
    _hand_in_more(template, submitted=1)
    (unmet,) = eligibility.qualifies(worker, hit_type)
    assert re.findall("[0-9]+", unmet.reason) == ["95", "90"]
    Assignment.objects.exclude(pk=template.pk).delete()
    Hit.objects.filter(public_id__startswith="COPY").delete()


def _hand_in_more(template, **counts):
    for status, count in counts.items():
        for _ in range(count):
            hit, copy = Hit.objects.get(pk=template.hit_id), Assignment.objects.get(pk=template.pk)
            hit.pk, hit.public_id = None, f"COPY{Hit.objects.count()}"
            hit.save()
            copy.pk, copy.public_id, copy.hit = None, hit.public_id, hit
            copy.status, copy.reward_usd, copy.fee_usd = status.title(), 0, 0
            copy.save()


# What is guarded


def test_a_page_of_groups_takes_the_same_number_of_queries_however_long(
    mturk, worker, chess, django_assert_num_queries
):
    def publish_types(count):
        for number in range(count):
            type_of(
                mturk,
                requirement(chess.public_id, "Exists", guard="DiscoverPreviewAndAccept"),
                requirement(APPROVED, "GreaterThan", number),
                Title=f"Type {HitType.objects.count()}",
            )

    for count, total in ((2, 2), (8, 10)):
        publish_types(count)
        with django_assert_num_queries(5):
            assert len(eligibility.unmet_by_hit_type(worker, HitType.objects.all())) == total
    with django_assert_num_queries(3):
        assert list(eligibility.visible_groups(worker, clock.now())) == []


def test_a_test_comes_whole_or_not_at_all_and_a_name_is_used_once(mturk, other_lab):
    for values, code in (
        ({"Test": QUESTION_FORM}, "InvalidParameterValue"),
        ({"AnswerKey": ANSWER_KEY}, "InvalidParameterValue"),
        (TEST | {"AutoGranted": True}, "InvalidParameterValue"),
        (TEST | {"Test": "<QuestionForm/>"}, "XMLParseError"),
        (TEST | {"AnswerKey": "<AnswerKey/>"}, "XMLParseError"),
    ):
        assert turk_code(mturk.create_qualification_type, **CHESS | values) == code
        assert mturk.list_qualification_types(MustBeRequestable=True)["NumResults"] == 0
    # Amti's example of a qualification type without a test gives a duration.
    created = mturk.create_qualification_type(**CHESS, TestDurationInSeconds=60)
    assert "TestDurationInSeconds" not in created["QualificationType"]
    type_id = created["QualificationType"]["QualificationTypeId"]
    changed = mturk.update_qualification_type(QualificationTypeId=type_id, TestDurationInSeconds=90)
    assert "TestDurationInSeconds" not in changed["QualificationType"]
    code = turk_code(mturk.create_qualification_type, **CHESS)
    assert code == "QualificationTypeAlreadyExists"
    other_lab.create_qualification_type(**CHESS)


def test_a_type_is_changed(mturk, chess):
    change = partial(mturk.update_qualification_type, QualificationTypeId=chess.public_id)
    values = {"Description": "Plays.", "QualificationTypeStatus": "Inactive"}
    values |= {"RetryDelayInSeconds": 5, "AnswerKey": ANSWER_KEY}
    changed = change(**values, **TEST)["QualificationType"]
    assert changed["Name"] == "Chess"
    assert {name: changed[name] for name in values} == values
    assert "AnswerKey" not in change(**TEST)["QualificationType"]
    assert change(TestDurationInSeconds=90)["QualificationType"]["TestDurationInSeconds"] == 90
    assert turk_code(change, AutoGranted=True) == "InvalidParameterValue"


def test_types_are_searched(mturk, other_lab, chess):
    for name, status in (("Checkers", "Active"), ("Go", "Inactive")):
        values = {"Name": name, "QualificationTypeStatus": status}
        other_lab.create_qualification_type(**CHESS | values)

    def names(client, **parameters):
        parameters |= {"MaxResults": 2}
        rows = all_pages(client.list_qualification_types, "QualificationTypes", **parameters)
        return [row["Name"] for row in rows]

    system = ["Masters", "Masters", "Worker_NumberHITsApproved", "Worker_Locale"]
    system += ["Worker_Adult", "Worker_PercentAssignmentsApproved"]
    assert names(mturk, MustBeRequestable=False) == [*system, "Chess", "Checkers"]
    assert names(other_lab, MustBeRequestable=False) == [*system, "Chess", "Checkers", "Go"]
    assert names(mturk, MustBeRequestable=True) == ["Chess", "Checkers"]
    assert names(mturk, MustBeRequestable=True, MustBeOwnedByCaller=True) == ["Chess"]
    assert names(mturk, MustBeRequestable=False, Query="locale") == ["Worker_Locale"]
    assert names(mturk, MustBeRequestable=False, Query="CHECK") == ["Checkers"]


def test_all_read_the_marketplaces_own_types_and_others_without_their_tests(mturk, other_lab):
    names = mturk.get_qualification_type(QualificationTypeId=MASTERS[0])["QualificationType"]
    assert (names["Name"], names["IsRequestable"]) == ("Masters", False)
    created = mturk.create_qualification_type(**CHESS, **TEST, AnswerKey=ANSWER_KEY)
    type_id = created["QualificationType"]["QualificationTypeId"]
    seen = other_lab.get_qualification_type(QualificationTypeId=type_id)["QualificationType"]
    assert seen["Name"] == "Chess"
    assert not {"Test", "AnswerKey"} & seen.keys()


def test_hits_that_require_a_type_are_listed(mturk, other_lab, chess):
    required = {"QualificationRequirements": [requirement(chess.public_id, "Exists")]}
    hits = [publish(mturk, **required) for _ in range(3)]
    publish(mturk)
    publish(other_lab, **required)
    of_type = {"QualificationTypeId": chess.public_id, "MaxResults": 2}
    listed = all_pages(mturk.list_hits_for_qualification_type, "HITs", **of_type)
    assert [hit["HITId"] for hit in listed] == hits[::-1]
    adults = publish(mturk, QualificationRequirements=[requirement(ADULT, "EqualTo", 1)])
    listed = mturk.list_hits_for_qualification_type(QualificationTypeId=ADULT)
    assert [hit["HITId"] for hit in listed["HITs"]] == [adults]


def test_a_deleted_type_is_gone_but_hits_that_require_it_go_on(mturk, chess):
    hit = publish(mturk, QualificationRequirements=[requirement(chess.public_id, "Exists")])
    hit_type = mturk.get_hit(HITId=hit)["HIT"]["HITTypeId"]
    mturk.delete_qualification_type(QualificationTypeId=chess.public_id)
    assert status_of(mturk, hit) == "Assignable"
    code = turk_code(mturk.get_qualification_type, QualificationTypeId=chess.public_id)
    assert code == "QualificationTypeDoesNotExist"
    code = turk_code(mturk.delete_qualification_type, QualificationTypeId=chess.public_id)
    assert code == "InvalidQualificationTypeState"
    again = {"HITTypeId": hit_type, "LifetimeInSeconds": 60, "Question": QUESTION_FORM}
    assert turk_code(mturk.create_hit_with_hit_type, **again) == "QualificationTypeDoesNotExist"
    mturk.create_qualification_type(**CHESS)


# What a worker reads of a requirement of a place


US, CANADA = Locale("US"), Locale("CA")


@pytest.mark.parametrize(
    ("comparator", "places", "own", "code"),
    [
        ("In", [US, CANADA], None, "not_stated"),
        ("EqualTo", [US], CANADA, "elsewhere"),
        ("NotIn", [US, CANADA], US, "excluded_place"),
    ],
)
def test_a_reason_names_the_places(comparator, places, own, code):
    reason = eligibility.place_reason(comparator, places, own)
    assert reason.code == code
    named = [*places, own] if code == "elsewhere" else places
    assert all(place_name(*place) in reason for place in named)


def test_every_country_has_a_name_and_an_unknown_code_stays():
    assert all(place_name(code).removeprefix("the ") == name for code, name in country_choices())
    assert place_name("XX", "Y") == "XX-Y"
    assert place_name("US", "CA") == "California (the United States)"
    assert place_name("DE") == "Germany"

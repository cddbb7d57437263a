"""Qualification types: making, finding, changing and deleting them."""

import pytest

from tests.marketplace.conformance.refusals import (
    ANSWER_KEY,
    QUESTION_FORM,
    all_pages,
    publish,
    status_of,
    turk_code,
)

CHESS = {
    "Name": "Chess",
    "Keywords": "chess, games",
    "Description": "Knows the moves.",
    "QualificationTypeStatus": "Active",
}
TEST = {"Test": QUESTION_FORM, "TestDurationInSeconds": 600}
MASTERS = "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH"


@pytest.fixture
def chess(mturk):
    return mturk.create_qualification_type(**CHESS)["QualificationType"]["QualificationTypeId"]


def required(type_id, **changes):
    return [{"QualificationTypeId": type_id, "Comparator": "Exists"} | changes]


def test_a_new_type_is_described_in_full(mturk):
    created = mturk.create_qualification_type(
        **CHESS, **TEST, AnswerKey=ANSWER_KEY, RetryDelayInSeconds=60
    )["QualificationType"]
    assert {name: created[name] for name in CHESS} == CHESS
    assert (created["Test"], created["AnswerKey"]) == (QUESTION_FORM, ANSWER_KEY)
    assert (created["TestDurationInSeconds"], created["RetryDelayInSeconds"]) == (600, 60)
    assert (created["IsRequestable"], created["AutoGranted"]) == (True, False)
    type_id = created["QualificationTypeId"]
    stored = mturk.get_qualification_type(QualificationTypeId=type_id)["QualificationType"]
    assert stored == created


def test_a_name_is_used_once_by_a_requester(mturk, other_lab, chess):
    code = turk_code(mturk.create_qualification_type, **CHESS)
    assert code == "QualificationTypeAlreadyExists"
    other_lab.create_qualification_type(**CHESS)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"Test": QUESTION_FORM}, "InvalidParameterValue"),
        ({"AnswerKey": ANSWER_KEY}, "InvalidParameterValue"),
        (TEST | {"AutoGranted": True}, "InvalidParameterValue"),
        (TEST | {"Test": "<QuestionForm/>"}, "XMLParseError"),
        (TEST | {"AnswerKey": "<AnswerKey/>"}, "XMLParseError"),
        (TEST | {"AnswerKey": "not xml"}, "XMLParseError"),
    ],
)
def test_a_test_comes_whole_or_not_at_all(mturk, values, code):
    assert turk_code(mturk.create_qualification_type, **CHESS | values) == code
    assert mturk.list_qualification_types(MustBeRequestable=True)["NumResults"] == 0


def test_a_duration_without_a_test_is_accepted_and_means_nothing(mturk):
    """Amti's example of a qualification type without a test gives one."""
    created = mturk.create_qualification_type(**CHESS, TestDurationInSeconds=60)
    assert "TestDurationInSeconds" not in created["QualificationType"]
    type_id = created["QualificationType"]["QualificationTypeId"]
    changed = mturk.update_qualification_type(QualificationTypeId=type_id, TestDurationInSeconds=90)
    assert "TestDurationInSeconds" not in changed["QualificationType"]


def test_a_type_is_changed(mturk, chess):
    changed = mturk.update_qualification_type(
        QualificationTypeId=chess,
        Description="Plays.",
        QualificationTypeStatus="Inactive",
        RetryDelayInSeconds=5,
        **TEST,
        AnswerKey=ANSWER_KEY,
    )["QualificationType"]
    assert (changed["Name"], changed["Description"]) == ("Chess", "Plays.")
    assert (changed["QualificationTypeStatus"], changed["RetryDelayInSeconds"]) == ("Inactive", 5)
    again = mturk.update_qualification_type(QualificationTypeId=chess, **TEST)
    assert "AnswerKey" not in again["QualificationType"]
    shorter = mturk.update_qualification_type(QualificationTypeId=chess, TestDurationInSeconds=90)
    assert shorter["QualificationType"]["TestDurationInSeconds"] == 90
    code = turk_code(mturk.update_qualification_type, QualificationTypeId=chess, AutoGranted=True)
    assert code == "InvalidParameterValue"


def test_types_are_searched(mturk, other_lab, chess):
    other = other_lab
    checkers = other.create_qualification_type(**CHESS | {"Name": "Checkers"})
    inactive = other.create_qualification_type(
        **CHESS | {"Name": "Go", "QualificationTypeStatus": "Inactive"}
    )

    def names(client, **parameters):
        rows = all_pages(
            client.list_qualification_types, "QualificationTypes", MaxResults=2, **parameters
        )
        return [row["Name"] for row in rows]

    system = ["Masters", "Masters", "Worker_NumberHITsApproved", "Worker_Locale"]
    system += ["Worker_Adult", "Worker_PercentAssignmentsApproved"]
    assert names(mturk, MustBeRequestable=False) == [*system, "Chess", "Checkers"]
    assert names(other, MustBeRequestable=False) == [*system, "Chess", "Checkers", "Go"]
    assert names(mturk, MustBeRequestable=True) == ["Chess", "Checkers"]
    assert names(mturk, MustBeRequestable=True, MustBeOwnedByCaller=True) == ["Chess"]
    assert names(mturk, MustBeRequestable=False, Query="locale") == ["Worker_Locale"]
    assert names(mturk, MustBeRequestable=False, Query="CHECK") == ["Checkers"]
    assert checkers["QualificationType"]["QualificationTypeId"] != inactive


def test_a_long_text_is_searched_page_by_page_or_not_found(mturk):
    text = "rook takes pawn. " * 100
    names = [f"Chess {number}" for number in range(3)]
    for name in names:
        mturk.create_qualification_type(**CHESS | {"Name": name, "Description": text})
    values = {"MustBeRequestable": True, "MaxResults": 2}
    matches = all_pages(
        mturk.list_qualification_types, "QualificationTypes", Query=text.strip(), **values
    )
    assert [row["Name"] for row in matches] == names
    assert mturk.list_qualification_types(Query="x" * 70_000, **values)["NumResults"] == 0


def test_all_read_the_marketplaces_own_types_and_others_without_their_tests(mturk, other_lab):
    names = mturk.get_qualification_type(QualificationTypeId=MASTERS)["QualificationType"]
    assert (names["Name"], names["IsRequestable"]) == ("Masters", False)
    created = mturk.create_qualification_type(**CHESS, **TEST, AnswerKey=ANSWER_KEY)
    type_id = created["QualificationType"]["QualificationTypeId"]
    seen = other_lab.get_qualification_type(QualificationTypeId=type_id)["QualificationType"]
    assert seen["Name"] == "Chess"
    assert not {"Test", "AnswerKey"} & seen.keys()


def test_hits_that_require_a_type_are_listed(mturk, other_lab, chess):
    hits = [publish(mturk, QualificationRequirements=required(chess)) for _ in range(3)]
    publish(mturk)
    publish(other_lab, QualificationRequirements=required(chess))
    names = all_pages(
        mturk.list_hits_for_qualification_type, "HITs", QualificationTypeId=chess, MaxResults=2
    )
    assert [hit["HITId"] for hit in names] == hits[::-1]
    adults = publish(
        mturk,
        QualificationRequirements=required(
            "00000000000000000060", Comparator="EqualTo", IntegerValues=[1]
        ),
    )
    listed = mturk.list_hits_for_qualification_type(QualificationTypeId="00000000000000000060")
    assert [hit["HITId"] for hit in listed["HITs"]] == [adults]


def test_a_deleted_type_is_gone_but_hits_that_require_it_go_on(mturk, chess):
    hit = publish(mturk, QualificationRequirements=required(chess))
    hit_type = mturk.get_hit(HITId=hit)["HIT"]["HITTypeId"]
    mturk.delete_qualification_type(QualificationTypeId=chess)
    assert status_of(mturk, hit) == "Assignable"
    code = turk_code(mturk.get_qualification_type, QualificationTypeId=chess)
    assert code == "QualificationTypeDoesNotExist"
    code = turk_code(mturk.delete_qualification_type, QualificationTypeId=chess)
    assert code == "InvalidQualificationTypeState"
    again = {"HITTypeId": hit_type, "LifetimeInSeconds": 60, "Question": QUESTION_FORM}
    assert turk_code(mturk.create_hit_with_hit_type, **again) == "QualificationTypeDoesNotExist"
    mturk.create_qualification_type(**CHESS)


def test_an_inactive_type_cannot_be_required_anew(mturk, chess):
    mturk.update_qualification_type(QualificationTypeId=chess, QualificationTypeStatus="Inactive")
    code = turk_code(
        mturk.create_hit_type,
        Title="T",
        Description="D",
        Reward="0.01",
        AssignmentDurationInSeconds=60,
        QualificationRequirements=required(chess),
    )
    assert code == "InvalidQualificationTypeState"

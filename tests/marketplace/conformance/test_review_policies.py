"""ScoreMyKnownAnswers, SimplePlurality, and ListReviewPolicyResultsForHIT."""

import re
from datetime import timedelta

import pytest

from marketplace import clock
from marketplace.hits.policy_scores import find_plurality, normalized, score_known_answers
from tests.marketplace.conformance.refusals import balances, publish, status_of, turk_code
from tests.marketplace.conftest import submit

# The chart in Amazon's documentation of SimplePlurality: three workers, four questions.
CHART = {
    "1": {"A": "coat", "B": "blue", "C": "large", "D": "Furry"},
    "2": {"A": "sweater", "B": "blue", "C": "large", "D": "fur"},
    "3": {"A": "coat", "B": "green", "C": "large", "D": "furr"},
}


EXTENSION = {
    "ExtendIfHITAgreementScoreIsLessThan": "100",
    "ExtendMaximumAssignments": "4",
    "ExtendMinimumTimeInSeconds": "3600",
}


def known_answers(key, **parameters):
    entries = [{"Key": question, "Values": values} for question, values in key.items()]
    return {
        "PolicyName": "ScoreMyKnownAnswers/2011-09-01",
        "Parameters": [
            {"Key": "AnswerKey", "MapEntries": entries},
            *({"Key": name, "Values": [value]} for name, value in parameters.items()),
        ],
    }


def plurality(questions, threshold="50", **parameters):
    return {
        "PolicyName": "SimplePlurality/2011-09-01",
        "Parameters": [
            {"Key": "QuestionIds", "Values": questions},
            {"Key": "QuestionAgreementThreshold", "Values": [threshold]},
            *({"Key": name, "Values": [value]} for name, value in parameters.items()),
        ],
    }


@pytest.fixture
def workers(make_worker):
    return [make_worker(name) for name in ("bea", "cleo", "dora")]


def results_of(report):
    return [
        (row["SubjectType"], row.get("QuestionId"), row["Key"], row["Value"])
        for row in report["ReviewResults"]
    ]


def actions_of(report):
    return [
        (row["ActionName"], row["TargetType"], row["Status"], row.get("ErrorCode"))
        for row in report["ReviewActions"]
    ]


# SimplePlurality


def test_the_worked_example_of_amazons_documentation_comes_out_as_there(mturk, workers):
    hit = publish(mturk, MaxAssignments=3, HITReviewPolicy=plurality(list("ABCD")))
    assignments = [
        submit(worker, hit, **answers)
        for worker, answers in zip(workers, CHART.values(), strict=True)
    ]
    report = mturk.list_review_policy_results_for_hit(HITId=hit)["HITReviewReport"]
    assert results_of(report) == [
        ("HIT", "A", "AgreedAnswerFound", "true"),
        ("HIT", "A", "AgreedAnswer", "coat"),
        ("HIT", "A", "AnswerAgreementScore", "66"),
        ("HIT", "B", "AgreedAnswerFound", "true"),
        ("HIT", "B", "AgreedAnswer", "blue"),
        ("HIT", "B", "AnswerAgreementScore", "66"),
        ("HIT", "C", "AgreedAnswerFound", "true"),
        ("HIT", "C", "AgreedAnswer", "large"),
        ("HIT", "C", "AnswerAgreementScore", "100"),
        ("HIT", "D", "AgreedAnswerFound", "false"),
        *(
            ("Assignment", None, key, value)
            for percent, right, wrong in (("100", "3", "0"), ("66", "2", "1"), ("66", "2", "1"))
            for key, value in (
                ("WorkerAgreementScore", percent),
                ("PluralityAnswersCorrect", right),
                ("PluralityAnswersIncorrect", wrong),
            )
        ),
        ("HIT", None, "HitAgreementScore", "75"),
    ]
    rows = [row for row in report["ReviewResults"] if row["SubjectType"] == "Assignment"]
    assert [row["SubjectId"] for row in rows][::3] == assignments
    assert actions_of(report) == [("review", "HIT", "Succeeded", None)]


def test_those_who_agree_are_approved_and_the_others_rejected(mturk, workers):
    terms = {"ApproveIfWorkerAgreementScoreIsAtLeast": "100", "RejectReason": "Not agreed"}
    policy = plurality(["A"], RejectIfWorkerAgreementScoreIsLessThan="50", **terms)
    hit = publish(mturk, MaxAssignments=3, HITReviewPolicy=policy)
    for worker, answer in zip(workers, ("coat", "sweater", "coat"), strict=True):
        submit(worker, hit, A=answer)
    assignments = mturk.list_assignments_for_hit(HITId=hit)["Assignments"]
    statuses = [each["AssignmentStatus"] for each in assignments]
    assert statuses == ["Approved", "Rejected", "Approved"]
    assert assignments[1]["RequesterFeedback"] == "Not agreed"
    assert balances(mturk) == ("98.74", "0.00")


def test_a_hit_without_agreement_asks_one_worker_more_until_there_is_or_enough(mturk, make_worker):
    hit = publish(mturk, MaxAssignments=2, HITReviewPolicy=plurality(["A"], **EXTENSION))
    statuses = []
    for name, answer in (("bea", "1"), ("cleo", "2"), ("dora", "3"), ("eve", "4")):
        submit(make_worker(name), hit, A=answer)
        statuses.append(status_of(mturk, hit))
    assert statuses == ["Assignable", "Assignable", "Assignable", "Reviewable"]
    assert mturk.get_hit(HITId=hit)["HIT"]["MaxAssignments"] == 4
    report = mturk.list_review_policy_results_for_hit(HITId=hit)["HITReviewReport"]
    extensions = [row for row in report["ReviewActions"] if row["ActionName"] == "extend"]
    assert [re.findall("[0-9]+", row["Result"]) for row in extensions] == [["3"], ["4"], ["4"]]
    assert balances(mturk)[1] == "2.52"


def test_an_expired_hit_without_agreement_lives_again(mturk, workers):
    policy = plurality(["A"], **EXTENSION | {"ExtendMinimumTimeInSeconds": "7200"})
    hit = publish(mturk, MaxAssignments=3, LifetimeInSeconds=60, HITReviewPolicy=policy)
    submit(workers[0], hit, A="1")
    submit(workers[1], hit, A="2")
    clock.advance(timedelta(seconds=61))
    stored = mturk.get_hit(HITId=hit)["HIT"]
    assert (stored["HITStatus"], stored["MaxAssignments"]) == ("Assignable", 4)


def test_an_extension_that_cannot_be_paid_fails_alone(mturk, workers):
    policy = plurality(["A"], ApproveIfWorkerAgreementScoreIsAtLeast="101", **EXTENSION)
    hit = publish(mturk, MaxAssignments=2, Reward="50.00", HITReviewPolicy=policy)
    submit(workers[0], hit, A="1")
    submit(workers[1], hit, A="2")
    assert status_of(mturk, hit) == "Reviewable"
    report = mturk.list_review_policy_results_for_hit(HITId=hit)["HITReviewReport"]
    failed = ("extend", "HIT", "Failed", "AWS.MechanicalTurk.InsufficientFunds")
    assert actions_of(report)[-1] == failed
    assert balances(mturk) == ("0.00", "100.00")


def test_nine_assignments_do_not_become_ten(mturk, make_worker):
    policy = plurality(["A"], **EXTENSION | {"ExtendMaximumAssignments": "20"})
    hit = publish(mturk, MaxAssignments=9, HITReviewPolicy=policy)
    for number in range(9):
        submit(make_worker(f"worker{number}"), hit, A=str(number))
    report = mturk.list_review_policy_results_for_hit(HITId=hit)["HITReviewReport"]
    assert actions_of(report)[-1][-1] == "AWS.MechanicalTurk.InvalidMaximumAssignmentsIncrease"


@pytest.mark.parametrize(
    ("of_assignments", "of_hits", "golds", "answers", "result"),
    [
        (
            {"RejectIfKnownAnswerScoreIsLessThan": "100"},
            {"DisregardAssignmentIfRejected": "true"},
            "434",
            "xyx",
            ("HIT", "A", "AnswerAgreementScore", "100"),
        ),
        (
            {},
            {"DisregardAssignmentIfKnownAnswerScoreIsLessThan": "50"},
            "433",
            "xyy",
            ("HIT", "A", "AgreedAnswer", "x"),
        ),
    ],
)
def test_rejected_work_and_wrong_known_answers_can_be_left_out(
    mturk, workers, of_assignments, of_hits, golds, answers, result
):
    policies = {"AssignmentReviewPolicy": known_answers({"gold": ["4"]}, **of_assignments)}
    policies |= {"HITReviewPolicy": plurality(["A"], **of_hits)}
    hit = publish(mturk, MaxAssignments=3, **policies)
    for worker, gold, answer in zip(workers, golds, answers, strict=True):
        submit(worker, hit, gold=gold, A=answer)
    report = mturk.list_review_policy_results_for_hit(HITId=hit)["HITReviewReport"]
    assert result in results_of(report)


@pytest.mark.parametrize(
    ("answers", "threshold", "agreed"),
    [
        (["a", "a", "b"], 66, None),
        (["a", "a", "b"], 65, "a"),
        (["a", "a"], 100, "a"),
        (["a", "a", "b", "b"], 49, None),
        (["a", "A"], 49, None),
        ([" a ", "a"], 99, "a"),
        (["", ""], 0, None),
        (["a", "a" * 257], 99, "a"),
        (["a|b", "b|a"], 99, "a|b"),
        (["a|b", "a"], 50, None),
    ],
)
def test_answers_agree_where_more_workers_than_the_threshold_gave_them(answers, threshold, agreed):
    answers_of = {
        str(number): normalized({"q": tuple(answer.split("|"))})
        for number, answer in enumerate(answers)
    }
    by_question = find_plurality(answers_of, ["q"], threshold).questions["q"].agreed
    assert by_question == (frozenset(agreed.split("|")) if agreed else None)


# ScoreMyKnownAnswers


@pytest.mark.parametrize(
    ("answer", "status", "score"),
    [("4", "Approved", "100"), (" 4 ", "Approved", "100"), ("3", "Rejected", "0")],
)
def test_an_assignment_is_decided_by_its_known_answers(mturk, worker, answer, status, score):
    policy = known_answers(
        {"rating": ["4 "]},
        ApproveIfKnownAnswerScoreIsAtLeast="80",
        ApproveReason="Right",
        RejectIfKnownAnswerScoreIsLessThan="50",
        RejectReason="Wrong",
    )
    hit = publish(mturk, AssignmentReviewPolicy=policy)
    stored = mturk.get_assignment(AssignmentId=submit(worker, hit, rating=answer))["Assignment"]
    assert stored["AssignmentStatus"] == status
    assert stored["RequesterFeedback"] == {"Approved": "Right", "Rejected": "Wrong"}[status]
    answer = mturk.list_review_policy_results_for_hit(HITId=hit)
    assert answer["AssignmentReviewPolicy"] == policy
    report = answer["AssignmentReviewReport"]
    assert results_of(report) == [
        ("Assignment", "rating", "KnownAnswerCorrect", "1" if score == "100" else "0"),
        ("Assignment", None, "KnownAnswerScore", score),
    ]
    decision = "approve" if status == "Approved" else "reject"
    assert [action[0] for action in actions_of(report)] == ["review", decision]


def test_between_the_thresholds_nothing_is_decided(mturk, worker):
    policy = known_answers(
        {"a": ["1"], "b": ["2"]},
        ApproveIfKnownAnswerScoreIsAtLeast="100",
        RejectIfKnownAnswerScoreIsLessThan="50",
    )
    assignment = submit(worker, publish(mturk, AssignmentReviewPolicy=policy), a="1", b="1")
    stored = mturk.get_assignment(AssignmentId=assignment)["Assignment"]
    assert stored["AssignmentStatus"] == "Submitted"
    hit = publish(mturk, HITReviewPolicy=plurality(["A, B"]))
    submit(worker, hit, A="1", B="2")
    report = mturk.list_review_policy_results_for_hit(HITId=hit)["HITReviewReport"]
    assert ("HIT", None, "HitAgreementScore", "100") in results_of(report)
    hit = publish(mturk)
    submit(worker, hit)
    answer = mturk.list_review_policy_results_for_hit(HITId=hit)
    assert {name for name in answer if name != "ResponseMetadata"} == {"HITId"}


def test_a_wrong_known_answer_lets_somebody_else_try(mturk, make_worker):
    policy = known_answers(
        {"rating": ["4"]},
        RejectIfKnownAnswerScoreIsLessThan="100",
        ExtendIfKnownAnswerScoreIsLessThan="100",
        ExtendMaximumAssignments="3",
    )
    hit = publish(mturk, AssignmentReviewPolicy=policy)
    statuses = []
    for name in ("bea", "cleo", "dora"):
        submit(make_worker(name), hit, rating="1")
        statuses.append(status_of(mturk, hit))
    assert statuses == ["Assignable", "Assignable", "Reviewable"]
    assert balances(mturk) == ("100.00", "0.00")


@pytest.mark.parametrize(
    ("answer", "key", "is_correct"),
    [
        (("B", "A"), ("A", "B"), True),
        (("A",), ("A", "B"), False),
        (("A", "B"), ("A",), False),
        (("a",), ("A",), False),
        (("",), (), True),
    ],
)
def test_a_known_answer_is_matched_as_a_set(answer, key, is_correct):
    score = score_known_answers(normalized({"q": answer}), normalized({"q": key}))
    assert score == {"q": is_correct}


# Refusals, paging, choices


def test_a_policy_that_makes_no_sense_is_refused(mturk):
    for policies in (
        {"AssignmentReviewPolicy": plurality(["A"])},
        {"HITReviewPolicy": known_answers({"a": ["1"]})},
        {"AssignmentReviewPolicy": {"PolicyName": "ScoreMyKnownAnswers/2011-09-01"}},
        {"AssignmentReviewPolicy": known_answers({})},
        {"AssignmentReviewPolicy": known_answers({"a": ["1"]}, Colour="green")},
        {"AssignmentReviewPolicy": known_answers({"a": ["1"]}, ExtendMaximumAssignments="1")},
        {"AssignmentReviewPolicy": known_answers({"a" * 129: ["1"]})},
        {"AssignmentReviewPolicy": known_answers({"a": ["1"]}, RejectReason="x" * 1025)},
        {"HITReviewPolicy": plurality([])},
        {"HITReviewPolicy": plurality(["A"], "many")},
        {"HITReviewPolicy": plurality(["A"], DisregardAssignmentIfRejected="maybe")},
        {"HITReviewPolicy": plurality(["A"], ExtendIfHITAgreementScoreIsLessThan="50")},
    ):
        assert turk_code(publish, mturk=mturk, **policies) == "InvalidParameterValue"
        assert mturk.list_hits()["NumResults"] == 0


def test_results_and_actions_are_chosen_and_read_page_by_page(mturk, workers):
    policies = {"AssignmentReviewPolicy": known_answers({"A": ["coat"]})}
    hit = publish(mturk, MaxAssignments=3, HITReviewPolicy=plurality(["A"]), **policies)
    for worker, answers in zip(workers, CHART.values(), strict=True):
        submit(worker, hit, A=answers["A"])
    ask = mturk.list_review_policy_results_for_hit
    results = ask(HITId=hit)
    assert "HITReviewReport" not in ask(HITId=hit, PolicyLevels=["Assignment"])
    assert "AssignmentReviewReport" not in ask(HITId=hit, PolicyLevels=["HIT"])
    assert "ReviewActions" not in ask(HITId=hit, RetrieveActions=False)["HITReviewReport"]
    assert "ReviewResults" not in ask(HITId=hit, RetrieveResults=False)["HITReviewReport"]
    pages, token = [], {}
    while True:
        page = ask(HITId=hit, MaxResults=4, **token)
        if "NextToken" not in page:
            break
        pages.append(page)
        token = {"NextToken": page["NextToken"]}
    for level in ("Assignment", "HIT"):
        for kind in ("ReviewResults", "ReviewActions"):
            gathered = [row for page in pages for row in page[f"{level}ReviewReport"][kind]]
            assert gathered == results[f"{level}ReviewReport"][kind]

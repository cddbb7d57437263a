"""POST /mturk/externalSubmit."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from marketplace import clock
from marketplace.hits.assignments import accept_hit, return_assignment
from marketplace.models import Assignment
from tests.codes import codes_on


@pytest.fixture
def assignment(hit, worker):
    return accept_hit(worker=worker, hit=hit)


def post(public_id, **fields):
    """As a page with an opaque origin does: no cookie, no CSRF token."""
    return Client(enforce_csrf_checks=True).post(
        "/mturk/externalSubmit", {"assignmentId": public_id} | fields, headers={"Origin": "null"}
    )


def test_the_answers_are_kept_and_a_receipt_is_given(mturk, assignment, worker):
    response = post(
        assignment.public_id,
        hitId=assignment.hit.public_id,
        workerId=worker.worker_id,
        turkSubmitTo="http://testserver",
        rating="4",
        chosen=["a", "c"],
        reason="Ünïcode & <b>\r\nnext",
    )
    assert response.status_code == 200
    assert assignment.public_id in response.content.decode()
    (listed,) = mturk.list_assignments_for_hit(HITId=assignment.hit.public_id)["Assignments"]
    assert listed["Answer"] == (
        '<?xml version="1.0" encoding="UTF-8"?>\n<QuestionFormAnswers xmlns='
        '"http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/'
        'QuestionFormAnswers.xsd">'
        "<Answer><QuestionIdentifier>rating</QuestionIdentifier><FreeText>4</FreeText></Answer>"
        "<Answer><QuestionIdentifier>chosen</QuestionIdentifier><FreeText>a|c</FreeText></Answer>"
        "<Answer><QuestionIdentifier>reason</QuestionIdentifier>"
        "<FreeText>Ünïcode &amp; &lt;b&gt;&#13;\nnext</FreeText></Answer></QuestionFormAnswers>"
    )


def test_a_plain_form_is_taken_as_well_as_a_multipart_one(assignment):
    response = Client().post(
        "/mturk/externalSubmit",
        f"assignmentId={assignment.public_id}&rating=4",
        content_type="application/x-www-form-urlencoded",
    )
    assert response.status_code == 200
    assignment.refresh_from_db()
    assert "<FreeText>4</FreeText>" in assignment.answer


def test_submitting_again_gives_the_same_receipt_and_changes_nothing(mturk, assignment):
    first = post(assignment.public_id, rating="4")
    # The receipt can be framed, and informs the page around it.
    assert "X-Frame-Options" not in first.headers
    assert "marketplace/receipt.js" in first.content.decode()
    before = Assignment.objects.values().get()
    clock.advance(timedelta(hours=2))
    again = post(assignment.public_id, rating="1")
    assert (again.status_code, again.content) == (200, first.content)
    assert Assignment.objects.values().get() == before
    mturk.approve_assignment(AssignmentId=assignment.public_id)
    assert post(assignment.public_id, rating="4").content == first.content


def check_refusal(response, status, code):
    assert (response.status_code, codes_on(response.content.decode())) == (status, [code])


def test_what_comes_after_the_deadline_is_refused(assignment):
    clock.advance(timedelta(seconds=1200))
    check_refusal(post(assignment.public_id, rating="4"), 410, "time_over")
    assignment.refresh_from_db()
    assert (assignment.status, assignment.answer) == ("Abandoned", "")


def test_a_submission_in_the_last_second_counts(assignment):
    clock.advance(timedelta(seconds=1195))
    assert post(assignment.public_id, rating="4").status_code == 200


def test_a_returned_assignment_cannot_be_submitted(assignment):
    return_assignment(assignment=assignment)
    check_refusal(post(assignment.public_id, rating="4"), 410, "returned")


@pytest.mark.parametrize("public_id", ["NONE", "", "a\0b", "<script>", "A" * 500])
def test_an_unknown_assignment_cannot_be_submitted(db, public_id):
    response = post(public_id, rating="4")
    assert response.status_code == 404
    assert "<script>" not in response.content.decode().split("<body")[1]


def test_a_preview_cannot_be_submitted(assignment):
    check_refusal(post("ASSIGNMENT_ID_NOT_AVAILABLE", rating="4"), 403, "preview_only")


def test_a_form_without_an_answer_is_refused_and_can_be_sent_again(assignment):
    response = post(assignment.public_id, hitId="x", workerId="y", turkSubmitTo="z")
    check_refusal(response, 400, "nothing_answered")
    # An empty answer is an answer.
    assert post(assignment.public_id, reason="").status_code == 200
    assignment.refresh_from_db()
    assert "<FreeText></FreeText>" in assignment.answer


def test_a_form_that_is_too_large_is_refused(assignment, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 5
    assert post(assignment.public_id, reason="x" * 1000).status_code == 413
    assert post(assignment.public_id, **{f"f{n}": "" for n in range(5)}).status_code == 413
    upload = SimpleUploadedFile("a.bin", b"x" * 1000)
    assert post(assignment.public_id, rating="4", file=upload).status_code == 413
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 2
    uploads = [SimpleUploadedFile(f"{n}.bin", b"x") for n in range(3)]
    assert post(assignment.public_id, rating="4", files=uploads).status_code == 413
    assignment.refresh_from_db()
    assert assignment.status == "Accepted"


def test_a_page_may_have_thousands_of_fields(assignment):
    assert post(assignment.public_id, **{f"word-{n}": "1" for n in range(5000)}).status_code == 200
    assignment.refresh_from_db()
    assert assignment.answer.count("<Answer>") == 5000


def test_only_a_post_submits(assignment):
    path = f"/mturk/externalSubmit?assignmentId={assignment.public_id}&rating=4"
    assert Client().get(path).status_code == 405

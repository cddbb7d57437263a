"""Drafts on the server, more time, and submitting: POST /mturk/externalSubmit."""

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from marketplace import clock, models
from marketplace.hits import assignments, drafts
from tests.codes import codes_on
from tests.marketplace.conftest import HIT, submit


@pytest.fixture
def assignment(hit, worker):
    return assignments.accept_hit(worker=worker, hit=hit)


def path_of(assignment, name="draft"):
    return f"/worker/assignments/{assignment.public_id}/{name}/"


def save(browser, assignment, draft, revision=0, progress="1 of 8", **extra):
    body = {"draft": draft, "progress": progress, "revision": revision}
    return browser.post(
        path_of(assignment), json.dumps(body), content_type="application/json", **extra
    )


def test_a_draft_is_bounded_and_returning_it_asks_first(ada, assignment):
    assert save(ada, assignment, "x" * drafts.LARGEST_DRAFT).status_code == 200
    assert save(ada, assignment, "é" * drafts.LARGEST_DRAFT, revision=1).status_code == 413
    assert save(ada, assignment, "x" * 10 * drafts.LARGEST_DRAFT, revision=1).status_code == 413
    assert len(models.AssignmentDraft.objects.get().content) == drafts.LARGEST_DRAFT
    body = '{"draft": "a\\ud83d", "progress": "", "revision": 1}'
    assert ada.post(path_of(assignment), body, content_type="application/json").status_code == 200
    assert models.AssignmentDraft.objects.get().content == "a\ufffd"
    save(ada, assignment, "x", revision=2, progress="3 of 8")
    response = ada.post(path_of(assignment, "return"))
    assert "3 of 8" in response.content.decode()
    assignment.refresh_from_db()
    assert assignment.status == "Accepted"
    response = ada.post(path_of(assignment, "return"), {"confirmed": "yes"})
    assert response.headers["Location"] == "/worker/"
    assignment.refresh_from_db()
    assert assignment.status == "Returned"


def test_a_draft_is_kept_and_one_that_began_from_an_older_one_overwrites_nothing(ada, assignment):
    for body in (
        "",
        "7",
        "{}",
        '{"draft": 1, "progress": "", "revision": 0}',
        '{"draft": "", "progress": "", "revision": true}',
        '{"draft": "", "progress": "", "revision": -1}',
        "[" * 100_000,
    ):
        response = ada.post(path_of(assignment), body, content_type="application/json")
        assert (response.status_code, response.json()["code"]) == (409, "request_refused")
        assert not models.AssignmentDraft.objects.exists()
    saved = save(ada, assignment, "ünï 🙂\0")
    assert (saved.status_code, saved.json()["revision"]) == (200, 1)
    assert save(ada, assignment, "two", revision=1).json()["revision"] == 2
    read = ada.get(path_of(assignment)).json()
    assert (read["draft"], read["revision"]) == ("two", 2)
    page = ada.get(f"/worker/assignments/{assignment.public_id}/")
    assert page.context["state"]["draft"] == "two"
    assert models.AssignmentDraft.objects.get().progress == "1 of 8"
    for revision in (0, 1, 3, 7):
        refused = save(ada, assignment, "theirs", revision=revision)
        assert refused.status_code == 409
        assert (refused.json()["draft"], refused.json()["revision"]) == ("two", 2)
    assert models.AssignmentDraft.objects.get().content == "two"


def test_nothing_is_kept_of_what_was_submitted_returned_or_out_of_time(ada, worker, mturk):
    for end in ("submit", "return", "time"):
        hit = models.Hit.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITId"])
        assignment = assignments.accept_hit(worker=worker, hit=hit)
        save(ada, assignment, "x")
        if end == "submit":
            fields = {"assignmentId": assignment.public_id, "rating": "4"}
            assert ada.post("/mturk/externalSubmit", fields).status_code == 200
        elif end == "return":
            ada.post(path_of(assignment, "return"), {"confirmed": "yes"})
        else:
            clock.advance(timedelta(hours=1))
        assert save(ada, assignment, "late", revision=1).status_code in (409, 410)
        drafts.delete_closed_drafts()
        assert not models.AssignmentDraft.objects.exists()


# Time


def test_more_time_can_be_had_once(ada, assignment, requester):
    before = assignment.deadline
    state = ada.get(path_of(assignment)).json()
    assert state["more_seconds"] == 600  # half of twenty minutes
    added = ada.post(path_of(assignment, "more-time")).json()
    assignment.refresh_from_db()
    assert assignment.deadline == before + timedelta(minutes=10)
    assert (added["deadline"], added["more_seconds"]) == (assignment.deadline.isoformat(), 0)
    assert ada.post(path_of(assignment, "more-time")).status_code == 409
    clock.advance(timedelta(minutes=25))
    assert ada.get(path_of(assignment)).status_code == 200
    clock.advance(timedelta(minutes=10))
    assert ada.get(path_of(assignment)).status_code == 410
    assert ada.post(path_of(assignment, "more-time")).status_code == 410


# Submitted


def test_the_page_around_the_frame_gets_a_receipt_as_data(ada, assignment):
    def send(rating):
        return ada.post(
            "/mturk/externalSubmit",
            {"assignmentId": assignment.public_id, "rating": rating},
            headers={"Accept": "application/json"},
        )

    first = send("4").json()
    assert first["receipt"] == assignment.public_id[-4:]
    assert (first["is_as_sent"], first["is_signed_in"]) == (True, True)
    assert send("5").json() == first | {"is_as_sent": False}
    refused = ada.post(
        "/mturk/externalSubmit", {"assignmentId": "NONE"}, headers={"Accept": "application/json"}
    )
    assert (refused.status_code, refused.json()["code"]) == (404, "assignment_does_not_exist")


def test_workers_see_what_they_submitted_and_nobody_elses(
    ada, worker, mturk, make_worker, browser_of
):
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    submitted = submit(worker, hit, rating="4", answer='{"a": ["<b>"]}')
    path = f"/worker/assignments/{submitted}/submitted/"
    page = ada.get(path).content.decode()
    assert submitted[-4:] in page
    assert "&lt;b&gt;" in page
    assert path in ada.get("/worker/dashboard/").content.decode()
    assert browser_of(make_worker("eve")).get(path).status_code == 404


def test_a_requester_is_told_what_is_broken_and_sets_how_much_time_may_be_added(
    ada, assignment, requester, rita, django_user_model
):
    body = json.dumps({"text": "No picture B"})
    for _ in range(2):
        response = ada.post(path_of(assignment, "report"), body, content_type="application/json")
        assert response.status_code == 200
    page = rita.get(f"/requester-console/{requester.public_id}/").content.decode()
    assert page.count("No picture B") == 1
    path = f"/requester-console/{requester.public_id}/more-time/"
    assert rita.post(path, {"more_time_percent": "101"}).status_code == 422
    other = Client()
    other.force_login(django_user_model.objects.create_user("stranger"))
    assert other.post(path, {"more_time_percent": "0"}).status_code in (403, 404)
    for percent in (25, 0):
        assert rita.post(path, {"more_time_percent": percent}).status_code == 302
        requester.refresh_from_db()
        assert requester.more_time_percent == percent
    assert ada.get(path_of(assignment)).json()["more_seconds"] == 0
    assert ada.post(path_of(assignment, "more-time")).status_code == 409
    page = ada.get(f"/worker/assignments/{assignment.public_id}/").content.decode()
    assert 'id="more-time"' not in page


def post(public_id, **fields):
    """As a page with an opaque origin does: no cookie, no CSRF token."""
    return Client(enforce_csrf_checks=True).post(
        "/mturk/externalSubmit", {"assignmentId": public_id} | fields, headers={"Origin": "null"}
    )


def test_the_answers_are_kept_and_submitting_again_gives_the_same_receipt(
    mturk, assignment, worker
):
    first = post(
        assignment.public_id,
        hitId=assignment.hit.public_id,
        workerId=worker.worker_id,
        turkSubmitTo="http://testserver",
        rating="4",
        chosen=["a", "c"],
        reason="Ünïcode & <b>\r\nnext",
    )
    assert first.status_code == 200
    assert assignment.public_id in first.content.decode()
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
    # The receipt can be framed, and informs the page around it.
    assert "X-Frame-Options" not in first.headers
    assert "marketplace/receipt.js" in first.content.decode()
    before = models.Assignment.objects.values().get()
    clock.advance(timedelta(hours=2))
    again = post(assignment.public_id, rating="1")
    assert (again.status_code, again.content) == (200, first.content)
    assert models.Assignment.objects.values().get() == before
    mturk.approve_assignment(AssignmentId=assignment.public_id)
    assert post(assignment.public_id, rating="4").content == first.content


def check_refusal(response, status, code):
    assert (response.status_code, codes_on(response.content.decode())) == (status, [code])


def test_only_a_post_in_time_of_what_was_accepted_submits_also_as_a_plain_form(
    assignment, make_worker, mturk
):
    check_refusal(post("ASSIGNMENT_ID_NOT_AVAILABLE", rating="4"), 403, "preview_only")
    other = models.Hit.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITId"])
    returned = assignments.accept_hit(worker=make_worker("eve"), hit=other)
    assignments.return_assignment(assignment=returned)
    check_refusal(post(returned.public_id, rating="4"), 410, "returned")
    clock.advance(timedelta(seconds=1195))
    path, fields = "/mturk/externalSubmit", f"assignmentId={assignment.public_id}&rating=4"
    assert Client().get(f"{path}?{fields}").status_code == 405
    plain = "application/x-www-form-urlencoded"
    assert Client().post(path, fields, content_type=plain).status_code == 200
    assignment.refresh_from_db()
    assert "<FreeText>4</FreeText>" in assignment.answer


def test_a_form_unknown_too_large_or_without_an_answer_is_refused(db, assignment, settings):
    for public_id in ("NONE", "", "a\0b", "<script>", "A" * 500):
        response = post(public_id, rating="4")
        assert response.status_code == 404
        assert "<script>" not in response.content.decode().split("<body")[1]
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
    response = post(assignment.public_id, hitId="x", workerId="y", turkSubmitTo="z")
    check_refusal(response, 400, "nothing_answered")
    # An empty answer is an answer.
    assert post(assignment.public_id, reason="").status_code == 200
    assignment.refresh_from_db()
    assert "<FreeText></FreeText>" in assignment.answer


def test_a_page_may_have_thousands_of_fields(assignment):
    assert post(assignment.public_id, **{f"word-{n}": "1" for n in range(5000)}).status_code == 200
    assignment.refresh_from_db()
    assert assignment.answer.count("<Answer>") == 5000

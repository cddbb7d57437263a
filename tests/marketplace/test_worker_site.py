"""The worker site, as a browser sees it; pages and links written for Mechanical Turk."""

import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from django.utils.translation import gettext, override

from marketplace import clock, models
from marketplace.documents.questions import begin_with, send_here
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.templatetags.marketplace_tags import time_left
from tests.codes import codes_on, message_codes
from tests.marketplace.conftest import EXTERNAL_QUESTION, HIT, PASSWORD, question_with, submit

SANDBOX = "sandbox allow-scripts allow-forms allow-modals allow-popups"


def text_of(response):
    return response.content.decode()


def frame_of(response):
    tag = re.search(r'<iframe id="task"[^>]*>', text_of(response))[0]
    attributes = dict(re.findall(r'([a-z]+)="([^"]*)"', tag))
    return {name: value.replace("&amp;", "&") for name, value in attributes.items()}


def test_signing_up_opens_a_worker_account(db, worker):
    browser = Client()
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    response = browser.post("/worker/signup/", {"username": "ada@example.org"} | passwords)
    assert response.headers["Location"] == "/worker/"
    worker = models.WorkerAccount.objects.get(user__username="ada@example.org")
    assert re.fullmatch("A[A-Z0-9]{13}", worker.worker_id)
    assert worker.worker_id in text_of(browser.get("/worker/"))
    browser.logout()
    assert browser.get("/worker/").headers["Location"] == "/worker/login/?next=/worker/"
    fields = {"username": "ada", "password": PASSWORD, "next": "/worker/dashboard/"}
    response = browser.post("/worker/login/", fields)
    assert response.headers["Location"] == "/worker/dashboard/"
    assert browser.post("/worker/logout/").headers["Location"] == "/worker/login/"
    assert browser.get("/worker/").status_code == 302


def listed_groups(browser, **query):
    return list(browser.get("/worker/", query).context["page"])


def test_a_group_is_listed_with_the_hits_the_worker_can_do(mturk, ada, worker, make_worker):
    hits = [mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(3)]
    page = text_of(ada.get("/worker/"))
    for text in (HIT["Title"], "Dialogue lab", "$0.63", "20"):
        assert text in page
    assert [group.available_count for group in listed_groups(ada)] == [3]
    submit(worker, hits[0])
    submit(make_worker("ben"), hits[1])
    assert [group.available_count for group in listed_groups(ada)] == [1]
    submit(worker, hits[2])
    assert listed_groups(ada) == []


def test_what_a_requester_writes_is_shown_as_text(mturk, ada):
    title = "<script>alert(1)</script>"
    hit = mturk.create_hit(**HIT | {"Title": title})["HIT"]["HITId"]
    for path in ("/worker/", f"/worker/hits/{hit}/"):
        page = text_of(ada.get(path))
        assert title not in page
        assert escape(title) in page
    hit = mturk.create_hit(**HIT | {"Question": EXTERNAL_QUESTION})["HIT"]["HITId"]
    assert ada.get(f"/worker/frame/preview/{hit}/").status_code == 404
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=0)
    mturk.delete_hit(HITId=hit)
    assert ada.get(f"/worker/frame/preview/{hit}/").status_code == 404
    assert ada.get(f"/worker/hits/{hit}/").status_code == 404


def test_a_hit_is_previewed_worked_on_and_returned(ada, hit, worker):
    response = ada.get(f"/worker/hits/{hit.public_id}/")
    frame = frame_of(response)
    query = parse_qs(urlsplit(frame["src"]).query)
    assert urlsplit(frame["src"]).path == f"/worker/frame/preview/{hit.public_id}/"
    assert query == {
        "assignmentId": ["ASSIGNMENT_ID_NOT_AVAILABLE"],
        "hitId": [hit.public_id],
        "turkSubmitTo": ["http://testserver"],
        "assayPage": ["1"],
    }
    assert f'action="/worker/hits/{hit.public_id}/accept/"' in text_of(response)
    assert not models.Assignment.objects.exists()
    assignment = accept_hit(worker=worker, hit=hit)
    path = f"/worker/assignments/{assignment.public_id}/"
    response = ada.get(path)
    frame = frame_of(response)
    assert urlsplit(frame["src"]).path == f"/worker/frame/{assignment.public_id}/"
    assert parse_qs(urlsplit(frame["src"]).query) == {
        "assignmentId": [assignment.public_id],
        "hitId": [hit.public_id],
        "workerId": [worker.worker_id],
        "turkSubmitTo": ["http://testserver"],
        "assayPage": ["1"],
        "assaySlot": ["0"],
    }
    assert (frame["sandbox"], frame["height"]) == (SANDBOX.removeprefix("sandbox "), "450")
    assert f'"deadline": "{assignment.deadline.isoformat()}"' in text_of(response)
    assert f'action="{path}return/"' in text_of(response)
    assert f'action="/worker/groups/{hit.hit_type.public_id}/next/"' in text_of(response)
    response = ada.post(path + "return/", follow=True)
    assert response.redirect_chain == [("/worker/", 302)]
    assert message_codes(response) == ["returned"]
    for refused in (ada.get(path), ada.post(path + "return/")):
        assert (refused.status_code, refused.context["code"]) == (410, "returned")


def test_a_group_previews_its_next_hit_or_leads_back_to_the_list(ada, worker, hit):
    path = f"/worker/groups/{hit.hit_type.public_id}/"
    response = ada.get(path)
    assert hit.public_id in frame_of(response)["src"]
    assert f'action="{path}accept/"' in text_of(response)
    assert response.context["n_hits"] == 1
    submit(worker, hit.public_id)
    response = ada.get(path, follow=True)
    assert response.redirect_chain == [("/worker/", 302)]
    assert message_codes(response) == ["none_left"]


def test_a_page_elsewhere_keeps_its_origin_and_ours_does_not(mturk, ada):
    ours = EXTERNAL_QUESTION.replace("https://study.example", "http://testserver")
    sandboxes = []
    for question in (EXTERNAL_QUESTION, ours):
        hit = mturk.create_hit(**HIT | {"Question": question})["HIT"]["HITId"]
        frame = frame_of(ada.get(f"/worker/hits/{hit}/"))
        query = parse_qs(urlsplit(frame["src"]).query)
        assert list(query)[:4] == ["item", "round", "assignmentId", "hitId"]
        assert query["assignmentId"] == ["ASSIGNMENT_ID_NOT_AVAILABLE"]
        assert "style" not in frame
        sandboxes.append(frame["sandbox"])
    assert "allow-same-origin" in sandboxes[0]
    assert "allow-same-origin" not in sandboxes[1]


@pytest.mark.parametrize("signed_in", [True, False])
def test_a_requesters_html_has_an_origin_of_its_own(ada, worker, hit, signed_in):
    assignment = accept_hit(worker=worker, hit=hit)
    browser = ada if signed_in else Client()
    for path in (f"/worker/frame/{assignment.public_id}/", f"/worker/frame/preview/{hit}/"):
        response = browser.get(path)
        policy = response.headers["Content-Security-Policy"]
        assert policy.startswith(SANDBOX + ";")
        assert response.headers["X-Frame-Options"] == "SAMEORIGIN"
        assert text_of(response).startswith("<!doctype html><script src=")
        assert "</script><title>Task</title>" in text_of(response)


def test_what_cannot_be_had_is_explained(ada, worker, hit, make_worker, browser_of, mturk):
    def check(response, status, code):
        assert (response.status_code, response.context["code"]) == (status, code)
        assert codes_on(text_of(response)) == [code]

    assignment = accept_hit(worker=make_worker("ben"), hit=hit)
    check(ada.post(f"/worker/hits/{hit.public_id}/accept/"), 410, "no_assignments_left")
    group = f"/worker/groups/{hit.hit_type.public_id}/"
    check(ada.post(f"{group}accept/"), 410, "no_assignments_left")
    done = mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]["HITId"]
    submitted = submit(worker, done)
    check(ada.get(f"/worker/hits/{done}/"), 409, "done_already")
    check(ada.post(f"/worker/hits/{done}/accept/"), 409, "done_already")
    path = f"/worker/assignments/{submitted}/"
    assert ada.get(path).headers["Location"] == f"{path}submitted/"
    clock.advance(timedelta(days=1))
    check(browser_of(make_worker("eve")).get(f"/worker/hits/{done}/"), 410, "hit_expired")
    late = browser_of(assignment.worker).get(f"/worker/assignments/{assignment.public_id}/")
    check(late, 410, "time_over")


def test_an_id_of_nothing_is_not_found(ada):
    for path in (
        *("hits/NONE/", "groups/NONE/", "assignments/NONE/", "frame/NONE/"),
        *("qualifications/NONE/", "qualification-tests/NONE/"),
        *("hits/a/", "hits/A%00/", "groups/é/", "frame/a-b/"),
    ):
        assert ada.get(f"/worker/{path}").status_code == 404
    for path in ("", "?groupId=NONE", "andaccept?groupId=%00", "?hitId=%00"):
        assert ada.get(f"/mturk/preview{path}").status_code == 404


def test_the_dashboard_reports_earnings_and_a_blocked_worker_is_informed_and_never_why(
    mturk, ada, worker
):
    hits = [mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(3)]
    first, second, _ = (submit(worker, hit) for hit in hits)
    mturk.approve_assignment(AssignmentId=first)
    mturk.reject_assignment(AssignmentId=second, RequesterFeedback="Empty reason")
    page = ada.get("/worker/dashboard/")
    sums = [page.context[name] for name in ("earned_usd", "pending_usd")]
    assert [f"{each:.2f}" for each in sums] == ["0.63", "0.63"]
    assert page.context["counts"] == {"submitted": 3, "Submitted": 1, "Approved": 1, "Rejected": 1}
    assert text_of(page).count("$0.63") == 5  # the two sums, and each assignment's reward
    assert "Empty reason" in text_of(page)
    mturk.create_hit(**HIT)
    mturk.create_worker_block(WorkerId=worker.worker_id, Reason="Too slow")
    assert [each.code for each in unmet(ada)] == ["blocked"]
    assert "Too slow" not in text_of(ada.get("/worker/"))
    assert titles(ada, qualified="on") == []


HERE = {"external_hit": "/a.js", "crowd_elements": "/b.js", "external_submit": "/submit"}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("https://s3.amazonaws.com/mturk-public/externalHIT_v1.js", "/a.js"),
        ("http://s3.amazonaws.com/mturk-public/externalHIT_v1.js", "/a.js"),
        ("//s3.amazonaws.com/mturk-public/externalHIT_v1.js", "/a.js"),
        ("https://mturk-public.s3.amazonaws.com/externalHIT_v1.js", "/a.js"),
        ("https://assets.crowd.aws/crowd-html-elements.js", "/b.js"),
        ("https://www.mturk.com/mturk/externalSubmit", "/submit"),
        ("https://workersandbox.mturk.com/mturk/externalSubmit", "/submit"),
        ("https://s3.amazonaws.com/my-bucket/externalHIT_v1.js", None),
        ("https://assets.crowd.aws/other.js", None),
        ("https://www.mturk.com.example/mturk/externalSubmit", None),
    ],
)
def test_only_amazons_addresses_lead_here(theirs, ours):
    page = '<script src="{0}"></script><form action="{0}"></form>'
    assert send_here(page.format(theirs), **HERE) == page.format(ours or theirs)


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html>{}<html>",
        "\n <!-- made by a tool -->\n<!doctype html>{}\n<p>",
        "\ufeff<!doctype html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN'>{}<p>",
        "{}<form>",
        "{}Just text <!doctype html>",
    ],
)
def test_a_script_of_ours_runs_first_and_leaves_the_document_type_alone(page):
    script = '<script src="/a.js?b&amp;c"></script>'
    assert begin_with(page.format(""), script="/a.js?b&c") == page.format(script)


@pytest.fixture
def hits(mturk):
    return [mturk.create_hit(**HIT)["HIT"] for _ in range(2)]


def test_links_to_a_group_or_a_hit_lead_to_it_after_signing_in(ada, hits):
    group, hit = f"/worker/groups/{hits[0]['HITTypeId']}/", f"/worker/hits/{hits[1]['HITId']}/"
    for link, page in (
        (f"/mturk/preview?groupId={hits[0]['HITTypeId']}", group),
        (f"/mturk/preview?groupId={hits[0]['HITGroupId']}", group),
        (f"/projects/{hits[0]['HITTypeId']}/tasks", group),
        (f"/projects/{hits[0]['HITGroupId']}/tasks", group),
        (f"/mturk/preview?hitId={hits[1]['HITId']}", hit),
    ):
        assert ada.get(link).headers["Location"] == page
        anonymous = urlsplit(Client().get(link).headers["Location"])
        assert anonymous.path == "/worker/login/"
        assert parse_qs(anonymous.query) == {"next": [link]}


def test_the_next_page_shows_a_hit_and_confirms_what_was_submitted(ada, worker, hits):
    assignment = accept_hit(worker=worker, hit=models.Hit.objects.get(public_id=hits[0]["HITId"]))
    group = f"/worker/groups/{hits[0]['HITTypeId']}/"
    path = f"{group}next/"
    assert ada.get(path).headers["Location"] == group
    assert "receipt" not in message_codes(ada.get(path, follow=True))
    submit_assignment(public_id=assignment.public_id, fields=[("rating", ["4"])])
    assert "receipt" in message_codes(ada.get(path, follow=True))
    clock.advance(timedelta(minutes=2))
    assert "receipt" not in message_codes(ada.get(path, follow=True))


def test_auto_accept_goes_on_until_nothing_is_left(ada, hits, mturk):
    group = f"/worker/groups/{hits[0]['HITTypeId']}/"
    ada.post(group + "accept/", {"auto_accept": "on"})
    first = models.Assignment.objects.get()
    second = ada.post(group + "next/").headers["Location"]
    assert second == f"/worker/assignments/{models.Assignment.objects.exclude(pk=first.pk).get()}/"
    assert is_ticked(ada.get(second))
    other = mturk.create_hit(**HIT | {"Title": "Lamps"})["HIT"]["HITTypeId"]
    assert not is_ticked(ada.get(f"/worker/groups/{other}/"))
    response = ada.post(group + "next/", follow=True)
    assert response.redirect_chain[-1] == ("/worker/", 302)
    assert message_codes(response) == ["none_left"]


def is_ticked(response):
    return 'name="auto_accept" checked' in text_of(response)


def test_the_time_left_is_written_by_the_server_as_the_script_writes_it():
    now = clock.now()
    left = {-5: [], 0.2: ["1"], 59: ["59"], 60: ["1", "0"], 3599.5: ["1", "0"], 7265: ["2", "1"]}
    for seconds, numbers in left.items():
        assert re.findall(r"\d+", time_left(now + timedelta(seconds=seconds), now)) == numbers


COUNTRY = "00000000000000000071"
APPROVED = "00000000000000000040"


def titles(ada, **query):
    return [group.title for group in ada.get("/worker/", query).context["page"]]


def unmet(ada):
    return [each for _, lacking, _ in ada.get("/worker/").context["rows"] for each in lacking]


def require(type_id, comparator, guard="Accept", **values):
    wants = {"QualificationTypeId": type_id, "Comparator": comparator, "ActionsGuarded": guard}
    return wants | values


FROM_CANADA = {"LocaleValues": [{"Country": "CA"}]}


@pytest.fixture
def groups(mturk):
    mturk.create_hit(**HIT | {"Title": "Lamps", "Reward": "0.10"})
    chairs = {"Title": "Chairs", "Reward": "0.50", "AssignmentDurationInSeconds": 60}
    for _ in range(2):
        mturk.create_hit(**HIT | chairs)
    mturk.create_hit(**HIT | {"Title": "Tables", "Reward": "2.00", "LifetimeInSeconds": 3600})


TASK_TEXTS = re.compile(
    r'{% translate "([^"]*)" %}|{% blocktranslate[^%]*%}(.*?){% endblocktranslate %}', re.DOTALL
)


@pytest.mark.parametrize(("language", "direction"), [("de", "ltr"), ("ar", "rtl")])
def test_the_page_around_a_task_is_in_its_language(mturk, ada, worker, language, direction):
    html = f'<!doctype html><html dir="{direction}" lang="{language}"><title>T</title><form></form>'
    hit_id = mturk.create_hit(**HIT | {"Question": question_with(html)})["HIT"]["HITId"]
    public_id = accept_hit(worker=worker, hit=models.Hit.objects.get(public_id=hit_id)).public_id
    page = text_of(ada.get(f"/worker/assignments/{public_id}/"))
    assert re.search(f'<html lang="{language}"{" dir=.rtl." if language == "ar" else ""}>', page)
    with override(language):
        assert gettext("Return this HIT") in page
    assert ">Return this HIT<" not in page


@pytest.mark.parametrize("language", ["de", "ar"])
def test_every_text_around_a_task_is_translated(language):
    folder = Path(settings.BASE_DIR, "marketplace/locale", language, "LC_MESSAGES")
    with (folder / "django.po").open("rb") as po, (folder / "django.mo").open("rb") as mo:
        stored, compiled = read_po(po), read_mo(mo)
    texts = {each.id: each.string for each in stored if each.id}
    assert texts == {each.id: each.string for each in compiled if each.id}  # msgfmt was run
    missing = set()
    for name in ("assignment", "hit_facts", "work_texts"):
        source = Path(settings.BASE_DIR, "templates/marketplace", f"{name}.html").read_text()
        for plain, block in TASK_TEXTS.findall(source):
            text = re.sub(r"{{ (\w+) }}", r"%(\1)s", block.replace("%", "%%")) if block else plain
            missing |= {text} - {*texts}
    assert missing == set()


def test_order_least_reward_and_requester_are_in_the_address(ada, groups, other_lab, requester):
    for order, sorts in (
        (["Tables", "Chairs", "Lamps"], ("", "newest", "reward", "no such order")),
        (["Chairs", "Tables", "Lamps"], ("hits", "shortest")),
        (["Tables", "Lamps", "Chairs"], ("expires",)),
    ):
        assert [titles(ada, sort=sort) for sort in sorts] == [order] * len(sorts)
    left_of = {"0.50": 2, "$1": 1, "3": 0, "": 3, "lots": 3, "-1": 3, "NaN": 3, "1e9": 3}
    for least, left in left_of.items():
        assert len(titles(ada, min_reward=least)) == left
    other_lab.create_hit(**HIT | {"Title": "Other"})
    assert len(titles(ada)) == 4
    assert "Other" not in titles(ada, requester=requester.public_id)
    page = text_of(ada.get("/worker/", {"requester": requester.public_id, "sort": "reward"}))
    assert 'href="?sort=reward"' in page  # without the requester
    assert f"?requester={requester.public_id}" in text_of(ada.get("/worker/"))
    combined = {"q": "s", "min_reward": "0.2", "requester": requester.public_id}
    assert titles(ada, **combined, sort="hits") == ["Chairs", "Tables"]


def test_what_a_worker_lacks_is_said_in_the_list(mturk, ada, worker, groups):
    wants = [
        require(COUNTRY, "EqualTo", **FROM_CANADA),
        require(APPROVED, "GreaterThan", IntegerValues=[9]),
    ]
    mturk.create_hit(**HIT | {"Title": "Canada"}, QualificationRequirements=wants)
    assert "Canada" in titles(ada)
    assert titles(ada, qualified="on") == ["Tables", "Chairs", "Lamps"]
    profile = f'<a href="{reverse("marketplace:profile")}">'
    n_links = text_of(ada.get("/worker/dashboard/")).count(profile)
    for country, codes, is_asked in (
        ("", ["not_held", "wrong_value"], True),
        ("GB", ["wrong_value", "wrong_value"], False),
        ("CA", ["wrong_value"], False),
    ):
        worker.country = country
        worker.save()
        lacking = unmet(ada)
        assert [each.code for each in lacking] == codes
        assert lacking[0].is_of_place == (country != "CA")
        page = text_of(ada.get("/worker/"))
        assert codes_on(page) == codes
        assert page.count(profile) == n_links + is_asked
    assert re.findall("[0-9]+", lacking[0].reason) == ["9", "0"]


@pytest.mark.parametrize(
    ("guard", "is_listed", "preview_status"),
    [
        ("Accept", True, 200),
        ("PreviewAndAccept", True, 403),
        ("DiscoverPreviewAndAccept", False, 403),
    ],
)
def test_what_a_requirement_guards(mturk, ada, worker, guard, is_listed, preview_status):
    wants = [require(COUNTRY, "EqualTo", guard, **FROM_CANADA)]
    hit = mturk.create_hit(**HIT, QualificationRequirements=wants)["HIT"]
    assert (len(titles(ada)) == 1) == is_listed
    for path in (f"/worker/groups/{hit['HITTypeId']}/", f"/worker/hits/{hit['HITId']}/"):
        response = ada.get(path)
        assert response.status_code == preview_status
        assert codes_on(text_of(response)) == ["not_held"]
        assert '<form class="accept"' not in text_of(response)
        refused = ada.post(path + "accept/")
        assert (refused.status_code, refused.context["code"]) == (403, "not_held")
    assert models.Hit.objects.get().assignments.count() == 0
    worker.country = "CA"
    worker.save()
    assert titles(ada) == [HIT["Title"]]
    assert ada.get(path).status_code == 200
    assert ada.post(path + "accept/").status_code == 302

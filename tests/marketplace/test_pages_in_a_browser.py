"""Every page of workers, requesters and operators in a real Chromium, in light and dark; and
a participant's whole way from an invite link to the completion code."""

import re

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from marketplace.models import Assignment, HitType, LedgerAudit, Notification
from marketplace.recruiting.studies import PROLIFIC, StudyValues, invite, open_study
from tests.browsers import opened_page, sign_in
from tests.marketplace.conftest import (
    HIT,
    PASSWORD,
    check_accessible,
    make_type,
    question_with,
    submit,
    watched_page,
)
from tests.marketplace.forms import FULL_FORM
from tests.marketplace.test_taking_qualifications import KEY, TESTED
from tests.marketplace.test_tasks_in_a_browser import PLAIN
from tests.marketplace.test_worker_site import COUNTRY, FROM_CANADA, require
from work.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EXPLAINED_KEY = KEY.replace(
    "<QuestionIdentifier>river</QuestionIdentifier>",
    "<QuestionIdentifier>river</QuestionIdentifier><?assay-explanation The river is the Aare, and "
    "not the Rhine, which it meets at Koblenz.?>",
)


@pytest.fixture
def page(chromium, live_server):
    size = {"width": 1200, "height": 900}
    with watched_page(chromium, base_url=live_server.url, viewport=size) as page:
        page.route("https://pictures.example/**", lambda route: route.abort())
        yield page


@pytest.fixture
def hit_type(mturk):
    return HitType.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITTypeId"])


def look(page, path):
    page.goto(path)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        check_accessible(page)
    page.set_viewport_size({"width": 360, "height": 740})
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{path} is {wide} pixels wider than a telephone"
    captions = "[...document.querySelectorAll('caption')]"
    ends = page.evaluate(f"{captions}.map((node) => node.getBoundingClientRect().right)")
    assert all(end <= 360 for end in ends), f"a caption of {path} is cut off: {ends}"
    page.set_viewport_size({"width": 1200, "height": 900})


@pytest.fixture
def busy_worker(mturk, worker, requester):
    hits = [mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(4)]
    first, second, _ = (submit(worker, hit) for hit in hits[:3])
    mturk.approve_assignment(AssignmentId=first, RequesterFeedback="Very well done.")
    mturk.reject_assignment(AssignmentId=second, RequesterFeedback="The reason was empty.")
    mturk.send_bonus(
        WorkerId=worker.worker_id, BonusAmount="1", AssignmentId=first, Reason="Careful work"
    )
    mturk.notify_workers(
        Subject="More tomorrow", MessageText="At nine.", WorkerIds=[worker.worker_id]
    )
    created = make_type(mturk, "Geography", **TESTED, AnswerKey=EXPLAINED_KEY)
    wants = [
        require(created, "GreaterThan", IntegerValues=[50]),
        require(COUNTRY, "EqualTo", **FROM_CANADA),
    ]
    guarded = mturk.create_hit(
        **HIT | {"Title": "Name the places"}, QualificationRequirements=wants
    )["HIT"]
    mturk.associate_qualification_with_worker(
        QualificationTypeId=make_type(mturk, "Fast readers"),
        WorkerId=worker.worker_id,
        IntegerValue=9,
    )
    questions = mturk.create_hit(**HIT | {"Title": "Judge a lamp", "Question": FULL_FORM})["HIT"]
    return {"made": created, "guarded": guarded["HITTypeId"], "form": questions["HITTypeId"]}


def test_the_workers_pages(page, busy_worker):
    look(page, "/worker/signup/")
    sign_in(page, "/worker/login/", "ada", PASSWORD)
    names = ("dashboard", "earnings", "messages", "qualifications", "profile", "payout")
    for name in (*names, "privacy", "your-data", "your-data/erase", "erased"):
        look(page, f"/worker/{name}/")
    look(page, "/worker/")
    page.locator("td details summary").press("Enter")
    test_link = f"li a[href='/worker/qualifications/{busy_worker['made']}/']"
    expect(page.locator(test_link)).to_be_visible()
    look(page, f"/worker/groups/{busy_worker['guarded']}/")
    look(page, f"/worker/groups/{busy_worker['form']}/")
    page.locator("form.accept button").click()
    page.wait_for_url("**/worker/assignments/**")
    look(page, page.url)
    look(page, "/worker/dashboard/")
    expect(page.locator("section[aria-labelledby=held]")).to_contain_text("Judge a lamp")
    look(page, f"/worker/qualifications/{busy_worker['made']}/")
    page.locator("form.accept button").press("Enter")
    page.wait_for_url("**/worker/qualification-tests/**")
    look(page, page.url)
    for choice in page.get_by_text("Choice ").all()[::2]:
        choice.click()
    page.locator("form.questions button.primary").press("Enter")
    expect(page.locator("#result")).to_be_visible()
    expect(page.get_by_text("The river is the Aare")).to_be_visible()
    look(page, page.url)
    # On a telephone, the last column of a list is read without scrolling.
    page.set_viewport_size({"width": 360, "height": 740})
    for path in ("/worker/", "/worker/dashboard/", "/worker/earnings/"):
        page.goto(path)
        expect(page.locator("table.labelled").first).to_be_visible()
        assert page.locator("table:not(.labelled)").count() == 0
        for table in page.locator("table").all():
            assert table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")


@pytest.mark.flow
def test_from_an_invite_link_to_the_completion_code(page, mturk, requester):
    for _ in range(2):
        created = mturk.create_hit(**HIT | {"Question": question_with(PLAIN)})["HIT"]
    values = StudyValues(
        name="Lab",
        kind="invite",
        items_per_session=2,
        completion_code="LAB-7",
        redirect_url="https://lab.example/{code}",
    )
    hit_type = HitType.objects.get(public_id=created["HITTypeId"])
    study = open_study(requester=requester, hit_type=hit_type, values=values)
    (invitation,) = invite(study=study, labels=["P 1"])
    look(page, f"/join/{invitation.token}/")
    take_part = page.locator("form.accept button")
    take_part.press("Enter")
    page.wait_for_url("**/worker/studies/**")
    look(page, page.url)
    go_on = page.locator("main a.button.primary")
    go_on.press("Enter")
    rate(page)
    page.wait_for_url("**/worker/assignments/**")
    page.locator("header a.back").press("Enter")
    page.wait_for_url("**/worker/studies/**")
    expect(go_on).to_have_attribute("href", re.compile("/worker/assignments/"))
    expect(page.locator("body")).not_to_contain_text("LAB-7")
    look(page, page.url)
    with page.expect_navigation():
        page.locator("header form button").press("Enter")
    expect(go_on).to_have_count(0)
    look(page, page.url)
    page.goto(f"/join/{invitation.token}/")
    take_part.press("Enter")
    page.wait_for_url("**/worker/studies/**")
    go_on.press("Enter")
    rate(page)
    page.wait_for_url("**/worker/studies/**")
    expect(page.locator("#completion-code")).to_have_text("LAB-7")
    look(page, page.url)
    expect(go_on).to_have_attribute("href", "https://lab.example/LAB-7")
    invitation.refresh_from_db()
    assert {one.worker for one in Assignment.objects.all()} == {invitation.worker}


def rate(page):
    page.wait_for_url("**/worker/assignments/**")
    frame = page.frame_locator("iframe#task")
    frame.get_by_label("Rating").fill("4")
    with page.expect_navigation():
        frame.locator("#submitButton").press("Enter")


def test_the_requesters_pages(page, requester, hit_type, settings):
    settings.MARKETPLACE_REQUESTER_SIGN_UP = True
    requester.users.add(User.objects.create_user("rita", password=PASSWORD))
    look(page, "/requester-console/login/")
    look(page, "/requester-console/sign-up/")
    sign_in(page, "/requester-console/login/", "rita", PASSWORD)
    home = f"/requester-console/{requester.public_id}/"
    page.locator("[name=label]").fill("Laptop")
    page.locator("form[action$='/keys/'] button").press("Enter")
    expect(page.locator("#secret-access-key")).to_be_visible()
    look(page, home)
    look(page, home + "statement/")
    values = StudyValues(name="Lab", kind="invite", completion_code="LAB-7")
    lab = open_study(requester=requester, hit_type=hit_type, values=values)
    invite(study=lab, labels=["P 1", "P 2"])
    panel = open_study(
        requester=requester,
        hit_type=hit_type,
        values=StudyValues(name="Prolific", kind="panel", completion_code="C1", **PROLIFIC),
    )
    look(page, home + "channels/?panel=prolific")
    look(page, f"{home}channels/{lab.token}/")
    look(page, f"{home}channels/{panel.token}/")


@pytest.mark.flow
def test_the_operators_pages(page, mturk, worker, requester):
    User.objects.create_user("olga", password=PASSWORD, is_staff=True)
    mturk.approve_assignment(AssignmentId=submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]))
    sign_in(page, "/requester-console/login/?next=/marketplace-operator/", "olga", PASSWORD)
    look(page, "/marketplace-operator/")
    look(page, f"/marketplace-operator/requesters/{requester.public_id}/")
    values = {"amount_usd": "12.50", "reference": "Invoice 7", "name": "Dialogue lab"}
    for name, value in values.items():
        page.locator(f"[name={name}]").fill(value)
    page.keyboard.press("Enter")
    expect(page.locator("[data-code=deposited]")).to_be_visible()
    page.goto("/marketplace-operator/payouts/")
    page.locator("form[action$='/payouts/make/'] button").press("Enter")
    with page.expect_download():
        page.locator("form[action$='/export/'] button").press("Enter")
    look(page, "/marketplace-operator/payouts/")
    look(page, "/marketplace-operator/audit/")
    now = timezone.now()
    Job.objects.create(
        kind="score",
        queue="scoring",
        title="Scoring by bertscore",
        dedupe_key="x",
        state="failed",
        message="No room on the disk. " * 4,
        finished_at=now,
    )
    Notification.objects.create(
        requester=requester,
        destination="https://hooks.dialogue-lab.example.org/assay/events",
        transport="HTTPS",
        event_type="AssignmentSubmitted",
        body="{}",
        created_at=now,
        attempts=8,
        next_attempt_at=None,
        last_error="https://hooks.dialogue-lab.example.org/assay/events answered 503.",
    )
    LedgerAudit.objects.create(
        created_at=now, duration_seconds=0.1, n_problems=1, problems=["Entry 7 says 1.00. " * 4]
    )
    look(page, "/marketplace-operator/status/")


def test_who_comes_by_a_panels_number_in_another_browser_goes_on_and_sees_no_more(
    page, chromium, mturk, requester, live_server
):
    for _ in range(2):
        created = mturk.create_hit(**HIT)["HIT"]
    hit_type = HitType.objects.get(public_id=created["HITTypeId"])
    values = StudyValues(
        name="Cups",
        kind="panel",
        panel="SONA",
        worker_parameter="survey_code",
        items_per_session=1,
        redirect_url="https://sona.example/credit?credit_token=T&survey_code={worker}",
    )
    study = open_study(requester=requester, hit_type=hit_type, values=values)
    link = f"/join/{study.token}/?survey_code=12345"

    def come(where):
        where.goto(link)
        where.locator("form.accept button").click()
        where.wait_for_url("**/worker/studies/**")

    come(page)
    with opened_page(chromium, base_url=live_server.url) as other:
        come(other)
        other.locator("main a.button.primary").click()
        other.wait_for_load_state("load")  # by when the page around the frame listens
        task = other.frame_locator("iframe#task").locator("body")
        entered = """() => parent.postMessage(
            {type: "assay:draft", draft: "mine", progress: ""}, "*")"""
        with other.expect_response(lambda answer: "/draft/" in answer.url and answer.status == 403):
            task.evaluate(entered)
        expect(other.locator("#saved")).not_to_be_empty()
        expect(other.locator("#work-state")).to_be_hidden()
    session = study.sessions.get()
    held = session.items.get().assignment.public_id
    Client().post("/mturk/externalSubmit", {"assignmentId": held, "rating": "4"})
    page.reload()
    expect(page.locator("a[href*='sona.example']")).to_be_visible()
    with opened_page(chromium, base_url=live_server.url) as third:
        come(third)
        look(third, f"/worker/studies/{session.public_id}/")
        look(third, "/worker/your-data/")

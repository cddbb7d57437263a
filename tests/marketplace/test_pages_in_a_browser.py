"""Every page of workers, requesters and operators in a real Chromium, in light and dark; and
a participant's whole way from an invite link to the completion code."""

import os
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from marketplace.models import Assignment, HitType, LedgerAudit, Notification
from marketplace.recruiting.studies import PROLIFIC, StudyValues, invite, open_study
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in
from tests.marketplace.conftest import HIT, PASSWORD, submit
from tests.marketplace.forms import FULL_FORM
from tests.marketplace.test_taking_qualifications import KEY, TEST
from tests.marketplace.test_tasks_in_a_browser import PLAIN
from work.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURES = os.environ.get("PICTURES_FOLDER")
EXPLAINED_KEY = KEY.replace(
    "<QuestionIdentifier>river</QuestionIdentifier>",
    "<QuestionIdentifier>river</QuestionIdentifier><?assay-explanation The river is the Aare, and "
    "not the Rhine, which it meets at Koblenz.?>",
)


@pytest.fixture(params=["light", "dark"])
def page(request, chromium, live_server):
    look = {"color_scheme": request.param, "viewport": {"width": 1200, "height": 900}}
    with opened_page(chromium, base_url=live_server.url, **look) as page:
        page.route("https://pictures.example/**", lambda route: route.abort())
        yield page


@pytest.fixture
def hit_type(mturk):
    return HitType.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITTypeId"])


def look(page, path, name):
    """No accessibility fault, nothing wider than the window; a picture where one is wanted."""
    page.goto(path)
    assert accessibility_problems(page, frames=False) == []
    page.set_viewport_size({"width": 360, "height": 740})
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{path} is {wide} pixels wider than a telephone"
    captions = "[...document.querySelectorAll('caption')]"
    ends = page.evaluate(f"{captions}.map((node) => node.getBoundingClientRect().right)")
    assert all(end <= 360 for end in ends), f"a caption of {path} is cut off: {ends}"
    scheme = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'")
    if PICTURES:
        page.screenshot(path=Path(PICTURES, f"{name}-{scheme}-narrow.png"), full_page=True)
    page.set_viewport_size({"width": 1200, "height": 900})
    if PICTURES:
        page.screenshot(path=Path(PICTURES, f"{name}-{scheme}.png"), full_page=True)


@pytest.fixture
def busy_worker(mturk, worker, requester):
    """Ada, with work in every state, a bonus, a message and qualifications."""
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
    created = mturk.create_qualification_type(
        Name="Geography",
        Description="Knows places.",
        QualificationTypeStatus="Active",
        Test=TEST,
        AnswerKey=EXPLAINED_KEY,
        TestDurationInSeconds=600,
    )["QualificationType"]["QualificationTypeId"]
    wants = [
        {"QualificationTypeId": created, "Comparator": "GreaterThan", "IntegerValues": [50]},
        {
            "QualificationTypeId": "00000000000000000071",
            "Comparator": "EqualTo",
            "LocaleValues": [{"Country": "CA"}],
        },
    ]
    guarded = mturk.create_hit(
        **HIT | {"Title": "Name the places"}, QualificationRequirements=wants
    )["HIT"]
    mturk.associate_qualification_with_worker(
        QualificationTypeId=mturk.create_qualification_type(
            Name="Fast readers", Description="d", QualificationTypeStatus="Active"
        )["QualificationType"]["QualificationTypeId"],
        WorkerId=worker.worker_id,
        IntegerValue=9,
    )
    questions = mturk.create_hit(**HIT | {"Title": "Judge a lamp", "Question": FULL_FORM})["HIT"]
    return {"made": created, "guarded": guarded["HITTypeId"], "form": questions["HITTypeId"]}


def test_the_workers_pages(page, busy_worker):
    look(page, "/worker/signup/", "signup")
    sign_in(page, "/worker/login/", "ada", PASSWORD)
    for name in ("dashboard", "earnings", "messages", "qualifications", "profile"):
        look(page, f"/worker/{name}/", name)
    look(page, "/worker/", "hits")
    page.get_by_text("No, see why").press("Enter")
    expect(page.get_by_role("link", name="Take its test")).to_be_visible()
    look(page, f"/worker/groups/{busy_worker['guarded']}/", "not-qualified")
    look(page, f"/worker/groups/{busy_worker['form']}/", "form-preview")
    page.get_by_role("button", name="Accept this HIT").click()
    page.wait_for_url("**/worker/assignments/**")
    look(page, page.url, "form-work")
    look(page, "/worker/dashboard/", "dashboard-at-work")
    expect(page.get_by_role("region", name="You are working on")).to_contain_text("Judge a lamp")
    look(page, f"/worker/qualifications/{busy_worker['made']}/", "qualification")
    page.get_by_role("button", name="Start the test").press("Enter")
    page.wait_for_url("**/worker/qualification-tests/**")
    look(page, page.url, "test")
    for choice in page.get_by_text("Choice ").all()[::2]:
        choice.click()
    page.get_by_role("button", name="Hand in").press("Enter")
    expect(page.get_by_role("heading", name="Your latest test")).to_be_visible()
    expect(page.get_by_text("The river is the Aare")).to_be_visible()
    look(page, page.url, "test-result")


def test_the_rows_of_a_list_fit_a_telephone(page, busy_worker):
    """Also the last column, which says whether one can accept, is read without scrolling."""
    page.set_viewport_size({"width": 360, "height": 740})
    sign_in(page, "/worker/login/", "ada", PASSWORD)
    for path in ("/worker/", "/worker/dashboard/", "/worker/earnings/"):
        page.goto(path)
        expect(page.locator("table.rows").first).to_be_visible()
        assert page.locator("table:not(.rows)").count() == 0
        for table in page.locator("table").all():
            assert table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")


def test_from_an_invite_link_to_the_completion_code(page, mturk, requester):
    start = HIT["Question"].index("<!doctype")
    html = HIT["Question"][:start] + PLAIN + HIT["Question"][HIT["Question"].index("]]>") :]
    for _ in range(2):
        created = mturk.create_hit(**HIT | {"Question": html})["HIT"]
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
    look(page, f"/join/{invitation.token}/", "arrive")
    page.get_by_role("button", name="Take part", exact=True).press("Enter")
    page.wait_for_url("**/worker/studies/**")
    expect(page.locator("main")).to_contain_text("2 pages are reserved for you.")
    look(page, page.url, "session-start")
    page.get_by_role("link", name="Start", exact=True).press("Enter")
    rate(page)
    page.wait_for_url("**/worker/assignments/**")
    page.get_by_role("link", name="Your study", exact=True).first.press("Enter")
    expect(page.locator("main")).to_contain_text("You have submitted 1.")
    expect(page.locator("body")).not_to_contain_text("LAB-7")
    look(page, page.url, "session-half")
    page.get_by_role("button", name="Sign out", exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Open the study’s link again")
    look(page, page.url, "session-left")
    page.goto(f"/join/{invitation.token}/")
    page.get_by_role("button", name="Take part", exact=True).press("Enter")
    page.wait_for_url("**/worker/studies/**")
    page.get_by_role("link", name="Go on working", exact=True).press("Enter")
    rate(page)
    page.wait_for_url("**/worker/studies/**")
    expect(page.locator("#completion-code")).to_have_text("LAB-7")
    look(page, page.url, "session-finished")
    way_back = page.get_by_role("link", name="Go back to lab.example", exact=True)
    expect(way_back).to_have_attribute("href", "https://lab.example/LAB-7")
    invitation.refresh_from_db()
    assert {one.worker for one in Assignment.objects.all()} == {invitation.worker}


def rate(page):
    page.wait_for_url("**/worker/assignments/**")
    frame = page.frame_locator("iframe#task")
    frame.get_by_label("Rating").fill("4")
    with page.expect_navigation():
        frame.get_by_role("button", name="Submit").press("Enter")


def test_the_requesters_pages(page, requester, hit_type, settings):
    settings.MARKETPLACE_REQUESTER_SIGN_UP = True
    requester.users.add(User.objects.create_user("rita", password=PASSWORD))
    look(page, "/requester-console/login/", "requester-login")
    look(page, "/requester-console/sign-up/", "requester-sign-up")
    sign_in(page, "/requester-console/login/", "rita", PASSWORD)
    home = f"/requester-console/{requester.public_id}/"
    page.get_by_label("What the new key is for").fill("Laptop")
    page.get_by_role("button", name="Make a key").press("Enter")
    expect(page.locator("#secret-access-key")).to_be_visible()
    if PICTURES:
        page.screenshot(path=Path(PICTURES, "requester-key.png"), full_page=True)
    look(page, home, "requester")
    look(page, home + "statement/", "statement")
    values = StudyValues(name="Lab", kind="invite", completion_code="LAB-7")
    lab = open_study(requester=requester, hit_type=hit_type, values=values)
    invite(study=lab, labels=["P 1", "P 2"])
    panel = open_study(
        requester=requester,
        hit_type=hit_type,
        values=StudyValues(name="Prolific", kind="panel", completion_code="C1", **PROLIFIC),
    )
    look(page, home + "channels/?panel=prolific", "channels")
    look(page, f"{home}channels/{lab.token}/", "channel-invite")
    look(page, f"{home}channels/{panel.token}/", "channel-panel")


def test_the_operators_pages(page, mturk, worker, requester):
    User.objects.create_user("olga", password=PASSWORD, is_staff=True)
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    mturk.approve_assignment(AssignmentId=submit(worker, hit))
    sign_in(page, "/requester-console/login/?next=/marketplace-operator/", "olga", PASSWORD)
    look(page, "/marketplace-operator/", "operator")
    look(page, f"/marketplace-operator/requesters/{requester.public_id}/", "operator-requester")
    page.get_by_label("Amount, $").fill("12.50")
    page.get_by_label("Reference").fill("Invoice 7")
    page.get_by_label("The requester's name, once more").fill("Dialogue lab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("$12.50 put into the account")
    page.goto("/marketplace-operator/payouts/")
    page.get_by_role("button", name="Take $0.63 into a batch").press("Enter")
    with page.expect_download():
        page.get_by_role("button", name="Export batch").press("Enter")
    look(page, "/marketplace-operator/payouts/", "operator-payouts")
    look(page, "/marketplace-operator/audit/", "operator-audit")
    add_failures(requester)
    look(page, "/marketplace-operator/status/", "operator-status")


def add_failures(requester):
    """A job that failed, an event that nobody could be told of, and a ledger that is wrong."""
    now = timezone.now()
    Job.objects.create(
        kind="score",
        queue="scoring",
        title="Scoring of “Dialogues” by bertscore",
        subject="study:12",
        dedupe_key="x",
        state="failed",
        message="The model could not be loaded: no room on the disk. It was tried 5 times.",
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
        created_at=now,
        duration_seconds=0.1,
        n_problems=1,
        problems=["Entry 7 of available of Dialogue lab says 1.00, not 100.00."],
    )


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
        where.get_by_role("button", name="Take part").click()

    come(page)
    with opened_page(chromium, base_url=live_server.url) as other:
        come(other)
        other.get_by_role("link", name="Start").click()
        other.wait_for_load_state("load")  # by when the page around the frame listens
        task = other.frame_locator("iframe#task").locator("body")
        entered = """() => parent.postMessage(
            {type: "assay:draft", draft: "mine", progress: ""}, "*")"""
        with other.expect_response(lambda answer: "/draft/" in answer.url and answer.status == 403):
            task.evaluate(entered)
        expect(other.get_by_text("Kept in this browser")).to_be_visible()
        expect(other.get_by_text("You have left this study")).to_have_count(0)
    session = study.sessions.get()
    held = session.items.get().assignment.public_id
    Client().post("/mturk/externalSubmit", {"assignmentId": held, "rating": "4"})
    page.reload()
    expect(page.get_by_role("link", name="Go back to sona.example")).to_be_visible()
    with opened_page(chromium, base_url=live_server.url) as third:
        come(third)
        session.refresh_from_db()
        expect(third.get_by_text(session.code)).to_be_visible()
        expect(third.get_by_text("ended in another browser")).to_be_visible()
        look(third, f"/worker/studies/{session.public_id}/", "ended-elsewhere")
        look(third, "/worker/your-data/", "not-your-browser")
